"""Comparisons of results: which points may be compared, and how they differ.

Imports: study.definition, study.statistics, study.results.storage, base, status.
Read: revision, series, machine_record, comparability, paired_blocks, point_comparison, study_differences,
results_comparison.
"""
