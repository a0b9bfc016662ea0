"""Declarations of a module: entry points, bindings, blocks, specialization constants and workgroup sizes.

Read: reflection_types, constants, type_table, module, layout, access, declarations, reflect; block_text, block_names,
block_dtype, grid.
"""
