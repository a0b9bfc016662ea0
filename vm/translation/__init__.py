"""Translation of verified functions to Python source.

Read: basic_block, control_flow, expressions, module_analysis, operations, ranges, analysis,
flow, tree, values, operation_writer, call_writer, blocks, structure, translator.
"""
