"""Operations of each dialect: their syntax, and what they require and give.

Imports: ir.
Read: builtin, hlo_syntax, sequencer, text, builder, rules, hlo, hlo_indexing, hlo_reductions.
"""
