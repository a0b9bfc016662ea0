"""Exports: other programs read back what was stored, and a file is written wholly or not at all."""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import compute, parquet

from pumice.status import InvalidArgumentError, NotFoundError, PermissionDeniedError
from pumice.study.definition.point import AxisValue, Point
from pumice.study.definition.sample import Sample
from pumice.study.results.export import EXPORTS, export_results, export_to, points_table, sample_batches, sample_schema
from pumice.study.results.results import Results
from pumice.study.results.storage.records import SampleFlag
from pumice.study.results.storage.store import Store
from pumice.study.statistics.summary import summarize

STUDY = {
    "version": 1,
    "name": "sizes",
    "sampling": {"confidence": 0.9, "seed": 3},
    "axes": {"batch": [1, 4], "wait": ["host", "poll"]},
    "derived": {"bytes": "12 * batch", "used": "2 * batch"},
    "targets": [{"name": "saxpy", "kind": "kernel", "source": "builtin:examples/saxpy"}],
}
BATCHES, WAITS = (1, 4), ("host", "poll")
TIMES = np.random.default_rng(1).lognormal(9, 0.1, (4, 200))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("results")
    points = [
        *(
            Point(
                2 * i + j, "saxpy", "lavapipe", {"batch": batch, "wait": wait}, {"batch": batch}, {"bytes": 12 * batch}
            )
            for i, batch in enumerate(BATCHES)
            for j, wait in enumerate(WAITS)
        ),
        Point(4, "saxpy", "lavapipe", {"batch": 1, "wait": "a|b\nc"}, {"batch": 1}),
    ]
    with Store.create(folder, STUDY, points) as store:
        store.begin_run({"pumice": "0.1.0"})
        store.add_device("lavapipe", name="llvmpipe, Größe", driver="Mesa", facts={"heaps": [1]})
        store.add_note("no governor")
        for index in range(4):
            rows = [
                Sample(started=place, total=2 * time, execute=math.nan if place == 7 else time, device_begin=-1)
                for place, time in enumerate(TIMES[index].tolist())
            ]
            store.add_samples(index, 0, "first", [Sample(started=0, total=9.0, execute=1e6)])
            flags = [SampleFlag.PREEMPTED if index < 3 else 0 for index in range(100)]
            store.add_samples(index, 0, "sample", rows[:100], flags)
            store.add_samples(index, 1, "sample", rows[100:])
            store.set_status(index, "done")
        store.set_status(4, "failed", "no such wait")
        store.end_run()
    return Results.open(folder)


@pytest.fixture(scope="module", autouse=True)
def _close(results: Results) -> object:
    yield
    results.close()


def test_a_row_a_point_has_axes_statistics_and_figures(results: Results) -> None:
    rows = points_table(results).to_pylist()
    assert [row["wait"] for row in rows] == ["host", "poll", "host", "poll", "a|b\nc"]
    assert [row["batch"] for row in rows] == [1, 1, 4, 4, 1]
    times = TIMES[2].copy()
    times[7] = np.nan
    summary = summarize(times[3:], confidence=0.9, seed=3, blocks=np.repeat([0, 1], [97, 100]))
    row = rows[2]
    assert (row["used"], row["missing"], row["samples"], row["preempted"], row["throttled"]) == (196, 1, 200, 3, 0)
    assert (row["median_ns"], row["q1_ns"], row["mean_ns"]) == (summary.median, summary.q1, summary.mean)
    assert (row["median_low_ns"], row["median_high_ns"]) == tuple(summary.median_interval)
    assert row["relative_error"] == summary.relative_error
    assert row["p90_ns"] == summary.quantiles["p90"] and row["p99_ns"] is None
    assert row["execute_median_ns"] == summary.median
    assert row["total_median_ns"] == np.median(2 * TIMES[2][3:])
    assert (row["first_ns"], row["status"], row["device_name"]) == (1e6, "done", "llvmpipe, Größe")
    assert row["figure.used"] == 8 and row["bytes"] == 48
    assert row["GB/s"] == pytest.approx(48 / summary.median)
    assert json.loads(row["settings"]) == {"batch": 4}
    empty = rows[4]
    assert (empty["status"], empty["reason"], empty["used"]) == ("failed", "no such wait", 0)
    assert empty["median_ns"] is None and empty["GB/s"] is None


def test_statistics_are_of_undisturbed_samples_where_they_are_most(results: Results) -> None:
    row = points_table(results).to_pylist()[0]
    assert (row["used"], row["samples"]) == (196, 200)
    assert row["minimum_ns"] == np.delete(TIMES[0], [0, 1, 2, 7]).min()


@pytest.mark.slow
def test_points_come_back_from_parquet_csv_and_json(results: Results, tmp_path: Path) -> None:
    table = points_table(results)
    export_results(results, "parquet", tmp_path / "points.parquet")
    back = parquet.read_table(tmp_path / "points.parquet")
    assert back.equals(table) and json.loads(back.schema.metadata[b"pumice.study"]) == STUDY

    export_results(results, "csv", tmp_path / "points.csv")
    with (tmp_path / "points.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == table.column_names
    for line, row in zip(lines, table.to_pylist(), strict=True):
        for name, value in row.items():
            if value is None:
                assert line[name] == ""
            elif isinstance(value, float):
                assert float(line[name]) == value
            else:
                assert line[name] == (str(value).lower() if isinstance(value, bool) else str(value))

    export_results(results, "json", tmp_path / "points.json")
    document = json.loads((tmp_path / "points.json").read_text(encoding="utf-8"))
    assert document["study"] == STUDY and document["devices"][0]["name"] == "llvmpipe, Größe"
    assert document["runs"][0]["outcome"] == "complete" and document["notes"][0]["text"] == "no governor"
    assert document["points"] == [{**row, "settings": json.loads(row["settings"])} for row in table.to_pylist()]


def test_samples_come_back_from_parquet_csv_and_json(results: Results, tmp_path: Path) -> None:
    table = pa.Table.from_batches(list(sample_batches(results)), sample_schema(results))
    assert table.num_rows == 4 * 201
    np.testing.assert_array_equal(
        table.filter(compute.equal(table["phase"], "sample"))["total_ns"].to_numpy(), 2 * TIMES.reshape(-1)
    )
    assert table["execute_ns"].null_count == 4 and table["device_begin"].null_count == table.num_rows
    assert table["batch"].to_pylist()[:2] == [1, 1] and table["wait"].to_pylist()[201] == "poll"

    export_results(results, "parquet", tmp_path / "samples.parquet", raw=True)
    assert parquet.read_table(tmp_path / "samples.parquet").equals(table)
    export_results(results, "csv", tmp_path / "samples.csv", raw=True)
    with (tmp_path / "samples.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [float(line["total_ns"]) for line in lines] == table["total_ns"].to_pylist()
    export_results(results, "json", tmp_path / "samples.json", raw=True)
    assert json.loads((tmp_path / "samples.json").read_text(encoding="utf-8"))["samples"] == table.to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("raw", [False, True])
def test_pandas_reads_every_export(results: Results, tmp_path: Path, raw: bool) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas (of the dev extra) is not installed")
    for kind in EXPORTS:
        export_results(results, kind, tmp_path / kind, raw=raw)
    expected = pandas.read_parquet(tmp_path / "parquet")
    assert len(expected) == (4 * 201 if raw else 5)
    # Columns are attributes of the frame.
    assert not [name for name in expected.columns if hasattr(pandas.DataFrame, name)]
    document = json.loads((tmp_path / "json").read_text(encoding="utf-8"))
    nested = pandas.json_normalize(document, "samples" if raw else "points")
    frames = [pandas.read_csv(tmp_path / "csv"), pandas.read_json(tmp_path / "records"), nested]
    for frame in frames:
        assert set(expected.columns) - set(frame.columns) <= {"settings"}
        for name in ("total_ns", "phase") if raw else ("median_ns", "wait", "used", "GB/s"):
            pandas.testing.assert_series_equal(frame[name], expected[name], check_dtype=False)
    if not raw:
        assert nested["settings.batch"].tolist() == expected["batch"].tolist()


@pytest.mark.slow
def test_markdown_has_a_line_a_point_with_what_people_look_at(results: Results, tmp_path: Path) -> None:
    export_results(results, "markdown", tmp_path / "points.md")
    header, rule, *lines = (tmp_path / "points.md").read_text(encoding="utf-8").splitlines()
    cells = [cell.strip() for cell in header.strip("|").split("|")]
    assert cells[:6] == ["target", "device", "batch", "wait", "status", "used"]
    assert "median_ns" in cells and "GB/s" in cells and "settings" not in cells and "p99_ns" not in cells
    assert set(rule) <= set("|-:") and len(lines) == 5
    assert f"{np.median(np.delete(TIMES[0], [0, 1, 2, 7])):.6g}" in lines[0]
    assert r"a\|b c" in lines[4] and "failed" in lines[4]
    export_results(results, "markdown", tmp_path / "samples.md", raw=True)
    assert len((tmp_path / "samples.md").read_text(encoding="utf-8").splitlines()) == 2 + 4 * 201


@pytest.mark.slow
def test_an_export_can_go_to_an_open_file(results: Results, tmp_path: Path) -> None:
    for kind in EXPORTS:
        file = BytesIO()
        export_to(results, kind, file)
        export_results(results, kind, tmp_path / kind)
        assert file.getvalue() == (tmp_path / kind).read_bytes()


def test_an_export_replaces_a_file_whole_or_leaves_it(results: Results, tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text("before")
    export_results(results, "csv", path)
    assert path.read_text(encoding="utf-8").startswith('"point"')
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()
    path.write_text("before")
    closed = Results.open(results.path)
    closed.close()
    for kind in EXPORTS:
        for raw in (False, True):
            with pytest.raises(Exception, match="were closed"):
                export_results(closed, kind, path, raw=raw)
    assert path.read_text() == "before" and [path.name for path in tmp_path.iterdir()] == ["points.csv"]


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def test_wrong_kinds_and_paths_are_refused(results: Results, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="exported as csv, json, markdown, parquet, records; got 'xlsx'"):
        export_results(results, "xlsx", tmp_path / "x")
    with pytest.raises(NotFoundError, match="there is no folder"):
        export_results(results, "csv", tmp_path / "none" / "x.csv")
    (tmp_path / "folder").mkdir()
    with pytest.raises(PermissionDeniedError, match="cannot be written"):
        export_results(results, "csv", tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="uses a limit of Linux")
def test_a_full_disk_leaves_no_half_file(results: Results, tmp_path: Path) -> None:
    code = f"""
import resource
from pathlib import Path
from pumice.status import ResourceExhaustedError
from pumice.study.results.export import EXPORTS, export_results
from pumice.study.results.results import Results
with Results.open({str(results.path)!r}) as results:
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
    for kind in EXPORTS:
        try:
            export_results(results, kind, Path({str(tmp_path)!r}) / kind, raw=True)
        except ResourceExhaustedError as error:
            print(kind, error)
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert answer.stdout.count("nothing of it was kept") == len(EXPORTS), answer.stdout + answer.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("values", "kind", "kept"),
    [
        ((1, 2), pa.int64(), [1, 2]),
        ((1, 2.5), pa.float64(), [1.0, 2.5]),
        ((True, False), pa.bool_(), [True, False]),
        (("f32", "f16"), pa.string(), ["f32", "f16"]),
        ((1, "auto", True), pa.string(), ["1", "auto", "true"]),
        ((1, 1 << 70), pa.float64(), [1.0, float(1 << 70)]),
    ],
)
def test_axes_of_any_kind_and_name_have_their_column(
    tmp_path: Path, values: tuple[AxisValue, ...], kind: pa.DataType, kept: list[AxisValue]
) -> None:
    names = ("status", "median_ns", "point", "plain")
    points = [
        Point(index, "saxpy", "lavapipe", dict.fromkeys(names, value), {"batch": 1})
        for index, value in enumerate(values)
    ]
    with Store.create(tmp_path, STUDY, points) as store:
        store.begin_run({})
        for index in range(len(points)):
            store.add_samples(index, 0, "sample", [Sample(started=0, total=1.0)])
    with Results.open(tmp_path) as results:
        for table in (points_table(results), pa.Table.from_batches(list(sample_batches(results)))):
            for name in ("axis.status", "axis.median_ns", "axis.point", "plain"):
                assert table[name].type == kind and table[name].to_pylist() == kept
            assert table["point"].to_pylist() == list(range(len(values)))
