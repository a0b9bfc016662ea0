"""The results file: its schema, its rows, writing and reading it.

Read: records, rows, schema, database, point_result, sink, results_file, store, stored_results.
"""
