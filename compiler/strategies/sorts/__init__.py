"""Sorts: by merging and by digits.

Read: merge_sort, digit_sort.
"""
