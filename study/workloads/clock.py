"""Divides the events of a sample into segments.

Readings of the host's and the device's clock before and after a block of samples relate the two; see ``ClockRelation``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...hal.clock import elapsed_ticks
from ...runtime.profiling.clock import ClockRelation
from ..definition.sample import Sample


class RawSample(NamedTuple):
    """The events of one sample: host times in nanoseconds, -1 for events that did not happen, and device ticks.

    In order: the host begins; pipelines are created, memory or descriptors written, commands recorded; the first submit
    call begins, the last returns; a module's function returns, which submits and waits by itself; the host knows that
    the device is done; the results are read. The others are as in ``Sample``.
    """

    begin: int
    created: int = -1
    updated: int = -1
    recorded: int = -1
    called: int = -1
    returned: int = -1
    answered: int = -1
    awake: int = -1
    done: int = -1
    device_begin: int = -1
    device_end: int = -1
    dispatches: int = 1
    preemptions: int = -1
    stage: str = ""
    barrier: str = "single"
    cpu: float = math.nan


def resolve(raws: Sequence[RawSample], relation: ClockRelation | None) -> list[Sample]:
    """Divides samples into segments; without a relation those of the device stay unknown."""
    begins, deviation = [math.nan] * len(raws), math.nan
    timed = [index for index, raw in enumerate(raws) if raw.device_begin >= 0 and raw.awake >= 0]
    if relation is not None and timed:
        deviation = float(relation.deviation_ns)
        # The wrap nearest to the host's time: half a wrap is at least seconds.
        near = [raws[index].awake for index in timed]
        host = relation.host_ns([raws[index].device_begin for index in timed], near)
        for index, when in zip(timed, (host + relation.base_ns).tolist(), strict=True):
            begins[index] = when
    return [_resolve(raw, relation, deviation, began) for raw, began in zip(raws, begins, strict=True)]


def _resolve(raw: RawSample, relation: ClockRelation | None, deviation: float, began: float) -> Sample:
    """Divides a raw sample into segments; ``began`` is the host time at which its device work began, NaN if unknown."""
    create = update = record = submit = call = queue = execute = wake = read = device = overlap = math.nan
    begin, created, updated, recorded, called, returned, answered, awake, done = raw[:9]
    # Time of the host between the last segment and the call belongs to that segment.
    if recorded >= 0:
        recorded = max(recorded, called)
    elif updated >= 0:
        updated = max(updated, called)
    elif created >= 0:
        created = max(created, called)
    end = begin
    if created >= 0:
        create, end = float(created - end), created
    if updated >= 0:
        update, end = float(updated - end), updated
    if recorded >= 0:
        record, end = float(recorded - end), recorded
    if called >= 0:
        submit, end = float(returned - called), returned
    if answered >= 0:
        call, end = float(answered - end), answered
    timed = relation is not None and not math.isnan(began)
    if awake >= 0:
        device = float(awake - end)
        if relation is not None and timed:
            reading = relation.readings[0]
            execute = elapsed_ticks(raw.device_begin, raw.device_end, reading.valid_bits) * reading.ns_per_tick
            queue, overlap = max(0.0, began - end), max(0.0, end - began)
            wake = awake - (began + execute)
        elif called < 0:
            wake = device
        end = awake
    if done >= 0:
        read, end = float(done - end), done
    return Sample(
        begin,
        float(end - begin),
        create,
        update,
        record,
        submit,
        call,
        queue,
        execute,
        wake,
        read,
        device,
        overlap,
        deviation if timed else math.nan,
        *raw[9:],
    )
