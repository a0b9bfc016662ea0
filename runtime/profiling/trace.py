"""A profile as a Perfetto trace: tracks of the host and of each device's queue on the host's monotonic clock.

The host has a track for the calls of each thread, with native functions and waits inside; asynchronous calls overlap
and have a track each. A device's track has its dispatches, with workgroups, source location, stage and barrier as
arguments.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

from ...status import UnavailableError
from .clock import ClockRelation
from .entry import HOST_SHARES, ProfiledCall, ProfiledDispatch, ProfiledWait
from .shares import NativeCall

_MONOTONIC: Final = 3  # BUILTIN_CLOCK_MONOTONIC
_SEQUENCE: Final = 1
_FIELDS: Final[dict[type, str]] = {bool: "bool_value", int: "int_value", float: "double_value"}


def check_perfetto() -> None:
    """Raises UnavailableError unless the ``perfetto`` package is installed."""
    _Trace()


class _Trace:
    """Writes packets."""

    def __init__(self) -> None:
        try:
            from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
            from perfetto.trace_builder.proto_builder import TraceProtoBuilder
        except ImportError as error:
            raise UnavailableError(
                "writing Perfetto traces needs the perfetto package: pip install 'pumice[study]'"
            ) from error
        self._builder: Any = TraceProtoBuilder()
        self._begin = TrackEvent.TYPE_SLICE_BEGIN
        self._end = TrackEvent.TYPE_SLICE_END
        self._tracks = 0

    def serialize(self) -> bytes:
        """The trace."""
        data: bytes = self._builder.serialize()
        return data

    def track(self, name: str, parent: int = 0) -> int:
        """A new track, below another one; the first one is the process's."""
        self._tracks += 1
        packet = self._builder.add_packet()
        packet.track_descriptor.uuid = self._tracks
        packet.track_descriptor.name = name
        if parent:
            packet.track_descriptor.parent_uuid = parent
        else:
            packet.track_descriptor.process.pid = os.getpid()
            packet.track_descriptor.process.process_name = name
        return self._tracks

    def slice(
        self, track: int, name: str, begin: float, end: float, category: str, arguments: dict[str, object] | None = None
    ) -> None:
        """An interval of a track. Intervals of one track are nested or disjoint, and written in order."""
        for kind, when in ((self._begin, begin), (self._end, end)):
            packet = self._builder.add_packet()
            packet.timestamp = max(0, round(when))
            packet.timestamp_clock_id = _MONOTONIC
            packet.trusted_packet_sequence_id = _SEQUENCE
            event = packet.track_event
            event.type = kind
            event.track_uuid = track
            if kind == self._begin:
                event.name = name
                event.categories.append(category)
                for key, value in (arguments or {}).items():
                    annotation = event.debug_annotations.add()
                    annotation.name = key
                    field = _FIELDS.get(type(value))
                    setattr(annotation, field or "string_value", value if field else str(value))


def perfetto_trace(
    calls: Sequence[ProfiledCall],
    natives: Sequence[NativeCall],
    waits: Sequence[ProfiledWait],
    clocks: Sequence[ClockRelation],
    dispatches: Sequence[ProfiledDispatch],
) -> bytes:
    """The trace of a stopped profile; UnavailableError if the ``perfetto`` package is not installed."""
    trace = _Trace()
    process = trace.track("pumice")
    inner: dict[int | None, list[tuple[int, int, str, str]]] = {}
    for name, caller, begin, end in natives:
        category = "hal" if name.startswith("hal.") else "native"
        inner.setdefault(caller, []).append((begin, end, name, category))
    for wait in waits:
        inner.setdefault(wait.call, []).append((wait.begin_ns, wait.end_ns, f"wait in {wait.name}", "wait"))
    tracks: dict[int, int] = {}
    busy: dict[int, list[int]] = {}
    for call in calls:
        # Calls that overlap without being nested, as asynchronous ones do, have a track each.
        ends = busy.setdefault(call.thread, [])
        while ends and ends[-1] <= call.begin_ns:
            ends.pop()
        if ends and call.end_ns > ends[-1]:
            track = trace.track(f"call {call.number}", process)
        else:
            ends.append(call.end_ns)
            if call.thread not in tracks:
                tracks[call.thread] = trace.track(f"calls of thread {call.thread}", process)
            track = trace.track(f"call {call.number}", tracks[call.thread]) if len(ends) > 1 else tracks[call.thread]
        arguments: dict[str, object] = {"call": call.number}
        for share in (*HOST_SHARES, "device_ns"):
            value = getattr(call, share)
            if value is not None:
                arguments[share] = value
        if call.error:
            arguments["error"] = call.error
        trace.slice(track, call.name, call.begin_ns, call.end_ns, "call", arguments)
        for begin, end, name, category in sorted(inner.get(call.number, ())):
            trace.slice(track, name, begin, min(end, call.end_ns), category)
    for clock in clocks:
        _write_device(trace, process, clock, dispatches)
    return trace.serialize()


def _write_device(trace: _Trace, process: int, clock: ClockRelation, dispatches: Sequence[ProfiledDispatch]) -> None:
    track = trace.track(f"{clock.device}: compute queue", process)
    for one in dispatches:
        if one.device != clock.device or one.begin_ns is None or one.end_ns is None:
            continue
        arguments: dict[str, object] = {
            "workgroups": "indirect" if one.workgroups is None else "x".join(map(str, one.workgroups)),
            "source": one.location or "",
            "stage": one.stage,
            "barrier before": one.barrier,
            "overlapping": one.overlapping,
            "submission": one.submission,
            "deviation_ns": clock.deviation_ns,
        }
        if one.kind == "span":
            del arguments["workgroups"], arguments["source"]
        if one.call is not None:
            arguments["call"] = one.call
        trace.slice(track, one.name, one.begin_ns, one.end_ns, one.kind, arguments)
