"""Results of studies: an append-only SQLite file, its analysis, comparison and export.

Read: roofline, storage, analysis, comparison, best, tables, results, export, history.
"""
