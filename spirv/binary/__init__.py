"""SPIR-V as words: reading instructions, the grammar's tables, and building modules.

Read: words, grammar_tables, grammar, subgroups, declarations, expression, folding, offsets, builder, integer_dots,
shared_memory, matrices.
"""
