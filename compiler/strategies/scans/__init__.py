"""Scans along rows and columns, and in one pass with look-back.

Imports: compiler.kernels, compiler.analysis, compiler.ir, spirv, formats, base, status.
Read: scan_tiles, row_scans, column_scans, look_back_scans.
"""
