"""Reports of two sides: verdicts first, and the ratio of each pair of blocks with its round."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from support.study.made_studies import made, taken

from pumice.study.definition.point import Point
from pumice.study.report.charts.comparisons import compared_sides, pair_charts, side_rows
from pumice.study.report.overview import facts
from pumice.study.report.page import render_report
from pumice.study.report.terminal import terminal_report, terminal_summary
from pumice.study.results.analysis import StudyAnalysis
from pumice.study.results.results import Results
from pumice.study.results.storage.records import SampleFlag
from pumice.study.results.storage.store import Store

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
