"""Functions written as formulas over StableHLO's operations: CHLO's, and those of matrices.

Imports: ir, dialects, passes.rewrite.
Read: expression, error_functions, special_functions, complex_functions, chlo_structures, expand; matrix,
matrix_factors, tridiagonal.
"""
