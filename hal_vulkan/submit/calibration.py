"""Calibration of device time against the host's clock: read by the driver, or bracketed by a submission.

Of several readings, the one with the smallest deviation counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ...hal.clock import ClockCalibration
from ..commands.command_buffer import CommandBuffer
from ..vulkan.functions import ffi, new
from ..vulkan.results import check
from .queue import Queue

_DOMAIN_DEVICE: Final = 0
_DOMAINS: Final = {"clock_monotonic": 1, "clock_monotonic_raw": 2, "query_performance_counter": 3}


def calibrate(queue: Queue, *, samples: int = 8) -> ClockCalibration:
    """Relates the device's clock to the host's; UnimplementedError if the device has no timestamps."""
    queue.command_context.check_timestamps(queue.family)
    read = _read_calibrated if queue.device.plan.calibrated_timestamps else _read_bracketed
    return min((read(queue) for _ in range(samples)), key=lambda reading: reading.max_deviation_ns)


def calibrate_monotonic(queue: Queue, *, samples: int = 8) -> ClockCalibration:
    """Calibrates with ``time.monotonic_ns`` as the host's clock, whatever clock the driver reads.

    If the driver reads another clock, its offset is read between two readings of the monotonic clock, and the deviation
    grows by their difference.
    """
    reading = calibrate(queue, samples=samples)
    read_other = _OTHER_CLOCKS.get(reading.host_clock)
    if read_other is None:
        return reading
    readings = []
    for _ in range(samples):
        before = time.monotonic_ns()
        other = read_other()
        after = time.monotonic_ns()
        readings.append((after - before, (before + after) // 2 - other))
    distance, offset = min(readings)
    return replace(
        reading,
        host_ns=reading.host_ns + offset,
        max_deviation_ns=reading.max_deviation_ns + distance,
        host_clock="clock_monotonic",
    )


_OTHER_CLOCKS: Final[dict[str, Callable[[], int]]] = {
    "clock_monotonic_raw": lambda: time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW),
    "query_performance_counter": time.perf_counter_ns,
}


def _read_calibrated(queue: Queue) -> ClockCalibration:
    device = queue.device
    name = device.plan.host_time_domain or "clock_monotonic"
    extension = device.plan.calibrated_timestamps or ""
    infos = ffi.new("VkCalibratedTimestampInfoEXT[]", 2)
    for info, domain in zip(infos, (_DOMAIN_DEVICE, _DOMAINS[name]), strict=True):
        info.sType = new("VkCalibratedTimestampInfoEXT").sType
        info.timeDomain = domain
    ticks, deviation = ffi.new("uint64_t[]", 2), ffi.new("uint64_t *")
    suffix = "KHR" if extension.startswith("VK_KHR") else "EXT"
    call = getattr(device.fn, f"vkGetCalibratedTimestamps{suffix}")
    with device.guard.lock:
        device.check_not_ended()
        result = call(device.handle, 2, infos, ticks, deviation)
    check(result, "reading calibrated timestamps")
    host = ticks[1]
    if name == "query_performance_counter":
        # QueryPerformanceCounter ticks, which are in nanoseconds the values of perf_counter, and since 3.13 of Python's
        # monotonic clock.
        host = int(host * 1e9 * time.get_clock_info("perf_counter").resolution)
    return _reading(queue, ticks[0], host, deviation[0], name, calibrated=True)


def _read_bracketed(queue: Queue) -> ClockCalibration:
    """Reads a timestamp that is written between two readings of the host's clock; needs no extension."""
    context = queue.command_context
    with CommandBuffer(context, timing=True, name="clock bracket", family=queue.family) as commands:
        commands.begin().dispatch(context.builtins.empty(), (), (1, 1, 1))
        commands.end()
        before = time.monotonic_ns()
        queue.submit((commands,))
        queue.wait_idle()
        after = time.monotonic_ns()
        timing = commands.timings()[0]
    middle, half = (before + after) // 2, (after - before + 1) // 2
    return _reading(queue, timing.end_ticks, middle, half, "clock_monotonic", calibrated=False)


def _reading(
    queue: Queue, ticks: int, host_ns: int, deviation_ns: int, host_clock: str, *, calibrated: bool
) -> ClockCalibration:
    profile = queue.device.profile
    bits, period = profile.queue_families[queue.family].timestamp_valid_bits, profile.limits.timestamp_period
    ticks &= (1 << bits) - 1
    return ClockCalibration(ticks, host_ns, deviation_ns, period, bits, host_clock, calibrated)
