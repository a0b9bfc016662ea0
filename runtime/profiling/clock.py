"""How a device's clock relates to the host's over the time of a profile: several readings, and the line between them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from ...hal_vulkan import ClockCalibration

__all__ = ["ClockRelation"]


@dataclass(frozen=True, slots=True)
class ClockRelation:
    """A device's clock in terms of the host's.

    Attributes:
        device: name of the device.
        calibrated: whether a calibrated-timestamps extension read both clocks at once. Otherwise each reading is bracketed by a submission, and
            the deviation is half the width of the bracket: the bound that is certain.
        readings: simultaneous readings of both clocks, in order of time: at begin and end of the profile, and in between.
        deviation_ns: the largest deviation of a reading: device times given in host time are right within this.
        drift_ppm: by how much device time, at the device's stated rate, gains on the host's clock, in parts per million: the slope of a
            line fitted to the readings. ``None`` with one reading.
        drift_uncertainty_ppm: the drift is known within this, from the deviations and the time between first and last reading.
    """

    device: str
    calibrated: bool
    readings: tuple[ClockCalibration, ...]
    deviation_ns: int
    drift_ppm: float | None
    drift_uncertainty_ppm: float | None

    @classmethod
    def of(cls, device: str, readings: list[ClockCalibration]) -> ClockRelation:
        """The relation that one or more readings give."""
        ticks, host = _unwrapped(readings)
        drift = uncertainty = None
        deviation = max(reading.max_deviation_ns for reading in readings)
        span = host[-1] - host[0]
        if len(readings) > 1 and span > 0:
            slope = float(np.polyfit((ticks - ticks[0]) * readings[0].ns_per_tick, host - host[0], 1)[0])
            drift = (1 / slope - 1) * 1e6
            uncertainty = (readings[0].max_deviation_ns + readings[-1].max_deviation_ns) / float(span) * 1e6
        return cls(device, all(one.calibrated for one in readings), tuple(readings), deviation, drift, uncertainty)

    def host_ns(self, ticks: np.ndarray, near_ns: np.ndarray) -> np.ndarray:
        """Host times of device timestamps, in nanoseconds as float64 relative to ``base_ns``.

        Args:
            ticks: uint64.
            near_ns: for each, a host time within half a wrap of the counter.
        """
        first = self.readings[0]
        unwrapped, host = _unwrapped(list(self.readings))
        nearest = np.abs(host[None, :] - near_ns[:, None]).argmin(axis=1)
        mask = np.uint64((1 << first.valid_bits) - 1)
        references = np.array([reading.device_ticks for reading in self.readings], np.uint64)[nearest]
        offsets = ((ticks - references) & mask).astype(np.int64)
        if first.valid_bits < 64:
            offsets = np.where(offsets >> (first.valid_bits - 1), offsets - (1 << first.valid_bits), offsets)
        position = (unwrapped[nearest] + offsets - unwrapped[0]).astype(np.float64)
        known = (unwrapped - unwrapped[0]).astype(np.float64)
        inside = np.interp(position, known, (host - host[0]).astype(np.float64))
        before, behind = np.minimum(position, 0.0), np.maximum(position - known[-1], 0.0)
        result: np.ndarray = inside + (before + behind) * first.ns_per_tick
        return result

    @property
    def base_ns(self) -> int:
        """What ``host_ns`` is relative to: the host's time of the first reading."""
        return self.readings[0].host_ns

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "device": self.device,
            "calibrated": self.calibrated,
            "deviation_ns": self.deviation_ns,
            "drift_ppm": self.drift_ppm,
            "drift_uncertainty_ppm": self.drift_uncertainty_ppm,
            "ns_per_tick": self.readings[0].ns_per_tick,
            "valid_bits": self.readings[0].valid_bits,
            "host_clock": self.readings[0].host_clock,
            "readings": [
                {"device_ticks": one.device_ticks, "host_ns": one.host_ns, "max_deviation_ns": one.max_deviation_ns}
                for one in self.readings
            ],
        }


def _unwrapped(readings: list[ClockCalibration]) -> tuple[np.ndarray, np.ndarray]:
    """Ticks that do not wrap, and host nanoseconds, of readings in order of time."""
    mask = (1 << readings[0].valid_bits) - 1
    ticks = [0]
    for before, after in itertools.pairwise(readings):
        ticks.append(ticks[-1] + ((after.device_ticks - before.device_ticks) & mask))
    return np.array(ticks, np.int64), np.array([reading.host_ns for reading in readings], np.int64)
