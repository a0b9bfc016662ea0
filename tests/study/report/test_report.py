"""Reports: one self-contained file with every point and the figures of ``summarize``, for any names and statuses."""

from __future__ import annotations

import base64
import io
import json
import math
import os
import re
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from plotly.offline import get_plotlyjs
from rich.console import Console
from support.study.made_studies import STUDY, Fill, figures_of, fill_all, made, taken

from pumice.status import FailedPreconditionError, NotFoundError
from pumice.study.definition.point import Point
from pumice.study.report import page as page_module
from pumice.study.report.charts.comparisons import compare_across, compare_with_run
from pumice.study.report.charts.scaling import headline_charts
from pumice.study.report.charts.series import fitted_lines
from pumice.study.report.charts.units import number_text, time_text, time_unit
from pumice.study.report.overview import verdict, warnings
from pumice.study.report.page import render_report, write_report
from pumice.study.report.terminal import terminal_report, terminal_summary
from pumice.study.results.analysis import StudyAnalysis
from pumice.study.results.results import Results
from pumice.study.results.storage.records import SampleFlag
from pumice.study.results.storage.store import Store
from pumice.study.statistics.comparison import Verdict
from pumice.study.statistics.summary import summarize

pytestmark = pytest.mark.sample(14)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    with made(tmp_path_factory.mktemp("results")) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(results: Results) -> str:
    return render_report(results)


class _Page(HTMLParser):
    """The rows of the table of points, the references of elements, and the text outside of scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.references: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self._table = self._cell = self._script = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append(tag)
        self.references += [str(values[name]) for name in ("src", "href", "data", "action", "srcset") if name in values]
        if tag == "table":
            self._table = values.get("id") == "point-table"
        if self._table and tag == "tr" and "data-point" in values:
            self.rows.append([])
        if self._table and tag == "td":
            self._cell = True
            self.rows[-1].append("")
        self._script = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        if tag == "td":
            self._cell = False
        self._script = False

    def handle_data(self, data: str) -> None:
        if self._cell:
            self.rows[-1][-1] += data.strip()
        if not self._script:
            self.text += data


def on_terminal(parts: list[object], width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width, markup=False, force_terminal=False)
    for part in parts:
        console.print(part)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


# -- the page ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_loads_nothing(page: str) -> None:
    parsed = _Page(page)
    assert all(reference.startswith("#") for reference in parsed.references)
    assert not {"link", "img", "iframe", "object", "embed", "base"} & set(parsed.tags)
    assert "@import" not in page and "url(" not in page[: page.index("<body>")]
    assert "default-src 'none'" in page
    (packed,) = re.findall(r'<script type="application/octet-stream" id="plotly">([^<]*)</script>', page)
    assert zlib.decompress(base64.b64decode(packed)).decode() == get_plotlyjs()
    assert len(page.encode()) < 2.2e6


def test_every_point_is_in_the_table_with_the_numbers_of_summarize(results: Results, page: str) -> None:
    rows = _Page(page).rows
    assert len(rows) == len(results.points) == 16
    unit = time_unit(sorted(result.medians()["execute"] for result in results.points)[8:9])
    for row, result in zip(rows, results.points, strict=True):
        summary = summarize(result.values(), blocks=result.blocks)
        assert (
            row[0] == result.point.label and row[1] == "done"
            if result.point.is_baseline
            else row[0] in ("mul", "mul ★")
        )
        for number in (summary.median, summary.iqr, summary.minimum, summary.mean, summary.maximum):
            assert unit.text(number) in row
        low, high = summary.median_interval
        assert f"[{unit.text(low)}, {unit.text(high)}]" in row
        assert f"{result.count} / {result.count}" in row


def test_the_page_has_all_sections_and_every_figure_is_json(page: str) -> None:
    for section in ("headline", "comparison", "stacks", "roofline", "spread", "histograms", "time", "points", "facts"):
        assert f'<section id="{section}">' in page
    figures = figures_of(page)
    # Two curves over batch in one chart, a forest, stacks, roofline, spread, a histogram a point, samples over time.
    assert len(figures) == 1 + 1 + 1 + 1 + 1 + 8 + 1
    text = _Page(page).text
    assert "What does one more cost?" in text and "16 of 16 points done" in text
    assert "device times are CPU times" in text and "clock deviation ≤ 1 ns" in text
    assert "marginal cost" in text and "all 480 samples, none disturbed" in text
    assert "leave out samples that were preempted or starved as long as" in text


def test_the_fitted_line_and_the_comparison_are_of_what_was_planted(results: Results) -> None:
    analysis = StudyAnalysis(results)
    lines = fitted_lines(analysis)
    assert len(lines) == 2
    for line in lines:
        assert line.line.slope == pytest.approx(2000, rel=0.02)
        assert line.line.slope_interval.low < 2000 < line.line.slope_interval.high
        assert "marginal cost per batch" in line.text
    rows = compare_across(analysis)
    assert [row.name for row in rows] == [f"mul batch={batch}: barrier none" for batch in (1, 4, 16, 64)]
    assert {row.reference for row in rows} == {"barrier between"}
    # Equal instances may differ, and each was opened only once.
    assert {row.comparison.verdict for row in rows} == {Verdict.UNCLEAR}
    assert all(row.comparison.ratio == pytest.approx(1, abs=0.02) for row in rows)
    assert all(row.comparison.interval.low < 0.97 and row.comparison.interval.high > 1.03 for row in rows)


def test_page_and_terminal_say_why_verdicts_are_unclear(results: Results, page: str) -> None:
    text, shown = _Page(page).text, on_terminal(terminal_report(results), 600)
    rows = compare_across(StudyAnalysis(results))
    for row in rows:
        why, *notes = row.comparison.remarks
        assert f"{Verdict.UNCLEAR}: {why}" == row.comparison.explanation
        assert "; ".join([why, *notes]) in text
    # Reasons that differ in figures only are printed once.
    assert f"{len(rows)} points, the first of which is {rows[0].name}: {rows[0].comparison.remarks[0]}" in shown


def test_overlapping_dispatches_are_marked(results: Results, page: str) -> None:
    assert "Dispatches may overlap at 3 points" in " ".join(warnings(StudyAnalysis(results)))
    assert sum("‖" in cell for row in _Page(page).rows for cell in row) == 6  # with their baselines


@pytest.mark.slow
def test_an_earlier_run_is_compared_with(tmp_path: Path) -> None:
    def with_references(scale: float) -> Fill:
        def fill(store: Store, points: tuple[Point, ...]) -> None:
            for point in points:
                samples = taken(point, scale=scale, seed=round(scale * 10))
                for block in range(6):
                    store.add_samples(point.index, 2 * block, "first", samples[:1])
                    store.add_samples(point.index, 2 * block + 1, "sample", samples[10 * block : 10 * block + 10])
                    started = samples[10 * block].started
                    store.add_reference(
                        "lavapipe", started_ns=started, duration_ns=1e5, kind="own", point=point.index, load="like it"
                    )
                store.set_status(point.index, "done")

        return fill

    with (
        made(tmp_path / "a", fill=with_references(1)) as earlier,
        made(tmp_path / "b", fill=with_references(1.2)) as now,
    ):
        rows = compare_with_run(now, earlier)
        assert len(rows) == 8 and {row.comparison.verdict for row in rows} == {Verdict.SLOWER}
        html = render_report(now, compare_with=earlier)
        assert f"With the run of {earlier.created}" in html and "8 SLOWER" in html


def test_another_study_cannot_be_compared_with(results: Results, tmp_path: Path) -> None:
    with (
        made(tmp_path, STUDY.replace('"mul"', '"other"')) as other,
        pytest.raises(FailedPreconditionError, match="no point in common"),
    ):
        render_report(other, compare_with=results)


# -- what was not measured -----------------------------------------------------------------------


@pytest.mark.slow
def test_points_that_failed_were_skipped_or_are_noisy_say_why(tmp_path: Path) -> None:
    def mixed(store: Store, points: tuple[Point, ...]) -> None:
        for point in points[:3]:
            store.add_samples(point.index, 0, "sample", taken(point))
            store.set_status(point.index, "done")
        store.set_status(3, "failed", "INTERNAL: it broke")
        store.set_status(4, "skipped", "UNIMPLEMENTED: no such feature")
        store.add_samples(5, 0, "sample", taken(points[5]))
        store.set_status(5, "noisy", "time limit: 60 samples")
        store.set_status(6, "sampling")
        store.add_note("the governor is powersave")

    with made(tmp_path, fill=mixed) as results:
        analysis = StudyAnalysis(results)
        assert verdict(analysis).startswith(
            "3 of 16 points done, 1 too noisy, 1 failed, 1 skipped, 1 not finished, 9 not begun"
        )
        html = render_report(results)
        text = _Page(html).text
        for reason in (
            "INTERNAL: it broke",
            "UNIMPLEMENTED: no such feature",
            "time limit",
            "the governor is powersave",
        ):
            assert reason in text
        assert len(_Page(html).rows) == 16
        assert "INTERNAL: it broke" in on_terminal(terminal_report(results))


def test_a_study_of_nothing_measured_has_a_report(tmp_path: Path) -> None:
    with made(tmp_path, fill=lambda store, points: None) as results:
        html = render_report(results)
        assert figures_of(html) == [] and len(_Page(html).rows) == 16
        assert "0 of 16 points done" in on_terminal(terminal_report(results))
        assert "mul" in on_terminal(terminal_summary(results))


ONE_POINT = 'version = 1\nname = "one"\n[[targets]]\nname = "mul"\nkind = "kernel"\nsource = "builtin:mul"\n'


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("count", [1, 2, 9])
@pytest.mark.parametrize("time", [0.0, 0.25, 1.0, 5e10])
def test_a_study_of_one_point_and_few_equal_samples_has_a_report(tmp_path: Path, count: int, time: float) -> None:
    def few(store: Store, points: tuple[Point, ...]) -> None:
        store.add_samples(0, 0, "sample", [sample._replace(execute=time) for sample in taken(points[0], count)])
        store.set_status(0, "done")

    with made(tmp_path, ONE_POINT, few) as results:
        html = render_report(results)
        assert len(_Page(html).rows) == 1 and "NaN" not in "".join(map(json.dumps, figures_of(html)))
        assert "execute ◂" in on_terminal(terminal_summary(results))


def test_device_times_without_a_clock_in_common_are_said_to_be_bounds(tmp_path: Path) -> None:
    def bounds(store: Store, points: tuple[Point, ...]) -> None:
        rows = [sample._replace(queue=math.nan, wake=math.nan) for sample in taken(points[0])]
        store.add_samples(0, 0, "sample", rows)
        store.set_status(0, "done")
        for index in range(4):
            store.add_clock(
                "lavapipe",
                host_ns=1000 * index,
                device_ticks=1000 * index,
                deviation_ns=5000,
                ns_per_tick=1,
                calibrated=False,
            )

    with made(tmp_path, ONE_POINT, bounds, kind="DISCRETE_GPU") as results:
        said = warnings(StudyAnalysis(results))
        assert len(said) == 1 and "within bounds only" in said[0]


@pytest.mark.slow
def test_a_device_without_timestamps_has_a_report(tmp_path: Path) -> None:
    def host_only(store: Store, points: tuple[Point, ...]) -> None:
        rows = [sample._replace(queue=math.nan, wake=math.nan, execute=math.nan) for sample in taken(points[0])]
        store.add_samples(0, 0, "sample", rows)
        store.set_status(0, "done")

    text = ONE_POINT + 'measure = "total"\n'
    with made(tmp_path, text, host_only) as results:
        assert "no timestamps" in " ".join(warnings(StudyAnalysis(results)))
        assert "no device timestamps" in render_report(results)
        assert "device" in on_terminal(terminal_summary(results))


@pytest.mark.slow
def test_disturbed_samples_are_left_out_while_half_remain(tmp_path: Path) -> None:
    def disturbed(share: int) -> Fill:
        def fill(store: Store, points: tuple[Point, ...]) -> None:
            rows = taken(points[0], 100)
            late = [sample._replace(execute=10 * sample.execute) for sample in rows[:share]]
            store.add_samples(0, 0, "sample", late, [SampleFlag.PREEMPTED] * share)
            store.add_samples(0, 1, "sample", rows[share:])
            store.set_status(0, "done")

        return fill

    for share, said in ((30, "undisturbed samples only: 70 of 100"), (60, "all 100 samples, 60 disturbed")):
        with made(tmp_path / str(share), ONE_POINT, disturbed(share)) as results:
            (point,) = StudyAnalysis(results).points
            assert point.samples_used.startswith(said)
            expected = np.sort(results.points[0].values())[: 100 - share if share == 30 else 100]
            assert point.median == pytest.approx(float(np.median(expected)))
            summary = point.summary()
            assert summary is not None and summary.count == expected.size
            html = render_report(results)
            assert said.lower() in _Page(html).text.lower()


# -- large ones ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_large_study_has_few_plots_and_says_so(tmp_path: Path) -> None:
    text = (
        STUDY.replace("[1, 4, 16, 64]", "{ range = [1, 31] }")
        .replace("baseline = true", "")
        .replace('compare = "barrier"', "")
    )

    def quick(store: Store, points: tuple[Point, ...]) -> None:
        for point in points:
            store.add_samples(point.index, 0, "sample", taken(point, 130))
            store.set_status(point.index, "done")

    with made(tmp_path, text, quick) as results:
        html = render_report(results)
    assert len(_Page(html).rows) == 62
    assert "60 of 62 points are shown" in html and "24 of 62 points are shown" in html
    assert "Every 2. of 8,060 samples is drawn" in html
    assert len(html.encode()) < 3.5e6


@pytest.mark.slow
def test_many_lines_go_to_panels(tmp_path: Path) -> None:
    text = STUDY.replace(
        "batch = [1, 4, 16, 64]", "batch = [1, 2]\nin_flight = [1, 2, 3, 4, 5]\nqueues = [1, 2]"
    ).replace("baseline = true", "")

    def quick(store: Store, points: tuple[Point, ...]) -> None:
        for point in points:
            store.add_samples(point.index, 0, "sample", taken(point, 4))

    with made(tmp_path, text, quick) as results:
        chart = headline_charts(StudyAnalysis(results))[0]
    titles = [annotation.text for annotation in chart.figure.layout.annotations]
    assert titles == [f"in_flight {count}" for count in (1, 2, 3, 4, 5)]


# -- hostile names -------------------------------------------------------------------------------


@pytest.mark.slow
def test_names_are_shown_and_never_run(tmp_path: Path) -> None:
    name = "</script><script>alert(1)</script><!--"
    text = STUDY.replace('name = "mul"', f'name = "{name}"').replace(
        '"What does one more cost?"', "'<img src=\"http://x/y\">'"
    )

    def fill(store: Store, points: tuple[Point, ...]) -> None:
        fill_all(store, points)
        store.add_note("<b>\x1b[31mnote</b>")
        store.set_status(0, "failed", "</pre><script src='http://x'></script> [red]no[/red]")

    with made(tmp_path, text, fill) as results:
        html = render_report(results)
        shown = on_terminal(terminal_report(results))
    parsed = _Page(html)
    assert "alert(1)" in parsed.text and "img" not in parsed.tags
    assert parsed.tags.count("script") == page_scripts(html)
    assert not re.search(r"<script>\s*alert", html)
    assert all(reference.startswith("#") for reference in parsed.references)
    titles = json.dumps(figures_of(html))
    assert "&lt;/script&gt;" in titles and "<script" not in titles
    assert "\x1b" not in shown and name in shown and "[red]no[/red]" in shown


def page_scripts(html: str) -> int:
    """Counts the report's own scripts: one for each figure, Plotly, the colours, and the page's."""
    return len(figures_of(html)) + 3


# -- files ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_file_is_whole_or_not_there(results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "render_report", lambda *given, **named: "<!DOCTYPE html>…</html>\n")
    path = tmp_path / "report.html"
    assert write_report(results, path) == path
    before = path.read_bytes()
    assert before.startswith(b"<!DOCTYPE html>") and before.rstrip().endswith(b"</html>")
    assert list(tmp_path.iterdir()) == [path]

    def broken(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(Exception, match="No space left"):
        write_report(results, path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_a_folder_that_is_not_there_is_said(results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "render_report", lambda *given, **named: "")
    with pytest.raises(NotFoundError, match="there is no folder"):
        write_report(results, tmp_path / "none" / "report.html")


# -- the terminal --------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_terminal_has_points_stacks_lines_and_comparisons(results: Results) -> None:
    text = on_terminal(terminal_report(results))
    for part in (
        "16 of 16 points done",
        "median, µs",
        "Where the time goes",
        "Fitted lines",
        "Comparison",
        "execute",
        "UNCLEAR",
    ):
        assert part in text
    assert max(map(len, text.splitlines())) <= 200
    assert on_terminal(terminal_report(results), 60)


@pytest.mark.slow
def test_bars_are_as_long_as_their_figures_say(tmp_path: Path) -> None:
    """Medians of segments do not add up to the median of totals."""

    def fill(store: Store, points: tuple[Point, ...]) -> None:
        for point in points:
            total = 400_000.0 if point.index % 2 else 100_000.0
            samples = [sample._replace(total=total) for sample in taken(point, scale=1.0 + point.index)]
            store.add_samples(point.index, 0, "sample", samples)
            store.set_status(point.index, "done", "error reached")

    with made(tmp_path, fill=fill) as opened:
        text = on_terminal(terminal_report(opened))
    matches = re.findall("([░▒▓█]+) +([0-9.]+) µs", text.partition("Where the time goes")[2])
    assert {(len(bar), time) for bar, time in matches} == {(48, "400.0"), (12, "100.0")}


@pytest.mark.slow
def test_the_summary_of_points_has_segments_baseline_and_first_call(results: Results) -> None:
    text = on_terminal(terminal_summary(results, subtract_baseline=True))
    for part in (
        "execute ◂",
        "empty kernel",
        "first call",
        "per dispatch",
        "of total",
        "less the empty kernel's median",
        "calibrated by the driver",
    ):
        assert part in text


# -- numbers -------------------------------------------------------------------------------------


def test_numbers_have_four_digits_and_one_unit() -> None:
    assert [number_text(value) for value in (0, 1, 12.3456, 123456, 0.00123456)] == [
        "0",
        "1.000",
        "12.35",
        "123456",
        "0.001235",
    ]
    assert [time_text(ns) for ns in (0.5, 999.0, 1500.0, 2.5e9, math.nan)] == [
        "0.5000 ns",
        "999.0 ns",
        "1.500 µs",
        "2.500 s",
        "—",
    ]
    assert time_unit([5.0, 2e6, math.nan, None]).name == "ms" and time_unit([]).name == "ns"


@pytest.mark.slow
def test_the_machine_and_what_it_did_to_samples_are_said_in_words(tmp_path: Path) -> None:
    def fill(store: Store, points: tuple[Point, ...]) -> None:
        fill_all(store, points)
        flags = [int(SampleFlag.STARVED)] * 3 + [0] * 57
        store.add_samples(points[0].index, 6, "sample", taken(points[0]), flags)
        store.add_state(host_ns=0, wake_ns=9e3, wake_p90_ns=2e4)  # at the start
        for index, others in enumerate((0.1, 0.3, 0.2)):
            store.add_state(host_ns=index, wake_ns=8e3, wake_p90_ns=2e4, others=others, steal=0.0, run_delay=0.05)
        # References on other scales: of a load with less arithmetic, and of a load like the point's.
        store.add_reference("lavapipe", started_ns=0, duration_ns=500.0, load="1x64, no arithmetic")
        store.add_reference("lavapipe", started_ns=0, duration_ns=9e6, kind="own", point=0, load="8x64")

    with made(tmp_path, fill=fill) as results:
        said = on_terminal(terminal_report(results), width=400)
        assert re.search(r"samples: 0\.\d+ % waited for a core;", said)
        assert "20 % of the processor went to other processes; 0 % to other virtual machines" in said
        assert "threads waited for a core 5.0 % of their time; wake-ups took 8.0 µs, one of ten over 20 µs" in said
        figures = figures_of(render_report(results))
    drawn = [trace for figure in figures for trace in figure["data"] if "reference" in str(trace.get("hovertemplate"))]  # type: ignore[attr-defined]  # JSON
    assert len(drawn) == 1
