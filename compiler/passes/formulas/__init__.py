"""Functions as formulas over StableHLO operations: those of CHLO, and of matrices.

Read: chlo_structures, expression, error_functions, special_functions, complex_functions, expand, matrix_factors.
"""
