"""SPIR-V as words: reading instructions, the grammar's tables, and building modules.

Read: grammar_tables, grammar, folding, words, declarations, expression, offsets, builder, integer_dots, push_memory,
shared_memory, matrices, subgroups.
"""
