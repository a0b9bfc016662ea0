"""Element-wise kernels, transposes and ordered scatters.

Imports: compiler.kernels, compiler.strategies.contraction, compiler.analysis, compiler.ir, spirv, formats, base,
status.
Read: elements, transposition, transpose_tile, shared_transpose, scatter_in_order.
"""
