"""The samples of a study as a Perfetto trace.

Each run has a track for a device's samples on the host, with their segments, and a track for the device's work; an
arrow leads from the submission to the work. ``wait`` is the host's time from the submit call's return until it is
awake. The samples of a program are its calls; profiles have its dispatches.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from types import MappingProxyType

from ...base.files import write_whole
from ...runtime.profiling.profile import Profile
from ...runtime.profiling.trace_writer import TraceWriter
from ..definition.sample import Sample
from ..results.results import Results
from ..results.storage.records import SampleFlag

_PHASES = ("first", "warmup", "sample")


def write_trace(
    results: Results, path: str | os.PathLike[str], *, profiles: Mapping[int, Profile] = MappingProxyType({})
) -> None:
    """Writes all samples as a trace for ui.perfetto.dev, on the clock of the machine that measured them, and profiles
    that were taken on it, by the indices of their points.

    Raises:
        UnavailableError: the ``perfetto`` package is not installed.
        NotFoundError, PermissionDeniedError, ResourceExhaustedError: the file cannot be written; see ``write_report``.
    """
    data = samples_trace(results, profiles)
    write_whole(path, lambda file: file.write(data))


def samples_trace(results: Results, profiles: Mapping[int, Profile] = MappingProxyType({})) -> bytes:
    trace = TraceWriter()
    process = trace.track(f"pumice study {results.name}")
    samples_of: dict[tuple[str, int], list[tuple[Sample, str, str, SampleFlag]]] = {}
    for result in results.points:
        for phase in _PHASES:
            runs, flags = (result.integers(name, phase).tolist() for name in ("run", "flags"))
            for sample, run, flag in zip(result.samples(phase), runs, flags, strict=True):
                group = samples_of.setdefault((result.point.device, run), [])
                group.append((sample, result.point.label, phase, SampleFlag(flag)))
    for (device, run), samples in samples_of.items():
        host = trace.track(f"run {run}: samples on {device}", process)
        queue = trace.track(f"run {run}: {device}", process)
        for sample, label, phase, flag in sorted(samples, key=lambda item: item[0].started):
            _write_sample(trace, host, queue, sample, label, phase, flag)
    for index, profile in profiles.items():
        label = results.points[index].point.label
        profile.add_to(trace, trace.track(f"{label}: calls with every dispatch timed", process))
    return trace.serialize()


def _write_sample(
    trace: TraceWriter, host: int, queue: int, sample: Sample, label: str, phase: str, flag: SampleFlag
) -> None:
    end = sample.started + sample.total
    arguments: dict[str, object] = {"dispatches": sample.dispatches, "barrier": sample.barrier}
    if flag:
        arguments["flags"] = ", ".join(str(bit.name).lower() for bit in flag)
    trace.slice(host, label, sample.started, end, phase, arguments)
    flow = [trace.flow()] if math.isfinite(sample.execute) and math.isfinite(sample.submit) else []
    now = float(sample.started)
    for name in ("create", "update", "record", "submit", "call"):
        duration = getattr(sample, name)
        if math.isfinite(duration):
            trace.slice(host, name, now, min(now + duration, end), "segment", flows=flow if name == "submit" else ())
            now += duration
    read = sample.read if math.isfinite(sample.read) else 0.0
    if now < end - read and not math.isfinite(sample.call):
        trace.slice(host, "wait", now, end - read, "segment")
    if flow:
        begin = now + _known(sample.queue) - _known(sample.overlap)
        deviation = {"deviation_ns": sample.deviation, "stage": sample.stage}
        trace.slice(queue, label, begin, begin + sample.execute, "execute", {**arguments, **deviation}, ended=flow)
        if max(now, begin + sample.execute) < end - read and math.isfinite(sample.wake):
            trace.slice(host, "wake", max(now, begin + sample.execute), end - read, "segment")
    if read:
        trace.slice(host, "read", end - read, end, "segment")


def _known(duration: float) -> float:
    return duration if math.isfinite(duration) else 0.0
