"""Rows: reductions and what follows them, computed by invocations, subgroups or neighbours.

Read: rows_region, rows_writer, rows, subgroup_vectors, subgroup_rows, neighbours, fourier_rows.
"""
