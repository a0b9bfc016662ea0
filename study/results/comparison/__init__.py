"""Comparisons of results: which points may be compared, and how they differ.

Read: revision, series, machine_record, comparability, point_comparison, results_comparison.
"""
