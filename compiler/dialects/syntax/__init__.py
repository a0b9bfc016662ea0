"""How operations of each dialect are read and printed.

Imports: ir.
Read: builtin, arith, tensor, scf, check, hlo_contractions, hlo_bodies, chlo, hlo, executables, sequencer, spirv_module,
text.
"""
