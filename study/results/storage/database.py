"""A results file as an SQLite database: opening, checking, translation of errors."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ....status import (
    AlreadyExistsError,
    DataLossError,
    IncompatibleError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    PumiceError,
    ResourceExhaustedError,
    UnavailableError,
    shorten,
)
from ...definition.study import FORMAT_VERSION
from .schema import APPLICATION_ID, SCHEMA_VERSION

RESULTS_FILE: Final = "results.sqlite"
"""Name of the file in a study's folder."""

_BUSY_SECONDS: Final = 10.0
_CACHE_KIB: Final = 16 << 10
# SQLite reports a full disk in one error code only; quotas and limits on file sizes appear as failed writes.
_NO_ROOM: Final = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_TRUNCATE")


def results_path(folder: str | os.PathLike[str]) -> Path:
    """Returns the results file of a folder; a path to the file itself is accepted, too."""
    path = Path(folder)
    return path if path.name == RESULTS_FILE and not path.is_dir() else path / RESULTS_FILE


@contextlib.contextmanager
def database_errors(path: Path, doing: str) -> Iterator[None]:
    """Translates SQLite's errors into pumice's, with the operation and the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(error, path, doing) from error
    except UnicodeDecodeError as error:  # from SQLite's own message about a damaged schema
        raise _damaged(path, doing, str(error)) from error
    except (OverflowError, UnicodeEncodeError) as error:  # from binding values
        raise InvalidArgumentError(f"{doing}: a value does not fit in {path}: {error}") from error


@contextlib.contextmanager
def values_as_written(path: Path | str) -> Iterator[None]:
    """Raises DataLossError for errors that values of unexpected types cause within the block."""
    try:
        yield
    except PumiceError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise DataLossError(f"{path} is damaged: {shorten(str(error))}") from error


def _translated(error: sqlite3.Error, path: Path, doing: str) -> PumiceError:
    code: str = getattr(error, "sqlite_errorname", "") or ""
    base = "_".join(code.split("_")[:2])
    if code in _NO_ROOM:
        return ResourceExhaustedError(
            f"{doing}: {path} cannot grow: the disk is full, or a quota or a limit on file sizes was reached "
            f"({error}). What was committed before is kept; make room and resume"
        )
    if base == "SQLITE_NOTADB":
        return InvalidArgumentError(f"{doing}: {path} is not a results file of pumice: it is no SQLite database")
    # Tables and columns are missing only where another program changed the file; Python itself decodes texts.
    if base == "SQLITE_CORRUPT" or str(error).startswith(("no such ", "cannot join ", "Could not decode ")):
        return _damaged(path, doing, str(error))
    if base in ("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH") or (
        base == "SQLITE_CANTOPEN" and path.parent.is_dir()
    ):
        return PermissionDeniedError(
            f"{doing}: {path} cannot be opened for that here ({error}): the folder or the file is read-only, "
            "or belongs to someone else"
        )
    if base == "SQLITE_CANTOPEN":
        return NotFoundError(f"{doing}: there is no folder {path.parent}")
    if base in ("SQLITE_BUSY", "SQLITE_LOCKED"):
        return UnavailableError(f"{doing}: {path} was in use for longer than {_BUSY_SECONDS:g} s; try again")
    if base == "SQLITE_CONSTRAINT":
        return AlreadyExistsError(f"{doing}: {path} has that already, or refuses it: {error}")
    if base == "SQLITE_IOERR":
        return UnavailableError(
            f"{doing}: the operating system could not read or write {path} ({error}, {code}). "
            "What was committed before is kept"
        )
    return InternalError(f"{doing}: SQLite refused to work on {path}: {error} ({code or type(error).__name__})")


def _damaged(path: Path, doing: str, how: str) -> DataLossError:
    return DataLossError(
        f"{doing}: {path} is damaged or was cut short ({how}). Nothing more was written to it; "
        f"`sqlite3 {path.name} .recover` may get rows out of it, or take a copy of it from before"
    )


def connect_writer(path: Path, *, create: bool) -> sqlite3.Connection:
    """Opens a connection for writing, without reading or changing anything. Call it under ``database_errors``."""
    connection = _connect(path, "mode=rwc" if create else "mode=rw")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _connect(path: Path, options: str) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?{options}"
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def is_blank(connection: sqlite3.Connection) -> bool:
    """Whether nothing was committed to the database: it is new, or its creation was killed."""
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return not objects and not _pragma(connection, "application_id")


def check_results(connection: sqlite3.Connection, path: Path) -> None:
    """Raises unless this version can read the results: an empty, foreign, newer or truncated file."""
    if is_blank(connection):
        raise NotFoundError(f"{path} is empty: no study was begun in it, or it was cut to nothing")
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise InvalidArgumentError(f"{path} is not a results file of pumice: it is another program's SQLite database")
    version = _pragma(connection, "user_version")
    if version != SCHEMA_VERSION:
        age, way = ("a newer", "update pumice") if version > SCHEMA_VERSION else ("an earlier", "measure again")
        raise IncompatibleError(
            f"{path} was written by {age} version of pumice: its tables are of version {version}, "
            f"this one reads {SCHEMA_VERSION}; {way}"
        )
    pages = _pragma(connection, "page_count") * _pragma(connection, "page_size")
    # The log may hold pages that the file lacks. It is checked first, as a writer that ends now merges and removes it.
    # SQLite itself does not notice a truncated last page.
    if not _has_log(path) and (size := path.stat().st_size) < pages:
        raise _damaged(path, "reading results", f"it has {size} bytes of {pages}")
    with values_as_written(path):
        study_format = int(connection.execute("SELECT format FROM study").fetchone()[0])
    if study_format > FORMAT_VERSION:
        raise IncompatibleError(
            f"{path} has the results of a study of a newer version of pumice: its format is {study_format}, "
            f"this one reads up to {FORMAT_VERSION}; update pumice"
        )


def check_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Reads every page, so that nothing is added to a damaged file; DataLossError if it is."""
    (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if answer != "ok":
        raise _damaged(path, "checking results", " ".join(str(answer).split()))


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _has_log(path: Path) -> bool:
    try:
        return _log_of(path).stat().st_size > 0
    except OSError:
        return False


class Reader:
    """A connection for reading: during writing, after the writer was killed, and from read-only media.

    One thread at a time.

    A file whose writer was killed has a write-ahead log beside it. SQLite reads the log through a shared-memory file
    that it creates in the same folder. If the folder is read-only, copies of the two files in a temporary folder are
    read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._copy = contextlib.ExitStack()
        if not path.is_file():
            raise NotFoundError(
                f"{path.parent} holds no results: there is no {path.name} in it; `pumice study run` makes one"
            )
        self.connection: sqlite3.Connection = self._connect()

    def _connect(self) -> sqlite3.Connection:
        try:
            return self._checked(self.path, "mode=ro")
        except PermissionDeniedError:
            if not os.access(self.path, os.R_OK):
                raise
        if not _has_log(self.path):
            return self._checked(self.path, "mode=ro&immutable=1")
        with contextlib.ExitStack() as stack:
            copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pumice-results-")))
            try:
                for file in (self.path, _log_of(self.path)):
                    shutil.copyfile(file, copy / file.name)
            except OSError as error:
                raise UnavailableError(
                    f"{self.path} is read-only and its writer was killed, so it must be copied to be read, "
                    f"which failed: {error}"
                ) from error
            connection = self._checked(copy / self.path.name, "mode=rw")
            self._copy = stack.pop_all()
        return connection

    def _checked(self, path: Path, options: str) -> sqlite3.Connection:
        with database_errors(self.path, "reading results"):
            connection = _connect(path, options)
            try:
                connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
                check_results(connection, self.path)
            except BaseException:
                connection.close()
                raise
            return connection

    def close(self) -> None:
        self.connection.close()
        self._copy.close()
