"""Generation of SPIR-V kernels from regions of tensor operations, whatever the strategy.

Read: scalars/; index, elements; elementwise, movement, contractions, reductions, joining, scatters, fourier; kernel,
region, strategy, subgroup_access.
"""
