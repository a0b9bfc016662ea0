"""Device memory: which memory type, blocks, ranges of them, and the buffers that users hold.

Imports: `vulkan`, `instance`, `formats` and the ground files at the root.

Read: `memory_type`, `suballocator`, `block`, `allocator`, `buffer`, `buffer_view`.
"""

from __future__ import annotations

from .buffer import Buffer
from .buffer_view import BufferView
from .memory_type import BufferUsage, MemoryAccess, MemoryTypeFlags

__all__ = ["Buffer", "BufferUsage", "BufferView", "MemoryAccess", "MemoryTypeFlags"]
