"""Formulas over StableHLO operations for functions of CHLO and of matrices.

Read: expression, special_functions, complex_functions, expand, matrix_factors.
"""
