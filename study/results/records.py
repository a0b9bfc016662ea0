"""Records of results besides points and samples: runs, devices, clocks, reference samples, peaks, notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One start or resumption of a study.

    Attributes:
        number: from 1.
        started: ISO 8601, UTC.
        pumice, python: versions.
        host: the host's name.
        pid: of the writing process.
        command: its command line, quoted for a shell.
        environment: facts of the host, see ``environment_facts``.
        ended: ISO 8601, UTC; ``None`` for a run that continues or was killed.
        outcome: ``"complete"``, or why it ended; ``None`` as ``ended``.
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


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """A device as a run found it; ``device`` is the URI that points have, for ``facts`` see ``device_facts``."""

    run: int
    device: str
    name: str
    driver: str
    facts: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ClockRecord:
    """One reading of clocks; ``None`` for what is not known. See ``Sink.add_clock``."""

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
    """One run of the reference kernel: when, on the clock of ``time.monotonic_ns`` of its run, and how long it took."""

    run: int
    device: str
    started_ns: int
    duration_ns: float


@dataclass(frozen=True, slots=True)
class PeakRecord:
    """One measured peak of a device; its name is its unit."""

    run: int
    device: str
    name: str
    value: float
    details: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class NoteRecord:
    """A note for readers about one point or, if ``point`` is ``None``, the whole run."""

    run: int
    point: int | None
    created: str
    kind: str
    text: str
