"""Results as arrays, and docs/reference/results.md compared with the tables."""

from __future__ import annotations

import contextlib
import math
import re
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pumice.status import ClosedError, InvalidArgumentError, NotFoundError
from pumice.study.definition.point import Point
from pumice.study.definition.sample import Sample
from pumice.study.results.results import Results
from pumice.study.results.storage.database import RESULTS_FILE
from pumice.study.results.storage.records import PointStatus, SampleFlag
from pumice.study.results.storage.rows import DURATIONS
from pumice.study.results.storage.schema import TABLES
from pumice.study.results.storage.store import Store

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "results.md"
STUDY = {
    "version": 1,
    "name": "sizes",
    "sampling": {"confidence": 0.9, "seed": 3},
    "axes": {"n": [1024, 4096]},
    "derived": {"bytes": "12 * n", "ops/s": "n / time"},
    "targets": [{"name": "saxpy", "kind": "kernel", "source": "builtin:examples/saxpy"}],
}
POINTS = [
    Point(0, "saxpy", "lavapipe", {"n": 1024}, {"batch": 4}, {"bytes": 12288.0}, baseline=2),
    Point(1, "saxpy", "lavapipe", {"n": 4096}, {"batch": 4}, {"bytes": 49152.0, "odd": math.nan}, measure="total"),
    Point(2, "empty kernel", "lavapipe", {}, {"batch": 4}, is_baseline=True),
]


def sample(number: int, dispatches: int = 4) -> Sample:
    return Sample(
        started=number, total=1000.0 + number, execute=400.0 + number, dispatches=dispatches, barrier="between"
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Store.create(tmp_path, STUDY, POINTS, text="name = 'sizes'") as store:
        store.begin_run({"pumice": "0.1.0", "os": "Linux"})
        store.add_device("lavapipe", name="llvmpipe", driver="Mesa 22.3", facts={"limits": [1, 2]})
        store.add_clock("lavapipe", host_ns=5, device_ticks=(1 << 64) - 1, deviation_ns=30, calibrated=True)
        store.add_clock("lavapipe", host_ns=6, frequency_mhz=1980, temperature_c=math.nan, throttle="")
        store.add_reference("lavapipe", started_ns=7, duration_ns=1.5)
        store.add_peaks("lavapipe", {"GB/s": 8.0, "GFLOP/s": 30.0}, {"kernel": "copy"})
        store.add_note("no governor can be read")
        store.add_samples(0, 0, "first", [sample(100)])
        store.add_samples(0, 0, "warmup", [sample(200), sample(201)])
        store.add_samples(0, 1, "sample", [sample(0), sample(1), sample(2)], [0, SampleFlag.PREEMPTED, 0])
        store.set_status(0, "sampling")
        store.end_run("interrupted")
        store.begin_run({"pumice": "0.1.1"})
        store.add_samples(0, 1, "sample", [sample(3), Sample(started=4, total=1004.0, dispatches=4)], [4, 3])
        store.set_status(0, "done", "error reached")
        store.set_status(1, "failed", "out of memory")
        store.add_note("slow at first", point=0, kind="remark")
    return tmp_path


@pytest.fixture
def results(folder: Path) -> Iterator[Results]:
    with Results.open(folder) as opened:
        yield opened


def test_the_study_and_its_points_are_those_that_were_kept(results: Results) -> None:
    assert (results.name, results.study, results.text) == ("sizes", STUDY, "name = 'sizes'")
    points = [result.point for result in results.points]
    assert points[0] == POINTS[0] and points[2] == POINTS[2]
    assert repr(points[1]) == repr(POINTS[1])  # compares NaN
    assert [result.status for result in results.points] == ["done", "failed", "pending"]
    assert results.points[0].baseline is results.points[2] and results.points[1].baseline is None
    assert (results.points[0].reason, results.points[0].error) == ("error reached", "")
    assert (results.points[1].reason, results.points[1].error) == ("out of memory", "out of memory")
    assert results.point(POINTS[1].key) is results.points[1]
    with pytest.raises(NotFoundError, match="has no point x"):
        results.point("x")
    assert results.as_study().axis_names == ("n",)


def test_a_file_is_opened_by_its_own_path_too(folder: Path) -> None:
    with Results.open(folder / RESULTS_FILE) as results:
        assert results.name == "sizes"


def test_values_are_of_a_segment_a_phase_and_what_is_kept(results: Results) -> None:
    result = results.points[0]
    np.testing.assert_array_equal(result.values("total"), [1000, 1001, 1002, 1003, 1004])
    np.testing.assert_array_equal(result.values("execute"), [400, 401, 402, 403, np.nan])
    np.testing.assert_array_equal(result.values(), result.values("execute"))
    np.testing.assert_array_equal(results.points[0].per_dispatch("total"), np.arange(1000, 1005) / 4)
    np.testing.assert_array_equal(result.values("total", "warmup"), [1200, 1201])
    np.testing.assert_array_equal(result.values("total", keep=SampleFlag(0)), [1000, 1002])
    np.testing.assert_array_equal(result.values("total", keep=SampleFlag.PREEMPTED), [1000, 1001, 1002])
    assert result.values().dtype == np.float64
    assert result.count == 5 and not result.overlapping
    assert result.medians() == {"total": 1002.0, "execute": 401.5}
    with pytest.raises(InvalidArgumentError, match="a sample has headline, total, create"):
        result.values("dispatch")
    with pytest.raises(InvalidArgumentError, match="integers of a sample are"):
        result.integers("total")


def test_blocks_of_different_runs_are_different_blocks(results: Results) -> None:
    result = results.points[0]
    assert result.blocks.tolist() == [0, 0, 0, 1, 1]
    assert result.blocks_of(keep=SampleFlag(0)).tolist() == [0, 0]
    assert result.runs.tolist() == [1, 1, 1, 2, 2]
    assert result.flags.tolist() == [0, 1, 0, 4, 3]
    assert result.integers("started_ns").tolist() == [0, 1, 2, 3, 4]


def test_samples_come_back_as_objects(results: Results) -> None:
    assert [point.started for point in results.points[0].first] == [100]
    assert [point.started for point in results.points[0].samples("warmup")] == [200, 201]
    assert results.points[0].samples(keep=SampleFlag(0))[1].execute == 402.0
    assert results.points[1].samples() == ()


def test_a_point_without_samples_has_empty_arrays(results: Results) -> None:
    result = results.points[2]
    for array in (result.values(), result.blocks, result.flags, result.runs, result.per_dispatch("total")):
        assert array.shape == (0,)
    assert result.medians() == {} and results.figures(result) == {}


def test_figures_are_of_the_medians_and_the_peaks(results: Results) -> None:
    figures = results.figures(results.points[0])
    seconds = 401.5e-9
    assert figures["bytes"] == 12288
    assert figures["ops/s"] == pytest.approx(1024 / seconds)
    assert figures["GB/s"] == pytest.approx(4 * 12288 / seconds / 1e9)
    assert figures["% of peak GB/s"] == pytest.approx(100 * figures["GB/s"] / 8.0)


def test_what_is_kept_besides_samples(results: Results) -> None:
    first, second = results.runs
    assert (first.number, first.pumice, first.environment["os"], first.outcome) == (1, "0.1.0", "Linux", "interrupted")
    assert first.started <= (first.ended or "") and first.pid > 0
    assert (second.number, second.ended, second.outcome) == (2, None, None)
    (device,) = results.devices
    assert (device.run, device.name, device.driver, device.facts) == (1, "llvmpipe", "Mesa 22.3", {"limits": [1, 2]})
    related, rate = results.clocks
    assert (related.device_ticks, related.deviation_ns, related.calibrated) == ((1 << 64) - 1, 30.0, True)
    assert (rate.device_ticks, rate.frequency_mhz, rate.temperature_c, rate.throttle) == (None, 1980.0, None, "")
    assert [(reading.started_ns, reading.duration_ns) for reading in results.references] == [(7, 1.5)]
    assert {peak.name: (peak.value, peak.details["kernel"]) for peak in results.peaks} == {
        "GB/s": (8.0, "copy"),
        "GFLOP/s": (30.0, "copy"),
    }
    assert [(note.run, note.point, note.kind) for note in results.notes] == [(1, None, "warning"), (2, 0, "remark")]


def test_closed_results_say_so(results: Results) -> None:
    results.close()
    results.close()
    with pytest.raises(ClosedError, match=r"open them again with Results\.open"):
        results.points[0].values()


def test_final_statuses_are_those_that_a_resumed_study_leaves() -> None:
    assert {status for status in PointStatus if status.is_final} == {"done", "noisy", "skipped"}


@pytest.mark.timing
def test_many_samples_are_read_quickly(tmp_path: Path) -> None:
    points = [Point(index, "saxpy", "lavapipe", {"n": index}) for index in range(20)]
    block = [sample(index) for index in range(1000)]
    with Store.create(tmp_path, {"name": "many"}, points) as store:
        store.begin_run({})
        for point in range(20):
            store.add_samples(point, 0, "sample", block)
    with Results.open(tmp_path) as results:
        began = time.perf_counter()
        assert sum(float(np.nansum(result.values(name))) for result in results.points for name in DURATIONS) > 0
        took = time.perf_counter() - began
        began = time.perf_counter()
        with contextlib.closing(sqlite3.connect(tmp_path / RESULTS_FILE)) as connection:
            connection.execute("SELECT * FROM samples").fetchall()
        plain = time.perf_counter() - began
    # Compared with the time that SQLite takes for the rows; a loop over samples would take tens of times as long.
    assert took < 20 * plain


# -- docs/reference/results.md -------------------------------------------------------------------


def described() -> dict[str, list[tuple[str, str]]]:
    """Returns the tables of the page, each with its columns and their types."""
    tables: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"### `(\w+)`", line):
            name = heading[1]
            tables[name] = []
        elif line.startswith("##"):
            name = ""
        elif name and (row := re.match(r"\| `(\w+)` \| (\w+) \| \S", line)):
            tables[name].append((row[1], row[2]))
    return tables


def test_the_page_describes_every_table_and_column(folder: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / RESULTS_FILE)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
        there = {
            name: [(column, kind) for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({name})")]
            for (name,) in names
        }
    assert set(there) == {*TABLES, "point_status"}
    page = described()
    view = page.pop("point_status")
    assert [column for column, _ in view] == [column for column, _ in there.pop("point_status")]
    assert page == there
