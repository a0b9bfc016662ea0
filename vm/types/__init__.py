"""The reference types of the VM itself, buffers and lists, and the registry of all reference types.

Imports: `translation` and the ground files at the root.

Read: `ref_types`, `elements`, `siphash`, `buffer`, `list`.
"""
