"""Buffers that tests fill and read without copies on a queue."""

from __future__ import annotations

import numpy as np

from pumice.hal.memory import MemoryTypeFlags
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.memory.buffer import Buffer

HOST = MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.DEVICE_LOCAL


def host_buffer(device: Device, data: bytes) -> Buffer:
    """A mapped buffer of these bytes."""
    buffer = device.create_buffer(len(data), memory_type=HOST)
    buffer.write(data)
    return buffer


def buffer_of(device: Device, array: np.ndarray) -> Buffer:
    """A mapped buffer of an array's elements."""
    return host_buffer(device, array.tobytes() or bytes(4))
