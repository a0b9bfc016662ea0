"""Validation: SPIRV-Tools, and the requirements of a module on a device.

Read: tools, requirement_tables, requirements, vocabulary, validation, capabilities.
"""
