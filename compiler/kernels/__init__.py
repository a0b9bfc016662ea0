"""Generation of SPIR-V kernels from regions of tensor operations, whatever the strategy.

Read: scalars, index, elements, contractions, elementwise, kernel, movement, reductions, scatters, region, strategy,
subgroup_access.
"""
