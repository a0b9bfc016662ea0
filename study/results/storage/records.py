"""Records of results besides points and samples: runs, devices, clocks, reference samples, states of the machine, peaks
and notes; the status of a point, and the flags of a sample.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

import numpy as np
import numpy.typing as npt

from ....base.lazy_dataclass import dataclass
from ....status import PumiceError, UnavailableError, UnimplementedError


class PointStatus(enum.StrEnum):
    """The status of a point; results store every change, and the latest counts."""

    PENDING = "pending"
    """Not begun: no status is stored yet."""

    SAMPLING = "sampling"
    """Begun and not ended; after a kill it resumes from the stored samples."""

    DONE = "done"
    """Sampled until its stop rule was met."""

    NOISY = "noisy"
    """Ended with more noise than the study allows."""

    FAILED = "failed"
    """Ended by an error, stored as the reason."""

    SKIPPED = "skipped"
    """Cannot be measured, for example because the device lacks a feature; the reason names it."""

    @property
    def is_final(self) -> bool:
        """Whether a resumed study does not measure the point again."""
        return self in (PointStatus.DONE, PointStatus.NOISY, PointStatus.SKIPPED)


def status_of(error: PumiceError) -> PointStatus:
    """Returns the status of a point that failed with an error: skipped if the machine lacks something."""
    lacking = isinstance(error, (UnavailableError, UnimplementedError))
    return PointStatus.SKIPPED if lacking else PointStatus.FAILED


_OVERALL: Final = (
    *(PointStatus.SAMPLING, PointStatus.PENDING, PointStatus.FAILED, PointStatus.NOISY, PointStatus.DONE),
    PointStatus.SKIPPED,
)


def overall_status(repeats: Sequence[tuple[PointStatus, str]]) -> tuple[PointStatus, str]:
    """Combines the status and reason of each repeat: the first of unfinished, failed, noisy, done and skipped that
    occurs.
    """
    if not repeats:
        return PointStatus.PENDING, ""
    index, (status, reason) = min(enumerate(repeats), key=lambda item: _OVERALL.index(item[1][0]))
    if status is PointStatus.PENDING and any(other is not status for other, _ in repeats):
        status = PointStatus.SAMPLING
    if reason and len(repeats) > 1:
        reason += f" (run {index + 1} of {len(repeats)})"
    return status, reason


class SampleFlag(enum.IntFlag):
    """Disturbances of a sample. The numbers are stored in results and never change their meaning."""

    PREEMPTED = 1
    """The measuring thread was preempted during the sample."""

    THROTTLED = 2
    """The reference kernel ran at another speed: clocks, heat or another user of the device."""

    CLOCK_UNSURE = 4
    """Device times could not be related well to the host's clock: ``queue`` and ``wake`` are in doubt."""

    STARVED = 8
    """Threads of the process, such as a software driver's workers, waited for a processor."""


DISTURBED: Final = SampleFlag.PREEMPTED | SampleFlag.STARVED
"""The flags that exclude a sample from the statistics if enough others remain. ``THROTTLED`` does not: it marks whole
blocks, and leaving out one state of the machine would let two runs choose different states.
"""


def kept(disturbed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Selects the samples for statistics: undisturbed ones if they are at least half, else all; see ``analysis``."""
    if 2 * int(np.count_nonzero(~disturbed)) >= disturbed.size:
        return ~disturbed
    return np.ones(disturbed.size, dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One start or resumption of a study, numbered from 1; times are ISO 8601, UTC. ``outcome`` is ``"complete"``, or
    why the run ended. It and ``ended`` are None for a run that continues or was killed. ``repeat`` is the study's
    repetition, from 1.
    """

    number: int
    started: str
    pumice: str
    python: str
    host: str
    pid: int
    command: str
    environment: Mapping[str, object]
    ended: str | None
    outcome: str | None
    repeat: int


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """A device as found by a run; ``device`` is the URI used in points, for ``facts`` see ``device_facts``."""

    run: int
    device: str
    name: str
    driver: str
    facts: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ClockRecord:
    """One reading of clocks; None for unknown values. See ``Sink.add_clock``."""

    run: int
    device: str
    host_ns: int
    device_ticks: int | None
    deviation_ns: float | None
    ns_per_tick: float | None
    calibrated: bool | None
    frequency_mhz: float | None
    memory_mhz: float | None
    cpu_mhz: float | None
    temperature_c: float | None
    power_w: float | None
    throttle: str | None


@dataclass(frozen=True, slots=True)
class ReferenceRecord:
    """One run of a reference kernel: its start, on the run's ``time.monotonic_ns``, and its duration. ``kind`` is its
    work; ``point`` is the point whose load it has, or None. Durations of different ``load`` are not comparable.
    """

    run: int
    device: str
    started_ns: int
    duration_ns: float
    kind: str
    point: int | None
    load: str


@dataclass(frozen=True, slots=True)
class StateRecord:
    """The state of the machine over a span that ended at ``host_ns``; None for unknown values."""

    run: int
    host_ns: int
    span_ns: float | None
    wake_ns: float | None
    wake_p90_ns: float | None
    steal: float | None
    pressure: float | None
    others: float | None
    run_delay: float | None
    load: float | None
    cpu_mhz: float | None


@dataclass(frozen=True, slots=True)
class PeakRecord:
    """One measured peak of a device; its name is its unit."""

    run: int
    device: str
    name: str
    value: float
    details: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Observation:
    """A figure of a point that was taken separately from its samples.

    Attributes:
        kind: ``"pipeline"`` for the driver's statistics of a compiled pipeline, ``"energy"`` or ``"counter"``.
        subject: the measured object, such as a pipeline's executable or a meter.
        name: the driver's own, for its statistics and counters.
        value, unit: the figure.
        details: the details as JSON values, such as the driver's description.
    """

    kind: str
    subject: str
    name: str
    value: float
    unit: str = ""
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObservationRecord(Observation):
    """A stored observation, with its point and the run that took it."""

    point: int = 0
    run: int = 0


@dataclass(frozen=True, slots=True)
class NoteRecord:
    """A note for readers about one point or, if ``point`` is None, the whole run. A note of kind ``"host"`` names the
    cluster host that measured the point, and whose clock its times use.
    """

    run: int
    point: int | None
    created: str
    kind: str
    text: str
