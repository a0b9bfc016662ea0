"""The VM's own reference types, buffers and lists, and the registry of all reference types.

Read: host_memory, numerics, elements, float_numerics, ref_types, buffer, list.
"""
