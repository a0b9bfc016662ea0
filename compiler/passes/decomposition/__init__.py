"""Decomposition of operations that no single kernel computes, or not fast enough.

Read: building, exact_sums, factorizations, random_bits, sorted_updates, staged_reductions, scans, digit_sorts, sorts,
split, transforms, decompose, updates_by_place, scatters.
"""
