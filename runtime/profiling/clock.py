"""The relation of a device's clock to the host's: readings of both, and the lines between them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...base.lazy_dataclass import dataclass
from ...hal.clock import ClockCalibration, signed_ticks

Times = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ClockRelation:
    """A device's clock in terms of the host's.

    Attributes:
        device: the device's name.
        readings: the readings of both clocks, at least one, in order of time.
    """

    device: str
    readings: tuple[ClockCalibration, ...]

    @property
    def calibrated(self) -> bool:
        """Whether a calibrated-timestamps extension read both clocks at once.

        Otherwise submissions bracket the readings, and the deviation is bounded by half the width of the bracket.
        """
        return all(reading.calibrated for reading in self.readings)

    @property
    def deviation_ns(self) -> int:
        """The largest deviation of a reading, and so of the host times of device timestamps."""
        return max(reading.max_deviation_ns for reading in self.readings)

    @property
    def base_ns(self) -> int:
        """The host's time of the first reading."""
        return self.readings[0].host_ns

    @property
    def drift_ppm(self) -> float | None:
        """The drift of device time, at its stated rate, against the host's clock, in parts per million: the slope of a
        line fitted to the readings. ``None`` if all are from the same time.
        """
        return None if self._line is None else (1 / self._line[0] - 1) * 1e6

    @property
    def drift_uncertainty_ppm(self) -> float | None:
        """The largest error of the drift, from the deviations and the time between first and last reading."""
        if self._line is None:
            return None
        first, last = self.readings[0], self.readings[-1]
        return (first.max_deviation_ns + last.max_deviation_ns) / float(last.host_ns - first.host_ns) * 1e6

    @property
    def drift_text(self) -> str:
        """The drift with its uncertainty, to two digits of the latter: ``+0.12 ± 0.05 ppm``; empty if unknown."""
        if self.drift_ppm is None or self.drift_uncertainty_ppm is None:
            return ""
        error = max(self.drift_uncertainty_ppm, 1e-6)
        digits = max(0, 1 - math.floor(math.log10(error)))
        drift = round(self.drift_ppm, digits) + 0.0  # not -0.0
        return f"{drift:+.{digits}f} ± {error:.{digits}f} ppm"

    @property
    def residual_ns(self) -> float | None:
        """The largest distance of a reading from the fitted line; ``None`` for fewer than three readings."""
        if self._line is None or len(self.readings) < 3:
            return None
        slope, intercept = self._line
        return float(np.abs(self._host - (slope * self._ticks * self.readings[0].ns_per_tick + intercept)).max())

    @cached_property
    def _ticks(self) -> Times:
        """Returns the ticks of each reading since the first.

        The host's clock shows how often the counter wrapped in between.
        """
        ticks = [0]
        for before, after in itertools.pairwise(self.readings):
            part = signed_ticks(before.device_ticks, after.device_ticks, before.valid_bits)
            nominal = (after.host_ns - before.host_ns) / before.ns_per_tick
            ticks.append(
                ticks[-1] + part + round((nominal - part) / (1 << before.valid_bits)) * (1 << before.valid_bits)
            )
        return np.array(ticks, np.float64)

    @cached_property
    def _host(self) -> Times:
        return np.array([reading.host_ns - self.base_ns for reading in self.readings], np.float64)

    @cached_property
    def _line(self) -> tuple[float, float] | None:
        """Returns slope and intercept of host time over device time, both in nanoseconds since the first reading."""
        if self._host[-1] <= 0 or self._ticks[-1] <= 0:
            return None
        slope, intercept = np.polyfit(self._ticks * self.readings[0].ns_per_tick, self._host, 1)
        return float(slope), float(intercept)

    @cached_property
    def _rates(self) -> Times:
        """Returns the nanoseconds per tick between successive readings; the stated rate if readings are inexact."""
        rates = []
        steps = self._ticks[1:] - self._ticks[:-1]
        for (before, after), ticks in zip(itertools.pairwise(self.readings), steps, strict=True):
            nominal = ticks * before.ns_per_tick
            # If readings are too close together or too inexact, the device's stated rate is more reliable.
            told = nominal >= 1e6 and before.max_deviation_ns + after.max_deviation_ns <= nominal / 1000
            rates.append((after.host_ns - before.host_ns) / ticks if told else before.ns_per_tick)
        return np.array(rates or [self.readings[0].ns_per_tick])

    def host_ns(self, ticks: Sequence[int] | npt.NDArray[np.uint64], near_ns: npt.ArrayLike) -> Times:
        """Converts device timestamps to host times, in nanoseconds relative to ``base_ns``.

        Args:
            ticks: the timestamps.
            near_ns: for each tick, a host time within half a wrap of the counter.
        """
        bits = self.readings[0].valid_bits
        near = np.asarray(near_ns, np.float64) - self.base_ns
        nearest = np.abs(self._host[None, :] - near[:, None]).argmin(axis=1)
        references = np.array([reading.device_ticks for reading in self.readings], np.uint64)[nearest]
        offsets = ((np.asarray(ticks, np.uint64) - references) & np.uint64((1 << bits) - 1)).astype(np.int64)
        if bits < 64:
            offsets = np.where(offsets >> (bits - 1), offsets - (1 << bits), offsets)
        between = np.minimum(np.maximum(nearest - (offsets < 0), 0), len(self._rates) - 1)
        times: Times = self._host[nearest] + offsets * self._rates[between]
        return times

    def as_dict(self) -> dict[str, object]:
        """Returns the relation as a dictionary that ``json`` can write."""
        first = self.readings[0]
        return {
            "device": self.device,
            "calibrated": self.calibrated,
            "deviation_ns": self.deviation_ns,
            "drift_ppm": self.drift_ppm,
            "drift_uncertainty_ppm": self.drift_uncertainty_ppm,
            "ns_per_tick": first.ns_per_tick,
            "valid_bits": first.valid_bits,
            "host_clock": first.host_clock,
            "readings": [
                {
                    "device_ticks": reading.device_ticks,
                    "host_ns": reading.host_ns,
                    "max_deviation_ns": reading.max_deviation_ns,
                }
                for reading in self.readings
            ],
        }
