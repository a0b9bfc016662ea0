"""The canonical form: one spelling of each operation, constants folded, unused operations removed.

Read: custom_calls, legacy, canonicalize, trip_counts.
"""
