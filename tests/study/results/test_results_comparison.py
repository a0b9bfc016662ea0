"""Two results side by side: which points are the same, and what is said of those that cannot be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from pumice.status import FailedPreconditionError, InvalidArgumentError
from pumice.study.definition.point import Point
from pumice.study.definition.sample import Sample
from pumice.study.results.results import Results
from pumice.study.results.results_comparison import ResultsComparison, compare_results
from pumice.study.results.store import Store
from pumice.study.statistics.comparison import Verdict

Medians = Mapping[tuple[str, int], float]
"""The median of each point, in nanoseconds, by device and size."""


def store(folder: Path, medians: Medians, *, measure: str = "total", lacking: Sequence[int] = ()) -> Path:
    points = [Point(index, "mul", device, {"n": size}, measure=measure) for index, (device, size) in enumerate(medians)]
    random = np.random.default_rng(len(str(folder)))
    with Store.create(folder, {"version": 1, "name": "mul", "targets": []}, points) as opened:
        opened.begin_run({})
        for point, median in zip(points, medians.values(), strict=True):
            for block in range(20):
                times = median * random.normal(1, 0.01, 10)
                wake = np.nan if point.axes["n"] in lacking else 5000.0
                samples = [Sample(started=0, total=t, execute=t / 2, wake=wake + t / 100) for t in times]
                opened.add_samples(point.index, block, "sample", samples)
            opened.set_status(point.index, "done")
        opened.end_run()
    return folder


def compared(a: Path, b: Path, **options: float | str) -> ResultsComparison:
    with Results.open(a) as first, Results.open(b) as second:
        return compare_results(first, second, **options)  # type: ignore[arg-type]


def verdicts(found: ResultsComparison) -> list[Verdict | None]:
    return [one.comparison.verdict if one.comparison else None for one in found.points]


def test_points_are_matched_by_target_and_axes_whatever_the_device(tmp_path: Path) -> None:
    a = store(tmp_path / "a", {("old", 1): 10_000.0, ("old", 2): 20_000.0, ("old", 4): 40_000.0})
    b = store(tmp_path / "b", {("new", 4): 36_000.0, ("new", 2): 20_000.0, ("new", 1): 11_000.0, ("new", 8): 1.0})
    found = compared(a, b)
    assert verdicts(found) == [Verdict.SLOWER, Verdict.SAME, Verdict.FASTER]
    assert not found.by_device and not found.only_a and list(found.only_b) == ["mul n=8"]


def test_of_several_devices_points_are_the_same_on_the_same_one_only(tmp_path: Path) -> None:
    a = store(tmp_path / "a", {("one", 1): 10_000.0, ("two", 1): 20_000.0})
    b = store(tmp_path / "b", {("two", 1): 20_000.0, ("one", 1): 11_000.0})
    found = compared(a, b)
    assert found.by_device and verdicts(found) == [Verdict.SLOWER, Verdict.SAME]


def test_another_segment_is_compared_where_both_have_it(tmp_path: Path) -> None:
    a = store(tmp_path / "a", {("d", 1): 10_000.0, ("d", 2): 20_000.0})
    b = store(tmp_path / "b", {("d", 1): 10_000.0, ("d", 2): 20_000.0}, lacking=[2])
    found = compared(a, b, measure="wake")
    assert verdicts(found) == [Verdict.SAME, None]
    assert found.points[1].why_not == "no wake in the second results"


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    a = store(tmp_path / "a", {("d", 1): 10_000.0})
    with pytest.raises(FailedPreconditionError, match="no point in common"):
        compared(a, store(tmp_path / "b", {("d", 2): 10_000.0}))
    with pytest.raises(InvalidArgumentError, match="measures total in the first results and execute in the second"):
        compared(a, store(tmp_path / "c", {("d", 1): 10_000.0}, measure="execute"))
    with pytest.raises(InvalidArgumentError, match="headline"):
        compared(a, a, measure="foo")
