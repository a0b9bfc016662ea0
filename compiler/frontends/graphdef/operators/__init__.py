"""TensorFlow's operators as StableHLO operations.

Read: known_values, node, elementwise, pieces, shapes, indexing, reductions, contractions, windows, normalization,
images, lists, control.
"""
