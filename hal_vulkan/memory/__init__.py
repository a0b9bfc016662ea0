"""Device memory: memory types, blocks, ranges of blocks, and the buffers that users hold.

Read: memory_type, suballocator, block, address_table, statistics, allocator, buffer.
"""
