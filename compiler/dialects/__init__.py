"""Operations of each dialect: their text, their rules, and a builder for StableHLO.

Read: syntax/, rules/, builder, rewrite.
"""
