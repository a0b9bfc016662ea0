"""The store: where a study's results are written, as they come, so that a kill at any moment loses nothing reported.

Calling sequence: ``Store.create(folder, study, points)``, or ``Store.open(folder, study, points)`` to go on →
``begin_run(environment)`` → ``add_device``, ``add_samples``, ``set_status``, … → ``end_run(outcome)`` → ``close()``.

Each call that adds is one transaction: when it has returned, what it added survives the end of the process, by SIGKILL
too; when it raises, nothing of it is there. The file is an SQLite database with a write-ahead log and
``synchronous=NORMAL``: a crash of the operating system or a power cut may take back the last transactions (those since
the last checkpoint), whole ones and the latest first, and leaves the file consistent. ``FULL`` would cost a flush to
the disk, milliseconds, between blocks of samples that take microseconds. ``close()`` folds the log into
``results.sqlite``, which is then the only file needed (``results.lock`` is empty and stays).

Rows are only inserted, and triggers refuse anything else (``schema``). Readers (``results``) may read meanwhile.

Threads: any thread may call; calls take turns. One store at a time writes to a folder; a second one is refused, and
the lock ends with its process. A store is of no use in a forked child.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import sqlite3
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from ...status import ClosedError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from ..definition.point import Point
from ..definition.sample import Sample
from .database import Reader, database_errors, results_path
from .flags import SampleFlag
from .point_status import PointStatus
from .results_file import create_results, insert_rows, reopen_results, utc_now
from .rows import SAMPLE_COLUMNS, number_or_null, sample_row, signed_ticks
from .stored_json import to_json
from .writer_lock import WriterLock

__all__ = ["PHASES", "Store"]

PHASES: Final = ("first", "warmup", "sample")
"""What a sample is: the first run of a point in a process, warming up, or measured."""

_SAMPLE_COLUMNS: Final = ("point", "number", "run", "block", "phase", "flags", *SAMPLE_COLUMNS)
_ALL_FLAGS: Final = sum(SampleFlag)


class Store:
    """Writes the results of one study into one folder; made by ``create`` or ``open``. The rules are the module's."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: WriterLock) -> None:
        self.path: Final = path
        self._connection: sqlite3.Connection | None = connection
        self._writer_lock = lock
        self._lock = threading.Lock()
        self._run: int | None = None
        with database_errors(path, "opening results to write"):
            (self._point_count,) = connection.execute("SELECT count(*) FROM points").fetchone()

    # -- making and opening ----------------------------------------------------------------------

    @staticmethod
    def exists(folder: str | os.PathLike[str]) -> bool:
        """Whether a study was begun in a folder: ``open`` goes on with it where ``create`` would be refused.

        Raises:
            InvalidArgumentError, IncompatibleError, DataLossError, PermissionDeniedError: there is a file, and it
                cannot be gone on with.
        """
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
        """A new results file; the folder is made where there is none.

        Args:
            folder: where ``results.sqlite`` goes.
            study: the study as JSON values, as ``study_as_dict`` gives.
            points: all of its points, in order of their indices, which count from 0.
            text: the TOML text that the study was made from, if it was; how that is laid out makes no other study.

        Raises:
            AlreadyExistsError: results are there already.
            InvalidArgumentError: the points or the study are not of the form above, or the file is another program's.
            FailedPreconditionError: another writer is at work there.
            PermissionDeniedError, ResourceExhaustedError: the folder cannot be written, the disk is full.
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
        """Opens results to go on with them.

        Args:
            folder: where ``results.sqlite`` is.
            study: the study that is to go on; it has to be the one that the file holds.
            points: its points, which have to be those of the file.

        Raises:
            NotFoundError: no results there.
            FailedPreconditionError: they are another study's, and the message says what differs; or another writer is
                at work.
            InvalidArgumentError, IncompatibleError, DataLossError: no results file, one of a newer version, a damaged
                one.
            PermissionDeniedError: the folder cannot be written.
        """
        path = results_path(folder)
        return cls(path, *reopen_results(path, study, points))

    # -- runs ------------------------------------------------------------------------------------

    def begin_run(self, environment: Mapping[str, object]) -> int:
        """Begins a run: what is added from now on is of it. Returns its number, which counts from 1.

        Args:
            environment: facts of the host as JSON values, such as ``environment_facts()`` gives.

        Raises:
            FailedPreconditionError: this store began a run and did not end it.
        """
        if self._run is not None:
            raise FailedPreconditionError(f"run {self._run} has begun and not ended; call end_run() first")
        facts = to_json(environment, "environment")
        with self._transaction("beginning a run") as database:
            (run,) = database.execute("SELECT coalesce(max(run), 0) + 1 FROM runs").fetchone()
            row = (
                *(run, utc_now(), str(environment.get("pumice", "")), platform.python_version(), platform.node()),
                *(os.getpid(), shlex.join(sys.argv), facts),
            )
            names = ("run", "started", "pumice", "python", "host", "pid", "command", "environment")
            insert_rows(database, "runs", names, [row])
        self._run = int(run)
        return self._run

    def end_run(self, outcome: str = "complete") -> None:
        """Ends the run; one that was killed has no end. ``outcome``: ``"complete"``, or for people why not."""
        self._add("run_ends", "ending a run", ended=utc_now(), outcome=outcome)
        self._run = None

    @property
    def run(self) -> int | None:
        """The number of the run that has begun, ``None`` between runs."""
        return self._run

    # -- adding ----------------------------------------------------------------------------------

    def add_samples(
        self, point: int, block: int, phase: str, samples: Sequence[Sample], flags: Sequence[int] | None = None
    ) -> None:
        """Adds samples of a point, in one transaction: all of them are there when it returns, none when it raises.

        Args:
            point: index of the point.
            block: which turn of the point they were taken in; blocks of different runs are told apart by the run.
            phase: one of ``PHASES``.
            samples: in the order in which they were taken.
            flags: ``SampleFlag`` bits of each; ``None`` for none of all.

        Raises:
            InvalidArgumentError: no such point or phase, flags that no ``SampleFlag`` names, or not one flag a sample.
            ResourceExhaustedError: the disk is full; what was added before is kept, and the store can still be used.
        """
        self._check_point(point)
        if phase not in PHASES:
            raise InvalidArgumentError(f"phase is one of {', '.join(PHASES)}; got {phase!r}")
        if flags is None:
            flags = (0,) * len(samples)
        if len(flags) != len(samples):
            raise InvalidArgumentError(f"one flag a sample: got {len(flags)} flags and {len(samples)} samples")
        if any(flag & ~_ALL_FLAGS for flag in flags):
            raise InvalidArgumentError(f"flags are of the bits {_ALL_FLAGS:#x} of SampleFlag, got {list(flags)}")
        run = self._current_run()
        with self._transaction("adding samples") as database:
            (number,) = database.execute(
                "SELECT coalesce(max(number), -1) + 1 FROM samples WHERE point = ?", (point,)
            ).fetchone()
            rows = (
                (point, number + place, run, int(block), phase, int(flag), *sample_row(sample))
                for place, (sample, flag) in enumerate(zip(samples, flags, strict=True))
            )
            insert_rows(database, "samples", _SAMPLE_COLUMNS, rows)

    def set_status(self, point: int, status: str, reason: str = "") -> None:
        """Adds a status of a point, from now on its status.

        Args:
            point: index of the point.
            status: a ``PointStatus`` or its text.
            reason: the text of the error, or why else.
        """
        self._check_point(point)
        if status not in list(PointStatus):
            raise InvalidArgumentError(f"status is one of {', '.join(PointStatus)}; got {status!r}")
        self._add(
            "statuses",
            "setting a status",
            point=point,
            changed=utc_now(),
            status=str(PointStatus(status)),
            reason=reason,
        )

    def add_device(self, device: str, *, name: str, driver: str, facts: Mapping[str, object]) -> None:
        """Adds a device of this run, once a run.

        Args:
            device: its URI as points have it.
            name, driver: for people, such as ``"NVIDIA H200"`` and ``"NVIDIA 570.86"``.
            facts: JSON values, such as ``device_facts()`` gives.
        """
        text = to_json(facts, "facts")
        self._add("devices", f"adding the device {device}", device=device, name=name, driver=driver, facts=text)

    def add_clock(
        self,
        device: str,
        *,
        host_ns: int,
        device_ticks: int | None = None,
        deviation_ns: float | None = None,
        ns_per_tick: float | None = None,
        calibrated: bool | None = None,
        frequency_mhz: float | None = None,
        memory_mhz: float | None = None,
        cpu_mhz: float | None = None,
        temperature_c: float | None = None,
        power_w: float | None = None,
        throttle: str | None = None,
    ) -> None:
        """Adds one reading of clocks; ``None`` where it is not known.

        Args:
            device: its URI.
            host_ns: when, nanoseconds of ``time.monotonic_ns``.
            device_ticks, deviation_ns, ns_per_tick, calibrated: the device's counter at that time, as
                ``hal_vulkan.timestamps.ClockCalibration`` has them.
            frequency_mhz, memory_mhz: clock rates of the device's cores and memory.
            cpu_mhz: clock rate of the host's cores, the mean of them.
            temperature_c, power_w: of the device.
            throttle: why the device says that it slowed down; an empty text where it says it does not.
        """
        self._add(
            "clocks",
            "adding a reading of clocks",
            device=device,
            host_ns=int(host_ns),
            device_ticks=None if device_ticks is None else signed_ticks(device_ticks),
            deviation_ns=number_or_null(deviation_ns),
            ns_per_tick=number_or_null(ns_per_tick),
            calibrated=None if calibrated is None else int(calibrated),
            frequency_mhz=number_or_null(frequency_mhz),
            memory_mhz=number_or_null(memory_mhz),
            cpu_mhz=number_or_null(cpu_mhz),
            temperature_c=number_or_null(temperature_c),
            power_w=number_or_null(power_w),
            throttle=throttle,
        )

    def add_reference(self, device: str, *, started_ns: int, duration_ns: float) -> None:
        """Adds one run of the reference kernel: when on the clock of ``time.monotonic_ns``, and how long it took."""
        self._add(
            "reference_samples",
            "adding a reference sample",
            device=device,
            started_ns=int(started_ns),
            duration_ns=float(duration_ns),
        )

    def add_peaks(self, device: str, peaks: Mapping[str, float], details: Mapping[str, object] | None = None) -> None:
        """Adds measured peaks of a device, by name such as ``"GB/s"``; ``details`` say how they were measured."""
        text, run = to_json(details or {}, "details"), self._current_run()
        with self._transaction(f"adding peaks of {device}") as database:
            rows = [(run, device, name, float(value), text) for name, value in peaks.items()]
            insert_rows(database, "peaks", ("run", "device", "name", "value", "details"), rows)

    def add_note(self, text: str, *, point: int | None = None, kind: str = "warning") -> None:
        """Adds what a reader of the results has to know, of all of the run or of one point."""
        if point is not None:
            self._check_point(point)
        self._add("notes", "adding a note", point=point, created=utc_now(), kind=kind, text=text)

    # -- what is there ---------------------------------------------------------------------------

    def sample_count(self, point: int, phase: str = "sample") -> int:
        """How many samples of a point and phase are there, of all runs."""
        self._check_point(point)
        with self._reading("counting samples") as database:
            (count,) = database.execute(
                "SELECT count(*) FROM samples WHERE point = ? AND phase = ?", (point, phase)
            ).fetchone()
            return int(count)

    def next_block(self, point: int) -> int:
        """A block number of a point that no sample has yet, of any run."""
        self._check_point(point)
        with self._reading("counting blocks") as database:
            (block,) = database.execute(
                "SELECT coalesce(max(block), -1) + 1 FROM samples WHERE point = ?", (point,)
            ).fetchone()
            return int(block)

    def statuses(self) -> list[PointStatus]:
        """The status of each point, by index."""
        with self._reading("reading statuses") as database:
            rows = database.execute("SELECT status FROM point_status ORDER BY point").fetchall()
            return [PointStatus(status) for (status,) in rows]

    # -- closing ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Folds the log into the file and lets the next writer in; idempotent."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is None:
                return
            # It fails while somebody reads, and on a full disk: the log stays beside the file then, and is part of it.
            with contextlib.suppress(sqlite3.Error):
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute("PRAGMA journal_mode = DELETE").fetchone()
            try:
                connection.close()
            finally:
                self._writer_lock.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._connection is None else "between runs" if self._run is None else f"run {self._run}"
        return f"<Store of {self._point_count} points in {self.path}, {state}>"

    # -- within ----------------------------------------------------------------------------------

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
                if database.in_transaction:  # a full disk makes SQLite roll back by itself
                    with contextlib.suppress(sqlite3.Error):
                        database.execute("ROLLBACK")
                raise

    def _current_run(self) -> int:
        if self._run is None:
            self._open_connection()
            raise FailedPreconditionError("no run has begun; call begin_run() first")
        return self._run

    def _add(self, table: str, doing: str, **values: str | int | float | None) -> None:
        names, row = ("run", *values), (self._current_run(), *values.values())
        with self._transaction(doing) as database:
            insert_rows(database, table, names, [row])

    def _check_point(self, point: int) -> None:
        if not 0 <= point < self._point_count:
            raise InvalidArgumentError(f"the study has points 0 to {self._point_count - 1}, got point {point}")
