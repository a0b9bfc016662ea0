"""Operations of each dialect: their syntax, and what they require and give.

Imports: ir.
Read: builtin, arith_syntax, tensor_syntax, scf_syntax, check_syntax, hlo_contraction_syntax, hlo_body_syntax,
chlo_syntax, hlo_syntax, executables, sequencer, spirv_module, text, builder, rules, hlo_elementwise, hlo_shapes,
hlo_indexing, hlo_reductions, hlo_linear_algebra, hlo_control, chlo, hlo.
"""
