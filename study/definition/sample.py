"""One sample: a timed run of a point, split into segments on the host's clock.

The events of a dispatch are in this order, with the segment that each ends::

    begin ─record─ commands ready ─submit─ call returned ─queue─ device began ─execute─ device ended ─wake─ host awake ─read─ done

``create`` (a pipeline is made) and ``update`` (descriptors or memory are written) come before ``record`` where a workload has them.
A device may begin before the submit call has returned: ``queue`` is 0 then, and ``overlap`` is how long both went on. So::

    create + update + record + submit + queue + execute + wake + read - overlap = total    (within ``deviation``)

``total`` is measured by the host's clock alone, from begin to done. Where device times cannot be related to the host's clock,
``queue`` and ``wake`` are not a number, and ``device`` (call returned to host awake) bounds queue, execute and wake together.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

__all__ = ["MEASURES", "SEGMENTS", "Sample"]

SEGMENTS: Final = ("create", "update", "record", "submit", "queue", "execute", "wake", "read")
"""The segments, in the order of time."""

MEASURES: Final = (*SEGMENTS, "device", "total")
"""What a point may measure."""

_NAN: Final = math.nan


class Sample(NamedTuple):
    """One timed run. All durations are nanoseconds; NaN where a segment does not apply or cannot be told.

    Attributes:
        started: host time of the begin, nanoseconds of ``time.monotonic_ns``.
        total: begin to done, by the host's clock.
        create, update, record, submit, queue, execute, wake, read: the segments; see the module.
        device: the submit call returned to the host awake: an upper bound of ``queue + execute + wake``.
        overlap: how long the device ran while the submit call had not returned.
        deviation: how far host times of device events may be off; NaN where they cannot be told.
        device_begin, device_end: raw device timestamps in ticks; -1 where there are none.
        dispatches: in the sample; its figures are of all of them together.
        preemptions: involuntary context switches of the measuring thread during the sample; -1 where the platform does not tell.
        stage: pipeline stages of the two timestamps, such as ``"TOP_OF_PIPE..BOTTOM_OF_PIPE"``; empty without timestamps.
        barrier: what stood between the dispatches: ``"between"`` (each waits for the one before), ``"none"`` (they may overlap:
            ``execute`` divided by ``dispatches`` is no dispatch's time), or ``"single"`` for one dispatch.
    """

    started: int
    total: float
    create: float = _NAN
    update: float = _NAN
    record: float = _NAN
    submit: float = _NAN
    queue: float = _NAN
    execute: float = _NAN
    wake: float = _NAN
    read: float = _NAN
    device: float = _NAN
    overlap: float = _NAN
    deviation: float = _NAN
    device_begin: int = -1
    device_end: int = -1
    dispatches: int = 1
    preemptions: int = -1
    stage: str = ""
    barrier: str = "single"
