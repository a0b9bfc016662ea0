"""The canonical form: one way to say what programs say in several, and nothing that is not needed.

Imports: ir, dialects, passes.formulas, targets.
Read: checks, custom_calls, distribution, legacy, canonicalize, trip_counts.
"""
