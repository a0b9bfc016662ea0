"""Lengths that depend on the call: every ``?`` becomes a size.

Read: known_sizes, forms, requirements, resolve.
"""
