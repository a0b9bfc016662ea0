"""TensorFlow's operators as StableHLO operations.

Read: known_values, node, movement, elementwise, pieces, shapes, indexing, reductions, contractions, windows,
normalization, blocks, images, lists, control.
"""
