"""TensorFlow's operators as StableHLO operations.

Read: node, elementwise, pieces, shapes, indexing, reductions, contractions, windows, normalization,
blocks, images, lists, control.
"""
