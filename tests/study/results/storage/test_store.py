"""The store: append-only, one writer, reported samples survive kills, and clear errors for everything else."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import pytest
from support.soak import rounds
from support.study.stored_results import KEPT, POINTS, STUDY, next_block, query, sample_count, samples

from pumice.status import (
    AlreadyExistsError,
    ClosedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from pumice.study.definition.kept_file import KeptFile
from pumice.study.definition.point import Point
from pumice.study.definition.sample import Sample
from pumice.study.results.results import Results
from pumice.study.results.storage.database import RESULTS_FILE
from pumice.study.results.storage.point_result import SAMPLE_FIELDS
from pumice.study.results.storage.records import Observation, PointStatus, SampleFlag
from pumice.study.results.storage.schema import APPLICATION_ID, SCHEMA_VERSION, TABLES
from pumice.study.results.storage.store import Store

WRITER = Path(__file__).with_name("store_writer.py")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="uses limits, users or mounts of Linux")


# -- what is kept --------------------------------------------------------------------------------


def test_samples_come_back_as_they_were_added(tmp_path: Path, store: Store) -> None:
    full = Sample(
        *(5, 1000.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0),
        device_begin=(1 << 64) - 2,
        device_end=1 << 63,
        dispatches=64,
        preemptions=2,
        stage="TOP_OF_PIPE..BOTTOM_OF_PIPE",
        barrier="none",
        cpu=2000.5,
    )
    bare = Sample(started=-3, total=0.25)
    store.add_samples(1, 0, "sample", [full, bare], [SampleFlag.PREEMPTED | SampleFlag.THROTTLED, 0])
    with Results.open(tmp_path) as results:
        kept_full, kept_bare = results.points[1].samples()
        assert kept_full == full
        assert repr(kept_bare) == repr(bare)  # compares NaN
        assert results.points[1].flags.tolist() == [3, 0]


def test_numbers_go_on_across_phases_blocks_and_runs(tmp_path: Path, store: Store) -> None:
    store.add_samples(0, 0, "first", samples(1))
    store.add_samples(0, 0, "warmup", samples(2))
    store.add_samples(1, 0, "sample", samples(1))
    store.add_samples(0, next_block(store.path.parent, 0), "sample", samples(3))
    store.end_run()
    assert store.begin_run({}) == 2
    store.add_samples(0, next_block(store.path.parent, 0), "sample", samples(2))
    assert query(tmp_path, "SELECT number, run, block FROM samples WHERE point = 0 ORDER BY number") == [
        *((number, 1, 0) for number in range(3)),
        *((number, 1, 1) for number in range(3, 6)),
        *((number, 2, 2) for number in range(6, 8)),
    ]
    assert (
        sample_count(store.path.parent, 0),
        sample_count(store.path.parent, 0, "warmup"),
        sample_count(store.path.parent, 2),
    ) == (5, 2, 0)


def test_the_latest_status_counts_and_all_are_kept(tmp_path: Path, store: Store) -> None:
    store.set_status(0, "sampling")
    store.set_status(1, PointStatus.FAILED, "out of memory")
    store.set_status(0, "done", "error reached")
    assert store.statuses() == [["done", "failed", "pending", "pending"]]
    assert query(tmp_path, "SELECT status FROM statuses WHERE point = 0 ORDER BY id") == [("sampling",), ("done",)]


def test_a_file_is_kept_once_and_a_changed_one_is_refused(tmp_path: Path, store: Store) -> None:
    for _ in range(2):
        store.add_file(KEPT)
    zeros = KeptFile.of("weights.irpa", b"\0" * 1000, "parameters")
    store.add_file(dataclasses.replace(zeros, content=None))
    store.add_file(dataclasses.replace(zeros, name="zeros.npy"))
    for name in ("saxpy.comp", "weights.irpa"):
        changed = KeptFile.of(name, b"void main() { }", "kernel")
        for refuse in (lambda: store.add_file(changed), lambda: store.check_files([changed])):
            with pytest.raises(FailedPreconditionError, match=f"{name} has changed since.*--against {tmp_path} --out"):
                refuse()
    store.check_files([KEPT, KeptFile.of("other.comp", b"", "kernel")])
    with Results.open(tmp_path) as results:
        kernel, weights, compressed = results.files
    assert kernel == KEPT and kernel.content == b"void main() {}" and kernel.size == 14
    assert (weights.content, weights.size) == (None, 1000)
    assert compressed.content == b"\0" * 1000
    ((stored,),) = query(tmp_path, "SELECT content FROM files WHERE name = 'zeros.npy'")
    assert zlib.decompress(stored) == b"\0" * 1000 and len(stored) < 100
    assert weights.sha256 == "541b3e9daa09b20bf85fa273e5cbd3e80185aa4ec298e765db87742b70138a53"  # from sha256sum


def test_states_and_references_come_back_as_they_were_added(tmp_path: Path, store: Store) -> None:
    store.add_state(host_ns=5, steal=0.25, load=None, wake_ns=math.nan)
    store.add_reference("lavapipe", started_ns=1, duration_ns=2.0, kind="memory", point=1, load="64 KiB")
    with Results.open(tmp_path) as results:
        (state,), (reference,) = results.states, results.references
    assert (state.run, state.host_ns, state.steal, state.load, state.wake_ns) == (1, 5, 0.25, None, None)
    assert (reference.kind, reference.point, reference.load) == ("memory", 1, "64 KiB")


@pytest.mark.parametrize("table", TABLES)
def test_rows_can_neither_be_changed_nor_removed_nor_replaced(tmp_path: Path, store: Store, table: str) -> None:
    store.add_samples(0, 0, "sample", samples(2))
    store.set_status(0, "done")
    store.add_device("lavapipe", name="llvmpipe", driver="Mesa", facts={})
    store.add_clock("lavapipe", host_ns=1)
    store.add_reference("lavapipe", started_ns=1, duration_ns=2.0)
    store.add_peaks("lavapipe", {"GB/s": 10.0})
    store.add_note("warm")
    store.add_state(host_ns=1)
    store.add_file(KEPT)
    store.add_observations(0, [Observation("pipeline", "main", "VGPRs", 24)])
    store.end_run()
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / RESULTS_FILE)) as connection:
        before = connection.execute(f"SELECT * FROM {table}").fetchall()
        assert before
        column = connection.execute(f"PRAGMA table_info({table})").fetchall()[-1][1]
        for statement in (
            f"UPDATE {table} SET {column} = {column}",
            f"DELETE FROM {table}",
            f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="results are append-only"):
                connection.execute(statement)
        assert connection.execute(f"SELECT * FROM {table}").fetchall() == before


def test_a_closed_study_is_one_file_that_any_sqlite_reads(tmp_path: Path, store: Store) -> None:
    store.add_samples(0, 0, "sample", samples(5))
    store.close()
    store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.lock", RESULTS_FILE]
    assert (tmp_path / "results.lock").stat().st_size == 0
    (tmp_path / "results.lock").unlink()
    assert query(tmp_path, "SELECT count(*) FROM samples") == [(5,)]
    assert query(tmp_path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert query(tmp_path, "PRAGMA user_version") == [(SCHEMA_VERSION,)]


def test_several_threads_may_add(store: Store) -> None:
    def add(point: int) -> None:
        for block in range(20):
            store.add_samples(point, block, "sample", samples(3))

    threads = [threading.Thread(target=add, args=(point,)) for point in (0, 0, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [sample_count(store.path.parent, point) for point in range(4)] == [120, 60, 60, 0]


# -- a kill at any moment ------------------------------------------------------------------------


@pytest.mark.slow
@linux_only
def test_what_was_reported_survives_kills_and_nothing_is_there_twice(tmp_path: Path) -> None:
    chance = random.Random(7)
    reported: list[tuple[int, int, int, int]] = []
    folder = tmp_path / "study"
    for kill in range(rounds(8, 48)):
        with subprocess.Popen(
            [sys.executable, WRITER, folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None and process.stderr is not None
            lines = []
            if kill % 4:  # sometimes while the file is being created or opened
                lines.append(process.stdout.readline())
                time.sleep(chance.uniform(0, 0.05))
            else:
                time.sleep(chance.uniform(0, 0.4))
            process.send_signal(signal.SIGKILL)
            lines += process.stdout.readlines()
            assert process.stderr.read() == ""
        # A line that the kill cut off was not reported.
        whole = [line.split() for line in lines if line.endswith("\n")]
        reported += [(int(point), int(first), int(count), int(tag)) for point, first, count, tag in whole]
    assert len(reported) > 10
    place_of_start = SAMPLE_FIELDS.index("started_ns")
    with Results.open(folder) as results:
        for result in results.points:
            rows = {row[0]: row for row in result.read_rows()}
            started = [sample.started for phase in ("warmup", "sample") for sample in result.samples(phase)]
            assert sorted(rows) == list(range(len(rows)))
            assert len(set(started)) == len(started) == len(rows)
            for point, first, count, tag in reported:
                if point == result.point.index:
                    mine = [rows[first + index] for index in range(count)]
                    assert [row[place_of_start] for row in mine] == [tag + index for index in range(count)]
        assert all(run.ended is None for run in results.runs)
        # Transactions are whole or absent: only the last one of each run may be unreported.
        kept = sum(len(result.read_rows()) for result in results.points)
        assert 0 <= kept - sum(count for _, _, count, _ in reported) <= 40 * len(results.runs)
    with Store.open(folder) as store:
        assert store.begin_run({}) == len(query(folder, "SELECT run FROM runs"))


# -- several processes ---------------------------------------------------------------------------


def test_a_reader_reads_while_it_is_written(tmp_path: Path, store: Store) -> None:
    seen: list[int] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set() or not seen:
            with Results.open(tmp_path) as results:
                seen.append(results.points[0].count)

    reader = threading.Thread(target=read)
    reader.start()
    for block in range(60):
        store.add_samples(0, block, "sample", samples(7))
    done.set()
    reader.join()
    assert seen == sorted(seen)
    assert all(count % 7 == 0 for count in seen)
    with Results.open(tmp_path) as results:
        assert results.points[0].count == 420
        store.close()  # while a reader is open: the log stays, and nothing is lost
        assert results.points[1].count == 0
    with Results.open(tmp_path) as results:
        assert results.points[0].count == 420


@pytest.mark.slow
def test_a_second_writer_is_refused_until_the_first_is_gone(tmp_path: Path, store: Store) -> None:
    command = f"from pumice.study.results.storage.store import Store; Store.open({str(tmp_path)!r})"
    answer = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    wanted = rf"FAILED_PRECONDITION: another run is writing results to .* \(run 1 by process {os.getpid()} on "
    assert re.search(wanted, answer.stderr), answer.stderr
    with pytest.raises(FailedPreconditionError, match="another run is writing"):
        Store.open(tmp_path)
    with pytest.raises(FailedPreconditionError, match="another run is writing"):
        Store.create(tmp_path, STUDY, POINTS)
    store.add_samples(0, 0, "sample", samples(1))  # the refused writers did not end the lock
    store.close()
    Store.open(tmp_path).close()


# -- going on ------------------------------------------------------------------------------------


def test_create_refuses_a_folder_with_results(tmp_path: Path, store: Store) -> None:
    store.close()
    with pytest.raises(AlreadyExistsError, match="resume that study, or take another folder"):
        Store.create(tmp_path, STUDY, POINTS)
    assert Store.exists(tmp_path) and not Store.exists(tmp_path / "other")


def test_open_takes_the_same_study_and_says_what_differs_in_another(tmp_path: Path, store: Store) -> None:
    store.close()
    Store.open(tmp_path, STUDY, POINTS).close()
    Store.open(tmp_path, {**STUDY, "axes": {"n": (1, 2, 3)}}, POINTS).close()
    other = {**STUDY, "sampling": {"seed": 1, "max_samples": 100}, "axes": {"n": [1, 2]}, "title": "new"}
    with pytest.raises(FailedPreconditionError) as caught:
        Store.open(tmp_path, other, POINTS)
    for text in (
        "sampling.seed: 0 is kept, 1 came",
        "axes.n[2]: 3 is kept, nothing came",
        'title: nothing is kept, "new"',
    ):
        assert text in str(caught.value)
    with pytest.raises(FailedPreconditionError, match=r'points\[0\]\.device: "lavapipe" is kept, "nvidia" came'):
        Store.open(tmp_path, STUDY, [Point(0, "saxpy", "nvidia", {"n": 1}, {"batch": 1}, baseline=3), *POINTS[1:]])
    with pytest.raises(FailedPreconditionError, match="and 15 more"):
        Store.open(tmp_path, {**STUDY, **{f"key{i}": i for i in range(20)}})


def test_a_file_whose_making_was_killed_counts_as_none(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / RESULTS_FILE)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    assert not Store.exists(tmp_path)
    with pytest.raises(NotFoundError, match="no study was begun in it"):
        Store.open(tmp_path)
    Store.create(tmp_path, STUDY, POINTS).close()
    Store.open(tmp_path, STUDY).close()


# -- wrong calls ---------------------------------------------------------------------------------


def test_wrong_arguments_are_refused_and_nothing_is_added(tmp_path: Path, store: Store) -> None:
    for point in (-1, 4):
        with pytest.raises(InvalidArgumentError, match="points 0 to 3"):
            store.add_samples(point, 0, "sample", samples(1))
    with pytest.raises(InvalidArgumentError, match="first, warmup, sample; got 'cold'"):
        store.add_samples(0, 0, "cold", samples(1))
    with pytest.raises(InvalidArgumentError, match="2 flags and 1 samples"):
        store.add_samples(0, 0, "sample", samples(1), [0, 0])
    with pytest.raises(InvalidArgumentError, match="bits 0xf"):
        store.add_samples(0, 0, "sample", samples(1), [16])
    with pytest.raises(InvalidArgumentError, match="a value does not fit"):
        store.add_samples(0, 0, "sample", [*samples(2), Sample(started=1 << 70, total=1.0)])
    with pytest.raises(InvalidArgumentError, match="status is one of pending"):
        store.set_status(0, "finished")
    with pytest.raises(InvalidArgumentError, match="facts must be JSON values"):
        store.add_device("lavapipe", name="", driver="", facts={"when": object()})
    with pytest.raises(FailedPreconditionError, match="run 1 has begun"):
        store.begin_run({})
    store.add_device("lavapipe", name="", driver="", facts={})
    with pytest.raises(AlreadyExistsError, match="adding the device lavapipe"):
        store.add_device("lavapipe", name="", driver="", facts={})
    assert query(tmp_path, "SELECT count(*) FROM samples") == [(0,)]
    store.add_samples(0, 0, "sample", samples(1))
    store.end_run()
    with pytest.raises(FailedPreconditionError, match="no run has begun"):
        store.add_samples(0, 0, "sample", samples(1))
    store.close()
    with pytest.raises(ClosedError):
        store.statuses()


@pytest.mark.parametrize(
    ("points", "match"),
    [
        ([], "at least one point"),
        ([Point(1, "a", "d")], "expected 0, got 1"),
        ([Point(0, "a", "d", baseline=1)], "baseline 1; there are 1"),
        ([Point(0, "a", "d", settings={"x": float("nan")})], "point 0: settings must be JSON values"),
    ],
)
def test_points_that_cannot_be_kept_leave_no_file(tmp_path: Path, points: list[Point], match: str) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        Store.create(tmp_path / "new", STUDY, points)
    assert not (tmp_path / "new").exists()


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(InvalidArgumentError, match="results go into a folder"):
        Store.create(tmp_path / "x", STUDY, POINTS)
