"""Reading the results of a study: while it runs, after it was killed, and from read-only media."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

import numpy as np

from ...status import ClosedError, DataLossError, NotFoundError
from .database import Reader, database_errors, results_path
from .flags import SampleFlag
from .point_result import SAMPLE_FIELDS, PointResult
from .point_status import PointStatus
from .records import ClockRecord, DeviceRecord, NoteRecord, PeakRecord, ReferenceRecord, RunRecord
from .rows import POINT_COLUMNS, point_from_row, unsigned_ticks

if TYPE_CHECKING:
    from ..definition.study import Study

__all__ = ["Results"]

Row = Sequence[str | int | float | None]


class Results:
    """The results in one folder.

    Points and their statuses are those of the moment of ``open``; samples of a point are read when first asked for, and
    all of the others at each asking, so a run that goes on shows in them. Nothing is ever written.

    Threads: any thread may call; reads take turns.

    Attributes:
        path: of the file.
        name: the study's.
        created: when the study was begun; ISO 8601, UTC.
        study: the study as JSON values; ``study_from_dict`` makes a ``Study`` of it.
        text: its TOML text, ``None`` for a study made in Python.
        points: a result for each point, by index.
    """

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Results:
        """Opens the results of a folder; a path to the file itself is taken too.

        Raises:
            NotFoundError: there are none.
            InvalidArgumentError: the file is not of this package.
            IncompatibleError: a newer version wrote it.
            DataLossError: it is damaged.
            PermissionDeniedError: it may not be read.
        """
        path = results_path(folder)
        return cls(Reader(path), path)

    def __init__(self, reader: Reader, path: Path) -> None:
        self.path: Final = path
        self._reader: Reader | None = reader
        self._lock = threading.Lock()
        self._study: Study | None = None
        self._peaks: tuple[PeakRecord, ...] = ()
        try:
            ((name, created, study, text),) = self._rows("SELECT name, created, study, toml FROM study")
            self.name: Final = str(name)
            self.created: Final = str(created)
            self.study: Final[Mapping[str, object]] = _json(study)
            self.text: Final = None if text is None else str(text)
            self.points: Final = self._points()
        except ValueError as error:  # of JSON, or of a status that is none
            self.close()
            raise DataLossError(f"{path} is damaged: {error}") from error
        except BaseException:
            self.close()
            raise

    def _points(self) -> tuple[PointResult, ...]:
        columns = ", ".join(f"points.{name}" for name in POINT_COLUMNS)
        rows = self._rows(
            f"SELECT status, reason, {columns} FROM points JOIN point_status USING (point) ORDER BY point"
        )
        found = tuple(
            PointResult(point_from_row(row[2:]), PointStatus(str(row[0])), str(row[1]), self._samples) for row in rows
        )
        for result in found:
            if result.point.baseline is not None:
                result.baseline = found[result.point.baseline]
        return found

    def _samples(self, point: int) -> Sequence[Row]:
        return self._rows(f"SELECT {', '.join(SAMPLE_FIELDS)} FROM samples WHERE point = ? ORDER BY number", point)

    def point(self, key: str) -> PointResult:
        """The result of the point with a key, the first where several devices have it.

        Raises:
            NotFoundError: there is no such point.
        """
        for result in self.points:
            if result.point.key == key:
                return result
        raise NotFoundError(f"{self.path} has no point {key}; the first that it has is {self.points[0].point.key}")

    def as_study(self) -> Study:
        """The study as an object; relative file names in it start from the working folder.

        Raises:
            IncompatibleError: it is of a newer version of the format.
        """
        from ..definition.study_file import study_from_dict

        return study_from_dict(self.study, text=self.text, source=str(self.path))

    def figures(self, result: PointResult, *, keep: SampleFlag | None = None) -> dict[str, float]:
        """The derived figures of a point, from the medians of its samples; see ``derive``. None without samples.

        Args:
            result: of this study.
            keep: which samples: as in ``PointResult.values``.
        """
        from ..definition.expansion import derive
        from ..definition.figures import MEASURED

        measured = {name: 1e-9 * ns for name, ns in result.medians(keep=keep).items() if name in MEASURED}
        if not measured:
            return {}
        dispatches = result.integers("dispatches", keep=keep)
        if self._study is None:
            self._study, self._peaks = self.as_study(), self.peaks
        # The latest run's stand where several runs measured them.
        peaks = {peak.name: peak.value for peak in self._peaks if peak.device == result.point.device}
        return derive(self._study, result.point, {**measured, "dispatches": float(np.median(dispatches))}, peaks)

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The starts of the study and the times that it was resumed, in order."""
        rows = self._rows(
            "SELECT run, started, pumice, python, host, pid, command, environment, ended, outcome "
            "FROM runs LEFT JOIN run_ends USING (run) ORDER BY run"
        )
        return tuple(
            RunRecord(
                number=_int(run),
                started=str(started),
                pumice=str(pumice),
                python=str(python),
                host=str(host),
                pid=_int(pid),
                command=str(command),
                environment=_json(environment),
                ended=None if ended is None else str(ended),
                outcome=None if outcome is None else str(outcome),
            )
            for run, started, pumice, python, host, pid, command, environment, ended, outcome in rows
        )

    @property
    def devices(self) -> tuple[DeviceRecord, ...]:
        """The devices that each run found, by run."""
        rows = self._rows("SELECT run, device, name, driver, facts FROM devices ORDER BY run, device")
        return tuple(
            DeviceRecord(_int(run), str(uri), str(name), str(by), _json(facts)) for run, uri, name, by, facts in rows
        )

    @property
    def clocks(self) -> tuple[ClockRecord, ...]:
        """The readings of clocks, in the order in which they were added."""
        rows = self._rows(
            "SELECT run, device, host_ns, device_ticks, calibrated, throttle, deviation_ns, ns_per_tick, "
            "frequency_mhz, memory_mhz, cpu_mhz, temperature_c, power_w FROM clocks ORDER BY id"
        )
        return tuple(
            ClockRecord(
                run=_int(run),
                device=str(device),
                host_ns=_int(host_ns),
                device_ticks=None if ticks is None else unsigned_ticks(_int(ticks)),
                calibrated=None if calibrated is None else bool(calibrated),
                throttle=None if throttle is None else str(throttle),
                deviation_ns=_float(rest[0]),
                ns_per_tick=_float(rest[1]),
                frequency_mhz=_float(rest[2]),
                memory_mhz=_float(rest[3]),
                cpu_mhz=_float(rest[4]),
                temperature_c=_float(rest[5]),
                power_w=_float(rest[6]),
            )
            for run, device, host_ns, ticks, calibrated, throttle, *rest in rows
        )

    @property
    def references(self) -> tuple[ReferenceRecord, ...]:
        """The runs of the reference kernel, in the order in which they were added."""
        rows = self._rows("SELECT run, device, started_ns, duration_ns FROM reference_samples ORDER BY id")
        return tuple(
            ReferenceRecord(_int(run), str(device), _int(started), float(duration or 0))
            for run, device, started, duration in rows
        )

    @property
    def peaks(self) -> tuple[PeakRecord, ...]:
        """The measured peaks, by run and device."""
        rows = self._rows("SELECT run, device, name, value, details FROM peaks ORDER BY run, device, name")
        return tuple(
            PeakRecord(_int(run), str(device), str(name), float(value or 0), _json(details))
            for run, device, name, value, details in rows
        )

    @property
    def notes(self) -> tuple[NoteRecord, ...]:
        """The notes, in the order in which they were added."""
        rows = self._rows("SELECT run, point, created, kind, text FROM notes ORDER BY id")
        return tuple(
            NoteRecord(_int(run), None if point is None else _int(point), str(created), str(kind), str(text))
            for run, point, created, kind, text in rows
        )

    def close(self) -> None:
        """Closes the file; idempotent. Arrays that were given out stay."""
        with self._lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def __enter__(self) -> Results:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _rows(self, query: str, *values: int) -> list[tuple[str | int | float | None, ...]]:
        with self._lock:
            if self._reader is None:
                raise ClosedError(f"the results of {self.path} were closed; open them again with Results.open()")
            with database_errors(self.path, "reading results"):
                return self._reader.connection.execute(query, values).fetchall()

    def __repr__(self) -> str:
        return f"<Results of {self.name!r} with {len(self.points)} points in {self.path}>"


def _json(text: str | int | float | None) -> Mapping[str, object]:
    value: Mapping[str, object] = json.loads(str(text))
    return value


def _int(value: str | int | float | None) -> int:
    return int(value or 0)


def _float(value: str | int | float | None) -> float | None:
    return None if value is None else float(value)
