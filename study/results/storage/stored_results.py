"""The contents of a results file, for reading: while a study runs, after it was killed, and from read-only media."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import numpy as np

from ....base.closeable import Closeable
from ....status import ClosedError, NotFoundError
from ...definition.expansion import derive
from ...definition.figures import MEASURED
from ...definition.kept_file import AGAINST, KeptFile, KeptFiles, unpacked
from ...definition.study import Study
from ...definition.study_file import study_from_dict
from .database import Reader, database_errors, results_path, values_as_written
from .point_result import SAMPLE_FIELDS, PointResult
from .records import (
    ClockRecord,
    DeviceRecord,
    NoteRecord,
    ObservationRecord,
    PeakRecord,
    PointStatus,
    ReferenceRecord,
    RunRecord,
    SampleFlag,
    StateRecord,
)
from .rows import POINT_COLUMNS, Value, point_from_row, unsigned_ticks
from .schema import REPEATS, STATUSES

Row = Sequence[Value]
_Record = TypeVar("_Record")


class StoredResults(Closeable):
    """The results in one folder as they were stored; ``Results`` adds computed figures.

    Points and their statuses are those at the time of ``open``. Samples of a point are read on first use, everything
    else on each use, so that a continuing run is visible. Nothing is written.

    Thread rule: any thread; reads are serialized.

    Attributes:
        path: the path of the file.
        name: the study's name.
        created: the start of the study; ISO 8601, UTC.
        study: the study as JSON values; ``as_study`` converts it.
        text: the study as TOML text, None for a study made in Python.
        points: a result for each point, by index.
    """

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Self:
        """Opens the results of a folder; a path to the file itself is also accepted.

        Raises:
            NotFoundError: there are no results.
            InvalidArgumentError: the file is not a results file.
            IncompatibleError: a newer version of pumice wrote the file.
            DataLossError: the file is damaged.
            PermissionDeniedError: the file may not be read.
        """
        path = results_path(folder)
        return cls(Reader(path), path)

    def __init__(self, reader: Reader, path: Path) -> None:
        self.path: Final = path
        self._reader: Reader | None = reader
        self._lock = threading.Lock()
        self._study: Study | None = None
        try:
            with values_as_written(path):
                ((name, created, study, text),) = self._rows("SELECT name, created, study, toml FROM study")
                self.name: Final = str(name)
                self.created: Final = str(created)
                self.study: Final[Mapping[str, object]] = _mapping(str(study))
                self.text: Final = None if text is None else str(text)
                self.points: Final = self._points()
        except BaseException:
            self.close()
            raise

    def _points(self) -> tuple[PointResult, ...]:
        columns = ", ".join(POINT_COLUMNS)
        fields = ", ".join(SAMPLE_FIELDS)
        samples = f"SELECT {fields} FROM samples JOIN runs USING (run) WHERE point = ? ORDER BY number"
        ((count,),) = self._rows(REPEATS)
        repeats = range(1, int(count or 0) + 1)
        statuses = {(row[0], row[1]): (PointStatus(str(row[2])), str(row[3])) for row in self._rows(STATUSES)}
        results = tuple(
            PointResult(
                point := point_from_row(row),
                [statuses.get((point.index, repeat), (PointStatus.PENDING, "")) for repeat in repeats],
                functools.partial(self._rows, samples),
            )
            for row in self._rows(f"SELECT {columns} FROM points ORDER BY point")
        )
        for result in results:
            if result.point.baseline is not None:
                result.baseline = results[result.point.baseline]
            if result.point.against is not None:
                result.against = results[result.point.against]
        return results

    def point(self, key: str) -> PointResult:
        """Returns the result of the point with a key, the first of several devices.

        Raises:
            NotFoundError: there is no such point.
        """
        for result in self.points:
            if result.point.key == key:
                return result
        raise NotFoundError(f"{self.path} has no point {key}; the first that it has is {self.points[0].point.key}")

    def as_study(self) -> Study:
        """Returns the study; file names are relative to the working folder. IncompatibleError: of a newer version."""
        return study_from_dict(self.study, text=self.text, source=str(self.path))

    def to_measure(self) -> Study:
        """Returns the study with the programs stored in the results, to measure them again or for ``Study.against``.

        Of two sides the new side. A file of which only the hash is stored is read from its old path, if it is
        unchanged.
        """
        study = self.as_study()
        folder, revision = self._latest("folder"), self._latest("revision")
        files = {file.name: file for file in self.files if not file.name.startswith(AGAINST)}
        kept = KeptFiles(files, f"the results in {self.path.parent}", revision)
        return dataclasses.replace(study, against=None, folder=Path(str(folder or "")), kept=kept, text=None)

    def _latest(self, name: str) -> object:
        """Returns a fact of the environment from the latest run that recorded it; None if none did."""
        return next((run.environment[name] for run in reversed(self.runs) if name in run.environment), None)

    def figures(self, result: PointResult, *, keep: SampleFlag | None = None, times: float = 1.0) -> dict[str, float]:
        """Derives the figures of a point from the medians of its samples; see ``derive``. Empty without samples.

        Args:
            result: the result of a point of this study.
            keep: the flags of disturbed samples to include, as for ``PointResult.values``.
            times: a factor for all times.
        """
        measured = {name: 1e-9 * times * ns for name, ns in result.medians(keep=keep).items() if name in MEASURED}
        if not measured:
            return {}
        dispatches = result.integers("dispatches", keep=keep)
        if self._study is None:
            self._study = self.as_study()
        measured["dispatches"] = float(np.median(dispatches))
        return derive(self._study, result.point, measured, self.peaks_of(result.point.device))

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The starts and resumptions of the study, in order."""
        return self._records(RunRecord, "runs LEFT JOIN run_ends USING (run) ORDER BY run", number="run")

    @property
    def devices(self) -> tuple[DeviceRecord, ...]:
        """The devices that each run found, by run."""
        return self._records(DeviceRecord, "devices ORDER BY run, device")

    @property
    def clocks(self) -> tuple[ClockRecord, ...]:
        """The readings of clocks, in order."""
        return self._records(ClockRecord, "clocks ORDER BY id")

    @property
    def references(self) -> tuple[ReferenceRecord, ...]:
        """The runs of the reference kernels, in order."""
        return self._records(ReferenceRecord, "reference_samples ORDER BY id")

    @property
    def states(self) -> tuple[StateRecord, ...]:
        """The states of the machine, in order."""
        return self._records(StateRecord, "machine_states ORDER BY id")

    @property
    def files(self) -> tuple[KeptFile, ...]:
        """The files that the study measured, by name. DataLossError: a content is damaged."""
        rows = self._rows("SELECT name, sha256, size, content, role FROM files ORDER BY name")
        with values_as_written(self.path):
            return tuple(_kept_file(*row) for row in rows)

    @property
    def peaks(self) -> tuple[PeakRecord, ...]:
        """The measured peaks, by run and device."""
        return self._records(PeakRecord, "peaks ORDER BY run, device, name")

    def peaks_of(self, device: str) -> dict[str, float]:
        """Returns the measured peaks of a device by name, from the latest run that measured them."""
        return {peak.name: peak.value for peak in self.peaks if peak.device == device}

    @property
    def observations(self) -> tuple[ObservationRecord, ...]:
        """Figures that were taken separately from samples, of the latest run for each point and kind."""
        records = self._records(ObservationRecord, "observations ORDER BY id")
        latest = {(record.point, record.kind): record.run for record in records}
        return tuple(record for record in records if record.run == latest[record.point, record.kind])

    @property
    def notes(self) -> tuple[NoteRecord, ...]:
        """The notes, in order."""
        return self._records(NoteRecord, "notes ORDER BY id")

    def _records(self, kind: type[_Record], tables: str, **columns: str) -> tuple[_Record, ...]:
        """Reads rows of tables as records; a field has the name of its column, unless ``columns`` names another."""
        names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]  # a record
        rows = self._rows(f"SELECT {', '.join(columns.get(name, name) for name in names)} FROM {tables}")
        with values_as_written(self.path):
            return tuple(kind(*map(_stored, names, row)) for row in rows)

    def close(self) -> None:
        """Closes the file; idempotent. Returned arrays stay valid."""
        with self._lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def _rows(self, query: str, *values: int) -> list[tuple[Value, ...]]:
        with self._lock:
            if self._reader is None:
                raise ClosedError(f"the results of {self.path} were closed; open them again with Results.open()")
            with database_errors(self.path, "reading results"):
                return self._reader.connection.execute(query, values).fetchall()

    def __repr__(self) -> str:
        return f"<Results of {self.name!r} with {len(self.points)} points in {self.path}>"


def _kept_file(name: Any, sha256: Any, size: Any, content: Any, role: Any) -> KeptFile:
    return KeptFile(name, sha256, size, unpacked(name, sha256, size, content), role)


def _mapping(text: str) -> dict[str, object]:
    return dict(json.loads(text))


# Conversions of stored values, by column.
_STORED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "environment": _mapping,
    "facts": _mapping,
    "details": _mapping,
    "calibrated": bool,
    "device_ticks": unsigned_ticks,
}


def _stored(name: str, value: Value) -> Any:
    return value if value is None or name not in _STORED else _STORED[name](value)
