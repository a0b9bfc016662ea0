"""The device's part of a profile: dispatches and exports, from the bytes of timestamps."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from ...hal.clock import ClockCalibration
from ...hal.programs.device_context import DeviceContext
from ...hal.queue import TimedQueue, TimedSubmission
from ...vm.execution.context import Context
from .clock import ClockRelation
from .entry import ProfiledDispatch, ProfiledExport

_STAGE = "COMPUTE_SHADER"


class ProfiledDevice:
    """A device context being timed, and the readings of its clock."""

    def __init__(self, context: Context, device_context: DeviceContext, most_slowdown: float | None) -> None:
        self.context = context
        self.device_context = device_context
        self.name: str = device_context.device.name
        self.readings: list[ClockCalibration] = [device_context.device.read_clock()]
        self.timed: TimedQueue = device_context.begin_profile(None if most_slowdown is None else most_slowdown / 2)
        # A reading bracketed by a submission waits for the device.
        if self.readings[0].calibrated:
            self.timed.on_reading = self.read

    def read(self) -> None:
        """Reads the clock once more."""
        self.readings.append(self.device_context.device.read_clock())


def dispatches_of(
    relation: ClockRelation, submissions: Sequence[TimedSubmission], submitters: Mapping[int, int]
) -> list[ProfiledDispatch]:
    """Returns the dispatches of one device, except those of submissions that failed before they ran.

    ``submitters`` maps the id() of a submission to the number of its call.
    """
    ran = [submission for submission in submissions if submission.ticks]
    ticks = np.frombuffer(b"".join(submission.ticks for submission in ran if submission.ticks), np.uint64)
    counts = np.array([len(submission.ticks or b"") // 8 for submission in ran], np.int64)
    near = np.repeat(np.array([submission.submit_ns for submission in ran], np.int64), counts)
    host = relation.host_ns(ticks, near)
    mask = np.uint64((1 << relation.readings[0].valid_bits) - 1)
    durations = ((ticks[1::2] - ticks[::2]) & mask).astype(np.float64) * relation.readings[0].ns_per_tick
    times = zip(host[::2].tolist(), host[1::2].tolist(), durations.tolist(), strict=True)
    profiled: list[ProfiledDispatch] = []
    for number, submission in enumerate(submissions):
        if submission.failed:
            continue
        is_span = submission.is_span or (submission.ticks is None and not submission.untimed)
        dispatches = (
            [(submission.name, None)]
            if is_span
            else submission.dispatches
            if submission.ticks or submission.untimed
            else ()
        )
        barriers = (True,) if is_span else submission.barriers
        overlapping = _overlapping(barriers)
        for index, (name, groups) in enumerate(dispatches):
            begin, end, duration = next(times) if submission.ticks else (None, None, None)
            profiled.append(
                ProfiledDispatch(
                    name=name,
                    kind="span" if is_span else "dispatch",
                    call=submitters.get(id(submission)),
                    device=relation.device,
                    submission=number,
                    workgroups=groups,
                    submit_ns=submission.submit_ns,
                    begin_ns=None if begin is None else relation.base_ns + begin,
                    end_ns=None if end is None else relation.base_ns + end,
                    duration_ns=duration,  # only by the device's clock, independent of the relation of the clocks
                    stage=_STAGE,
                    barrier=barriers[index],
                    overlapping=overlapping[index],
                    location=None if is_span else next((at[name] for at in submission.locations if name in at), None),
                    is_untimed=submission.untimed,
                )
            )
    return profiled


def _overlapping(barriers: Sequence[bool]) -> list[bool]:
    """Returns, for each dispatch, whether a barrier is missing before or after it."""
    return [
        not (index == 0 or barrier) or (index + 1 < len(barriers) and not barriers[index + 1])
        for index, barrier in enumerate(barriers)
    ]


def _groups(dispatches: Iterable[ProfiledDispatch]) -> list[list[ProfiledDispatch]]:
    """Groups dispatches that may have overlapped; others are groups of one dispatch."""
    groups: list[list[ProfiledDispatch]] = []
    for dispatch in dispatches:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and dispatch.overlapping
            and not dispatch.barrier
            and (last.device, last.submission) == (dispatch.device, dispatch.submission)
        ):
            groups[-1].append(dispatch)
        else:
            groups.append([dispatch])
    return groups


def busy_ns(dispatches: Iterable[ProfiledDispatch]) -> float:
    """Returns the time in which at least one of the dispatches ran."""
    by_device: dict[str, list[tuple[float, float]]] = {}
    for dispatch in dispatches:
        if dispatch.begin_ns is not None and dispatch.end_ns is not None:
            by_device.setdefault(dispatch.device, []).append((dispatch.begin_ns, dispatch.end_ns))
    total = 0.0
    for intervals in by_device.values():
        until = -np.inf
        for begin, end in sorted(intervals):
            total += max(0.0, end - max(begin, until))
            until = max(until, end)
    return total


def exports_of(dispatches: Sequence[ProfiledDispatch]) -> tuple[ProfiledExport, ...]:
    """Returns the dispatches by name and source location, busiest first."""
    ran = [run for run in dispatches if run.begin_ns is not None or run.is_untimed]
    spans: dict[tuple[Literal["dispatch", "span"], str, str | None], float] = {}
    for group in _groups(ran):
        if len(group) > 1 and not group[0].is_untimed:
            extent = max(run.end_ns or 0.0 for run in group) - min(run.begin_ns or 0.0 for run in group)
            for key in {(run.kind, run.name, run.location) for run in group}:
                spans[key] = spans.get(key, 0.0) + extent
    by_name: dict[tuple[Literal["dispatch", "span"], str, str | None], list[ProfiledDispatch]] = {}
    for run in ran:
        by_name.setdefault((run.kind, run.name, run.location), []).append(run)
    exports = []
    for key, runs in by_name.items():
        timed, busy = sum(run.begin_ns is not None for run in runs), busy_ns(runs)
        alone = [run.duration_ns for run in runs if not run.overlapping and run.duration_ns is not None]
        exports.append(
            ProfiledExport(
                name=runs[0].name,
                kind=runs[0].kind,
                location=runs[0].location,
                count=len(runs),
                workgroups=tuple(dict.fromkeys(run.workgroups for run in runs)),
                timed=timed,
                busy_ns=busy,
                total_ns=busy * len(runs) / timed if timed else None,
                min_ns=min(alone, default=None),
                median_ns=statistics.median(alone) if alone else None,
                mean_ns=statistics.fmean(alone) if alone else None,
                max_ns=max(alone, default=None),
                overlapping=sum(run.overlapping for run in runs),
                span_ns=spans.get(key, 0.0),
            )
        )
    return tuple(sorted(exports, key=lambda run: (-(run.total_ns or 0.0), run.name)))
