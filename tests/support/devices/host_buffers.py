"""Buffers that tests fill and read without copies on a queue, and commands that run at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pumice.hal.memory import MemoryTypeFlags
from pumice.hal_vulkan.commands.command_buffer import CommandBuffer
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


@contextmanager
def submitted(device: Device, **options: bool) -> Iterator[CommandBuffer]:
    """Commands to be recorded within; at its end they have run."""
    with device.create_command_buffer(**options) as commands:
        yield commands.begin()
        device.compute_queue.submit((commands.end(),))
        device.wait_idle(20)
