"""Two results side by side, and the two sides of one: which points are the same, how they are compared, and what is
said of those that cannot be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from pumice.status import FailedPreconditionError, InvalidArgumentError
from pumice.study.definition.point import Point
from pumice.study.definition.sample import Sample
from pumice.study.results.point_comparison import compare_points
from pumice.study.results.records import SampleFlag
from pumice.study.results.results import Results
from pumice.study.results.results_comparison import ResultsComparison, compare_results, compare_sides
from pumice.study.results.store import Store
from pumice.study.statistics.comparison import Comparison, Verdict

Medians = Mapping[tuple[str, int], float]
"""The median of each point, in nanoseconds, by device and size."""

Flags = Callable[[int], SampleFlag]
"""What disturbed a sample, by its number in its point."""

ROUNDS, BLOCKS, BLOCK = 8, 5, 10
STUDY = {"version": 1, "name": "mul", "targets": []}


def undisturbed(number: int) -> SampleFlag:
    return SampleFlag(0)


def add_run(
    opened: Store,
    points: Mapping[int, tuple[Point, float]],
    random: np.random.Generator,
    *,
    speed: float = 1.0,
    reference: float | None = 1.0,
    lacking: Sequence[int] = (),
    flags: Mapping[int, Flags] | None = None,
    at: int = 0,
) -> None:
    """Rounds of blocks in turns, by points with their medians, and a reference like each point's load."""
    now = at
    for each in range(ROUNDS):
        first = each * (BLOCKS + 1)
        for index, (_, median) in points.items():
            opened.add_samples(index, first, "first", [Sample(started=now, total=9 * median)])
        for block in range(first + 1, first + 1 + BLOCKS):
            for index, (point, median) in points.items():
                now += 10_000_000
                times = speed * median * random.normal(1, 0.01, BLOCK)
                wake = np.nan if point.axes["n"] in lacking else 5000.0
                samples = [Sample(started=now, total=t, execute=t / 2, wake=wake + t / 100) for t in times]
                mark = (flags or {}).get(index, undisturbed)
                numbers = range(BLOCK * (block - 1 - each), BLOCK * (block - each))
                opened.add_samples(index, block, "sample", samples, [mark(number) for number in numbers])
                if reference is not None:
                    taken = 1e5 * reference * random.normal(1, 0.002)
                    opened.add_reference(
                        point.device, started_ns=now, duration_ns=taken, kind="own", point=index, load="like it"
                    )


MANY = (1.0,) * 5


def store(
    folder: Path,
    medians: Medians,
    *,
    measure: str = "total",
    speeds: Sequence[float] = (1.0,),
    references: Sequence[float] | None = None,
    status: str = "done",
    study: Mapping[str, object] = STUDY,
    **options: object,
) -> Path:
    """A result with a run for each speed of the machine, which the references see unless they are told."""
    points = [Point(index, "mul", device, {"n": size}, measure=measure) for index, (device, size) in enumerate(medians)]
    random = np.random.default_rng(len(str(folder)))
    with Store.create(folder, study, points) as opened:
        for repeat, speed in enumerate(speeds, 1):
            opened.begin_run({}, repeat=repeat)
            reference = speed if references is None else references[repeat - 1]
            placed = {point.index: (point, median) for point, median in zip(points, medians.values(), strict=True)}
            add_run(opened, placed, random, speed=speed, **({"reference": reference} | options))  # type: ignore[arg-type]
            for point in points:
                opened.set_status(point.index, status, "as it was made")
            opened.end_run()
    return folder


def two_sides(
    folder: Path, ratio: float, *, status: str = "done", runs: int = 1, speeds: float = 0.0, **options: object
) -> Path:
    """A result whose new side takes so many times as long as the old one, and one point that has no old side."""
    new = Point(0, "mul", "d", {"n": 1}, measure="total", against=1)
    old = Point(1, "mul", "d", {"n": 1}, measure="total", is_against=True)
    alone = Point(2, "mul", "d", {"n": 2}, measure="total")
    random = np.random.default_rng(len(str(folder)))
    with Store.create(folder, STUDY, [new, old, alone]) as opened:
        for repeat in range(1, runs + 1):
            opened.begin_run({}, repeat=repeat)
            points = {0: (new, 1e4 * ratio), 1: (old, 1e4), 2: (alone, 1e4)}
            add_run(opened, points, random, speed=random.lognormal(0, speeds), **options)  # type: ignore[arg-type]
            for point in (new, old, alone):
                opened.set_status(point.index, status, "as it was made")
            opened.end_run()
    return folder


def compared(a: Path, b: Path, **options: float | str) -> ResultsComparison:
    with Results.open(a) as first, Results.open(b) as second:
        return compare_results(first, second, **options)  # type: ignore[arg-type]


def sides(folder: Path, **options: float | str) -> ResultsComparison:
    with Results.open(folder) as results:
        return compare_sides(results, **options)  # type: ignore[arg-type]


def only(found: ResultsComparison) -> Comparison:
    (one,) = found.points
    assert one.comparison is not None, one.why_not
    return one.comparison


def verdicts(found: ResultsComparison) -> list[Verdict | None]:
    return [one.comparison.verdict if one.comparison else None for one in found.points]


# -- which points ----------------------------------------------------------------------------------------


def test_points_are_matched_by_target_and_axes_whatever_the_device(tmp_path: Path) -> None:
    a = store(tmp_path / "a", {("d", 1): 10_000.0, ("d", 2): 20_000.0, ("d", 4): 40_000.0}, speeds=MANY)
    b = store(tmp_path / "b", {("d", 4): 36_000.0, ("d", 2): 20_000.0, ("d", 1): 11_000.0, ("d", 8): 1.0}, speeds=MANY)
    found = compared(a, b)
    assert verdicts(found) == [Verdict.SLOWER, Verdict.SAME, Verdict.FASTER]
    assert not found.by_device and not found.only_a and list(found.only_b) == ["mul n=8"]
    other = compared(a, store(tmp_path / "c", {("new", 1): 10_000.0}))
    assert [one.key for one in other.points] == [found.points[0].key]


def test_of_several_devices_points_are_the_same_on_the_same_one_only(tmp_path: Path) -> None:
    a = store(tmp_path / "a", {("one", 1): 10_000.0, ("two", 1): 20_000.0}, speeds=MANY)
    b = store(tmp_path / "b", {("two", 1): 20_000.0, ("one", 1): 11_000.0}, speeds=MANY)
    found = compared(a, b)
    assert found.by_device and verdicts(found) == [Verdict.SLOWER, Verdict.SAME]


def test_another_segment_is_compared_where_both_have_it(tmp_path: Path) -> None:
    a = store(tmp_path / "a", {("d", 1): 10_000.0, ("d", 2): 20_000.0}, speeds=MANY)
    b = store(tmp_path / "b", {("d", 1): 10_000.0, ("d", 2): 20_000.0}, lacking=[2], speeds=MANY)
    found = compared(a, b, measure="wake")
    assert verdicts(found) == [Verdict.SAME, None] and found.measure == "wake"
    assert found.points[1].why_not == "no wake in the second results"


def test_a_point_that_failed_after_samples_is_not_compared(tmp_path: Path) -> None:
    a = store(tmp_path / "a", {("d", 1): 10_000.0}, speeds=MANY)
    b = store(tmp_path / "b", {("d", 1): 10_000.0}, speeds=MANY, status="failed")
    why = [compared(*each).points[0].why_not for each in ((a, b), (b, a))]
    assert why[0].startswith("failed in the second results after") and "failed in the first results" in why[1]
    assert verdicts(compared(a, b)) == [None]
    (point,) = sides(two_sides(tmp_path / "c", 1.0, status="failed")).points
    assert point.comparison is None and "as it was made" in point.why_not


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    a = store(tmp_path / "a", {("d", 1): 10_000.0})
    with pytest.raises(FailedPreconditionError, match="no point in common"):
        compared(a, store(tmp_path / "b", {("d", 2): 10_000.0}))
    with pytest.raises(InvalidArgumentError, match="measures total in the first results and execute in the second"):
        compared(a, store(tmp_path / "c", {("d", 1): 10_000.0}, measure="execute"))
    for wrong in ("foo", "wake:foo", "p98", "foo:p99"):
        with pytest.raises(InvalidArgumentError, match="headline"):
            compared(a, a, measure=wrong)
    with pytest.raises(FailedPreconditionError, match="one side only"):
        sides(a)


# -- two sides in turns ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("ratio", "verdict"), [(1.0, "SAME"), (1.05, "SLOWER"), (0.95, "FASTER")])
def test_sides_are_compared_by_pairs_whatever_the_machine_does(tmp_path: Path, ratio: float, verdict: str) -> None:
    found = sides(two_sides(tmp_path / "a", ratio))
    one = only(found)
    assert (one.verdict, one.how) == (verdict, "paired") and one.ratio == pytest.approx(ratio, abs=0.01)
    assert "40 pairs in 8 rounds" in one.explanation and one.count_a == one.count_b == 400
    assert found.points[0].a.point.is_against and list(found.only_b) == ["mul n=2"]


def test_the_interval_of_sides_is_that_of_their_rounds(tmp_path: Path) -> None:
    folder = two_sides(tmp_path / "a", 1.05)
    found = only(sides(folder))
    with Results.open(folder) as results:
        new, old = (one.values().reshape(ROUNDS, BLOCKS, BLOCK) for one in results.points[:2])
    logs = np.median(np.log(np.sort(new) / np.sort(old)), axis=2)
    oracle = stats.ttest_1samp(np.median(logs, axis=1), 0).confidence_interval(0.995)
    assert np.log(found.interval.low) <= oracle.low + 1e-5 and oracle.high - 1e-5 <= np.log(found.interval.high)
    assert np.log(found.ratio) == pytest.approx(np.median(logs, axis=1).mean(), abs=1e-5)


def test_repeats_are_the_rounds_where_they_are_enough(tmp_path: Path) -> None:
    found = only(sides(two_sides(tmp_path / "a", 1.05, runs=5, speeds=0.3)))
    assert found.verdict is Verdict.SLOWER and "200 pairs in 5 rounds" in found.explanation


def test_other_statistics_of_sides(tmp_path: Path) -> None:
    found = sides(two_sides(tmp_path / "a", 1.05), measure="p90")
    assert only(found).verdict is Verdict.SLOWER and found.statistic == "p90" and found.measure == "headline"
    assert only(found).explanation.startswith("SLOWER: p90 +")
    few = only(sides(two_sides(tmp_path / "b", 1.05), measure="wake:p99"))
    assert few.verdict is Verdict.UNCLEAR and "p99 takes at least 1600 of each" in few.explanation
    assert sides(two_sides(tmp_path / "c", 1.0), measure="wake:minimum").measure == "wake"


def test_a_noisy_side_is_said_beside_the_verdict_of_pairs(tmp_path: Path) -> None:
    found = only(sides(two_sides(tmp_path / "a", 1.05, status="noisy")))
    assert found.verdict is Verdict.SLOWER
    assert found.notes.count("too noisy, which the interval of pairs includes") == 1


def test_of_results_with_sides_the_new_one_counts(tmp_path: Path) -> None:
    a, b = two_sides(tmp_path / "a", 1.0), two_sides(tmp_path / "b", 1.1)
    found = compared(a, b)
    assert [one.b.point.is_against for one in found.points] == [False, False]
    assert found.points[0].comparison is not None and found.points[0].comparison.verdict is Verdict.SLOWER
    # Results compared with themselves are compared by their sides.
    assert only(compared(b, b)).how == "paired"


# -- two points of one study -----------------------------------------------------------------------------


def points(folder: Path) -> Comparison:
    with Results.open(folder) as results:
        return compare_points(results, results.points[0], results.points[1])


def test_points_whose_blocks_took_turns_are_compared_by_pairs(tmp_path: Path) -> None:
    found = points(store(tmp_path / "a", {("d", 1): 10_000.0, ("d", 2): 10_500.0}, speeds=[1.0]))
    assert (found.verdict, found.how) == (Verdict.SLOWER, "paired") and "40 pairs in 8 rounds" in found.explanation
    # The machine's speed is that of both blocks of a pair, whatever the references say.
    slowing = store(tmp_path / "b", {("d", 1): 10_000.0, ("d", 2): 10_000.0}, speeds=[1.0, 1.3, 2.0, 1.1, 0.9])
    assert points(slowing).verdict is Verdict.SAME


def test_points_that_were_measured_apart_are_compared_as_runs_are(tmp_path: Path) -> None:
    placed = [Point(n, "mul", "d", {"n": n}, measure="total") for n in range(2)]
    random = np.random.default_rng(1)
    for name, speed, verdict in (("a", 1.0, Verdict.SLOWER), ("b", 1.5, Verdict.UNCLEAR)):
        with Store.create(tmp_path / name, STUDY, placed) as opened:
            opened.begin_run({})
            add_run(opened, {0: (placed[0], 1e4)}, random)
            add_run(opened, {1: (placed[1], 1.1e4)}, random, speed=speed, reference=speed, at=10**12)
            opened.end_run()
        found = points(tmp_path / name)
        assert (found.verdict, found.how) == (verdict, "runs")


def test_points_of_two_devices_are_compared_by_their_samples(tmp_path: Path) -> None:
    placed = [Point(n, "mul", f"d{n}", {"n": 1}, measure="total") for n in range(2)]
    with Store.create(tmp_path / "a", STUDY, placed) as opened:
        opened.begin_run({})
        for place, point in enumerate(placed):
            add_run(opened, {place: (point, 1e4 * (1 + place))}, np.random.default_rng(1), at=place * 10**12)
        opened.end_run()
    found = points(tmp_path / "a")
    assert (found.verdict, found.how) == (Verdict.SLOWER, "samples")
    assert "measured one after the other: the machine's state may have differed" in found.notes


# -- what is left out ------------------------------------------------------------------------------------


def test_disturbed_samples_of_runs_are_left_out_on_both_sides(tmp_path: Path) -> None:
    medians = {("d", 1): 10_000.0}
    a = store(tmp_path / "a", medians, flags={0: lambda number: SampleFlag.PREEMPTED * (number % 4 == 0)})
    found = only(compared(a, store(tmp_path / "b", medians)))
    said = "disturbed samples left out: 100 of 400 first ones (100 preempted), 0 of 400 second ones"
    assert said in found.notes and (found.count_a, found.count_b) == (300, 400)


def test_of_pairs_none_are_left_out(tmp_path: Path) -> None:
    flags = {0: lambda number: SampleFlag.STARVED, 1: undisturbed}
    found = only(sides(two_sides(tmp_path / "a", 1.05, flags=flags)))
    assert found.notes == (
        "disturbed samples, none of them left out: 0 of 400 old ones, 400 of 400 new ones (400 starved)",
    )
    assert (found.count_a, found.count_b) == (400, 400) and found.verdict is Verdict.SLOWER


def test_disturbed_samples_stay_on_both_sides_if_they_are_most_of_one(tmp_path: Path) -> None:
    medians = {("d", 1): 10_000.0}
    a = store(tmp_path / "a", medians, flags={0: lambda number: SampleFlag(number % 4 == 0)})
    b = store(tmp_path / "b", medians, flags={0: lambda number: SampleFlag.STARVED * (number % 4 != 0)})
    found = only(compared(a, b))
    assert (found.count_a, found.count_b) == (400, 400)
    assert (
        "disturbed samples are not left out, as most of the second ones are: 100 of 400 first ones (100 preempted), "
        "300 of 400 second ones (300 starved)" in found.notes
    )


# -- separate runs ---------------------------------------------------------------------------------------

POINT = {("d", 1): 10_000.0}


def test_runs_in_another_state_have_no_verdict(tmp_path: Path) -> None:
    fast, slow = store(tmp_path / "a", POINT), store(tmp_path / "b", POINT, speeds=[1.4])
    found = only(compared(fast, slow))
    assert found.verdict is Verdict.UNCLEAR and np.isnan(found.interval).all() and found.how == "runs"
    assert "the reference like this point's load took 1.4" in found.explanation
    assert found.explanation.endswith("measure both in turns (--against)")


def test_a_state_that_hides_a_slow_down_is_not_the_same(tmp_path: Path) -> None:
    a, b = store(tmp_path / "a", POINT, speeds=[1.05]), store(tmp_path / "b", {("d", 1): 10_500.0})
    found = only(compared(a, b))
    assert found.ratio == pytest.approx(1, abs=0.01) and found.verdict is Verdict.UNCLEAR
    # Of 2 % the reference leaves open what is three times as much; single ones may hide what instances differ by.
    c = store(tmp_path / "c", {("d", 1): 10_500.0}, references=[1.02] * 5, speeds=MANY)
    open_ = only(compared(store(tmp_path / "d", POINT, speeds=MANY), c))
    assert open_.verdict is Verdict.UNCLEAR and "allowed for the machine's states" in open_.notes[0]
    assert open_.interval.high / open_.ratio == pytest.approx(1.02**3, abs=0.02)
    single = only(compared(store(tmp_path / "e", POINT), store(tmp_path / "f", POINT)))
    assert single.verdict is Verdict.UNCLEAR and 0.04 < single.half_width < 0.06


def test_results_are_the_same_as_themselves(tmp_path: Path) -> None:
    a = store(tmp_path / "a", POINT, reference=None)
    assert only(compared(a, a)).verdict is Verdict.SAME


def test_runs_without_a_reference_have_no_verdict(tmp_path: Path) -> None:
    a = store(tmp_path / "a", POINT, reference=None)
    found = only(compared(a, store(tmp_path / "b", {("d", 1): 20_000.0}, reference=None)))
    assert found.verdict is Verdict.UNCLEAR
    assert "no reference like this point's load tells whether the machine was in the same state" in found.explanation
    assert any("was not recorded in the first and the second runs" in note for note in found.notes)


def test_several_runs_are_the_unit(tmp_path: Path) -> None:
    speeds = [0.98, 1.0, 1.02, 1.01, 0.99]
    a = store(tmp_path / "a", POINT, speeds=speeds)
    b = store(tmp_path / "b", {("d", 1): 11_000.0}, speeds=speeds[::-1])
    found = only(compared(a, b))
    assert found.verdict is Verdict.SLOWER and "5 and 5 runs measured apart" in found.explanation
    oracle = stats.ttest_ind(np.log(1.1 * np.array(speeds)), np.log(speeds), equal_var=False).confidence_interval(0.99)
    assert np.log(found.interval.high) >= oracle.high - 0.002


def test_a_noisy_run_has_no_verdict(tmp_path: Path) -> None:
    a, b = store(tmp_path / "a", POINT), store(tmp_path / "b", {("d", 1): 20_000.0}, status="noisy")
    found = only(compared(a, b))
    assert found.verdict is Verdict.UNCLEAR and "the second one was too noisy: as it was made" in found.explanation
    # Several are, as the unit of the interval is the run.
    many = [
        store(tmp_path / name, {("d", 1): 1e4 * by}, speeds=[1, 1, 1], status="noisy")
        for name, by in (("c", 1), ("d", 2))
    ]
    several = only(compared(*many))
    assert several.verdict is Verdict.SLOWER
    assert any("the second one was too noisy" in note for note in several.notes)


def test_studies_that_differ_say_in_what(tmp_path: Path) -> None:
    def study(**push: float) -> dict[str, object]:
        sampling = {"time_limit": 5.0, "seed": push["factor"]}
        return STUDY | {"sampling": sampling, "targets": [{"name": "mul", "kind": "kernel", "push": push}]}

    a, b = (
        store(tmp_path / name, POINT, study=study(**push))
        for name, push in (("a", {"factor": 1}), ("b", {"factor": 2, "n": 3}))
    )
    assert list(compared(a, b).notes) == [
        "the studies differ in sampling: seed 1 and 2",
        "the studies differ in targets: mul.push.factor 1 and 2; mul.push.n - and 3",
    ]
