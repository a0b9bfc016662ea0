"""Functions over StableHLO values that front ends of all frameworks share.

Read: control, elementwise, known_values, broadcasting, movement, reductions, contractions, normalization, windows.
"""
