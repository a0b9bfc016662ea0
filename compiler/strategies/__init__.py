"""Strategies: schedules for regions of one kernel, and the choice among them.

A strategy computes the elements of one operation, its hero, in its own way. It asks the element functions for the
operands and keeps the results, so that the operations before and after are fused.

Read: contraction, movement, rows, scans, sorts, choice.
"""
