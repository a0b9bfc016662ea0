"""Charts of a report: heat maps, the roofline, repeats, flame views, and the two sides of a study."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from support.study.made_studies import STUDY, fill_all, made, taken

import pumice
from pumice.study.definition.point import Point
from pumice.study.report.charts.comparisons import compared_sides, pair_charts, side_rows
from pumice.study.report.charts.distributions import repeat_charts
from pumice.study.report.charts.flame import flame_chart, flame_figure
from pumice.study.report.charts.heat_map import heat_map_charts
from pumice.study.report.charts.palette import line_style
from pumice.study.report.charts.point_rows import point_table
from pumice.study.report.charts.roofline import roofline_charts
from pumice.study.report.charts.scaling import headline_charts
from pumice.study.report.charts.units import time_text
from pumice.study.report.overview import facts
from pumice.study.report.page import render_report
from pumice.study.report.terminal import terminal_report, terminal_summary
from pumice.study.results.analysis import StudyAnalysis, place_on_roof
from pumice.study.results.export import points_table
from pumice.study.results.results import Results
from pumice.study.results.storage.records import SampleFlag
from pumice.study.results.storage.store import Store

MODULE = Path(__file__).parents[3] / "tools" / "studies" / "module-call.vmfb"
BATCHES, DEPTHS = [1, 4, 16, 64], [1, 2, 3]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    text = STUDY.replace('barrier = ["between", "none"]', f"in_flight = {DEPTHS}").replace('compare = "barrier"\n', "")
    with made(tmp_path_factory.mktemp("plane"), text, fill_all) as results:
        yield results


@pytest.mark.slow
def test_a_heat_map_has_the_median_of_each_point_and_its_figures(plane: Results) -> None:
    (chart,) = heat_map_charts(StudyAnalysis(plane))
    (trace,) = chart.figure.data
    medians = {
        (point.point.axes["batch"], point.point.axes["in_flight"]): float(np.median(point.values())) / 1e3
        for point in plane.points
        if not point.point.is_baseline
    }
    # Values span more than a decade: colours show logarithms, texts show values.
    np.testing.assert_allclose(trace.z, [[np.log10(medians[batch, depth]) for batch in BATCHES] for depth in DEPTHS])
    assert [[float(text) for text in row] for row in trace.text] == [
        [pytest.approx(medians[batch, depth], rel=5e-3) for batch in BATCHES] for depth in DEPTHS
    ]
    # One axis is geometric: its cells meet at geometric means, and its labels are at the means of the cells' edges.
    assert (chart.figure.layout.xaxis.type, chart.figure.layout.yaxis.type) == (None, None)
    assert list(chart.figure.layout.xaxis.ticktext) == [str(batch) for batch in BATCHES]
    np.testing.assert_allclose(trace.x, np.log2([0.5, 2, 8, 32, 128]))
    np.testing.assert_allclose(chart.figure.layout.xaxis.tickvals, np.log2(BATCHES))
    np.testing.assert_allclose(trace.y, [0.5, 1.5, 2.5, 3.5])
    (menu,) = chart.figure.layout.updatemenus
    assert {"execute, µs", "GB/s", "GFLOP/s"} <= {button.label for button in menu.buttons}
    rates = next(button for button in menu.buttons if button.label == "GFLOP/s").args[0]
    expected = [[1024 * batch / medians[batch, depth] / 1e3 for batch in BATCHES] for depth in DEPTHS]
    np.testing.assert_allclose([[float(text) for text in row] for row in rates["text"][0]], expected, rtol=6e-3)


def test_axes_that_change_together_are_no_plane(tmp_path: Path) -> None:
    with made(tmp_path, STUDY) as results:
        assert heat_map_charts(StudyAnalysis(results)) == []


@pytest.mark.slow
def test_names_that_change_together_are_one_axis(tmp_path: Path) -> None:
    together = '"in_flight, queues" = [[1, 1], [2, 2], [4, 1], [4, 2]]'
    text = STUDY.replace('barrier = ["between", "none"]', together).replace('compare = "barrier"\n', "")
    with made(tmp_path, text.replace("baseline = true", ""), fill_all) as results:
        analysis = StudyAnalysis(results)
        values = ["1:1", "2:2", "4:1", "4:2"]
        assert [point.axes["in_flight,queues"] for point in analysis.points][:4] == values
        (chart,) = headline_charts(analysis)
        named = [trace.name for trace in chart.figure.data if trace.marker.symbol]
        assert named == [f"in_flight,queues {value}" for value in values]
        assert heat_map_charts(analysis) == []
        names = [column.name for column in point_table(analysis).columns]
        assert "in_flight,queues" in names and "queues" not in names


def test_lines_of_a_legend_all_look_different() -> None:
    assert len({line_style(index) for index in range(64)}) == 64


@pytest.mark.parametrize(
    ("flops", "limit", "distance", "share"), [(1024, "memory", 0.1, 2.0), (20480, "compute", 2.0, 0.2)]
)
def test_the_roofline_says_what_limits_a_point(flops: float, limit: str, distance: float, share: float) -> None:
    # 50 GFLOP/s over 20 GB/s: the ridge is at 2.5 flop/byte.
    peaks = {"GB/s": 20.0, "GFLOP/s": 50.0}
    spot = place_on_roof({"bytes": 4096.0, "flops": float(flops), "GFLOP/s": 10.0}, peaks)
    assert spot is not None and spot.limit == limit
    assert (spot.distance, spot.share) == (pytest.approx(distance), pytest.approx(share))
    for missing in ("bytes", "flops", "GFLOP/s"):
        known = {"bytes": 4096.0, "flops": 1024.0, "GFLOP/s": 10.0} | {missing: float("nan")}
        assert place_on_roof(known, peaks) is None
    assert place_on_roof({"bytes": 4096.0, "flops": 1024.0, "GFLOP/s": 10.0}, {"GB/s": 20.0}) is None


@pytest.mark.slow
def test_plot_table_and_export_have_the_side_of_the_ridge(plane: Results) -> None:
    analysis = StudyAnalysis(plane)
    (chart,) = roofline_charts(analysis)
    assert "Memory limits 12 of 12 points" in chart.caption
    assert {"memory-bound", "compute-bound"} <= {
        annotation.text.strip("&nbsp;") for annotation in chart.figure.layout.annotations
    }
    table = point_table(analysis)
    column = [column.name for column in table.columns].index("limited by")
    assert {row[column].text for row in table.rows} == {"memory, by a factor of 10", "—"}  # baselines have no figures
    rows = [row for row in points_table(plane).to_pylist() if not row["is_baseline"]]
    for row, point in zip(rows, analysis.measured, strict=True):
        assert row["limited_by"] == "memory" and row["ridge_ratio"] == pytest.approx(0.1)
        assert row["roof_share"] == pytest.approx(point.figures["GFLOP/s"] / (20.0 * 0.25))


@pytest.mark.slow
def test_the_best_point_is_marked(plane: Results) -> None:
    analysis = StudyAnalysis(plane)
    # Work per time if it is known, else the time of a dispatch.
    times = {
        point.point.index: float(np.median(point.per_dispatch()))
        for point in plane.points
        if not point.point.is_baseline
    }
    fastest = min(times, key=lambda index: times[index])
    (best,) = plane.best()
    assert (best.point.point.index, best.why) == (fastest, "highest GFLOP/s of 12 points")
    marked = [row[0].text for row in point_table(analysis).rows]
    assert [index for index, text in enumerate(marked) if "★" in text] == [fastest]


def test_without_rates_the_best_point_has_the_lowest_median(tmp_path: Path) -> None:
    text = STUDY.replace('bytes = "4096"\nflops = "1024"\n', "")
    with made(tmp_path, text) as results:
        (best,) = results.best()
        times = [float(np.median(result.per_dispatch())) for result in results.points if not result.point.is_baseline]
    assert best.point.point.index == int(np.argmin(times))
    assert best.why == "lowest median of a dispatch of 8 points"


@pytest.mark.slow
def test_each_run_of_several_has_its_median(tmp_path: Path) -> None:
    def twice(store: Store, points: tuple[Point, ...]) -> None:
        for repeat, scale in ((1, 1.0), (2, 1.1)):
            if repeat > 1:
                store.end_run()
                store.begin_run({}, repeat=repeat)
            for point in points[:2]:
                store.add_samples(point.index, 0, "sample", taken(point, 40, seed=repeat, scale=scale))

    with made(tmp_path, STUDY, twice) as results:
        (chart,) = repeat_charts(StudyAnalysis(results))
        for repeat, trace in enumerate(chart.figure.data, 1):
            expected = [
                np.median(point.values()[point.repeat == repeat]) / np.median(point.values())
                for point in results.points[:2]
            ]
            assert trace.name == f"run {repeat}"
            np.testing.assert_allclose(trace.x, expected)
        assert '<section id="repeats">' in render_report(results)


@pytest.mark.vulkan
def test_a_flame_view_has_the_time_of_host_and_device(tmp_path: Path) -> None:
    with pumice.open_device() as device, pumice.Session(device) as session:
        session.load(MODULE)
        four = np.arange(4, dtype=np.float32)
        with session.profile() as profile:
            for _ in range(5):
                session.call("module.mul", four, four)
    host, on_device = flame_figure(profile).data
    whole = np.mean([call.total_ns for call in profile.calls])
    busy = np.mean([call.device_ns for call in profile.calls])
    assert np.sum(host.values) == pytest.approx(whole, rel=1e-6) and min(host.values) >= 0
    assert np.sum(on_device.values) == pytest.approx(whole, rel=1e-6)
    assert on_device.values[0] == pytest.approx(whole - busy, rel=1e-6)
    assert on_device.text[0].startswith(time_text(busy, 3))  # without idle time
    assert list(on_device.labels) == ["device", *(export.name for export in profile.exports)]
    parts = dict(zip(host.ids, host.values, strict=True))
    root = host.ids[0]
    waits = np.mean([call.waits_ns for call in profile.calls])
    assert host.labels[0] == "module.mul" and parts[f"{root}/waits"] == pytest.approx(waits)
    assert any("/HAL/hal." in name for name in host.ids)
    chart = flame_chart(profile, "mul")
    with made(tmp_path, STUDY) as results:
        page = render_report(results, profiles={0: profile})
    assert '<section id="calls">' in page and json.loads(chart.figure.to_json())["data"][0]["type"] == "icicle"


TARGETS = """
[[{0}targets]]
name = "equal"
kind = "kernel"
source = "builtin:mul"
[[{0}targets]]
name = "slower"
kind = "kernel"
source = "builtin:mul"
"""
TEXT = 'version = 1\nname = "sides"\n' + TARGETS.format("") + '[against]\nversion = 1\nname = "old"\n'
TEXT += TARGETS.format("against.")
ROUNDS, BLOCKS, SAMPLES = 8, 6, 5


def fill(store: Store, points: tuple[Point, ...]) -> None:
    for point in points:
        scale = 1.2 if point.target == "slower" and not point.is_against else 1.0
        samples = taken(point, ROUNDS * BLOCKS * SAMPLES, seed=int(point.is_against), scale=scale)
        block = 0
        for _ in range(ROUNDS):
            store.add_samples(point.index, block, "first", [samples[0]])
            for _ in range(BLOCKS):
                block += 1
                store.add_samples(point.index, block, "sample", [samples.pop() for _ in range(SAMPLES)])
            block += 1
        store.set_status(point.index, "done", "error reached")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    with made(tmp_path_factory.mktemp("sides"), TEXT, fill) as opened:
        yield opened


@pytest.mark.slow
def test_verdicts_come_first(results: Results) -> None:
    sides = compared_sides(StudyAnalysis(results))
    assert sides is not None and sides.verdict == "1 SLOWER, 1 SAME against the other side"
    assert [row[:2] for row in side_rows(sides)] == [("equal", "SAME"), ("slower", "SLOWER")]
    page = render_report(results)
    assert page.index("1 SLOWER, 1 SAME against") < page.index("4 of 4 points done")
    assert (
        page.index('<section id="sides">') < page.index('<section id="pairs">') < page.index('<section id="headline">')
    )
    console = Console(file=io.StringIO(), width=160)
    for part in terminal_report(results):
        console.print(part)
    assert "1 SLOWER, 1 SAME against the other side" in console.file.getvalue()  # type: ignore[attr-defined]
    plain = [str(part) for part in terminal_report(results, verdicts=False)]
    assert not any("against the other side" in text for text in plain)


def test_sides_are_named_and_have_one_unit(tmp_path: Path) -> None:
    def fill_apart(store: Store, points: tuple[Point, ...]) -> None:
        for point in points:
            # 9 of 30 samples of the new side are disturbed.
            samples = [sample._replace(execute=2e6) for sample in taken(point, 30)] if not point.is_against else []
            flags = [SampleFlag.STARVED] * 9 + [SampleFlag(0)] * 21
            if samples:
                store.add_samples(point.index, 0, "sample", samples, flags)
            else:
                store.add_samples(point.index, 0, "sample", taken(point, 30))
            store.set_status(point.index, "noisy", "time limit: the ratio is known to ±9%")

    text = TEXT.replace("equal", "mul").partition('[[targets]]\nname = "slower"')[0]
    text += '[against]\nversion = 1\nname = "old"\n[[against.targets]]\nname = "mul"\nkind = "kernel"\n'
    with made(tmp_path, text + 'source = "builtin:mul"\n', fill_apart) as results:
        console = Console(file=io.StringIO(), width=200)
        for part in terminal_summary(results):
            console.print(part)
        said = console.file.getvalue()  # type: ignore[attr-defined]
        assert "mul on lavapipe (new: builtin:mul)  noisy ratio" in said
        assert "mul on lavapipe (old: builtin:mul)  noisy ratio" in said
        assert said.count("median, ms") == 2 and "median, µs" not in said
        assert "undisturbed samples only: 21 of 30; all are compared" in said
        assert "relative standard error of this side's median" in said
        sampling = dict(facts(StudyAnalysis(results)))["Sampling"]
        assert "too noisy above 5 %, and of pairs if their ratio is not known to ±2.5 %" in sampling


def test_each_pair_is_drawn_with_its_round(results: Results) -> None:
    sides = compared_sides(StudyAnalysis(results))
    assert sides is not None
    charts, cut = pair_charts(sides)
    assert [chart.title for chart in charts] == ["equal", "slower"] and not cut
    for chart, new in zip(charts, results.points, strict=False):
        old = new.against
        assert old is not None
        medians = [np.median(side.values().reshape(ROUNDS * BLOCKS, SAMPLES), axis=1) for side in (new, old)]
        ratios = medians[0] / medians[1]
        drawn = {}
        bars, *traces, lines = chart.figure.data
        for trace in traces:
            for index, (ratio, number) in zip(trace.x, trace.customdata, strict=True):
                drawn[int(index)] = ratio
                assert number == index // BLOCKS + 1
        np.testing.assert_allclose([drawn[index] for index in range(ROUNDS * BLOCKS)], ratios)
        assert sum(bars.x) == ROUNDS * BLOCKS
        middles = [float(np.median(ratios[start : start + BLOCKS])) for start in range(0, ratios.size, BLOCKS)]
        np.testing.assert_allclose(list(lines.y[::3]), middles)
        assert f"{ROUNDS * BLOCKS} pairs in {ROUNDS} rounds" in chart.caption


def test_points_of_the_old_side_alone_are_said(tmp_path: Path) -> None:
    text = TEXT + '[[against.targets]]\nname = "gone"\nkind = "kernel"\nsource = "builtin:mul"\n'
    with made(tmp_path, text, lambda store, points: None) as results:
        assert "2 not compared against the other side; only on the old side: gone" in render_report(results)


def test_points_without_samples_are_not_compared(tmp_path: Path) -> None:
    with made(tmp_path, TEXT, lambda store, points: None) as results:
        sides = compared_sides(StudyAnalysis(results))
        assert sides is not None and sides.verdict == "2 not compared against the other side"
        assert "no samples in the old results" in render_report(results)
