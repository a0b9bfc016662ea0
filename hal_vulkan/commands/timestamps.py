"""Device timestamps: when each dispatch ran.

Both timestamps of a dispatch are written at the compute-shader stage: the first when all compute work before it is
done, the second when the dispatch is. With a barrier between dispatches the difference is the time of the dispatch;
where dispatches overlap, it is the delay that this dispatch adds to the end of all work. Every time is labelled with
its stage and clock. (Timestamps at the top of the pipe would be written before the barrier in front of the dispatch is
reached, see wgpu#2521.)

A *span* is one pair for a whole command buffer: the first at the top of the pipe, when the device starts the command
buffer, the second at the bottom, when all its commands are done. It adds nothing between the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...hal.clock import elapsed_ticks
from ...status import FailedPreconditionError
from ..instance.logical_device import LogicalDevice
from ..vulkan.functions import CData, ffi, new
from ..vulkan.results import VK_NOT_READY

_STAGE_COMPUTE: Final = 0x800
_STAGE_TOP: Final = 0x1
_STAGE_BOTTOM: Final = 0x2000
_QUERY_TYPE_TIMESTAMP: Final = 2
_RESULT_64: Final = 0x1
_RESULT_WITH_AVAILABILITY: Final = 0x4
_QUERIES_A_POOL: Final = 256


@dataclass(frozen=True, slots=True)
class DispatchTiming:
    """Device time of one dispatch.

    Attributes:
        name: the pipeline's name.
        groups: the workgroup counts, or ``None`` for an indirect dispatch.
        begin_ticks, end_ticks: the raw device timestamps, of ``valid_bits`` bits.
        duration_ns: the time between them in nanoseconds, across a wrap at the valid bits.
        stage: the pipeline stage at which they were written.
        clock: the clock source, e.g. ``"device timestamps, 1 ns a tick, 64 valid bits"``.
        device_type: the device's type; ``"CPU"`` means that these are CPU times.
    """

    name: str
    groups: tuple[int, int, int] | None
    begin_ticks: int
    end_ticks: int
    duration_ns: float
    stage: str
    clock: str
    device_type: str


class QueryPools:
    """Query pools of timestamps for ``TimestampRecorder``, recycled."""

    def __init__(self, device: LogicalDevice) -> None:
        self.device = device
        self._free: list[CData] = []

    def take(self) -> CData:
        """Returns a VkQueryPool."""
        device = self.device
        try:
            pool = self._free.pop()
        except IndexError:
            info = new("VkQueryPoolCreateInfo", queryType=_QUERY_TYPE_TIMESTAMP, queryCount=_QUERIES_A_POOL)
            return device.create("query pool", info)
        if "hostQueryReset" in device.plan.features:  # results of its last use must not be read
            with device.guard.lock:
                device.check_not_ended()
                device.fn.vkResetQueryPool(device.handle, pool, 0, _QUERIES_A_POOL)
        return pool

    def give_back(self, pool: CData) -> None:
        """Keeps a query pool for the next recording."""
        self._free.append(pool)


class TimestampRecorder:
    """Writes two timestamps for each dispatch, or two in all, during recording; reads them back.

    Attributes:
        span: whether one pair covers all commands.
        dispatches, barriers: the pipeline and workgroups of each dispatch, and whether a barrier precedes it.
        is_muted: whether dispatches are only noted, without timestamps.
    """

    def __init__(self, pools: QueryPools, commands: CData, family: int, *, span: bool = False) -> None:
        self._query_pools = pools
        device = self._device = pools.device
        self.span = span
        self._commands = commands
        self._valid_bits = device.profile.queue_families[family].timestamp_valid_bits
        self._pools: list[CData] = []
        self._next = _QUERIES_A_POOL
        self.dispatches: list[tuple[str, tuple[int, int, int] | None]] = []
        self._behind_barrier = True  # every command buffer ends with one
        self.barriers: list[bool] = []
        self.is_muted = False

    def begin(self, name: str, groups: tuple[int, int, int] | None) -> None:
        """Writes the timestamp before a dispatch."""
        self.dispatches.append((name, groups))
        self.barriers.append(self._behind_barrier)
        self._behind_barrier = False
        if self.is_muted:
            return
        if self._next >= _QUERIES_A_POOL:
            pool = self._query_pools.take()
            self._pools.append(pool)
            self._device.fn.vkCmdResetQueryPool(self._commands, pool, 0, 2 if self.span else _QUERIES_A_POOL)
            self._next = 0
        self._write(_STAGE_TOP if self.span else _STAGE_COMPUTE)

    def end(self) -> None:
        """Writes the timestamp after the dispatch."""
        if not self.is_muted:
            self._write(_STAGE_BOTTOM if self.span else _STAGE_COMPUTE)

    def _write(self, stage: int) -> None:
        self._device.fn.vkCmdWriteTimestamp(self._commands, stage, self._pools[-1], self._next)
        self._next += 1

    @property
    def stage(self) -> str:
        """Pipeline stages of the two timestamps, as results name them."""
        return "TOP_OF_PIPE..BOTTOM_OF_PIPE" if self.span else "COMPUTE_SHADER"

    def barrier(self) -> None:
        """Notes a barrier before the next dispatch."""
        self._behind_barrier = True

    def read_raw(self) -> bytes:
        """Returns begin and end of each dispatch, in ticks, as native unsigned 64-bit integers; the commands must have
        run.
        """
        return b"".join(data for _, data in self._results(8, _RESULT_64))

    def _results(self, stride: int, flags: int) -> Iterator[tuple[int, bytearray]]:
        """Yields the result and the data of vkGetQueryPoolResults for each pool."""
        device, left = self._device, 2 * len(self.dispatches)
        for pool in self._pools:
            count = min(left, _QUERIES_A_POOL)
            left -= count
            data = bytearray(stride * count)
            with device.guard.lock:
                device.check_not_ended()
                result = device.fn.vkGetQueryPoolResults(
                    device.handle, pool, 0, count, len(data), ffi.from_buffer(data), stride, flags
                )
            if result:
                device.check(result, "reading timestamps")
            yield result, data

    def read(self) -> tuple[DispatchTiming, ...]:
        """Returns the timings, once the commands have run; before that, FailedPreconditionError."""
        profile = self._device.profile
        period = profile.limits.timestamp_period
        clock = f"device timestamps, {period:g} ns a tick, {self._valid_bits} valid bits"
        ticks = iter(self.read_ticks())
        timings = []
        for (name, groups), begin, end in zip(self.dispatches, ticks, ticks, strict=True):
            duration = elapsed_ticks(begin, end, self._valid_bits) * period
            timings.append(
                DispatchTiming(name, groups, begin, end, duration, self.stage, clock, profile.device_type.name)
            )
        return tuple(timings)

    def read_ticks(self) -> list[int]:
        """Returns begin and end of each dispatch in turn, or of the span, in ticks; see ``read``."""
        mask = (1 << self._valid_bits) - 1
        ticks: list[int] = []
        for result, data in self._results(16, _RESULT_64 | _RESULT_WITH_AVAILABILITY):
            words = memoryview(data).cast("Q").tolist()
            if result == VK_NOT_READY or not all(words[1::2]):
                raise FailedPreconditionError("the timed commands have not finished yet; wait for them first")
            ticks.extend(word & mask for word in words[::2])
        return ticks

    def close(self) -> None:
        """Gives the query pools back."""
        for pool in self._pools:
            self._query_pools.give_back(pool)
        self._pools.clear()
