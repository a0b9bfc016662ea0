"""A profile in a Perfetto trace: tracks of the host and of each device's queue on the host's monotonic clock.

The host has a track for the calls of each thread, with nested native functions and waits; overlapping asynchronous
calls have separate tracks. A device's track has its dispatches, with workgroups, source location, stage and barrier as
arguments. An arrow leads to each dispatch from the native function that submitted it, or from its call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .clock import ClockRelation
from .entry import HOST_SHARES, ProfiledCall, ProfiledDispatch, ProfiledWait
from .shares import NativeCall
from .trace_writer import TraceWriter


def add_profile(
    trace: TraceWriter,
    process: int,
    calls: Sequence[ProfiledCall],
    natives: Sequence[NativeCall],
    waits: Sequence[ProfiledWait],
    clocks: Sequence[ClockRelation],
    dispatches: Sequence[ProfiledDispatch],
) -> None:
    """Adds a stopped profile to a trace, in tracks below a process's track."""
    flows = {number: trace.flow() for number, dispatch in enumerate(dispatches) if dispatch.begin_ns is not None}
    inner: dict[int | None, list[tuple[int, int, str, str]]] = {}
    for name, caller, begin, end in natives:
        category = "hal" if name.startswith("hal.") else "native"
        inner.setdefault(caller, []).append((begin, end, name, category))
    for wait in waits:
        inner.setdefault(wait.call, []).append((wait.begin_ns, wait.end_ns, f"wait in {wait.name}", "wait"))
    tracks: dict[int, int] = {}
    busy: dict[int, list[int]] = {}
    for call in calls:
        # Calls that overlap without being nested, such as asynchronous calls, have separate tracks.
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
        parts = sorted(inner.get(call.number, ()))
        # The last part that had begun by then is the innermost part.
        sources: dict[int, list[int]] = {}
        for number, flow in flows.items():
            dispatch = dispatches[number]
            if dispatch.call == call.number:
                around = [at for at, part in enumerate(parts) if part[0] <= dispatch.submit_ns <= part[1]]
                sources.setdefault(around[-1] if around else -1, []).append(flow)
        trace.slice(track, call.name, call.begin_ns, call.end_ns, "call", arguments, flows=sources.get(-1, ()))
        for at, (begin, end, name, category) in enumerate(parts):
            trace.slice(track, name, begin, min(end, call.end_ns), category, flows=sources.get(at, ()))
    for clock in clocks:
        _write_device(trace, process, clock, dispatches, flows)


def _write_device(
    trace: TraceWriter,
    process: int,
    clock: ClockRelation,
    dispatches: Sequence[ProfiledDispatch],
    flows: Mapping[int, int],
) -> None:
    track = trace.track(f"{clock.device}: compute queue", process)
    for number, dispatch in enumerate(dispatches):
        if dispatch.device != clock.device or dispatch.begin_ns is None or dispatch.end_ns is None:
            continue
        arguments: dict[str, object] = {
            "workgroups": "indirect" if dispatch.workgroups is None else "x".join(map(str, dispatch.workgroups)),
            "source": dispatch.location or "",
            "stage": dispatch.stage,
            "barrier before": dispatch.barrier,
            "overlapping": dispatch.overlapping,
            "submission": dispatch.submission,
            "deviation_ns": clock.deviation_ns,
        }
        if dispatch.kind == "span":
            del arguments["workgroups"], arguments["source"]
        if dispatch.call is not None:
            arguments["call"] = dispatch.call
        ended = [flows[number]] if dispatch.call is not None else []
        trace.slice(track, dispatch.name, dispatch.begin_ns, dispatch.end_ns, dispatch.kind, arguments, ended=ended)
