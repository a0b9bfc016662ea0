"""Operations of each dialect: their syntax.

Imports: ir.
Read: builtin, hlo_syntax, text.
"""
