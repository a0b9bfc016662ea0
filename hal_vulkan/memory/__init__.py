"""Device memory: which memory type, blocks, ranges of them, and the buffers that users hold.

Read: memory_type, suballocator, block, address_table, statistics, allocator, buffer.
"""
