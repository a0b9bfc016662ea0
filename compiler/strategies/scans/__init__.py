"""Scans along rows and columns, and single-pass scans with look-back.

Read: scan_tiles, row_scans, column_scans, look_back_scans.
"""
