"""Results in memory: a sink whose rows the real ``Results`` reads, so that thousands of runs need no files."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from pumice.study.definition.point import Point
from pumice.study.definition.sample import Sample
from pumice.study.definition.study import Study
from pumice.study.definition.study_file import study_as_dict
from pumice.study.results.results import Results
from pumice.study.results.storage.rows import POINT_COLUMNS, SAMPLE_COLUMNS, Value, point_row, sample_row, to_json
from pumice.study.results.storage.schema import schema_statements
from pumice.study.results.storage.sink import Sink

_WHEN = "2026-01-01T00:00:00+00:00"
_SAMPLES = ("point", "number", "run", "block", "phase", "flags", *SAMPLE_COLUMNS)
# Results with the same path count as the same results.
_NUMBERS = itertools.count()
_STAMPS = {"run_ends": "ended", "statuses": "changed", "notes": "created"}


class MemoryResults(Sink):
    """The rows of one study's results; ``begin_run`` is that of ``Store``."""

    def __init__(self, study: Study, points: Sequence[Point]) -> None:
        self._study = to_json(study_as_dict(study), "study")
        self._points = points
        # Rows by table and columns; samples are separate, as there are many.
        self._rows: dict[tuple[str, tuple[str, ...]], list[tuple[Value, ...]]] = {}
        self._samples: list[tuple[Value, ...]] = []
        self._run = 0

    def begin_run(self, *, repeat: int = 1) -> None:
        """Begins a run, which rows added from now on belong to."""
        self._run += 1
        run = {"started": _WHEN, "pumice": "0", "python": "3", "host": "virtual", "pid": 1, "command": ""}
        self.write("runs", "", [run | {"environment": "{}", "repeat": repeat}])

    def add_samples(
        self, point: int, block: int, phase: str, samples: Sequence[Sample], flags: Sequence[int] | None = None
    ) -> None:
        for index, sample in enumerate(samples):
            flag = 0 if flags is None else int(flags[index])
            number = len(self._samples)
            self._samples.append((point, number, self._run, block, phase, flag, *sample_row(sample)))

    def write(self, table: str, doing: str, rows: Sequence[Mapping[str, Value]]) -> None:
        stamp = {_STAMPS[table]: _WHEN} if table in _STAMPS else {}
        for row in rows:
            row = {"run": self._run, **row, **stamp}
            self._rows.setdefault((table, tuple(row)), []).append(tuple(row.values()))

    def read(self, run: int | None = None) -> Results:
        """Returns the results so far, or those of one run."""
        database = sqlite3.connect(":memory:", check_same_thread=False)
        database.deserialize(_empty())
        _insert(database, "study", ("id", "created", "format", "name", "study"), [(1, _WHEN, 1, "day", self._study)])
        _insert(database, "points", POINT_COLUMNS, [point_row(point) for point in self._points])
        _insert(database, "samples", _SAMPLES, [row for row in self._samples if run in (None, row[2])])
        for (table, names), rows in self._rows.items():
            column = names.index("run")
            _insert(database, table, names, [row for row in rows if run in (None, row[column])])
        return Results(_Reader(database), Path(f"memory {next(_NUMBERS)}"))  # type: ignore[arg-type]


class _Reader:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def close(self) -> None:
        self.connection.close()


@cache
def _empty() -> bytes:
    """Returns a database with the tables of results, without the triggers that refuse changes."""
    with sqlite3.connect(":memory:") as database:
        for statement in schema_statements():
            if not statement.startswith("CREATE TRIGGER"):
                database.execute(statement)
        database.commit()
        return database.serialize()


def _insert(database: sqlite3.Connection, table: str, names: Sequence[str], rows: Sequence[tuple[Value, ...]]) -> None:
    marks = ", ".join("?" * len(names))
    database.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", rows)
