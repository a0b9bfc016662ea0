"""Device timestamps: when each dispatch ran, and how device time relates to the host's clock.

Both timestamps of a dispatch are written at the compute-shader stage: the first when all compute work before it is
done, the second when the dispatch is. Where dispatches run one after another (a barrier between them) that is the
time of the dispatch; where they overlap, it is the time by which it moved the end of all work. The stage and the
clock are recorded with every figure. (Timestamps at the top of the pipe would be written before the barrier that
precedes the dispatch has held, see wgpu#2521.)

A *span* is one pair for all of a command buffer: the first at the top of the pipe, when the device begins with it, the
second at the bottom, when all its commands are done. It disturbs nothing between the commands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ...status import FailedPreconditionError, UnimplementedError
from ..vulkan.functions import VK_NOT_READY, CData, check, ffi, new

if TYPE_CHECKING:
    from ..device import Device

__all__ = ["ClockCalibration", "DispatchTiming", "TimestampRecorder", "calibrate", "calibrate_monotonic"]

_STAGE_COMPUTE: Final = 0x800
_STAGE_TOP: Final = 0x1
_STAGE_BOTTOM: Final = 0x2000
_QUERY_TYPE_TIMESTAMP: Final = 2
_RESULT_64: Final = 0x1
_RESULT_WITH_AVAILABILITY: Final = 0x4
_QUERIES_A_POOL: Final = 256
_DOMAIN_DEVICE: Final = 0
_DOMAINS: Final = {"clock_monotonic": 1, "clock_monotonic_raw": 2, "query_performance_counter": 3}


@dataclass(frozen=True, slots=True)
class DispatchTiming:
    """Device time of one dispatch.

    Attributes:
        name: the pipeline's.
        groups: workgroup counts, or ``None`` for an indirect dispatch.
        begin_ticks, end_ticks: raw device timestamps, of ``valid_bits`` bits.
        duration_ns: nanoseconds between them, wrap at the valid bits taken care of.
        stage: pipeline stage at which they were written.
        clock: clock source, e.g. ``"device timestamps, 1 ns a tick, 64 valid bits"``.
        device_type: ``"CPU"`` says that these are CPU times.
    """

    name: str
    groups: tuple[int, int, int] | None
    begin_ticks: int
    end_ticks: int
    duration_ns: float
    stage: str
    clock: str
    device_type: str


@dataclass(frozen=True, slots=True)
class ClockCalibration:
    """One simultaneous reading of the device's and the host's clock.

    Attributes:
        device_ticks: the device's timestamp counter.
        host_ns: nanoseconds of the host clock named by ``host_clock``.
        max_deviation_ns: the two readings lie within this of each other.
        ns_per_tick: nanoseconds a device tick (timestampPeriod).
        valid_bits: bits of a device timestamp.
        host_clock: ``"clock_monotonic"`` (``time.monotonic_ns``), ``"clock_monotonic_raw"`` or
            ``"query_performance_counter"``.
        calibrated: read by VK_*_calibrated_timestamps. Without that extension the reading is bracketed by a submission
            and ``max_deviation_ns`` is the width of the bracket.
    """

    device_ticks: int
    host_ns: int
    max_deviation_ns: int
    ns_per_tick: float
    valid_bits: int
    host_clock: str
    calibrated: bool

    def host_time_ns(self, ticks: int) -> float:
        """Host time of a device timestamp taken within half a wrap of this reading."""
        return self.host_ns + signed_ticks(self.device_ticks, ticks, self.valid_bits) * self.ns_per_tick


def elapsed_ticks(begin: int, end: int, valid_bits: int) -> int:
    """Ticks from ``begin`` to a later ``end``, across at most one wrap at the valid bits."""
    mask = (1 << valid_bits) - 1
    return (end - begin) & mask


def signed_ticks(reference: int, ticks: int, valid_bits: int) -> int:
    """Ticks from ``reference`` to ``ticks``, negative when it lies before; the nearer way round."""
    difference = elapsed_ticks(reference, ticks, valid_bits)
    return difference - (1 << valid_bits) if difference >> (valid_bits - 1) else difference


class TimestampRecorder:
    """Writes two timestamps a dispatch, or two in all, into query pools while a command buffer is recorded; reads them back.

    Args:
        device, commands, family: the device, the native commands, and the queue family they are for.
        span: one pair for all commands.
    """

    def __init__(self, device: Device, commands: CData, family: int, *, span: bool = False) -> None:
        self._device = device
        self.span = span
        self._commands = commands
        self._valid_bits = device.profile.queue_families[family].timestamp_valid_bits
        self._pools: list[CData] = []
        self._next = _QUERIES_A_POOL
        self._dispatches: list[tuple[str, tuple[int, int, int] | None]] = []
        self._behind_barrier = True  # what a queue ran before has ended in one
        self.barriers: list[bool] = []
        self.is_muted = False

    def mute(self) -> None:
        """Writes no timestamps: only notes what is dispatched."""
        self.is_muted = True

    def begin(self, name: str, groups: tuple[int, int, int] | None) -> None:
        """Before a dispatch."""
        if self.is_muted:
            self._note(name, groups)
            return
        if self._next >= _QUERIES_A_POOL:
            pool = self._device.take_query_pool(_QUERIES_A_POOL)
            self._pools.append(pool)
            self._device.fn.vkCmdResetQueryPool(self._commands, pool, 0, 2 if self.span else _QUERIES_A_POOL)
            self._next = 0
        self._note(name, groups)
        self._write(_STAGE_TOP if self.span else _STAGE_COMPUTE)

    def _note(self, name: str, groups: tuple[int, int, int] | None) -> None:
        self._dispatches.append((name, groups))
        self.barriers.append(self._behind_barrier)
        self._behind_barrier = False

    def end(self) -> None:
        """After the dispatch."""
        if self.is_muted:
            return
        self._write(_STAGE_BOTTOM if self.span else _STAGE_COMPUTE)

    def _write(self, stage: int) -> None:
        self._device.fn.vkCmdWriteTimestamp(self._commands, stage, self._pools[-1], self._next)
        self._next += 1

    @property
    def stage(self) -> str:
        """Pipeline stages of the two timestamps, as results have them."""
        return "TOP_OF_PIPE..BOTTOM_OF_PIPE" if self.span else "COMPUTE_SHADER"

    def barrier(self) -> None:
        """What follows starts once all before is done."""
        self._behind_barrier = True

    @property
    def dispatches(self) -> Sequence[tuple[str, tuple[int, int, int] | None]]:
        """Pipeline and workgroups of each dispatch; ``barriers`` says for each whether a barrier stood before it."""
        return self._dispatches

    def read_raw(self) -> bytes:
        """Begin and end of each dispatch, in ticks, as native unsigned 64-bit integers; the commands must have run."""
        device, left, parts = self._device, 2 * len(self._dispatches), []
        for pool in self._pools:
            count = min(left, _QUERIES_A_POOL)
            left -= count
            data = bytearray(8 * count)
            result = device.fn.vkGetQueryPoolResults(
                device.handle, pool, 0, count, 8 * count, ffi.from_buffer(data), 8, _RESULT_64
            )
            if result:
                device.check(result, "reading timestamps")
            parts.append(data)
        return b"".join(parts)

    def read(self) -> tuple[DispatchTiming, ...]:
        """The timings, once the commands have run.

        Raises:
            FailedPreconditionError: they have not.
        """
        device = self._device
        profile = device.profile
        period = profile.limits.timestamp_period
        clock = f"device timestamps, {period:g} ns a tick, {self._valid_bits} valid bits"
        ticks = self.read_ticks()
        timings = []
        for index, (name, groups) in enumerate(self._dispatches):
            begin, end = ticks[2 * index], ticks[2 * index + 1]
            duration = elapsed_ticks(begin, end, self._valid_bits) * period
            timings.append(
                DispatchTiming(name, groups, begin, end, duration, self.stage, clock, profile.device_type.name)
            )
        return tuple(timings)

    def read_ticks(self) -> list[int]:
        """Begin and end of each dispatch in turn, or of the span, in ticks; see ``read``."""
        mask = (1 << self._valid_bits) - 1
        ticks: list[int] = []
        left = 2 * len(self._dispatches)
        for pool in self._pools:
            count = min(left, _QUERIES_A_POOL)
            left -= count
            data = ffi.new("uint64_t[]", 2 * count)
            flags = _RESULT_64 | _RESULT_WITH_AVAILABILITY
            result = self._device.fn.vkGetQueryPoolResults(
                self._device.handle, pool, 0, count, 16 * count, data, 16, flags
            )
            self._device.check(result, "reading timestamps")
            if result == VK_NOT_READY or not all(data[2 * i + 1] for i in range(count)):
                raise FailedPreconditionError("the timed commands have not run to their end yet; wait for them first")
            ticks.extend(data[2 * i] & mask for i in range(count))
        return ticks

    def close(self) -> None:
        """Gives the query pools back."""
        for pool in self._pools:
            self._device.recycle_query_pool(pool)
        self._pools.clear()


def create_query_pool(device: Device, count: int) -> CData:
    """A VkQueryPool of timestamps."""
    pool = ffi.new("VkQueryPool *")
    info = new("VkQueryPoolCreateInfo", queryType=_QUERY_TYPE_TIMESTAMP, queryCount=count)
    device.check(device.fn.vkCreateQueryPool(device.handle, info, ffi.NULL, pool), "creating a query pool")
    device.own("query pool", pool[0])
    return pool[0]


def calibrate(device: Device, *, samples: int = 8) -> ClockCalibration:
    """Relates the device's clock to the host's: the reading with the least deviation of several.

    Raises:
        UnimplementedError: the device has no timestamps.
    """
    family = device.profile.queue_families[device.plan.compute_family]
    if not family.timestamp_valid_bits:
        raise UnimplementedError(
            f"{device.profile.name} writes no timestamps on its compute queue (timestampValidBits 0)"
        )
    readings = [
        _read_calibrated(device) if device.plan.calibrated_timestamps else _read_bracketed(device)
        for _ in range(samples)
    ]
    return min(readings, key=lambda reading: reading.max_deviation_ns)


def calibrate_monotonic(device: Device, *, samples: int = 8) -> ClockCalibration:
    """``calibrate`` with ``time.monotonic_ns`` as the host's clock, whatever clock the driver reads.

    Where that is another one, its offset is read between two readings of the monotonic clock, and the deviation is larger by their distance.

    Raises:
        UnimplementedError: the device has no timestamps.
    """
    reading = calibrate(device, samples=samples)
    read_other = _OTHER_CLOCKS.get(reading.host_clock)
    if read_other is None:
        return reading
    best: tuple[int, int] | None = None
    for _ in range(samples):
        before = time.monotonic_ns()
        other = read_other()
        after = time.monotonic_ns()
        found = (after - before, (before + after) // 2 - other)
        best = found if best is None or found < best else best
    assert best is not None
    return replace(
        reading,
        host_ns=reading.host_ns + best[1],
        max_deviation_ns=reading.max_deviation_ns + best[0],
        host_clock="clock_monotonic",
    )


_OTHER_CLOCKS: Final[dict[str, Callable[[], int]]] = {
    "clock_monotonic_raw": lambda: time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW),
    "query_performance_counter": time.perf_counter_ns,
}


def _read_calibrated(device: Device) -> ClockCalibration:
    name = device.plan.host_time_domain or "clock_monotonic"
    extension = device.plan.calibrated_timestamps or ""
    infos = ffi.new("VkCalibratedTimestampInfoEXT[]", 2)
    for info, domain in zip(infos, (_DOMAIN_DEVICE, _DOMAINS[name]), strict=True):
        info.sType = new("VkCalibratedTimestampInfoEXT").sType
        info.timeDomain = domain
    ticks, deviation = ffi.new("uint64_t[]", 2), ffi.new("uint64_t *")
    call = (
        device.fn.vkGetCalibratedTimestampsKHR
        if extension.startswith("VK_KHR")
        else device.fn.vkGetCalibratedTimestampsEXT
    )
    check(call(device.handle, 2, infos, ticks, deviation), "reading calibrated timestamps")
    valid_bits = device.profile.queue_families[device.plan.compute_family].timestamp_valid_bits
    host = ticks[1]
    if name == "query_performance_counter":
        # QueryPerformanceCounter ticks; Python's monotonic clock has counted the same ones in nanoseconds since 3.13
        # and perf_counter always has.
        host = int(host * 1e9 / _performance_frequency())
    return ClockCalibration(
        device_ticks=ticks[0] & ((1 << valid_bits) - 1),
        host_ns=host,
        max_deviation_ns=deviation[0],
        ns_per_tick=device.profile.limits.timestamp_period,
        valid_bits=valid_bits,
        host_clock=name,
        calibrated=True,
    )


def _performance_frequency() -> float:
    return 1.0 / time.get_clock_info("perf_counter").resolution


def _read_bracketed(device: Device) -> ClockCalibration:
    """Without the extension: a timestamp written between two readings of the host's clock."""
    from .command_buffer import CommandBuffer

    with CommandBuffer(device, timing=True, name="clock bracket") as commands:
        pipeline = device.builtins.empty()
        commands.begin().dispatch(pipeline, (), (1, 1, 1))
        commands.end()
        before = time.monotonic_ns()
        device.compute_queue.submit((commands,))
        device.compute_queue.wait_idle()
        after = time.monotonic_ns()
        timing = commands.timings()[0]
    valid_bits = device.profile.queue_families[device.plan.compute_family].timestamp_valid_bits
    return ClockCalibration(
        device_ticks=timing.end_ticks,
        host_ns=(before + after) // 2,
        max_deviation_ns=(after - before + 1) // 2,
        ns_per_tick=device.profile.limits.timestamp_period,
        valid_bits=valid_bits,
        host_clock="clock_monotonic",
        calibrated=False,
    )
