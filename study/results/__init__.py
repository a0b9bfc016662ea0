"""Results of studies: an append-only SQLite file, its analysis, comparison and export.

Read: storage, analysis, comparison, best, export, results, history.
"""
