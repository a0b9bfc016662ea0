"""Strategies: schedules for regions of one kernel, and the choice among them.

A strategy computes the elements of one operation, its hero, in its own way. It gets the operands from the element
functions and stores the results, so that the operations before and after the hero are fused.

Read: contraction, movement, rows, scans, sorts, choice.
"""
