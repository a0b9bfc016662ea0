"""Counters of the device by performance queries. Source: VK_KHR_performance_query.

Calling sequence: ``profiling_lock`` → within it ``PerformanceQuery`` → ``begin`` and ``end`` around the commands of one
command buffer → one submission of it for each of ``passes`` → ``read`` → ``close``. One thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from ...base.closeable import Closeable
from ...base.lazy_dataclass import dataclass
from ...status import NotFoundError, UnavailableError, UnimplementedError
from ..instance.driver import Driver
from ..instance.logical_device import LogicalDevice, guarded
from ..vulkan.functions import CData, ffi, new, text
from ..vulkan.results import check
from .command_buffer import CommandBuffer

_QUERY_TYPE: Final = 1_000_116_000  # VK_QUERY_TYPE_PERFORMANCE_QUERY_KHR
_STORAGES: Final = ("int32", "int64", "uint32", "uint64", "float32", "float64")
_UNITS: Final = ("", "%", "ns", "B", "B/s", "K", "W", "V", "A", "Hz", "cycles")
_SCOPE_COMMAND: Final = 2
_LOCK_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter of a device; ``index`` is its position in the queue family's list, ``storage`` a member's name."""

    index: int
    name: str
    category: str
    description: str
    unit: str
    storage: str
    is_of_commands: bool


def device_counters(driver: Driver, index: int, family: int) -> list[Counter]:
    """Returns the counters of a queue family of a device, which need not be open."""
    query = driver.functions.vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR
    physical = driver.physical_devices[index]
    count = ffi.new("uint32_t *")
    check(query(physical, family, count, ffi.NULL, ffi.NULL), "counting performance counters")
    counters = ffi.new("VkPerformanceCounterKHR[]", count[0])
    texts = ffi.new("VkPerformanceCounterDescriptionKHR[]", count[0])
    for counter, described in zip(counters, texts, strict=True):
        counter.sType = new("VkPerformanceCounterKHR").sType
        described.sType = new("VkPerformanceCounterDescriptionKHR").sType
    check(query(physical, family, count, counters, texts), "listing performance counters")
    return [
        Counter(
            index,
            text(texts[index].name),
            text(texts[index].category),
            text(texts[index].description),
            _UNITS[counters[index].unit] if counters[index].unit < len(_UNITS) else "",
            _STORAGES[counters[index].storage],
            counters[index].scope == _SCOPE_COMMAND,
        )
        for index in range(count[0])
    ]


def counters_named(driver: Driver, index: int, family: int, names: Sequence[str]) -> list[Counter]:
    """Returns counters by name.

    NotFoundError lists those that exist; UnimplementedError for a counter that does not work per command.
    """
    known = {counter.name: counter for counter in device_counters(driver, index, family)}
    device = driver.profiles[index].name
    for name in names:
        if name not in known:
            raise NotFoundError(f"{device} has no counter {name!r}; it has {', '.join(known) or 'none'}")
        if not known[name].is_of_commands:
            raise UnimplementedError(f"{device}: the counter {name!r} is of command buffers or render passes")
    return [known[name] for name in dict.fromkeys(names)]


@contextlib.contextmanager
def profiling_lock(device: LogicalDevice) -> Iterator[None]:
    """Takes the profiling lock of a device for a ``with`` block. UnavailableError: another process has it."""
    info = new("VkAcquireProfilingLockInfoKHR", timeout=_LOCK_NS)
    with device.guard.lock:
        device.check_not_ended()
        result = device.fn.vkAcquireProfilingLockKHR(device.handle, info)
    if result:
        raise UnavailableError(
            f"{device.name}: the profiling lock could not be taken within a second (result {result}): another "
            "program profiles, or this user may not"
        )
    try:
        yield
    finally:
        with device.guard.lock:
            if not device.rundown.is_over:
                device.fn.vkReleaseProfilingLockKHR(device.handle)


class PerformanceQuery(Closeable):
    """One query of counters of a device, while the profiling lock is held; it needs ``passes`` submissions."""

    def __init__(self, device: LogicalDevice, counters: Sequence[Counter]) -> None:
        self.device = device
        self._counters = tuple(counters)
        indices = ffi.new("uint32_t[]", [counter.index for counter in counters])
        family = device.plan.compute_family
        kind = new(
            "VkQueryPoolPerformanceCreateInfoKHR",
            queueFamilyIndex=family,
            counterIndexCount=len(counters),
            pCounterIndices=indices,
        )
        passes = ffi.new("uint32_t *")
        count = device.driver.functions.vkGetPhysicalDeviceQueueFamilyPerformanceQueryPassesKHR
        count(device.physical_device, kind, passes)
        self.passes: Final = int(passes[0])
        info = new("VkQueryPoolCreateInfo", queryType=_QUERY_TYPE, queryCount=1)
        info.pNext = ffi.cast("void *", kind)
        self._pool = device.create("query pool", info)
        self._open = True
        self._reset()

    @guarded
    def _reset(self) -> None:
        self.device.fn.vkResetQueryPool(self.device.handle, self._pool, 0, 1)

    @guarded
    def begin(self, commands: CommandBuffer) -> None:
        """Starts counting, for the commands recorded from here on."""
        self.device.fn.vkCmdBeginQuery(_native(commands), self._pool, 0, 0)

    @guarded
    def end(self, commands: CommandBuffer) -> None:
        """Stops counting."""
        self.device.fn.vkCmdEndQuery(_native(commands), self._pool, 0)

    @guarded
    def read(self) -> list[tuple[Counter, float]]:
        """Returns the counters' values, once all passes are done."""
        device, count = self.device, len(self._counters)
        values = ffi.new("VkPerformanceCounterResultKHR[]", count)
        size = ffi.sizeof("VkPerformanceCounterResultKHR") * count
        result = device.fn.vkGetQueryPoolResults(device.handle, self._pool, 0, 1, size, values, size, 0)
        device.check(result, "reading performance counters")
        return [
            (counter, getattr(value, counter.storage)) for counter, value in zip(self._counters, values, strict=True)
        ]

    def close(self) -> None:
        """Destroys the query once no queue uses it; idempotent."""
        if self._open:
            self._open = False
            pool = self._pool
            self.device.defer(lambda: self.device.destroy("query pool", pool))


def _native(commands: CommandBuffer) -> CData:
    recording = commands._recording
    assert recording is not None, "not a command buffer that records at once"
    return recording.native.handle
