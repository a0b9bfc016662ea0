"""Creates the results file of a study, or reopens it to resume the study, for one writer at a time."""

from __future__ import annotations

import contextlib
import datetime
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ....status import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    PumiceError,
    UnavailableError,
)
from ...definition.point import Point
from ...definition.study import FORMAT_VERSION
from .database import Reader, check_results, check_whole, connect_writer, database_errors, is_blank
from .rows import POINT_COLUMNS, Value, differences, point_row, to_json
from .schema import schema_statements

_JSON_COLUMNS: Final = ("axes", "settings", "derived")
_MAX_SHOWN: Final = 5
LOCK_FILE: Final = "results.lock"

LIMITS: Final = ("time_limit", "max_samples", "noise_limit", "relative_error", "resolution", "statistic")
"""Settings of sampling in which a run may differ from the study as it was begun."""


class WriterLock:
    """A lock on a study's folder, held until ``close``; ``holder`` describes the holder in the error of another writer.

    It is an exclusive transaction on an empty SQLite database, ``results.lock``: SQLite can lock a file on every
    platform, and the operating system releases the lock with the process. The file stays and has no other meaning.
    """

    def __init__(self, folder: Path, holder: Callable[[], str]) -> None:
        path = folder / LOCK_FILE
        with database_errors(path, "locking a study's folder"):
            connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
            try:
                # No journal: nothing is written, so nothing has to be rolled back.
                connection.execute("PRAGMA journal_mode = OFF").fetchone()
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                connection.close()
                if getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
                    raise FailedPreconditionError(
                        f"another run is writing results to {folder}{holder()}; wait for it to end or stop it, "
                        "or take another folder. Results can be read meanwhile"
                    ) from error
                raise
            except BaseException:
                connection.close()
                raise
        self._connection = connection

    def close(self) -> None:
        self._connection.close()


def create_results(
    path: Path, study: Mapping[str, object], points: Sequence[Point], text: str | None
) -> tuple[sqlite3.Connection, WriterLock]:
    """Creates a results file in one transaction; see ``Store.create``. The caller closes both returned objects."""
    _check_points(points)
    # Before the file is created: a study that cannot be stored leaves no file behind.
    row = (1, utc_now(), FORMAT_VERSION, str(study.get("name", "")), to_json(study, "study"), text)
    rows = [point_row(point) for point in points]
    _make_folder(path.parent)
    with _writer(path, "creating results", create=True) as (connection, lock):
        if not is_blank(connection):
            check_results(connection, path)
            raise AlreadyExistsError(
                f"{path} has the results of a study already; resume that study, or take another folder"
            )
        _use_log(connection)
        connection.execute("BEGIN IMMEDIATE")
        for statement in schema_statements():
            connection.execute(statement)
        insert_rows(connection, "study", ("id", "created", "format", "name", "study", "toml"), [row])
        # A point may refer to a later one.
        connection.execute("PRAGMA defer_foreign_keys = ON")
        insert_rows(connection, "points", POINT_COLUMNS, rows)
        connection.execute("COMMIT")
    return connection, lock


def reopen_results(
    path: Path, study: Mapping[str, object] | None, points: Sequence[Point] | None
) -> tuple[sqlite3.Connection, WriterLock]:
    """Opens a results file to resume its study; see ``Store.open``. The caller closes both returned objects."""
    if not path.is_file():
        raise NotFoundError(f"{path.parent} holds no results to resume: there is no {path.name} in it")
    with _writer(path, "opening results to write", create=False) as (connection, lock):
        check_results(connection, path)
        check_whole(connection, path)
        _use_log(connection)
        # A refused study leaves the file unchanged: closing the connection rolls back.
        connection.execute("BEGIN IMMEDIATE")
        _check_same(connection, path, study, points)
        connection.execute("COMMIT")
    return connection, lock


@contextlib.contextmanager
def _writer(path: Path, doing: str, *, create: bool) -> Iterator[tuple[sqlite3.Connection, WriterLock]]:
    """Yields a connection and the writer's lock; an error within the block closes both."""
    with contextlib.ExitStack() as stack:
        lock = stack.enter_context(contextlib.closing(WriterLock(path.parent, lambda: _holder(path))))
        with database_errors(path, doing):
            connection = stack.enter_context(contextlib.closing(connect_writer(path, create=create)))
            yield connection, lock
        stack.pop_all()


def insert_rows(
    database: sqlite3.Connection,
    table: str,
    names: Sequence[str],
    rows: Iterable[Sequence[Value]],
) -> None:
    """Inserts rows whose values are in the order of ``names``."""
    marks = ", ".join("?" * len(names))
    database.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", rows)


def utc_now() -> str:
    """Returns the time in the form that results store: ISO 8601, UTC, milliseconds."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


def _check_points(points: Sequence[Point]) -> None:
    if not points:
        raise InvalidArgumentError("a study has at least one point, got none")
    for index, point in enumerate(points):
        if point.index != index:
            raise InvalidArgumentError(f"points come in order of their indices: expected {index}, got {point.index}")
        for name, other in (("baseline", point.baseline), ("against", point.against)):
            if other is not None and not 0 <= other < len(points):
                raise InvalidArgumentError(f"point {index} has {name} {other}; there are {len(points)} points")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise InvalidArgumentError(f"{folder} is a file; results go into a folder") from error
    except PermissionError as error:
        raise PermissionDeniedError(f"the folder {folder} cannot be made: {error.strerror}") from error
    except OSError as error:
        raise UnavailableError(f"the folder {folder} cannot be made: {error}") from error


def _use_log(connection: sqlite3.Connection) -> None:
    # Waits for readers. On platforms without shared memory the journal stays, which is as safe, but there readers and
    # the writer wait for each other.
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("PRAGMA synchronous = NORMAL")


def _check_same(
    connection: sqlite3.Connection,
    path: Path,
    study: Mapping[str, object] | None,
    points: Sequence[Point] | None,
) -> None:
    if study is not None:
        (text,) = connection.execute("SELECT study FROM study").fetchone()
        new = json.loads(to_json(study, "study"))
        if different := differences(_without_limits(json.loads(text)), _without_limits(new)):
            raise FailedPreconditionError(_not_the_same(path, "another study", different))
    if points is not None:
        rows = connection.execute(f"SELECT {', '.join(POINT_COLUMNS)} FROM points ORDER BY point").fetchall()
        before = [_readable(row) for row in rows]
        now = [_readable(point_row(point)) for point in points]
        if different := differences(before, now, "points"):
            raise FailedPreconditionError(_not_the_same(path, "other points", different))


def _without_limits(study: Mapping[str, Any]) -> dict[str, Any]:
    """Removes the settings that may differ from a stored study."""
    left = dict(study)
    if "sampling" in left:
        left["sampling"] = {name: value for name, value in left["sampling"].items() if name not in LIMITS}
    if isinstance(left.get("against"), dict):
        left["against"] = _without_limits(left["against"])
    return left


def _readable(row: Sequence[Value]) -> dict[str, object]:
    """Returns a point's row as a dict, its JSON parsed."""
    pairs = zip(POINT_COLUMNS, row, strict=True)
    return {name: json.loads(str(value)) if name in _JSON_COLUMNS else value for name, value in pairs if name != "key"}


def _not_the_same(path: Path, subject: str, different: Sequence[str]) -> str:
    shown = "; ".join(different[:_MAX_SHOWN]) + (
        f"; and {len(different) - _MAX_SHOWN} more" if len(different) > _MAX_SHOWN else ""
    )
    return (
        f"{path} has the results of {subject}, so this study cannot go on there: {shown}. "
        f"Take another folder, or resume with the study that is in this one; {', '.join(LIMITS)} may differ"
    )


def _holder(path: Path) -> str:
    """Describes the last writer, for the error of a second writer; empty if unknown."""
    try:
        reader = Reader(path)
    except (PumiceError, OSError):
        return ""
    try:
        row = reader.connection.execute("SELECT run, pid, host, started FROM runs ORDER BY run DESC").fetchone()
    except sqlite3.Error:
        return ""
    finally:
        reader.close()
    return f" (run {row[0]} by process {row[1]} on {row[2]}, started {row[3]})" if row else ""
