"""Decomposition of operations that no kernel computes alone, or not fast enough.

Read: building, digit_sorts, exact_sums, factorizations, random_bits, sorted_updates, sorts, staged_reductions, scans,
split, transforms, decompose, updates_by_place, scatters.
"""
