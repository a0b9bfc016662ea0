"""One writer at a time: a lock on a study's folder that ends with its process."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ...status import FailedPreconditionError
from .database import database_errors

_LOCK_FILE: Final = "results.lock"


class WriterLock:
    """Held from construction until ``close``.

    It is an exclusive transaction on an empty SQLite database, ``results.lock``: SQLite can lock a file on every
    platform, and the operating system releases the lock with the process. The file stays and has no meaning by itself.

    Args:
        folder: to be locked; must exist.
        holder: describes the holder of the lock, for the message.

    Raises:
        FailedPreconditionError: another writer, of this process or another, holds it.
        PermissionDeniedError: the folder is read-only.
    """

    def __init__(self, folder: Path, holder: Callable[[], str]) -> None:
        path = folder / _LOCK_FILE
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
        """Releases the lock; idempotent."""
        self._connection.close()
