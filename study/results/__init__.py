"""Results of studies: an append-only SQLite file, its reading, analysis, comparison and export.

Imports: ``study.definition``, ``study.statistics`` and ``status``.

Read: sink, store, results_file, database, schema, rows, stored_results, point_result, analysis, series, machine_record,
comparability, paired_blocks, point_comparison, study_differences, results_comparison, best, revision, history, tables,
results, export.
"""
