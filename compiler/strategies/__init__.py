"""Strategies: schedules for regions of one kernel, and the choice among them.

A strategy computes the elements of one operation, its hero, in its own way, asks the element functions for the operands
and keeps the results, so that what comes before and after is fused.
Imports: compiler.codegen, compiler.ir, what compiler.passes knows of operations, spirv, formats.
Read: strategy, elements; contraction_grid, contraction_tile, shared_factors, workgroup_tile, cooperative_tile;
neighbours, subgroup_vectors; transposition, transpose_tile, shared_transpose; joining, rows_region, rows_writer,
rows, subgroup_rows; scan_tiles, row_scans, look_back_scans, column_scans; merge_sort, digit_sort, scatter_in_order,
fourier_rows; shape_class, shipped, choice.
"""
