"""The host's clock, the device's clock, and how they relate while samples are taken.

Two readings of both clocks, one before and one after a block of samples, bracket it: times of the device within are interpolated
between them, so that a drift of the clocks against each other costs nothing. Over a whole run the readings are fitted by a line, whose slope
is the drift and whose residuals say how well the clocks hold together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...hal_vulkan import ClockCalibration
from ...hal_vulkan.commands.timestamps import elapsed_ticks, signed_ticks
from ..definition.sample import Sample

__all__ = ["ClockFit", "ClockRelation", "RawSample", "fit_clock", "resolve"]


class RawSample(NamedTuple):
    """The events of one sample: host times in nanoseconds, -1 for those that did not happen, and device ticks.

    Attributes:
        begin: the host begins.
        created, updated, recorded: ends of making pipelines, of writing memory or descriptors, of recording.
        called, returned: before the first submit call, after the last one.
        awake: the host knows that the device is done.
        done: the results are read back.
        device_begin, device_end: ticks.
        dispatches, preemptions, stage, barrier: as in ``Sample``.
    """

    begin: int
    created: int = -1
    updated: int = -1
    recorded: int = -1
    called: int = -1
    returned: int = -1
    awake: int = -1
    done: int = -1
    device_begin: int = -1
    device_end: int = -1
    dispatches: int = 1
    preemptions: int = -1
    stage: str = ""
    barrier: str = "single"


@dataclass(frozen=True, slots=True)
class ClockRelation:
    """Device time to host time between two readings of both clocks.

    Attributes:
        before, after: the readings.
    """

    before: ClockCalibration
    after: ClockCalibration

    @property
    def deviation_ns(self) -> int:
        """How far a converted time may be off."""
        return max(self.before.max_deviation_ns, self.after.max_deviation_ns)

    def host_ns(self, ticks: int) -> float:
        """Host time of a device timestamp, in nanoseconds."""
        before, after = self.before, self.after
        whole = elapsed_ticks(before.device_ticks, after.device_ticks, before.valid_bits)
        part = signed_ticks(before.device_ticks, ticks, before.valid_bits)
        nominal = whole * before.ns_per_tick
        # Readings too close together, or too far off, say less about the rate than the device's own figure.
        if nominal < 1e6 or before.max_deviation_ns + after.max_deviation_ns > nominal / 1000:
            return before.host_ns + part * before.ns_per_tick
        return before.host_ns + part * ((after.host_ns - before.host_ns) / whole)

    def duration_ns(self, begin: int, end: int) -> float:
        """Nanoseconds between two timestamps, across a wrap too, by the device's own period."""
        return elapsed_ticks(begin, end, self.before.valid_bits) * self.before.ns_per_tick


@dataclass(frozen=True, slots=True)
class ClockFit:
    """A line through all readings of both clocks in a run.

    Attributes:
        readings: how many.
        drift_ppm: how much faster than its stated period the device's clock runs by the host's, in parts per million; NaN for
            fewer than three readings.
        residual_ns: largest distance of a reading from the line.
        deviation_ns: largest deviation of a reading by itself.
        calibrated: whether the readings are simultaneous ones of the driver; else they are brackets around a submission.
    """

    readings: int
    drift_ppm: float
    residual_ns: float
    deviation_ns: int
    calibrated: bool


def fit_clock(readings: Sequence[ClockCalibration]) -> ClockFit | None:
    """The line through readings in the order of time; ``None`` without readings."""
    if not readings:
        return None
    from scipy import stats

    first = readings[0]
    device = [0.0]
    for last, one in itertools.pairwise(readings):
        device.append(device[-1] + _ticks_between(last, one) * one.ns_per_tick)
    host = [float(one.host_ns - first.host_ns) for one in readings]
    drift = residual = math.nan
    if len(readings) >= 3 and device[-1] > 0:
        line = stats.linregress(device, host)
        drift = (1 / line.slope - 1) * 1e6
        residual = max(abs(h - (line.intercept + line.slope * d)) for d, h in zip(device, host, strict=True))
    return ClockFit(
        len(readings),
        drift,
        residual,
        max(one.max_deviation_ns for one in readings),
        all(one.calibrated for one in readings),
    )


def _ticks_between(first: ClockCalibration, second: ClockCalibration) -> int:
    """Device ticks between two readings; the host's clock says how often the counter has wrapped meanwhile."""
    ticks = signed_ticks(first.device_ticks, second.device_ticks, first.valid_bits)
    nominal = (second.host_ns - first.host_ns) / first.ns_per_tick
    wrap = 1 << first.valid_bits
    return ticks + wrap * round((nominal - ticks) / wrap)


def resolve(raw: RawSample, relation: ClockRelation | None) -> Sample:
    """The segments of a sample; without a relation those of the device stay unknown."""
    nan = math.nan
    last, segments = raw.begin, {}
    for name, when in (("create", raw.created), ("update", raw.updated), ("record", raw.recorded)):
        if when >= 0:
            segments[name] = float(when - last)
            last = when
    submit = queue = execute = wake = read = device = overlap = deviation = nan
    end = last
    if raw.called >= 0:
        # What the host does between the last segment and the call belongs to that segment.
        for name in ("record", "update", "create"):
            if name in segments:
                segments[name] += raw.called - last
                break
        submit = float(raw.returned - raw.called)
        end = raw.returned
    if raw.awake >= 0:
        device = float(raw.awake - end)
        if raw.device_begin >= 0 and relation is not None:
            deviation = float(relation.deviation_ns)
            execute = relation.duration_ns(raw.device_begin, raw.device_end)
            began = relation.host_ns(raw.device_begin)
            queue = max(0.0, began - end)
            overlap = max(0.0, end - began)
            wake = raw.awake - (began + execute)
        elif raw.called < 0:
            wake = device
        end = raw.awake
    if raw.done >= 0:
        read = float(raw.done - end)
        end = raw.done
    return Sample(
        started=raw.begin,
        total=float(end - raw.begin),
        create=segments.get("create", nan),
        update=segments.get("update", nan),
        record=segments.get("record", nan),
        submit=submit,
        queue=queue,
        execute=execute,
        wake=wake,
        read=read,
        device=device,
        overlap=overlap,
        deviation=deviation,
        device_begin=raw.device_begin,
        device_end=raw.device_end,
        dispatches=raw.dispatches,
        preemptions=raw.preemptions,
        stage=raw.stage,
        barrier=raw.barrier,
    )
