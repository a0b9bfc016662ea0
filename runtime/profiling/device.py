"""The device's part of a profile: dispatches and exports, made from the bytes of timestamps."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from ...hal.clock import ClockCalibration
from ...hal.programs.device_context import DeviceContext
from ...hal.queue import TimedSubmission
from ...vm.execution.context import Context
from .clock import ClockRelation
from .entry import ProfiledDispatch, ProfiledExport

_STAGE = "COMPUTE_SHADER"


class ProfiledDevice:
    """A device context that is being timed, and the readings of its clock."""

    def __init__(self, context: Context, device_context: DeviceContext, most_slowdown: float | None) -> None:
        self.context = context
        self.device_context = device_context
        self.name = device_context.device.name
        self.readings: list[ClockCalibration] = [device_context.device.read_clock()]
        self.timed = device_context.begin_profile(None if most_slowdown is None else most_slowdown / 2)
        # A reading that is bracketed by a submission waits for the device.
        if self.readings[0].calibrated:
            self.timed.on_reading = self.read

    def read(self) -> None:
        """Reads the clock once more."""
        self.readings.append(self.device_context.device.read_clock())


def dispatches_of(
    relation: ClockRelation, submissions: Sequence[TimedSubmission], submitters: Mapping[int, int]
) -> list[ProfiledDispatch]:
    """Returns the dispatches of one device, except those of submissions that failed before they ran.

    ``submitters`` has the number of the call that made a submission, by its id().
    """
    ran = [one for one in submissions if one.ticks]
    ticks = np.frombuffer(b"".join(one.ticks for one in ran if one.ticks), np.uint64)
    counts = np.array([len(one.ticks or b"") // 8 for one in ran], np.int64)
    near = np.repeat(np.array([one.submit_ns for one in ran], np.int64), counts)
    host = relation.host_ns(ticks, near)
    mask = np.uint64((1 << relation.readings[0].valid_bits) - 1)
    durations = ((ticks[1::2] - ticks[::2]) & mask).astype(np.float64) * relation.readings[0].ns_per_tick
    times = zip(host[::2].tolist(), host[1::2].tolist(), durations.tolist(), strict=True)
    found: list[ProfiledDispatch] = []
    for number, one in enumerate(submissions):
        if one.failed:
            continue
        is_span = one.is_span or (one.ticks is None and not one.untimed)
        dispatches = [(one.name, None)] if is_span else one.dispatches if one.ticks or one.untimed else ()
        barriers = (True,) if is_span else one.barriers
        overlapping = _overlapping(barriers)
        for index, (name, groups) in enumerate(dispatches):
            begin, end, duration = next(times) if one.ticks else (None, None, None)
            found.append(
                ProfiledDispatch(
                    name=name,
                    kind="span" if is_span else "dispatch",
                    call=submitters.get(id(one)),
                    device=relation.device,
                    submission=number,
                    workgroups=groups,
                    submit_ns=one.submit_ns,
                    begin_ns=None if begin is None else relation.base_ns + begin,
                    end_ns=None if end is None else relation.base_ns + end,
                    duration_ns=duration,  # by the device's clock alone, whatever the relation of the clocks
                    stage=_STAGE,
                    barrier=barriers[index],
                    overlapping=overlapping[index],
                    location=None if is_span else next((at[name] for at in one.locations if name in at), None),
                    is_untimed=one.untimed,
                )
            )
    return found


def _overlapping(barriers: Sequence[bool]) -> list[bool]:
    """Returns for each dispatch whether no barrier stands before it, or none after it."""
    return [
        not (index == 0 or barrier) or (index + 1 < len(barriers) and not barriers[index + 1])
        for index, barrier in enumerate(barriers)
    ]


def _groups(dispatches: Iterable[ProfiledDispatch]) -> list[list[ProfiledDispatch]]:
    """Dispatches grouped by whether they may have overlapped; others are groups of one."""
    groups: list[list[ProfiledDispatch]] = []
    for one in dispatches:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and one.overlapping
            and not one.barrier
            and (last.device, last.submission) == (one.device, one.submission)
        ):
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def busy_ns(dispatches: Iterable[ProfiledDispatch]) -> float:
    """Returns the time in which at least one of them ran."""
    by_device: dict[str, list[tuple[float, float]]] = {}
    for one in dispatches:
        if one.begin_ns is not None and one.end_ns is not None:
            by_device.setdefault(one.device, []).append((one.begin_ns, one.end_ns))
    total = 0.0
    for intervals in by_device.values():
        until = -np.inf
        for begin, end in sorted(intervals):
            total += max(0.0, end - max(begin, until))
            until = max(until, end)
    return total


def exports_of(dispatches: Sequence[ProfiledDispatch]) -> tuple[ProfiledExport, ...]:
    """Returns the dispatches by name and source location, the busiest first."""
    ran = [one for one in dispatches if one.begin_ns is not None or one.is_untimed]
    spans: dict[tuple[Literal["dispatch", "span"], str, str | None], float] = {}
    for group in _groups(ran):
        if len(group) > 1 and not group[0].is_untimed:
            extent = max(one.end_ns or 0.0 for one in group) - min(one.begin_ns or 0.0 for one in group)
            for key in {(one.kind, one.name, one.location) for one in group}:
                spans[key] = spans.get(key, 0.0) + extent
    by_name: dict[tuple[Literal["dispatch", "span"], str, str | None], list[ProfiledDispatch]] = {}
    for one in ran:
        by_name.setdefault((one.kind, one.name, one.location), []).append(one)
    found = []
    for key, ones in by_name.items():
        timed, busy = sum(one.begin_ns is not None for one in ones), busy_ns(ones)
        alone = [one.duration_ns for one in ones if not one.overlapping and one.duration_ns is not None]
        found.append(
            ProfiledExport(
                name=ones[0].name,
                kind=ones[0].kind,
                location=ones[0].location,
                count=len(ones),
                workgroups=tuple(dict.fromkeys(one.workgroups for one in ones)),
                timed=timed,
                busy_ns=busy,
                total_ns=busy * len(ones) / timed if timed else None,
                min_ns=min(alone, default=None),
                median_ns=statistics.median(alone) if alone else None,
                mean_ns=statistics.fmean(alone) if alone else None,
                max_ns=max(alone, default=None),
                overlapping=sum(one.overlapping for one in ones),
                span_ns=spans.get(key, 0.0),
            )
        )
    return tuple(sorted(found, key=lambda one: (-(one.total_ns or 0.0), one.name)))
