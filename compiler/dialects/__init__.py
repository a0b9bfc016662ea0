"""Operations of each dialect: their text, what they require and give, and a builder of StableHLO's.

Imports: ir.
Read: syntax, rules, builder.
"""
