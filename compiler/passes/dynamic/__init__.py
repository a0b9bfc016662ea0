"""Lengths that are known at the call: every ``?`` becomes a size.

Imports: ir, dialects.
Read: known_sizes, forms, requirements, resolve.
"""
