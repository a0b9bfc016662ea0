"""TensorFlow's GraphDef, text and binary, as StableHLO operations.

Imports: compiler.ir, compiler.dialects, compiler.passes (formulas, sizes), compiler.targets and hal_reference, since
shapes are computed by the definitions of operations.
Read: messages, document, tensors, graph, plan, node, broadcasting, elementwise, pieces, shapes, blocks, indexing,
reductions, contractions, windows, normalization, images, lists, control, operations, translator, importer.
"""
