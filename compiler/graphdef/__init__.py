"""TensorFlow GraphDef, text and binary, as StableHLO operations.

Imports: compiler.ir, compiler.dialects, compiler.targets and hal_reference (shapes are computed by the definitions).
Read: messages, document, tensors, graph, plan, node, broadcasting, elementwise, contractions, windows, normalization,
reductions, shapes, blocks, indexing, images, lists, operations, translator, control, importer.
"""
