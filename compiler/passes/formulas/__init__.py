"""Functions as formulas over StableHLO operations: those of CHLO, and of matrices.

Read: expression, error_functions, special_functions, complex_functions, chlo_structures, expand; matrix,
matrix_factors, tridiagonal.
"""
