"""What front ends of all frameworks build programs with: functions from StableHLO values to StableHLO values.

Read: known_values, broadcasting, elementwise, movement, reductions, normalization, contractions, windows.
"""
