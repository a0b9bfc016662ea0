"""One sample: a timed run of a point, split into segments on the host's clock.

The events of a dispatch, with the segments between them::

    begin ─record─ commands ready ─submit─ call returned ─queue─ device began
        ─execute─ device ended ─wake─ host awake ─read─ done

``create`` (creation of a pipeline) and ``update`` (writing descriptors or memory) come before ``record`` in workloads
that have them. ``call`` is the call of a compiled module's function, which submits and waits by itself. A device may
begin before the submit call returns: then ``queue`` is 0, and ``overlap`` is the time for which both ran. So::

    create + update + record + submit + call + queue + execute + wake + read - overlap = total    (within ``deviation``)

``total`` is measured by the host's clock alone, from begin to done. If device times cannot be related to the host's
clock, ``queue`` and ``wake`` are NaN, and ``device`` (call returned to host awake) bounds queue, execute and wake
together.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

SEGMENTS: Final = ("create", "update", "record", "submit", "call", "queue", "execute", "wake", "read")
"""The segments, in the order of time."""

MEASURES: Final = (*SEGMENTS, "device", "total")
"""The names that a point may measure."""

_NAN: Final = math.nan


class Sample(NamedTuple):
    """One timed run. All durations are nanoseconds; NaN if a segment does not apply or is not known.

    Attributes:
        started: the host time of the begin, in nanoseconds of ``time.monotonic_ns``.
        total, create, update, record, submit, call, queue, execute, wake, read, device: the segments in nanoseconds:
            see the module.
        overlap: the time that the device ran before the submit call returned.
        deviation: the maximum error of host times of device events.
        device_begin, device_end: the raw device timestamps in ticks; -1 without timestamps.
        dispatches: the number of dispatches in the sample; its durations cover all dispatches.
        preemptions: the involuntary context switches of the process's threads during the sample; -1 if unknown.
        stage: the pipeline stages of the two timestamps, such as ``"TOP_OF_PIPE..BOTTOM_OF_PIPE"``; empty without them.
        barrier: the ordering between the dispatches: ``"between"`` (each waits for the previous dispatch), ``"none"``
            (they may overlap: ``execute`` divided by ``dispatches`` is not a dispatch's duration), or ``"single"``.
        cpu: the processor time of all threads of the process during the sample.
    """

    started: int
    total: float
    create: float = _NAN
    update: float = _NAN
    record: float = _NAN
    submit: float = _NAN
    call: float = _NAN
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
    cpu: float = _NAN
