"""Translation of verified functions to Python source.

Read: basic_block, control_flow, expressions, module_analysis, operations, ranges, register_types, analysis, entries,
flow, source, tree, values, operation_writer, call_writer, parallel_copy, blocks, structure, translator.
"""
