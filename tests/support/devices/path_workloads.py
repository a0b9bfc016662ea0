"""Workloads for planted faults on paths that the device at hand does not take by itself: memory that is not coherent,
imported memory, and descriptor sets in small pools.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

import numpy as np

import pumice
from pumice import shaders
from pumice.hal_vulkan import Device as VulkanDevice
from pumice.hal_vulkan import MemoryTypeFlags, PlanOptions
from pumice.hal_vulkan.instance.driver import shared_driver
from pumice.hal_vulkan.memory.block import Block, BlockFactory
from pumice.runtime.device import Device

Value = TypeVar("Value")
A: Final = np.arange(24, dtype=np.float32)
HOST: Final = MemoryTypeFlags.DEVICE_LOCAL | MemoryTypeFlags.HOST_VISIBLE


class _Keep(Protocol):
    def __call__(self, name: str, make: Callable[[], Value]) -> Value: ...


def incoherent(keep: _Keep) -> None:
    """Writes and reads memory that the host flushes and invalidates, and calls kernels on it."""
    device = keep("device", pumice.open_device)
    keep("blocks", lambda: _without_coherence(device.vulkan.allocator._factory))
    mul = keep("mul", lambda: device.load_kernel(shaders.path("mul")))
    x = keep("x", lambda: device.asarray(A))
    y = mul(x, A, device.empty(A.shape))
    np.testing.assert_array_equal(y.numpy(), A * A)
    with device.vulkan.create_buffer(1 << 20, memory_type=HOST) as buffer:
        for offset in (0, 60, (1 << 20) - 8):
            buffer.write(b"\1\2\3\4\5\6\7\x08", offset)
            assert buffer.read(offset, 8) == b"\1\2\3\4\5\6\7\x08"
        buffer.map()[:4] = b"abcd"
        buffer.flush(0, 4)
        buffer.invalidate(0, 4)
        assert buffer.read(0, 4) == b"abcd"


def _without_coherence(factory: BlockFactory) -> list[Block]:
    """Has all blocks of a device, the coming ones too, say that they are not coherent."""
    made = list(factory.made.values())
    make = factory.make

    def without(*arguments: Any, **options: Any) -> Block:
        block = make(*arguments, **options)
        block.coherent = False
        return block

    factory.make = without  # type: ignore[method-assign]
    for block in made:
        block.coherent = False
    return made


def imported(keep: _Keep) -> None:
    """Calls kernels with whole pages of the host's memory, which a device may use in place."""
    device = keep("device", pumice.open_device)
    mul = keep("mul", lambda: device.load_kernel(shaders.path("mul")))
    pages = keep("pages", lambda: [_pages() for _ in range(3)])
    x, y, result = pages
    x[:], y[:], result[:] = 3, np.arange(len(y)), 0
    mul(x, y, out=result)
    np.testing.assert_array_equal(result, y * 3)
    for copy in (False, True):
        buffer = device.vulkan.import_buffer(memoryview(x), copy=copy)
        if buffer is not None:
            with buffer, device.vulkan.create_buffer(64, memory_type=HOST) as target:
                device.vulkan.compute_queue.copy(buffer, target, 64)
                device.vulkan.wait_idle(20)
                assert target.read() == bytes(x[:16])


def sets(keep: _Keep) -> None:
    """Binds by descriptor sets, of which a pool has two: each call needs another."""
    device = keep("device", _without_pushes)
    mul = keep("mul", lambda: device.load_kernel(shaders.path("mul")))
    x = keep("x", lambda: device.asarray(A))
    results = [device.empty(A.shape) for _ in range(9)]
    for result in results:
        mul(x, x, result)
    for result in results:
        np.testing.assert_array_equal(result.numpy(), A * A)
        result.close()


def _without_pushes() -> pumice.Device:
    driver = shared_driver()
    device = VulkanDevice(driver, driver.select(), options=PlanOptions(push_descriptors=False))
    object.__setattr__(device.plan, "descriptor_pool_size", 2)
    return Device(device)


def _pages() -> np.ndarray:
    """Returns whole pages of memory, of floats."""
    raw = np.empty((1 << 20) + mmap.PAGESIZE, np.uint8)
    start = -raw.ctypes.data % mmap.PAGESIZE
    pages: np.ndarray = raw[start : start + (1 << 20)].view(np.float32)
    return pages
