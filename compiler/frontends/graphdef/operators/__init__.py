"""The operators of TensorFlow graphs as StableHLO operations.

Imports: compiler.frontends.graphdef.file, compiler.dialects, compiler.passes, compiler.ir, base, status.
Read: node, elementwise, pieces, shapes, indexing, reductions, contractions, windows, normalization,
blocks, images, lists, control.
"""
