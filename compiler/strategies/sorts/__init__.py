"""Sorts: by merging and by digits.

Imports: compiler.kernels, compiler.analysis, compiler.ir, spirv, formats, base, status.
Read: merge_sort, digit_sort.
"""
