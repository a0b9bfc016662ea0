"""Comparisons of results: which points may be compared, and how they differ.

Read: revision, series, machine_record, comparability, paired_blocks, point_comparison, study_differences,
results_comparison.
"""
