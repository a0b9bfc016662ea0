"""What happens to a program between the front end and the targets.

Imports: compiler.ir, compiler.dialects.
Read: rewrite, expression, matrix, matrix_factors, tridiagonal, checks, custom_calls, distribution, error_functions,
special_functions, complex_functions, chlo_structures, expand, verify, legacy, random_bits, transforms, factorizations,
decompose, weights, identities, scatters, split, canonical, trip_counts, regions, in_place, outline, memory, steps,
liveness, coalesce, predicate, barriers, schedule, ll_seq, stage_rules, verify_executables, verify_ll_seq,
verify_stages.
"""
