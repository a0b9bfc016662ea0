"""A device's clock and the host's."""

from __future__ import annotations

from ..base.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ClockCalibration:
    """One simultaneous reading of the device's and the host's clock.

    Attributes:
        device_ticks: the device's timestamp counter.
        host_ns: the time on the host clock named by ``host_clock``, in nanoseconds.
        max_deviation_ns: the largest possible time between the two readings.
        ns_per_tick: the nanoseconds per device tick (timestampPeriod).
        valid_bits: the number of valid bits in a device timestamp.
        host_clock: the host clock's name: ``"clock_monotonic"`` (``time.monotonic_ns``), ``"clock_monotonic_raw"`` or
            ``"query_performance_counter"``.
        calibrated: whether VK_*_calibrated_timestamps read the clocks. Without that extension the reading is bracketed
            by a submission and ``max_deviation_ns`` is the width of the bracket.
    """

    device_ticks: int
    host_ns: int
    max_deviation_ns: int
    ns_per_tick: float
    valid_bits: int
    host_clock: str
    calibrated: bool

    def host_time_ns(self, ticks: int) -> float:
        """Returns the host time of a device timestamp taken within half a wrap of this reading."""
        return self.host_ns + signed_ticks(self.device_ticks, ticks, self.valid_bits) * self.ns_per_tick


def elapsed_ticks(begin: int, end: int, valid_bits: int) -> int:
    """Returns the ticks from ``begin`` to a later ``end``, across at most one wrap at the valid bits."""
    mask = (1 << valid_bits) - 1
    return (end - begin) & mask


def signed_ticks(reference: int, ticks: int, valid_bits: int) -> int:
    """Returns the ticks from ``reference`` to ``ticks`` by the shorter way around, negative if backwards."""
    difference = elapsed_ticks(reference, ticks, valid_bits)
    return difference - (1 << valid_bits) if difference >> (valid_bits - 1) else difference
