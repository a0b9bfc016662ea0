"""Validation: SPIRV-Tools, and what a module requires of a device.

Read: tools, requirement_tables, requirements, vocabulary, validation, capabilities.
"""
