"""Files that are no results, of other versions, or damaged: what can be read is, and the rest is a clear error."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from support.study.stored_results import POINTS, STUDY, samples

from pumice.status import (
    DataLossError,
    IncompatibleError,
    InvalidArgumentError,
    NotFoundError,
)
from pumice.study.results.results import Results
from pumice.study.results.storage.database import RESULTS_FILE
from pumice.study.results.storage.store import Store


def both_refuse(folder: Path, kind: type[Exception], match: str) -> None:
    before = (folder / RESULTS_FILE).read_bytes()
    for opening in (Store.open, Results.open):
        with pytest.raises(kind, match=match):
            opening(folder)
    with pytest.raises(kind, match=match):
        Store.create(folder, STUDY, POINTS)
    assert (folder / RESULTS_FILE).read_bytes() == before


def change(folder: Path, *statements: str) -> None:
    """Changes results as another program may, without the triggers that refuse it."""
    with contextlib.closing(sqlite3.connect(folder / RESULTS_FILE)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_no_results(tmp_path: Path) -> None:
    for opening in (Store.open, Results.open):
        for folder in (tmp_path, tmp_path / "none"):
            with pytest.raises(NotFoundError, match=r"holds no results.*there is no results\.sqlite"):
                opening(folder)


def test_no_database(tmp_path: Path) -> None:
    (tmp_path / RESULTS_FILE).write_text("point,total\n" * 1000)
    both_refuse(tmp_path, InvalidArgumentError, "not a results file of pumice: it is no SQLite database")


def test_another_programs_database(tmp_path: Path) -> None:
    change(tmp_path, "CREATE TABLE bookmarks (url TEXT)")
    both_refuse(tmp_path, InvalidArgumentError, "another program's SQLite database")


@pytest.mark.parametrize(("version", "match"), [(1, "an earlier .* version 1.*again"), (3, "a newer .* 3.*update")])
def test_another_version(tmp_path: Path, store: Store, version: int, match: str) -> None:
    store.close()
    change(tmp_path, f"PRAGMA user_version = {version}")
    both_refuse(tmp_path, IncompatibleError, f"was written by {match}")


def test_a_study_of_a_newer_version(tmp_path: Path, store: Store) -> None:
    store.close()
    change(tmp_path, "UPDATE study SET format = 7")
    both_refuse(tmp_path, IncompatibleError, r"its format is 7, this one reads up to 1; update pumice")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE samples SET total_ns = 'long'",
        "UPDATE samples SET started_ns = 1e999",
        "UPDATE points SET axes = '[1]'",
        "UPDATE points SET axes = '[[[[['",
        "UPDATE runs SET environment = 'NaN'",
        "DELETE FROM study",
        "UPDATE study SET format = 'x'",
    ],
)
def test_values_that_pumice_does_not_write(tmp_path: Path, store: Store, statement: str) -> None:
    store.add_samples(0, 0, "sample", samples(5))
    store.close()
    change(tmp_path, statement)
    with pytest.raises(DataLossError, match="damaged"), Results.open(tmp_path) as results:
        results.points[0].samples()
        results.points[0].values("total")
        results.points[0].integers("started_ns")
        assert results.runs


@pytest.mark.parametrize("statement", ["DROP TABLE samples", "ALTER TABLE samples RENAME COLUMN total_ns TO gone"])
def test_tables_that_another_program_changed(tmp_path: Path, store: Store, statement: str) -> None:
    store.add_samples(0, 0, "sample", samples(5))
    store.close()
    change(tmp_path, statement)
    with Results.open(tmp_path) as results, pytest.raises(DataLossError, match="damaged.*no such"):
        results.points[0].values()


def test_a_schema_that_is_no_text(tmp_path: Path, store: Store) -> None:
    store.close()
    path = tmp_path / RESULTS_FILE
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE points", b"CREATE\xffTABLE points"))
    both_refuse(tmp_path, DataLossError, "damaged")


def truncate(path: Path, share: float) -> None:
    os.truncate(path, int(path.stat().st_size * share))


@pytest.mark.parametrize("share", [0.05, 0.5, 0.99])
def test_a_file_that_was_cut_short(tmp_path: Path, store: Store, share: float) -> None:
    store.add_samples(0, 0, "sample", samples(5000))
    store.close()
    truncate(tmp_path / RESULTS_FILE, share)
    both_refuse(tmp_path, DataLossError, r"damaged or was cut short.*\.recover")


def test_a_damaged_page_is_found_before_anything_is_added(tmp_path: Path, store: Store) -> None:
    store.add_samples(0, 0, "sample", samples(5000))
    store.close()
    path = tmp_path / RESULTS_FILE
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 4096] = bytes(4096)
    path.write_bytes(data)
    with pytest.raises(DataLossError, match="damaged"):
        Store.open(tmp_path)
    with Results.open(tmp_path) as results, pytest.raises(DataLossError, match="damaged"):
        results.points[0].values()


def test_a_log_that_was_cut_short_loses_its_end_only(tmp_path: Path, store: Store) -> None:
    for block in range(20):
        store.add_samples(0, block, "sample", samples(10, start=10 * block))
    shutil.copytree(tmp_path, tmp_path / "copy")
    truncate(tmp_path / "copy" / f"{RESULTS_FILE}-wal", 0.8)
    (tmp_path / "copy" / f"{RESULTS_FILE}-shm").unlink()
    with Results.open(tmp_path / "copy") as results:
        started = results.points[0].integers("started_ns").tolist()
    assert started == list(range(len(started))) and 0 < len(started) < 200 and len(started) % 10 == 0
