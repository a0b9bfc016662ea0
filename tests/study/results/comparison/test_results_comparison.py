"""Comparison of two results, or of the two sides of one: which points correspond, and the messages about the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from support.study.made_runs import BLOCK, BLOCKS, MANY, ROUNDS, STUDY, compared, made_runs, only, sides, two_sides
from support.study.made_studies import made

from pumice.status import FailedPreconditionError, InvalidArgumentError
from pumice.study.definition.point import Point
from pumice.study.results.comparison.results_comparison import (
    ResultsComparison,
    compare_sides,
    result_differences,
    side_differences,
)
from pumice.study.results.results import Results
from pumice.study.results.storage.store import Store
from pumice.study.statistics.comparison import Verdict

pytestmark = pytest.mark.sample(13)


def verdicts(comparison: ResultsComparison) -> list[Verdict | None]:
    return [compared.comparison.verdict if compared.comparison else None for compared in comparison.points]


# -- which points ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_points_are_matched_by_target_and_axes_whatever_the_device(tmp_path: Path) -> None:
    a = made_runs(tmp_path / "a", {("d", 1): 10_000.0, ("d", 2): 20_000.0, ("d", 4): 40_000.0}, speeds=MANY)
    b = made_runs(
        tmp_path / "b", {("d", 4): 36_000.0, ("d", 2): 20_000.0, ("d", 1): 11_000.0, ("d", 8): 1.0}, speeds=MANY
    )
    comparison = compared(a, b)
    assert verdicts(comparison) == [Verdict.SLOWER, Verdict.SAME, Verdict.FASTER]
    assert not comparison.by_device and not comparison.only_a and list(comparison.only_b) == ["mul n=8"]
    other = compared(a, made_runs(tmp_path / "c", {("new", 1): 10_000.0}))
    assert [point.key for point in other.points] == [comparison.points[0].key]


@pytest.mark.slow
def test_of_several_devices_points_are_the_same_on_the_same_one_only(tmp_path: Path) -> None:
    a = made_runs(tmp_path / "a", {("one", 1): 10_000.0, ("two", 1): 20_000.0}, speeds=MANY)
    b = made_runs(tmp_path / "b", {("two", 1): 20_000.0, ("one", 1): 11_000.0}, speeds=MANY)
    comparison = compared(a, b)
    assert comparison.by_device and verdicts(comparison) == [Verdict.SLOWER, Verdict.SAME]


@pytest.mark.slow
def test_another_segment_is_compared_where_both_have_it(tmp_path: Path) -> None:
    a = made_runs(tmp_path / "a", {("d", 1): 10_000.0, ("d", 2): 20_000.0}, speeds=MANY)
    b = made_runs(tmp_path / "b", {("d", 1): 10_000.0, ("d", 2): 20_000.0}, lacking=[2], speeds=MANY)
    comparison = compared(a, b, measure="wake")
    assert verdicts(comparison) == [Verdict.SAME, None] and comparison.measure == "wake"
    assert comparison.points[1].why_not == "no wake in the second results"


@pytest.mark.slow
def test_a_point_that_failed_after_samples_is_not_compared(tmp_path: Path) -> None:
    a = made_runs(tmp_path / "a", {("d", 1): 10_000.0}, speeds=MANY)
    b = made_runs(tmp_path / "b", {("d", 1): 10_000.0}, speeds=MANY, status="failed")
    why = [compared(*side).points[0].why_not for side in ((a, b), (b, a))]
    assert why[0].startswith("failed in the second results after") and "failed in the first results" in why[1]
    assert verdicts(compared(a, b)) == [None]
    (point,) = sides(two_sides(tmp_path / "c", 1.0, status="failed")).points
    assert point.comparison is None and "as it was made" in point.why_not


@pytest.mark.slow
def test_what_cannot_be_compared(tmp_path: Path) -> None:
    a = made_runs(tmp_path / "a", {("d", 1): 10_000.0})
    with pytest.raises(FailedPreconditionError, match="no point in common"):
        compared(a, made_runs(tmp_path / "b", {("d", 2): 10_000.0}))
    with pytest.raises(InvalidArgumentError, match="measures total in the first results and execute in the second"):
        compared(a, made_runs(tmp_path / "c", {("d", 1): 10_000.0}, measure="execute"))
    for wrong in ("foo", "wake:foo", "p98", "foo:p99"):
        with pytest.raises(InvalidArgumentError, match="headline"):
            compared(a, a, measure=wrong)
    with pytest.raises(FailedPreconditionError, match="one side only"):
        sides(a)


# -- two sides in turns ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("ratio", "verdict"), [(1.0, "SAME"), (1.05, "SLOWER"), (0.95, "FASTER")])
def test_sides_are_compared_by_pairs_whatever_the_machine_does(tmp_path: Path, ratio: float, verdict: str) -> None:
    comparison = sides(two_sides(tmp_path / "a", ratio))
    pair = only(comparison)
    assert (pair.verdict, pair.how) == (verdict, "paired") and pair.ratio == pytest.approx(ratio, abs=0.01)
    assert "40 pairs in 8 rounds" in pair.explanation and pair.count_a == pair.count_b == 400
    assert comparison.points[0].a.point.is_against and list(comparison.only_b) == ["mul n=2"]


def test_points_of_either_side_alone_are_said(tmp_path: Path) -> None:
    text = 'version = 1\nname = "a"\n[axes]\nn = [1, 2]\n[[targets]]\nname = "copy"\nkind = "copy"\nbytes = "$n"\n'
    text += '[against]\nversion = 1\nname = "b"\n[against.axes]\nn = [2, 4]\n'
    text += '[[against.targets]]\nname = "copy"\nkind = "copy"\nbytes = "$n"\n'
    with made(tmp_path, text, lambda store, points: None) as results:
        comparison = compare_sides(results)
    assert [compared.b.point.label for compared in comparison.points] == ["copy n=2"]
    assert (list(comparison.only_a), list(comparison.only_b)) == (["copy n=4"], ["copy n=1"])
    assert comparison.unpaired == ["only on the old side: copy n=4", "only on the new side: copy n=1"]
    assert all(said in comparison._repr_html_() for said in comparison.unpaired)


@pytest.mark.slow
def test_the_interval_of_sides_is_that_of_their_rounds(tmp_path: Path) -> None:
    folder = two_sides(tmp_path / "a", 1.05)
    pair = only(sides(folder))
    with Results.open(folder) as results:
        new, old = (point.values().reshape(ROUNDS, BLOCKS, BLOCK) for point in results.points[:2])
    logs = np.median(np.log(np.sort(new) / np.sort(old)), axis=2)
    oracle = stats.ttest_1samp(np.median(logs, axis=1), 0).confidence_interval(0.995)
    assert np.log(pair.interval.low) <= oracle.low + 1e-5 and oracle.high - 1e-5 <= np.log(pair.interval.high)
    assert np.log(pair.ratio) == pytest.approx(np.median(logs, axis=1).mean(), abs=1e-5)


@pytest.mark.slow
def test_repeats_are_the_rounds_where_they_are_enough(tmp_path: Path) -> None:
    pair = only(sides(two_sides(tmp_path / "a", 1.05, runs=5, speeds=0.3)))
    assert pair.verdict is Verdict.SLOWER and "200 pairs in 5 rounds" in pair.explanation


@pytest.mark.slow
def test_other_statistics_of_sides(tmp_path: Path) -> None:
    comparison = sides(two_sides(tmp_path / "a", 1.05), measure="p90")
    assert (
        only(comparison).verdict is Verdict.SLOWER
        and comparison.statistic == "p90"
        and comparison.measure == "headline"
    )
    assert only(comparison).explanation.startswith("SLOWER: p90 +")
    few = only(sides(two_sides(tmp_path / "b", 1.05), measure="wake:p99"))
    assert few.verdict is Verdict.UNCLEAR and "p99 takes at least 1600 of each" in few.explanation
    assert sides(two_sides(tmp_path / "c", 1.0), measure="wake:minimum").measure == "wake"


def test_a_noisy_side_is_said_beside_the_verdict_of_pairs(tmp_path: Path) -> None:
    pair = only(sides(two_sides(tmp_path / "a", 1.05, status="noisy")))
    assert pair.verdict is Verdict.SLOWER
    assert pair.notes.count("too noisy, which the interval of pairs includes") == 1


@pytest.mark.slow
def test_of_results_with_sides_the_new_one_counts(tmp_path: Path) -> None:
    a, b = two_sides(tmp_path / "a", 1.0), two_sides(tmp_path / "b", 1.1)
    comparison = compared(a, b)
    assert [compared.b.point.is_against for compared in comparison.points] == [False, False]
    assert comparison.points[0].comparison is not None and comparison.points[0].comparison.verdict is Verdict.SLOWER
    # Results compared with themselves: the comparison is between their sides.
    assert only(compared(b, b)).how == "paired"


@pytest.mark.slow
def test_a_comparison_is_shown_by_its_verdicts(tmp_path: Path) -> None:
    a = made_runs(tmp_path / "a", {("d", 1): 10_000.0, ("d", 2): 20_000.0, ("d", 4): 30_000.0}, speeds=MANY)
    b = made_runs(tmp_path / "b", {("d", 1): 11_000.0, ("d", 2): 22_000.0, ("d", 4): 30_000.0}, speeds=MANY)
    assert repr(compared(a, b)) == "<ResultsComparison of 3 points: 2 SLOWER, 1 SAME>"


# -- what studies differ in -----------------------------------------------------------------------------


def test_studies_that_differ_say_in_what(tmp_path: Path) -> None:
    def study(**push: float) -> dict[str, object]:
        sampling = {"time_limit": 5.0, "seed": push["factor"]}
        return STUDY | {"sampling": sampling, "targets": [{"name": "mul", "kind": "kernel", "push": push}]}

    a, b = (
        made_runs(tmp_path / name, {("d", 1): 10_000.0}, study=study(**push))
        for name, push in (("a", {"factor": 1}), ("b", {"factor": 2, "n": 3}))
    )
    assert list(compared(a, b).notes) == [
        "the studies differ in sampling: seed 1 and 2",
        "the studies differ in targets: mul.push.factor 1 and 2; mul.push.n - and 3",
    ]


@pytest.mark.parametrize(("old", "new", "said"), [("a", "b", ["commit: a and b"]), ("", "b", []), ("a", "", [])])
def test_commits_are_said_where_both_are_known(old: str, new: str, said: list[str], tmp_path: Path) -> None:
    for name, commit in (("old", old), ("new", new)):
        with Store.create(tmp_path / name, {"version": 1, "name": "mul"}, [Point(0, "mul", "d")]) as store:
            store.begin_run({"revision": {"commit": commit}} if commit else {})
    with Results.open(tmp_path / "old") as a, Results.open(tmp_path / "new") as b:
        assert result_differences(a, b) == said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (["inc", "a/b"], ["/w/inc", "/w/a/b"], None),
        ("w.irpa", "/w/w.irpa", None),
        (["inc"], ["/w/other"], '["inc"] and ["/w/other"]'),
        (["inc"], ["/w/inc", "/w/b"], '["inc"] and ["/w/inc", "/w/b"]'),
        ("/a/x", "/b/x", '"/a/x" and "/b/x"'),
        ("x", "b/x", '"x" and "b/x"'),
        ("", "/w", '"" and "/w"'),
    ],
)
def test_a_place_in_another_tree_is_no_difference(old: object, new: object, said: str | None, tmp_path: Path) -> None:
    """A revision's file names are relative to its worktree, those of the working tree are absolute."""
    both = [
        {"version": 1, "name": "mul", "targets": [{"name": "mul", "kind": "kernel", "where": where}]}
        for where in (old, new)
    ]
    point = Point(0, "mul", "d", measure="total", against=1)
    with Store.create(tmp_path, {**both[1], "against": both[0]}, [point, replace(point, index=1, against=None)]):
        pass
    with Results.open(tmp_path) as results:
        assert side_differences(results) == ([f"the sides differ in targets: mul.where {said}"] if said else [])
