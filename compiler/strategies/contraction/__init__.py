"""Contractions: register tiles, workgroup tiles in shared memory, and cooperative matrices.

Read: contraction_grid, contraction_tile, shared_factors, workgroup_tile, cooperative_tile.
"""
