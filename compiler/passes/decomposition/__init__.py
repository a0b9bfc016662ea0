"""Decomposition of operations that no kernel computes alone, or not fast enough.

Read: factorizations, random_bits, row_scatters, chunked_updates, exact_sums, sorted_updates, staged_reductions,
large_windows, scans, split, transforms, whole_words, digit_sorts, sorts, decompose, updates_by_place, scatters.
"""
