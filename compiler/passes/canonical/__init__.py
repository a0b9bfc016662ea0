"""The canonical form: one spelling of each operation, constants folded, unused operations gone.

Read: checks, custom_calls, distribution, legacy, canonicalize, trip_counts.
"""
