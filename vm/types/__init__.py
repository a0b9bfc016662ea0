"""The reference types of the VM itself, buffers and lists, and the registry of all reference types.

Read: `ref_types`, `elements`, `siphash`, `buffer`, `list`.
"""
