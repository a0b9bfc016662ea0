"""Files that are no results, of other versions, or damaged: what can be read is, and the rest is a clear error."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from support.study.stored_results import query
from support.study.stored_study import KEPT, POINTS, STUDY, samples

from pumice.status import (
    DataLossError,
    FailedPreconditionError,
    IncompatibleError,
    InvalidArgumentError,
    NotFoundError,
)
from pumice.study.results.results import Results
from pumice.study.results.storage.database import RESULTS_FILE
from pumice.study.results.storage.records import Observation
from pumice.study.results.storage.schema import SCHEMA_VERSION, TABLES
from pumice.study.results.storage.store import Store


def both_refuse(folder: Path, kind: type[Exception], match: str) -> None:
    before = (folder / RESULTS_FILE).read_bytes()
    for opening in (Store.open, Results.open):
        with pytest.raises(kind, match=match):
            opening(folder)
    with pytest.raises(kind, match=match):
        Store.create(folder, STUDY, POINTS)
    assert (folder / RESULTS_FILE).read_bytes() == before


def test_no_results(tmp_path: Path) -> None:
    for opening in (Store.open, Results.open):
        for folder in (tmp_path, tmp_path / "none"):
            with pytest.raises(NotFoundError, match=r"holds no results.*there is no results\.sqlite"):
                opening(folder)


def test_no_database(tmp_path: Path) -> None:
    (tmp_path / RESULTS_FILE).write_text("point,total\n" * 1000)
    both_refuse(tmp_path, InvalidArgumentError, "no results file of pumice: it is no SQLite database")


def test_another_programs_database(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / RESULTS_FILE)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    both_refuse(tmp_path, InvalidArgumentError, "another program's SQLite database")


def test_a_newer_version(tmp_path: Path, store: Store) -> None:
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / RESULTS_FILE)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    both_refuse(tmp_path, IncompatibleError, r"newer version of pumice: its tables are of version 3.*update pumice")


def version_1(folder: Path) -> Path:
    """Creates a file as pumice with tables of version 1 wrote it; ``dump`` returns its content."""
    with contextlib.closing(sqlite3.connect(folder / RESULTS_FILE)) as connection:
        connection.executescript(Path(__file__).with_name("version_1.sql").read_text(encoding="utf-8"))
    return folder / RESULTS_FILE


def dump(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_a_file_of_version_1_is_read_as_it_is(tmp_path: Path) -> None:
    path = version_1(tmp_path)
    before = path.read_bytes()
    with Results.open(tmp_path) as results:
        first, second = results.points
        assert first.values().tolist() == [50.0] * 3 and np.isnan(first.values("cpu")).all()
        assert (first.against, first.point.against, first.point.is_against) == (None, None, False)
        assert first.baseline is second
        assert [run.repeat for run in results.runs] == [1]
        assert [(reading.kind, reading.point) for reading in results.references] == [("compute", None)]
        assert (results.states, results.files) == ((), ())
    assert path.read_bytes() == before


def test_a_file_of_version_1_is_upgraded_to_be_written(tmp_path: Path, store: Store) -> None:
    old = tmp_path / "old"
    old.mkdir()
    path = version_1(old)
    rows = [line for line in dump(path) if line.startswith("INSERT")]
    reader = Results.open(old)
    with Store.open(old) as upgraded:
        upgraded.begin_run({}, repeat=2)
        upgraded.add_samples(0, 2, "sample", samples(2))
        upgraded.add_file(KEPT)
        # A reader that was opened before continues.
        assert reader.points[0].count == 5 and [run.repeat for run in reader.runs] == [1, 2]
    reader.close()
    with Results.open(old) as results:
        assert [run.repeat for run in results.runs] == [1, 2] and results.points[0].count == 5
        assert [file.name for file in results.files] == ["saxpy.comp"]
    columns = 'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_xinfo(?)'
    for table in TABLES:
        assert query(old, columns, table) == query(tmp_path, columns, table)
    triggers = "SELECT sql FROM sqlite_master WHERE type IN ('trigger', 'index', 'view') ORDER BY name"
    assert query(old, triggers) == query(tmp_path, triggers)
    kept = [line for line in dump(path) if line.startswith("INSERT")]
    assert len(rows) > 10 and all(any(line.startswith(row[:-2]) for line in kept) for row in rows)


def test_a_file_of_this_version_from_before_its_latest_table(tmp_path: Path, store: Store) -> None:
    store.add_samples(0, 0, "sample", samples(2))
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / RESULTS_FILE)) as connection:
        connection.execute("DROP TABLE observations")
    before = dump(tmp_path / RESULTS_FILE)
    with Results.open(tmp_path) as results:
        assert results.observations == () and results.points[0].count == 2
    assert dump(tmp_path / RESULTS_FILE) == before
    with Store.open(tmp_path) as upgraded:
        upgraded.begin_run({})
        upgraded.add_observations(0, [Observation("energy", "device", "joules", 1.5, "J")])
    with Results.open(tmp_path) as results:
        assert [observation.value for observation in results.observations] == [1.5]


@pytest.mark.parametrize(("measure", "column"), [("total", "call"), ("submit", "submit")])
def test_the_call_of_a_module_has_a_segment_of_its_own(tmp_path: Path, measure: str, column: str) -> None:
    """In version 1 it is ``submit``; the name of a headline stays."""
    path = version_1(tmp_path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for table in ("study", "points", "samples"):
            connection.execute(f"DROP TRIGGER {table}_no_update")
        connection.execute("""UPDATE study SET study = replace(study, '"kernel"', '"module"')""")
        connection.execute("UPDATE points SET measure = ?", (measure,))
        connection.execute("UPDATE samples SET submit_ns = 7, execute_ns = NULL")
        connection.commit()
    other = "submit" if column == "call" else "call"
    for upgraded in (False, True):
        if upgraded:
            Store.open(tmp_path).close()
        with Results.open(tmp_path) as results:
            result = results.points[0]
            assert result.values(column).tolist() == [7.0] * 3 and np.isnan(result.values(other)).all()
            assert {getattr(sample, column) for sample in result.samples()} == {7.0}


def test_a_refused_study_leaves_a_file_of_version_1(tmp_path: Path) -> None:
    path = version_1(tmp_path)
    before = dump(path)
    with pytest.raises(FailedPreconditionError, match="another study"):
        Store.open(tmp_path, {"version": 1, "name": "other"})
    assert dump(path) == before and query(tmp_path, "PRAGMA user_version") == [(1,)]


def test_a_study_of_a_newer_version(tmp_path: Path, store: Store) -> None:
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / RESULTS_FILE)) as connection:
        connection.execute("DROP TRIGGER study_no_update")
        connection.execute("UPDATE study SET format = 7")
        connection.commit()
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
    with contextlib.closing(sqlite3.connect(tmp_path / RESULTS_FILE)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
        connection.commit()
    with pytest.raises(DataLossError, match="damaged"), Results.open(tmp_path) as results:
        results.points[0].samples()
        results.points[0].values("total")
        results.points[0].integers("started_ns")
        assert results.runs


@pytest.mark.parametrize("statement", ["DROP TABLE samples", "ALTER TABLE samples RENAME COLUMN total_ns TO gone"])
def test_tables_that_another_program_changed(tmp_path: Path, store: Store, statement: str) -> None:
    store.add_samples(0, 0, "sample", samples(5))
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / RESULTS_FILE)) as connection:
        connection.execute(statement)
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
