"""Results in memory: a store without a file, so that thousands of runs need none."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from pumice.study.definition.point import Point
from pumice.study.definition.study import Study
from pumice.study.definition.study_file import study_as_dict
from pumice.study.results.results import Results
from pumice.study.results.storage.results_file import insert_rows
from pumice.study.results.storage.rows import POINT_COLUMNS, point_row, to_json
from pumice.study.results.storage.schema import TABLES, schema_statements
from pumice.study.results.storage.store import Store

_WHEN = "2026-01-01T00:00:00+00:00"
# Results with the same path count as the same results.
_NUMBERS = itertools.count()


class MemoryResults(Store):
    """The store of one study."""

    def __init__(self, study: Study, points: Sequence[Point]) -> None:
        self._database = _copy(_empty())
        row = (1, _WHEN, 1, "day", to_json(study_as_dict(study), "study"))
        insert_rows(self._database, "study", ("id", "created", "format", "name", "study"), [row])
        insert_rows(self._database, "points", POINT_COLUMNS, [point_row(point) for point in points])
        super().__init__(Path("memory"), self._database, contextlib.closing(None))  # type: ignore[arg-type]

    def read(self, run: int | None = None) -> Results:
        """Returns the results so far, or those of one run."""
        database = _copy(self._database.serialize())
        if run is not None:
            for table, columns in TABLES.items():
                if " run INTEGER " in columns:
                    database.execute(f"DELETE FROM {table} WHERE run != ?", (run,))
        reader = SimpleNamespace(connection=database, close=database.close)
        return Results(reader, Path(f"memory {next(_NUMBERS)}"))  # type: ignore[arg-type]


def _copy(content: bytes) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    database.deserialize(content)
    return database


@cache
def _empty() -> bytes:
    """Returns a database with the tables of results, without the triggers that refuse changes."""
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        for statement in schema_statements():
            if not statement.startswith("CREATE TRIGGER"):
                database.execute(statement)
        database.commit()
        return database.serialize()
