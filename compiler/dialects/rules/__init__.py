"""What operations of StableHLO and CHLO require, and the types that they give.

Imports: ir.
Read: requirements, bodies, elementwise, shapes, indexing, reductions, dynamic, statistics, linear_algebra,
distribution, older, control, chlo, hlo.
"""
