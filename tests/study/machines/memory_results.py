"""Results that are kept in memory: a sink whose rows the real ``Results`` reads, without a file for each of thousands
of runs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from pumice.study.definition.point import Point
from pumice.study.definition.study import Study
from pumice.study.definition.study_file import study_as_dict
from pumice.study.results.results import Results
from pumice.study.results.rows import POINT_COLUMNS, Value, point_row, to_json
from pumice.study.results.schema import schema_statements
from pumice.study.results.sink import Sink

_WHEN = "2026-01-01T00:00:00+00:00"
_STAMPS = {"run_ends": "ended", "statuses": "changed", "notes": "created"}


class MemoryResults(Sink):
    """Rows of one study's results, by table; ``begin_run`` as of a store."""

    def __init__(self, study: Study, points: Sequence[Point]) -> None:
        self._study = to_json(study_as_dict(study), "study")
        self._points = points
        self._rows: dict[str, list[dict[str, Value]]] = {}
        self._numbers: dict[int, int] = {}
        self._run = 0

    def begin_run(self, *, repeat: int = 1) -> None:
        self._run += 1
        self._add(
            "runs",
            {
                **{"started": _WHEN, "pumice": "0", "python": "3", "host": "virtual", "pid": 1, "command": ""},
                **{"environment": "{}", "repeat": repeat},
            },
        )

    def write(self, table: str, doing: str, rows: Sequence[Mapping[str, Value]]) -> None:
        stamp = {_STAMPS[table]: _WHEN} if table in _STAMPS else {}
        for row in rows:
            if table == "samples":
                point = int(row["point"] or 0)
                number = self._numbers[point] = self._numbers.get(point, -1) + 1
                row = {"number": number, **row}
            self._add(table, {**row, **stamp})

    def _add(self, table: str, row: dict[str, Value]) -> None:
        self._rows.setdefault(table, []).append({"run": self._run, **row})

    def read(self) -> Results:
        """The results so far."""
        database = sqlite3.connect(":memory:", check_same_thread=False)
        database.deserialize(_empty())
        study = {"id": 1, "created": _WHEN, "format": 1, "name": "virtual", "study": self._study}
        _insert(database, "study", [study])
        _insert(database, "points", [dict(zip(POINT_COLUMNS, point_row(each), strict=True)) for each in self._points])
        for table, rows in self._rows.items():
            _insert(database, table, rows)
        return Results(_Reader(database), Path("memory"))  # type: ignore[arg-type]


class _Reader:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def close(self) -> None:
        self.connection.close()


@cache
def _empty() -> bytes:
    """A database with the tables of results, without the triggers that keep rows from being changed."""
    with sqlite3.connect(":memory:") as database:
        for statement in schema_statements():
            if not statement.startswith("CREATE TRIGGER"):
                database.execute(statement)
        database.commit()
        return database.serialize()


def _insert(database: sqlite3.Connection, table: str, rows: Sequence[Mapping[str, Value]]) -> None:
    # Rows of one table may have different columns: those of one shape at a time, in their order.
    shapes: dict[tuple[str, ...], list[tuple[Value, ...]]] = {}
    for row in rows:
        shapes.setdefault(tuple(row), []).append(tuple(row.values()))
    for names, values in shapes.items():
        marks = ", ".join("?" * len(names))
        database.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", values)
