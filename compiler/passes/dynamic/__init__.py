"""Call-dependent lengths: every ``?`` becomes a size.

Read: known_sizes, forms, requirements, resolve.
"""
