"""Constraints and result types of StableHLO and CHLO operations.

Read: requirements, bodies, elementwise, shapes, indexing, reductions, dynamic, statistics, linear_algebra,
distribution, control, chlo, hlo.
"""
