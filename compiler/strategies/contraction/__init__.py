"""Contractions: register tiles, workgroup tiles in shared memory, and cooperative matrices.

Imports: compiler.kernels, compiler.analysis, compiler.ir, spirv, formats, base, status.
Read: contraction_grid, contraction_tile, shared_factors, workgroup_tile, cooperative_tile.
"""
