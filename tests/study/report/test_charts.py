"""Charts of reports: heat maps, the roofline and flame views have the figures of their points."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.study.made_studies import STUDY, fill_all, made, taken

import pumice
from pumice.study.definition.point import Point
from pumice.study.report.charts.distributions import repeat_charts
from pumice.study.report.charts.flame import flame_chart, flame_figure
from pumice.study.report.charts.heat_map import heat_map_charts
from pumice.study.report.charts.palette import line_style
from pumice.study.report.charts.point_rows import point_table
from pumice.study.report.charts.roofline import roofline_charts
from pumice.study.report.charts.scaling import headline_charts
from pumice.study.report.charts.units import time_text
from pumice.study.report.page import render_report
from pumice.study.results.analysis import StudyAnalysis, place_on_roof
from pumice.study.results.export import points_table
from pumice.study.results.results import Results
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
