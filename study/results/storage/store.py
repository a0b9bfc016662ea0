"""The store: writes a study's results as they arrive, so that a kill at any moment loses nothing that was reported.

Calling sequence: ``Store.create(folder, study, points)``, or ``Store.open(folder, study, points)`` to resume →
``begin_run(environment)`` → ``add_device``, ``add_samples``, ``set_status``, … → ``end_run(outcome)`` → ``close()``.

Each call that adds is one transaction: once it returns, its rows survive the end of the process, SIGKILL included; if
it raises, none of them is stored. The file is an SQLite database with a write-ahead log and ``synchronous=NORMAL``: a
crash of the operating system or a power cut may lose the transactions since the last checkpoint, the latest first, and
leaves the file consistent. ``FULL`` would flush to the disk, which takes milliseconds, between blocks that take
microseconds. ``close()`` merges the log into ``results.sqlite``, which is then the only file needed (``results.lock``
is empty and stays).

Rows are only inserted, and triggers refuse anything else (``schema``). Readers (``results``) may read meanwhile.

Thread rule: any thread; calls are serialized. One store at a time writes to a folder; a second store is refused, and
the lock ends with its process. A store cannot be used in a forked child.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import sqlite3
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ....base.closeable import Closeable
from ....status import ClosedError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from ...definition.kept_file import KeptFile
from ...definition.point import Point
from .database import Reader, database_errors, results_path
from .records import PointStatus
from .results_file import WriterLock, create_results, insert_rows, reopen_results, utc_now
from .rows import Value, to_json
from .schema import REPEATS, STATUSES
from .sink import Sink

_STAMPS: Final = {"run_ends": "ended", "statuses": "changed", "notes": "created"}
"""The column of a table with the time when a row was added."""


class Store(Sink, Closeable):
    """Writes the results of a study to a folder; see the module. Created by ``create`` or ``open``."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: WriterLock) -> None:
        self.path: Final = path
        self._connection: sqlite3.Connection | None = connection
        self._writer_lock = lock
        self._lock = threading.Lock()
        self._run: int | None = None
        with database_errors(path, "opening results to write"):
            (self._point_count,) = connection.execute("SELECT count(*) FROM points").fetchone()

    # -- creation --------------------------------------------------------------------------------

    @staticmethod
    def exists(folder: str | os.PathLike[str]) -> bool:
        """Whether a folder has results: if so use ``open``, else ``create``."""
        try:
            Reader(results_path(folder)).close()
        except NotFoundError:
            return False
        return True

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        study: Mapping[str, object],
        points: Sequence[Point],
        *,
        text: str | None = None,
    ) -> Store:
        """Creates a results file from a study as ``study_as_dict`` returns it, its TOML text, and all of its points in
        order of their indices. The folder is created if necessary.
        """
        path = results_path(folder)
        return cls(path, *create_results(path, study, points, text))

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        study: Mapping[str, object] | None = None,
        points: Sequence[Point] | None = None,
    ) -> Store:
        """Opens results to resume their study.

        FailedPreconditionError if ``study`` or ``points`` are given and differ from the file's (the message lists the
        differences), or if the folder has another writer.
        """
        path = results_path(folder)
        return cls(path, *reopen_results(path, study, points))

    # -- runs ------------------------------------------------------------------------------------

    def begin_run(self, environment: Mapping[str, object], *, repeat: int = 1) -> int:
        """Begins a run, to which later rows belong; returns its number, counted from 1. ``repeat`` is its repetition of
        the study, from 1.
        """
        if self._run is not None:
            raise FailedPreconditionError(f"run {self._run} has begun and not ended; call end_run() first")
        facts = to_json(environment, "environment")
        with self._transaction("beginning a run") as database:
            (run,) = database.execute("SELECT coalesce(max(run), 0) + 1 FROM runs").fetchone()
            row = (
                *(run, utc_now(), str(environment.get("pumice", "")), platform.python_version(), platform.node()),
                *(os.getpid(), shlex.join(sys.argv), facts, repeat),
            )
            names = ("run", "started", "pumice", "python", "host", "pid", "command", "environment", "repeat")
            insert_rows(database, "runs", names, [row])
        self._run = int(run)
        return self._run

    def end_run(self, outcome: str = "complete") -> None:
        """Ends the run. ``outcome`` is ``"complete"``, or the reason why it is not."""
        self.write("run_ends", "ending a run", [{"outcome": outcome}])
        self._run = None

    def write(self, table: str, doing: str, rows: Sequence[Mapping[str, Value]]) -> None:
        """Inserts rows of one table in one transaction; see ``Sink``."""
        points = {row["point"] for row in rows if row.get("point") is not None}
        for point in points:
            if not isinstance(point, int) or not 0 <= point < self._point_count:
                raise InvalidArgumentError(f"the study has points 0 to {self._point_count - 1}, got point {point!r}")
        if self._run is None:
            self._open_connection()
            raise FailedPreconditionError("no run has begun; call begin_run() first")
        common: dict[str, Value] = {} if table == "files" else {"run": self._run}
        if table in _STAMPS:
            common[_STAMPS[table]] = utc_now()
        with self._transaction(doing) as database:
            rows = [{**common, **row} for row in rows]
            if table == "samples" and rows:
                (number,) = database.execute(
                    "SELECT coalesce(max(number), -1) + 1 FROM samples WHERE point = ?", (rows[0]["point"],)
                ).fetchone()
                rows = [{"number": number + index, **row} for index, row in enumerate(rows)]
            if table == "files":
                rows = [row for row in rows if not self._has_file(database, row)]
            if rows:
                insert_rows(database, table, tuple(rows[0]), [tuple(row.values()) for row in rows])

    def check_files(self, files: Iterable[KeptFile]) -> None:
        """Raises FailedPreconditionError if samples belong to another content of one of the files."""
        with self._reading("checking files") as database:
            for file in files:
                self._has_file(database, {"name": file.name, "sha256": file.sha256})

    def statuses(self) -> list[list[PointStatus]]:
        """Returns the status of each point, by index, in each repeat that was begun."""
        with self._reading("reading statuses") as database:
            (repeats,) = database.execute(REPEATS).fetchone()
            statuses = [[PointStatus.PENDING] * self._point_count for _ in range(repeats)]
            for point, repeat, status, _, _ in database.execute(STATUSES):
                statuses[repeat - 1][point] = PointStatus(status)
            return statuses

    def close(self) -> None:
        """Merges the log into the file and releases the lock; idempotent."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is None:
                return
            # Fails while there are readers, and on a full disk: then the log stays as part of the results.
            with contextlib.suppress(sqlite3.Error):
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute("PRAGMA journal_mode = DELETE").fetchone()
            try:
                connection.close()
            finally:
                self._writer_lock.close()

    # -- within ----------------------------------------------------------------------------------

    def _has_file(self, database: sqlite3.Connection, row: Mapping[str, Value]) -> bool:
        """Whether a file is stored; FailedPreconditionError if other content is stored by its name."""
        name, digest = str(row["name"]), str(row["sha256"])
        stored = database.execute("SELECT sha256 FROM files WHERE name = ?", (name,)).fetchone()
        if stored is not None and stored[0] != digest:
            raise FailedPreconditionError(
                f"{name} has changed since {self.path} was begun: its SHA-256 was {stored[0]} and is "
                f"{digest}. Take another folder, restore the file, or measure the new one in turns with these results: "
                f"--against {self.path.parent} --out OTHER"
            )
        return stored is not None

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise ClosedError(f"the store of {self.path} was closed; open it again with Store.open()")
        return self._connection

    @contextlib.contextmanager
    def _reading(self, doing: str) -> Iterator[sqlite3.Connection]:
        with self._lock, database_errors(self.path, doing):
            yield self._open_connection()

    @contextlib.contextmanager
    def _transaction(self, doing: str) -> Iterator[sqlite3.Connection]:
        with self._reading(doing) as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:  # on a full disk SQLite rolls back by itself
                    with contextlib.suppress(sqlite3.Error):
                        database.execute("ROLLBACK")
                raise
