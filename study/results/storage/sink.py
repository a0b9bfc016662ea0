"""Sinks of measurements: rows of a results file, written at once (``Store``) or kept to be replayed."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Final

from ....status import InvalidArgumentError
from ...definition.kept_file import KeptFile
from ...definition.sample import Sample
from .records import Observation, PointStatus, SampleFlag
from .rows import SAMPLE_COLUMNS, Value, number_or_null, sample_row, signed_ticks, to_json

PHASES: Final = ("first", "warmup", "sample")
"""The phases of samples: the first run of a point in a process, warm-up, or measured."""

_ALL_FLAGS: Final = sum(SampleFlag)


class Sink(abc.ABC):
    """A receiver of measurements. The run and the time of day are added when rows are stored."""

    @abc.abstractmethod
    def write(self, table: str, doing: str, rows: Sequence[Mapping[str, Value]]) -> None:
        """Takes rows of one table with equal columns, all of them or, if it raises, none; ``doing`` is for messages."""

    def add_samples(
        self, point: int, block: int, phase: str, samples: Sequence[Sample], flags: Sequence[int] | None = None
    ) -> None:
        """Adds samples of a point, taken in one block, in their order, each with its ``SampleFlag`` bits; for ``phase``
        see ``PHASES``.
        """
        if phase not in PHASES:
            raise InvalidArgumentError(f"phase is one of {', '.join(PHASES)}; got {phase!r}")
        flags = (0,) * len(samples) if flags is None else flags
        if len(flags) != len(samples):
            raise InvalidArgumentError(f"one flag a sample: got {len(flags)} flags and {len(samples)} samples")
        if any(flag & ~_ALL_FLAGS for flag in flags):
            raise InvalidArgumentError(f"flags are of the bits {_ALL_FLAGS:#x} of SampleFlag, got {list(flags)}")
        names = ("point", "block", "phase", "flags", *SAMPLE_COLUMNS)
        rows = (
            (point, int(block), phase, int(flag), *sample_row(sample))
            for sample, flag in zip(samples, flags, strict=True)
        )
        self.write("samples", "adding samples", [dict(zip(names, row, strict=True)) for row in rows])

    def set_status(self, point: int, status: str, reason: str = "") -> None:
        """Adds a status of a point, a ``PointStatus`` or its text, with a reason such as an error's text."""
        if status not in list(PointStatus):
            raise InvalidArgumentError(f"status is one of {', '.join(PointStatus)}; got {status!r}")
        self.write("statuses", "setting a status", [{"point": point, "status": str(status), "reason": reason}])

    def add_device(self, device: str, *, name: str, driver: str, facts: Mapping[str, object]) -> None:
        """Adds a device of this run, once per run, by its URI as in the points; ``facts`` are JSON values."""
        row = {"device": device, "name": name, "driver": driver, "facts": to_json(facts, "facts")}
        self.write("devices", f"adding the device {device}", [row])

    def add_clock(
        self,
        device: str,
        *,
        host_ns: int,
        device_ticks: int | None = None,
        calibrated: bool | None = None,
        throttle: str | None = None,
        **figures: float | None,
    ) -> None:
        """Adds one reading of clocks at ``host_ns`` of ``time.monotonic_ns``; ``None`` for unknown values.

        ``throttle`` is the device's reason for a slowdown, empty if there is none; ``figures`` are other columns of the
        table.
        """
        row: dict[str, Value] = {
            "device": device,
            "host_ns": int(host_ns),
            "device_ticks": None if device_ticks is None else signed_ticks(device_ticks),
            "calibrated": None if calibrated is None else int(calibrated),
            "throttle": throttle,
        }
        row |= {name: number_or_null(value) for name, value in figures.items()}
        self.write("clocks", "adding a reading of clocks", [row])

    def add_reference(
        self,
        device: str,
        *,
        started_ns: int,
        duration_ns: float,
        kind: str = "compute",
        point: int | None = None,
        load: str = "",
    ) -> None:
        """Adds one run of a reference kernel: its begin on the clock of ``time.monotonic_ns``, its duration, its kind
        of work, the point whose load it is like, if any, and the load. Durations of different loads cannot be compared.
        """
        row: dict[str, Value] = {"device": device, "started_ns": int(started_ns), "duration_ns": float(duration_ns)}
        row |= {"kind": kind, "point": point, "load": load}
        self.write("reference_samples", "adding a reference sample", [row])

    def add_state(self, *, host_ns: int, **figures: float | None) -> None:
        """Adds a state of the machine over a span that ended at ``host_ns`` of ``time.monotonic_ns``; ``figures`` are
        other columns of the table, ``None`` for unknown ones.
        """
        row: dict[str, Value] = {"host_ns": int(host_ns)}
        row |= {name: number_or_null(value) for name, value in figures.items()}
        self.write("machine_states", "adding a state of the machine", [row])

    def add_file(self, file: KeptFile) -> None:
        """Adds a file that the study measures, once per name.

        Raises:
            FailedPreconditionError: a file of that name with other content was added before.
        """
        row: dict[str, Value] = {"name": file.name, "sha256": file.sha256, "size": file.size, "role": file.role}
        self.write("files", f"adding the file {file.name}", [{**row, "content": file.packed}])

    def add_peaks(self, device: str, peaks: Mapping[str, float], details: Mapping[str, object] | None = None) -> None:
        """Adds measured peaks of a device, by name such as ``"GB/s"``; ``details`` say how they were measured."""
        text = to_json(details or {}, "details")
        rows: list[dict[str, Value]] = [
            {"device": device, "name": name, "value": float(value), "details": text} for name, value in peaks.items()
        ]
        self.write("peaks", f"adding peaks of {device}", rows)

    def add_observations(self, point: int, observations: Sequence[Observation]) -> None:
        """Adds figures of a point that were taken apart from its samples."""
        rows: list[dict[str, Value]] = [
            {
                "point": point,
                "kind": observation.kind,
                "subject": observation.subject,
                "name": observation.name,
                # A 64-bit hash may exceed SQLite's integers.
                "value": observation.value if abs(observation.value) < 1 << 63 else float(observation.value),
                "unit": observation.unit,
                "details": to_json(observation.details, "details"),
            }
            for observation in observations
        ]
        self.write("observations", "adding observations", rows)

    def add_note(self, text: str, *, point: int | None = None, kind: str = "warning") -> None:
        """Adds a note for readers of the results, on the whole run or on one point."""
        self.write("notes", "adding a note", [{"point": point, "kind": kind, "text": text}])


class SinkLog(Sink):
    """A log of writes, in order. It can be pickled, and replayed into another sink."""

    def __init__(self) -> None:
        self._written: list[tuple[str, str, Sequence[Mapping[str, Value]]]] = []

    def write(self, table: str, doing: str, rows: Sequence[Mapping[str, Value]]) -> None:
        self._written.append((table, doing, tuple(rows)))

    def replay(self, sink: Sink) -> None:
        """Writes everything to another sink; the log keeps it."""
        for written in self._written:
            sink.write(*written)
