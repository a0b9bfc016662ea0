"""Rows: reductions and what follows them, computed by invocations, subgroups or neighbours.

Imports: compiler.kernels, compiler.analysis, compiler.ir, spirv, formats, base, status.
Read: rows_region, rows_writer, rows, subgroup_vectors, subgroup_rows, neighbours, fourier_rows.
"""
