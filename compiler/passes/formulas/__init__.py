"""Functions as formulas over StableHLO operations: those of CHLO, and of matrices.

Read: expression, special_functions, complex_functions, expand, matrix_factors.
"""
