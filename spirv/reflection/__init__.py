"""Declarations of a module: entry points, bindings, blocks, specialization constants and workgroup sizes.

Read: grid, reflection_types, block_dtype, block_text, block_names, constants, type_table, module, access, declarations,
layout, ownership, reflect.
"""
