"""Functions as formulas over StableHLO operations: those of CHLO, and of matrices.

Read: chlo_structures, expression, special_functions, complex_functions, expand, matrix_factors.
"""
