"""Results of studies: an append-only SQLite file, its analysis, comparison and export.

Read: storage, results, analysis, roofline, best, comparison, history, tables, export.
"""
