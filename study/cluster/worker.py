"""The tasks of a worker of a Dask cluster: it describes itself, and measures chunks of points.

Tasks run in a worker's thread; their arguments and results are sent over the network. The result of a chunk is all of
its measurements, as logs to be replayed into the store, or an error.
"""

from __future__ import annotations

import contextlib
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ...base.child_process import ChildProcess
from ...base.lazy_dataclass import dataclass
from ...hal_vulkan import shared_driver
from ...hal_vulkan.instance.profile import DeviceProfile
from ...status import CancelledError, PumiceError
from ..definition.point import Point
from ..definition.study_file import study_from_dict
from ..machine.environment import environment_facts
from ..results.storage.records import PointStatus
from ..results.storage.rows import Value
from ..results.storage.sink import Sink, SinkLog
from ..runs.child_calls import measure_in
from ..runs.runner import measure_points, record_device
from ..sampling.passes import Pass
from ..sampling.sampler import SampleRun
from ..sampling.turns import Prior
from ..workloads.peaks import measure_peaks
from ..workloads.study_files import unpack_files
from ..workloads.workload import DevicePool

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """A worker: its host name, its Vulkan devices in its driver's order (or the reason for none), and
    ``environment_facts``. ``machine`` is equal for all workers of a machine, also in containers if the system allows
    it.
    """

    host: str
    machine: str
    profiles: tuple[DeviceProfile, ...]
    trouble: str
    environment: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Points of one device that one worker measures, interleaved, in a process of their own if ``apart``; or, with
    ``peaks``, a device whose peaks are measured.
    """

    number: int
    device: str
    points: tuple[Point, ...] = ()
    priors: Mapping[int, Prior] = field(default_factory=dict)
    peaks: bool = False
    attempt: int = 1
    repeat: int = 1
    apart: bool = False


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """The result of the chunk with this number and attempt, or the error why this worker could not measure it.
    ``device`` is replayed into the store once per run, ``measured`` always; ``ended`` has the end of each point.
    """

    number: int
    attempt: int
    error: str = ""
    device: SinkLog = field(default_factory=SinkLog)
    measured: SinkLog = field(default_factory=SinkLog)
    run: SampleRun = field(default_factory=SampleRun)
    ended: tuple[tuple[int, PointStatus, str], ...] = ()


def describe_worker(validation: bool | None) -> WorkerFacts:
    """Describes the worker that runs this; ``validation`` is ``None`` to ask its ``PUMICE_VALIDATION``."""
    try:
        profiles, trouble = shared_driver(validation=validation).profiles, ""
    except PumiceError as error:
        profiles, trouble = (), error.message
    return WorkerFacts(platform.node(), _machine(), profiles, trouble, environment_facts())


def measure_chunk(
    study: Mapping[str, object],
    chunk: Chunk,
    validation: bool | None,
    key: str,
    files: Mapping[str, bytes] = MappingProxyType({}),
) -> ChunkResult:
    """Measures a chunk on the worker that runs this, until the task ``key`` is cancelled.

    ``files`` are the files of its points.
    """
    watch = _Watch(key)
    log = _ChunkLog()
    run = SampleRun()
    try:
        with tempfile.TemporaryDirectory(prefix="pumice-study-") as folder, contextlib.ExitStack() as stack:
            unpack_files(files, Path(folder))
            described = study_from_dict(study, Path(folder))
            whole = Pass(chunk.repeat, described, chunk.points)
            if chunk.apart and chunk.points:
                child = stack.enter_context(ChildProcess(f"points on {chunk.device}"))
                run = measure_in(child, whole, log, watch, chunk.priors, [chunk.device], validation)
            else:
                pool = stack.enter_context(DevicePool(validation=validation))
                if chunk.peaks:
                    record_device(chunk.device, pool, log)
                    peaks = measure_peaks(pool.open(chunk.device))
                    log.add_peaks(chunk.device, peaks.peaks, peaks.details)
                run = measure_points(whole, pool, log, chunk.priors, [chunk.device], watch)
    except Exception as error:  # another worker may succeed
        text = str(error) if isinstance(error, PumiceError) else f"{type(error).__name__}: {error}"
        return ChunkResult(chunk.number, chunk.attempt, error=text)
    return ChunkResult(chunk.number, chunk.attempt, "", log.device, log.measured, run, tuple(watch.ended))


class _ChunkLog(Sink):
    """A log that keeps rows of devices separate."""

    def __init__(self) -> None:
        self.device, self.measured = SinkLog(), SinkLog()

    def write(self, table: str, doing: str, rows: Sequence[Mapping[str, Value]]) -> None:
        (self.device if table == "devices" else self.measured).write(table, doing, rows)


class _Watch:
    """Records how points end, and stops the sampling once the task is cancelled or its client is gone.

    A thread cannot be stopped from outside, and further sampling would disturb the next client's measurements.
    """

    def __init__(self, key: str) -> None:
        from distributed import get_worker

        self.ended: list[tuple[int, PointStatus, str]] = []
        self._key = key
        self._tasks = get_worker().state.tasks

    def advance(self, point: Point, fraction: float) -> None:
        task = self._tasks.get(self._key)
        if task is None or task.state == "cancelled":
            raise CancelledError("the task of this chunk was cancelled")

    def finished(self, point: Point, status: PointStatus, reason: str) -> None:
        self.ended.append((point.index, status, reason))


def _machine() -> str:
    """Identifies the machine by its kernel's boot: containers have separate host names."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return f"{platform.node()} {os.uname().machine if hasattr(os, 'uname') else platform.machine()}"
