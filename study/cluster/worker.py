"""What a worker of a Dask cluster does for a study: it says what it has, and measures chunks of points.

Functions here are tasks: they run in a worker's thread, their arguments and results travel. A chunk's result is complete or none: all that was
measured, as logs to be replayed into the store, or the error for which nothing was.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ...hal_vulkan import shared_driver
from ...hal_vulkan.instance.profile import DeviceProfile
from ...status import CancelledError, PumiceError
from ..definition.point import Point
from ..definition.study_file import study_from_dict
from ..results.point_status import PointStatus
from ..results.sink import SinkLog
from ..sampling.environment import environment_facts
from ..sampling.point_run import Prior
from ..sampling.runner import record_device, sample_points
from ..sampling.sampler import SampleRun
from ..workloads.device_pool import DevicePool
from ..workloads.peaks import measure_peaks
from .study_files import unpack_files

__all__ = ["Chunk", "ChunkResult", "WorkerFacts", "describe_worker", "measure_chunk"]

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """What a worker is.

    Attributes:
        host: its name for people.
        machine: the same for all workers of one machine, those in its containers too where the system tells.
        profiles: its Vulkan devices, in its driver's order.
        trouble: why it has none.
        environment: see ``environment_facts``.
    """

    host: str
    machine: str
    profiles: tuple[DeviceProfile, ...]
    trouble: str
    environment: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Points of one device that one worker measures, interleaved.

    Attributes:
        number: of the run.
        device: their URI.
        points: with the files' names as they are shipped; none in a chunk that measures the device's peaks.
        priors: what earlier runs have of them.
        peaks: whether the device's peaks are measured.
        attempt: how many times it was begun, this one included.
    """

    number: int
    device: str
    points: tuple[Point, ...] = ()
    priors: Mapping[int, Prior] = field(default_factory=dict)
    peaks: bool = False
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """What came of a chunk.

    Attributes:
        number, attempt: the chunk's.
        error: why it could not be measured on this worker; empty where it was, and nothing else counts where it is not.
        device: what the device is, to be replayed once a run.
        measured: to be replayed into the store.
        run: the points by how they ended.
        ended: index, status and reason of each point.
    """

    number: int
    attempt: int
    error: str = ""
    device: SinkLog = field(default_factory=SinkLog)
    measured: SinkLog = field(default_factory=SinkLog)
    run: SampleRun = field(default_factory=SampleRun)
    ended: tuple[tuple[int, PointStatus, str], ...] = ()


def describe_worker(validation: bool | None) -> WorkerFacts:
    """What the worker that runs this is.

    Args:
        validation: whether the validation layers are turned on; ``None`` asks its ``PUMICE_VALIDATION``.
    """
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
    """Measures a chunk on the worker that runs this, for as long as somebody waits for the task.

    Args:
        study: as ``study_as_dict`` gives it.
        chunk: of it.
        validation: turn the validation layers on; ``None`` asks ``PUMICE_VALIDATION``.
        key: the task's.
        files: what the points name; see ``StudyFiles``.
    """
    watch = _Watch(key)
    device, measured = SinkLog(), SinkLog()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="pumice-study-") as folder,
            DevicePool(validation=validation) as pool,
        ):
            unpack_files(files, Path(folder))
            record_device(chunk.device, pool, device)
            if chunk.peaks:
                found = measure_peaks(pool.open(chunk.device))
                measured.add_peaks(chunk.device, found.peaks, found.details)
            run = (
                sample_points(
                    study_from_dict(study, Path(folder)),
                    chunk.points,
                    pool,
                    measured,
                    progress=watch,
                    priors=chunk.priors,
                )
                if chunk.points
                else SampleRun()
            )
    except Exception as error:  # whatever fails here may go well on another worker
        text = str(error) if isinstance(error, PumiceError) else f"{type(error).__name__}: {error}"
        return ChunkResult(chunk.number, chunk.attempt, error=text)
    return ChunkResult(chunk.number, chunk.attempt, "", device, measured, run, tuple(watch.ended))


class _Watch:
    """Notes how points end, and ends the sampling where nobody waits for it: its client cancelled it, or is gone.

    A thread cannot be stopped from without, and points measured for nobody would disturb those of the next client.
    """

    def __init__(self, key: str) -> None:
        from distributed import get_worker

        self.ended: list[tuple[int, PointStatus, str]] = []
        self._key = key
        self._tasks = get_worker().state.tasks

    def advance(self, point: Point, fraction: float) -> None:
        task = self._tasks.get(self._key)
        if task is None or task.state == "cancelled":
            raise CancelledError("nobody waits for this chunk any more")

    def finished(self, point: Point, status: PointStatus, reason: str) -> None:
        self.ended.append((point.index, status, reason))


def _machine() -> str:
    """Containers have host names of their own; what they share is the kernel."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return f"{platform.node()} {os.uname().machine if hasattr(os, 'uname') else platform.machine()}"
