"""What no kernel computes alone, or not in time, as operations that one does.

Imports: codegen (the target), ir, dialects, passes.formulas, passes.canonical.
Read: random_bits, transforms, factorizations, whole_words, row_scatters, digit_sorts, sorts, decompose, exact_sums,
sorted_updates, chunked_updates, updates_by_place, scatters, staged_reductions, large_windows, split, scans.
"""
