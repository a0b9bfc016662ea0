"""The text form of operations of each dialect.

Read: builtin, arith, tensor, scf, check, hlo_contractions, hlo_bodies, chlo, hlo, executables, sequencer, spirv_module,
text.
"""
