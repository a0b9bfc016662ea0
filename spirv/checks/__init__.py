"""Validation: SPIRV-Tools, and what a module requires of a device.

Imports: spirv.binary, spirv.reflection, spirv.repair, base, status.
Read: tools, requirement_tables, requirements, vocabulary, validation, capabilities.
"""
