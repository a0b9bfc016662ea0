"""Cases about device memory: many buffers, large buffers, and exhausted memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np

from ... import shaders
from ...hal_vulkan.instance.profile import HeapFlag
from ...runtime.device import Device
from ...status import ResourceExhaustedError
from ...testing.closeness import assert_close
from .case import Case, Figures, SkipCase

_GIB = 1 << 30
_FOUR = 4 * _GIB


def _free(device: Device) -> int:
    """Returns the bytes of device memory that may still be used."""
    budgets = [budget for budget in device.vulkan.allocator.budgets() if budget.device_local]
    return max((budget.budget - budget.usage for budget in budgets), default=0)


def _many(device: Device) -> None:
    """Checks that three hundred arrays of any size do not overlap, and that their memory is reused."""
    rng = np.random.default_rng(1)
    for _ in range(3):
        with ExitStack() as stack:
            arrays = []
            for number in range(100):
                size = int(rng.integers(1, 200_000))
                arrays.append(stack.enter_context(device.asarray(np.full(size, number, np.uint8))))
            for number, array in enumerate(arrays):
                assert_close(array.numpy(), np.full(array.size, number, np.uint8), what=f"array {number}")


def _thousands(device: Device) -> Figures:
    """Checks that two thousand small arrays live at a time, with few allocations of the driver."""
    before = len(device.vulkan.allocator.statistics().blocks)
    arrays = [device.asarray(np.full(16, number, np.int32)) for number in range(2000)]
    blocks = len(device.vulkan.allocator.statistics().blocks) - before
    for number in range(0, 2000, 37):
        assert_close(arrays[number].numpy(), np.full(16, number, np.int32), what=f"array {number}")
    for array in arrays:
        array.close()
    return {"blocks": blocks}


def _past_four(device: Device) -> Figures:
    """Fills, copies and reads with a kernel an array of more than 4 GiB, beyond 4 GiB."""
    limits, size = device.profile.limits, _FOUR + (64 << 20)
    most = min(limits.max_buffer_size, limits.max_memory_allocation_size)
    if most < size:
        raise SkipCase(f"a buffer has at most {most / _GIB:.2f} GiB")
    if _free(device) < size + _GIB:
        raise SkipCase(f"{_free(device) / _GIB:.2f} GiB of device memory are free")
    queue = device.vulkan.compute_queue
    values = np.arange(1000, dtype=np.float32)
    with device.empty(size // 4) as large, device.load_kernel(shaders.path("mul")) as kernel:
        queue.fill(large.buffer, b"\x05", 0, 4096)
        queue.fill(large.buffer, b"\x07", _FOUR - 2048, 4096)
        queue.fill(large.buffer, b"\x09", size - 4096, 4096)
        queue.wait_idle(30)
        raw = large.view(np.uint8)
        for begin, value in ((0, 5), (_FOUR - 2048, 7), (size - 4096, 9)):
            assert_close(raw[begin : begin + 4096].numpy(), np.full(4096, value, np.uint8), what=f"from byte {begin}")
        beyond = large[(_FOUR >> 2) + 64 * 1024 :][:1000]
        kernel(values, values, beyond)
        assert_close(beyond.numpy(), values * values, what="a kernel beyond 4 GiB")
        assert_close(raw[:4096].numpy(), np.full(4096, 5, np.uint8), what="the begin, after that")
    return {"GiB": size / _GIB}


def _together(device: Device) -> Figures:
    """Checks that arrays of more than 4 GiB together keep their contents."""
    if _free(device) < _FOUR + 2 * _GIB:
        raise SkipCase(f"{_free(device) / _GIB:.2f} GiB of device memory are free")
    queue = device.vulkan.compute_queue
    with ExitStack() as stack:
        arrays = [stack.enter_context(device.empty(_GIB // 2, np.uint8)) for _ in range(9)]
        for number, array in enumerate(arrays):
            queue.fill(array.buffer, bytes([number + 1]))
        queue.wait_idle(60)
        for number, array in enumerate(arrays):
            for part in (array[:1000], array[-1000:]):
                assert_close(part.numpy(), np.full(1000, number + 1, np.uint8), what=f"array {number}")
    return {"GiB": 4.5}


def _none_left(device: Device) -> None:
    """Checks that an allocation beyond the device's memory fails with an error, and that the device still works."""
    total = sum(heap.size for heap in device.profile.memory_heaps)
    try:
        device.empty(2 * total, np.uint8).close()
    except ResourceExhaustedError:
        pass
    else:
        raise AssertionError(f"{2 * total / _GIB:.1f} GiB were given, twice what the device has")
    with device.asarray(np.arange(100)) as array:
        assert_close(array.numpy(), np.arange(100), what="an array after that")


def _budget(device: Device) -> Figures:
    local = sum(heap.size for heap in device.profile.memory_heaps if heap.flags & HeapFlag.DEVICE_LOCAL)
    budgets = device.vulkan.allocator.budgets()
    return {
        "device memory, GiB": local / _GIB,
        "free, GiB": _free(device) / _GIB,
        "measured by": "VK_EXT_memory_budget" if any(budget.measured for budget in budgets) else "the heap's size",
    }


def memory_cases() -> Iterator[Case]:
    """Yields the cases of the area ``memory``."""
    yield Case("memory", "budget", _budget)
    yield Case("memory", "three hundred arrays", _many)
    yield Case("memory", "two thousand at a time", _thousands)
    yield Case("memory", "none left", _none_left)
    yield Case("memory", "an array past 4 GiB", _past_four)
    yield Case("memory", "arrays past 4 GiB together", _together)
