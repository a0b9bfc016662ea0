"""Validation: SPIRV-Tools, and the requirements of a module on a device.

Read: matrix_shapes, requirement_tables, requirements, capabilities, tools, vocabulary, validation.
"""
