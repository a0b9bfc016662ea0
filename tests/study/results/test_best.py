"""The best points, data frames, and the order of points on the console."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
from click.testing import CliRunner
from support.study.made_runs import add_run
from support.study.made_studies import STUDY, made
from support.study.stored_results import made_results

from pumice.status import InvalidArgumentError, UnavailableError
from pumice.study import Results, export_results
from pumice.study.definition.point import Point
from pumice.study.results.storage.store import Store
from pumice.tools.cli import main

RATED = STUDY.replace('flops = "1024"', 'flops = "1024"\n"ns per element" = "1e9 * time / dispatches / 1024"')


@pytest.fixture
def rated(tmp_path: Path) -> Results:
    return made(tmp_path / "rated", RATED)


@pytest.mark.slow
def test_points_that_are_not_told_apart_from_the_best_are_said(tmp_path: Path) -> None:
    # Medians of 400 samples with 1 % noise have an error of about 0.1 %; differences below 1 % do not count.
    medians = [1e4, 1.3e4, 1.004e4, 1.2e4, 1.006e4]
    with Results.open(made_results(tmp_path / "r", medians)) as results:
        (best,) = results.best()
    lowest = int(np.argmin(medians))
    assert best.point.point.index == lowest
    assert {tied.point.index for tied in best.ties} == {
        index for index, median in enumerate(medians) if 1e4 < median < 1.01e4
    }
    assert best.value == pytest.approx(1e4, rel=5e-3) and best.count == 5


def test_points_that_were_measured_apart_are_no_ties_if_no_state_explains_it(tmp_path: Path) -> None:
    """Their references have no load in common, so that their ratio has no interval."""
    described = {"version": 1, "name": "mul", "targets": [{"name": "mul", "kind": "kernel", "source": "builtin:mul"}]}
    placed = [Point(n, "mul", "d", {"n": n}, measure="total") for n in range(3)]
    with Store.create(tmp_path, described, placed) as store:
        store.begin_run({})
        for index, (point, median) in enumerate(zip(placed, (1e4, 3e4, 1e6), strict=True)):
            at = index * 10**12
            add_run(store, {index: (point, median)}, np.random.default_rng(index), at=at, load=f"of {index}")
        store.end_run()
    with Results.open(tmp_path) as results:
        (best,) = results.best("headline")
    assert best.point.point.index == 0 and [tied.point.index for tied in best.ties] == [1]


@pytest.mark.slow
def test_a_figure_that_falls_as_times_grow_has_its_best_at_the_top(rated: Results) -> None:
    frame = rated.to_pandas()
    frame = frame[~frame["is_baseline"]]
    for name, index in (("GB/s", frame["GB/s"].idxmax()), ("ns per element", frame["ns per element"].idxmin())):
        (best,) = rated.best(name)
        assert best.point.point.index == frame["point"][index]
        assert best.value == pytest.approx(frame[name][index])
        assert best.is_highest is (name == "GB/s")


@pytest.mark.slow
def test_each_group_has_a_best_point(rated: Results) -> None:
    best = rated.best("headline", per=("target", "batch"))
    frame = rated.to_pandas()
    frame = frame[~frame["is_baseline"]]
    expected = frame.loc[frame.groupby("batch")["per_dispatch_median_ns"].idxmin()]
    assert [group.group for group in best] == [{"target": "mul", "batch": batch} for batch in expected["batch"]]
    assert [group.point.point.index for group in best] == expected["point"].tolist()
    assert rated.best("headline", per="batch") == rated.best("headline", per=["batch"])


def test_what_no_point_can_be_best_by_is_an_error(rated: Results) -> None:
    with pytest.raises(InvalidArgumentError, match="no point has the figure 'GFLOPs'.*GFLOP/s"):
        rated.best("GFLOPs")
    with pytest.raises(InvalidArgumentError, match="'bytes', which does not depend on the times"):
        rated.best("bytes")
    with pytest.raises(InvalidArgumentError, match="points have no 'batches'.*did you mean 'batch'"):
        rated.best(per=("batches",))


@pytest.mark.slow
def test_data_frames_are_what_pandas_reads_of_exports(rated: Results, tmp_path: Path) -> None:
    for raw in (False, True):
        export_results(rated, "parquet", tmp_path / "x.parquet", raw=raw)
        pandas.testing.assert_frame_equal(rated.to_pandas(raw=raw), pandas.read_parquet(tmp_path / "x.parquet"))
    assert len(rated.to_pandas(raw=True)) == sum(len(point.read_rows()) for point in rated.points)


def test_without_pandas_it_says_what_to_install(rated: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UnavailableError, match=r"pip install 'pumice\[pandas\]'"):
        rated.to_pandas()


def _report(folder: Path, *options: str) -> list[str]:
    result = CliRunner().invoke(main, ["study", "report", str(folder), *options])
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def _rows(lines: list[str]) -> list[tuple[int, str, bool]]:
    """Returns the batch, barrier and mark of each row of the table."""
    matches = [re.match(r" mul (★?) +done +(\d+) +(between|none)", line) for line in lines]
    return [(int(match[2]), match[3], bool(match[1])) for match in matches if match]


@pytest.mark.slow
def test_the_console_sorts_and_shows_the_best(rated: Results) -> None:
    folder = rated.path.parent
    frame = rated.to_pandas().rename(columns={"axis.barrier": "way"})
    frame = frame[~frame["is_baseline"]].sort_values("ns per element")
    lines = _report(folder, "--sort", "ns per element")
    expected = [
        (int(batch), way, index == 0) for index, (batch, way) in enumerate(zip(frame.batch, frame.way, strict=True))
    ]
    assert _rows(lines) == expected and any("ns per element" in line for line in lines)
    assert sum(line.startswith("  best ★ mul") for line in lines) == 1
    assert [row[:2] for row in _rows(_report(folder, "--sort", "barrier"))] == [
        (batch, way) for way in ("between", "none") for batch in (1, 4, 16, 64)
    ]
    for best, lines in (
        (rated.best(), _report(folder, "--best")),
        (rated.best("headline", per=("batch",)), _report(folder, "--best", "--sort", "headline", "--per", "batch")),
    ):
        points = [tied.point for group in best for tied in (group.point, *group.ties)]
        assert sorted(row[:2] for row in _rows(lines)) == sorted(
            (point.axes["batch"], point.axes["barrier"]) for point in points
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--sort", "GBs"), "no point has the figure 'GBs'"),
        (("--best", "--per", "n"), "points have no 'n'"),
        (("--best", "--html"), "for the terminal"),
    ],
)
def test_names_that_are_wrong_are_wrong_usage(options: tuple[str, ...], message: str, rated: Results) -> None:
    result = CliRunner().invoke(main, ["study", "report", str(rated.path.parent), *options])
    assert result.exit_code == 2 and message in result.output
