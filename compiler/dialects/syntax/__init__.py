"""The text form of operations of each dialect.

Read: arith, builtin, check, chlo, executables, hlo_bodies, hlo_contractions, hlo, scf, sequencer, spirv_module,
spirv_parser, tensor, text.
"""
