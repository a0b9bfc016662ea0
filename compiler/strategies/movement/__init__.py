"""Element-wise kernels, transposes and ordered scatters.

Read: elements, transposition, transpose_tile, shared_transpose, scatter_in_order.
"""
