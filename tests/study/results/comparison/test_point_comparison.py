"""Two points compared, of one study or of separate runs: which samples are left out, and when there is no verdict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from support.study.made_runs import (
    BLOCKS,
    MANY,
    ROUNDS,
    STUDY,
    add_run,
    compared,
    made_runs,
    only,
    sides,
    two_sides,
    undisturbed,
)

from pumice.status import InvalidArgumentError
from pumice.study.definition.point import Point
from pumice.study.results.comparison import point_comparison
from pumice.study.results.comparison.machine_record import recorded
from pumice.study.results.comparison.point_comparison import compare_points
from pumice.study.results.results import Results
from pumice.study.results.storage.records import SampleFlag
from pumice.study.results.storage.store import Store
from pumice.study.statistics.comparison import Comparison, Verdict

pytestmark = pytest.mark.sample(12)

# -- two points of one study -----------------------------------------------------------------------------


def points(folder: Path) -> Comparison:
    with Results.open(folder) as results:
        return compare_points(results, results.points[0], results.points[1])


@pytest.mark.slow
def test_points_whose_blocks_took_turns_are_compared_by_pairs(tmp_path: Path) -> None:
    pair = points(made_runs(tmp_path / "a", {("d", 1): 10_000.0, ("d", 2): 10_500.0}, speeds=[1.0]))
    assert (pair.verdict, pair.how) == (Verdict.SLOWER, "paired") and "40 pairs in 8 rounds" in pair.explanation
    # Both blocks of a pair have the machine's speed in common, whatever the references measure.
    slowing = made_runs(tmp_path / "b", {("d", 1): 10_000.0, ("d", 2): 10_000.0}, speeds=[1.0, 1.3, 2.0, 1.1, 0.9])
    assert points(slowing).verdict is Verdict.SAME


def test_a_point_that_ended_earlier_is_compared_by_the_turns_that_it_took(tmp_path: Path) -> None:
    """The other point continues alone on a slower machine; their references have no load in common."""
    placed = [Point(n, "mul", "d", {"n": n}, measure="total") for n in range(2)]
    random = np.random.default_rng(4)
    with Store.create(tmp_path / "a", STUDY, placed) as opened:
        opened.begin_run({})
        add_run(opened, dict(enumerate(zip(placed, (1e4, 2e6), strict=True))), random, rounds=3, load="of both")
        opened.end_run()
        opened.begin_run({})
        add_run(opened, {0: (placed[0], 1e4)}, random, speed=1.5, at=10**10, load="of one")
        opened.end_run()
    pair = points(tmp_path / "a")
    assert (pair.verdict, pair.how) == (Verdict.SLOWER, "paired") and "15 pairs" in pair.explanation
    assert pair.interval.low < 200 < pair.interval.high


@pytest.mark.parametrize(("elsewhere", "how"), [("here", "paired"), ("there", "runs")])
def test_points_of_two_hosts_are_no_neighbours(tmp_path: Path, elsewhere: str, how: str) -> None:
    """Their clocks differ, so that apparent turns are none."""
    folder = tmp_path / "a"
    placed = [Point(n, "mul", "d", {"n": n}, measure="total") for n in range(2)]
    with Store.create(folder, STUDY, placed) as opened:
        opened.begin_run({})
        add_run(opened, dict(enumerate(zip(placed, (1e4, 2e4), strict=True))), np.random.default_rng(5))
        for index, host in enumerate(("here", elsewhere)):
            opened.add_note(host, point=index, kind="host")
        opened.end_run()
    pair = points(folder)
    assert pair.how == how
    if how == "runs":
        assert pair.verdict is Verdict.UNCLEAR and "another host: there in the second runs" in pair.explanation


@pytest.mark.slow
def test_points_that_were_measured_apart_are_compared_as_runs_are(tmp_path: Path) -> None:
    placed = [Point(n, "mul", "d", {"n": n}, measure="total") for n in range(2)]
    random = np.random.default_rng(1)
    for name, speed, verdict in (("a", 1.0, Verdict.SLOWER), ("b", 1.5, Verdict.UNCLEAR)):
        with Store.create(tmp_path / name, STUDY, placed) as opened:
            opened.begin_run({})
            add_run(opened, {0: (placed[0], 1e4)}, random)
            add_run(opened, {1: (placed[1], 1.1e4)}, random, speed=speed, reference=speed, at=10**12)
            opened.end_run()
        pair = points(tmp_path / name)
        assert (pair.verdict, pair.how) == (verdict, "runs")


def test_points_of_two_devices_are_compared_by_their_samples(tmp_path: Path) -> None:
    placed = [Point(n, "mul", f"d{n}", {"n": 1}, measure="total") for n in range(2)]
    with Store.create(tmp_path / "a", STUDY, placed) as opened:
        opened.begin_run({})
        for index, point in enumerate(placed):
            add_run(opened, {index: (point, 1e4 * (1 + index))}, np.random.default_rng(1), at=index * 10**12)
        opened.end_run()
    pair = points(tmp_path / "a")
    assert (pair.verdict, pair.how) == (Verdict.SLOWER, "samples")
    assert "measured one after the other: the machine's state may have differed" in pair.notes


# -- what is left out ------------------------------------------------------------------------------------


def test_disturbed_samples_of_runs_are_left_out_on_both_sides(tmp_path: Path) -> None:
    medians = {("d", 1): 10_000.0}
    a = made_runs(tmp_path / "a", medians, flags={0: lambda number: SampleFlag.PREEMPTED * (number % 4 == 0)})
    pair = only(compared(a, made_runs(tmp_path / "b", medians)))
    said = "disturbed samples left out: 100 of 400 first ones (100 preempted), 0 of 400 second ones"
    assert said in pair.notes and (pair.count_a, pair.count_b) == (300, 400)


def test_of_pairs_none_are_left_out(tmp_path: Path) -> None:
    flags = {0: lambda number: SampleFlag.STARVED, 1: undisturbed}
    pair = only(sides(two_sides(tmp_path / "a", 1.05, flags=flags)))
    assert pair.notes == ("disturbed samples are compared too: 0 of 400 old ones, 400 of 400 new ones (400 starved)",)
    assert (pair.count_a, pair.count_b) == (400, 400) and pair.verdict is Verdict.SLOWER


def test_disturbed_samples_stay_on_both_sides_if_they_are_most_of_one(tmp_path: Path) -> None:
    medians = {("d", 1): 10_000.0}
    a = made_runs(tmp_path / "a", medians, flags={0: lambda number: SampleFlag(number % 4 == 0)})
    b = made_runs(tmp_path / "b", medians, flags={0: lambda number: SampleFlag.STARVED * (number % 4 != 0)})
    pair = only(compared(a, b))
    assert (pair.count_a, pair.count_b) == (400, 400)
    assert (
        "disturbed samples are not left out, as most of the second ones are: 100 of 400 first ones (100 preempted), "
        "300 of 400 second ones (300 starved)" in pair.notes
    )


# -- separate runs ---------------------------------------------------------------------------------------

POINT = {("d", 1): 10_000.0}


def test_runs_in_another_state_have_no_verdict(tmp_path: Path) -> None:
    fast, slow = made_runs(tmp_path / "a", POINT), made_runs(tmp_path / "b", POINT, speeds=[1.4])
    pair = only(compared(fast, slow))
    assert pair.verdict is Verdict.UNCLEAR and np.isnan(pair.interval).all() and pair.how == "runs"
    assert "the reference like this point's load took 1.4" in pair.explanation
    assert pair.explanation.endswith("measure both in turns (--against)")


@pytest.mark.slow
def test_a_state_that_hides_a_slow_down_is_not_the_same(tmp_path: Path) -> None:
    a, b = made_runs(tmp_path / "a", POINT, speeds=[1.05]), made_runs(tmp_path / "b", {("d", 1): 10_500.0})
    pair = only(compared(a, b))
    assert pair.ratio == pytest.approx(1, abs=0.01) and pair.verdict is Verdict.UNCLEAR
    # The reference's 2 % leave three times as much open; single instances may hide their differences.
    c = made_runs(tmp_path / "c", {("d", 1): 10_500.0}, references=[1.02] * 5, speeds=MANY)
    open_ = only(compared(made_runs(tmp_path / "d", POINT, speeds=MANY), c))
    assert open_.verdict is Verdict.UNCLEAR and "allowed for the machine's states" in open_.notes[0]
    assert open_.interval.high / open_.ratio == pytest.approx(1.02**3, abs=0.02)
    single = only(compared(made_runs(tmp_path / "e", POINT), made_runs(tmp_path / "f", POINT)))
    assert single.verdict is Verdict.UNCLEAR and 0.04 < single.half_width < 0.06


def test_results_are_the_same_as_themselves(tmp_path: Path) -> None:
    a = made_runs(tmp_path / "a", POINT, reference=None)
    assert only(compared(a, a)).verdict is Verdict.SAME


def test_runs_without_a_reference_have_no_verdict(tmp_path: Path) -> None:
    a = made_runs(tmp_path / "a", POINT, reference=None)
    pair = only(compared(a, made_runs(tmp_path / "b", {("d", 1): 20_000.0}, reference=None)))
    assert pair.verdict is Verdict.UNCLEAR
    assert "no reference like this point's load tells whether the machine was in the same state" in pair.explanation
    assert "was read in the first and the second runs" in pair.explanation
    assert any("was not recorded in the first and the second runs" in note for note in pair.notes)


@pytest.mark.slow
def test_several_runs_are_the_unit(tmp_path: Path) -> None:
    speeds = [0.98, 1.0, 1.02, 1.01, 0.99]
    a = made_runs(tmp_path / "a", POINT, speeds=speeds)
    b = made_runs(tmp_path / "b", {("d", 1): 11_000.0}, speeds=speeds[::-1])
    pair = only(compared(a, b))
    assert pair.verdict is Verdict.SLOWER and "5 and 5 runs measured apart" in pair.explanation
    oracle = stats.ttest_ind(np.log(1.1 * np.array(speeds)), np.log(speeds), equal_var=False).confidence_interval(0.99)
    assert np.log(pair.interval.high) >= oracle.high - 0.002


@pytest.mark.slow
def test_a_noisy_run_has_no_verdict(tmp_path: Path) -> None:
    a, b = made_runs(tmp_path / "a", POINT), made_runs(tmp_path / "b", {("d", 1): 20_000.0}, status="noisy")
    pair = only(compared(a, b))
    assert pair.verdict is Verdict.UNCLEAR and "the second one was too noisy: as it was made" in pair.explanation
    # With several runs, the unit of the interval is the run.
    many = [
        made_runs(tmp_path / name, {("d", 1): 1e4 * by}, speeds=[1, 1, 1], status="noisy")
        for name, by in (("c", 1), ("d", 2))
    ]
    several = only(compared(*many))
    assert several.verdict is Verdict.SLOWER
    assert any("the second one was too noisy" in note for note in several.notes)


# -- other devices, drivers and hosts --------------------------------------------------------------------

SPEEDS = (0.98, 1.0, 1.02, 1.01, 0.99)


@pytest.fixture
def spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes runs appear to be spread over an hour."""
    monkeypatch.setattr(point_comparison, "_SPREAD_MINUTES", 0)


@pytest.mark.slow
@pytest.mark.usefixtures("spread")
def test_results_of_another_device_have_a_verdict_if_that_is_asked(tmp_path: Path) -> None:
    a = made_runs(tmp_path / "a", POINT, speeds=SPEEDS, device="A")
    # The reference ran on different devices, so it does not count.
    b = made_runs(tmp_path / "b", {("d", 1): 13_000.0}, speeds=SPEEDS[::-1], device="B", references=[9.0] * 5)
    unasked = only(compared(a, b))
    assert unasked.verdict is Verdict.UNCLEAR and np.isnan(unasked.interval).all()
    assert unasked.explanation == (
        "UNCLEAR: another device: B in the second runs, A in the first: if that is what is compared, --across device, "
        "else measure both in turns (--against)"
    )
    pair = only(compared(a, b, across=["device"]))
    assert pair.verdict is Verdict.SLOWER and pair.ratio == pytest.approx(1.3, abs=0.01)
    oracle = stats.ttest_ind(np.log(1.3 * np.array(SPEEDS)), np.log(SPEEDS), equal_var=False).confidence_interval(0.99)
    assert np.log(pair.interval) == pytest.approx(oracle, abs=0.002)
    spans = "5 runs begun within 1 minute, and 5 runs begun within 1 minute; spread runs of a shared machine"
    assert pair.notes == (f"the machine's state counts as the device's as far as it lasted: {spans}",)


@pytest.mark.slow
def test_runs_in_a_row_leave_a_state_of_the_machine_open(tmp_path: Path) -> None:
    """Five runs of a side within a minute may all have been in one state, which is up to twice as slow as another."""
    a = made_runs(tmp_path / "a", POINT, speeds=SPEEDS, device="A")
    for factor, verdict in ((1.3, Verdict.UNCLEAR), (3.0, Verdict.SLOWER)):
        points = {("d", 1): 10_000.0 * factor}
        b = made_runs(tmp_path / f"{factor}", points, speeds=SPEEDS, device="B")
        pair = only(compared(a, b, across=["device"]))
        assert pair.verdict is verdict, pair
        assert "±100 % allowed for a state of the machine that lasts as long as the runs" in pair.notes


@pytest.mark.slow
def test_all_that_differs_has_to_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = made_runs(tmp_path / "a", POINT, speeds=SPEEDS, device="A")
    monkeypatch.setattr("platform.node", lambda: "elsewhere")
    b = made_runs(tmp_path / "b", POINT, speeds=SPEEDS, device="A", driver="other")
    for across in ([], ["driver"], ["device", "driver"]):
        pair = only(compared(a, b, across=across))
        assert pair.verdict is Verdict.UNCLEAR and "--across driver --across host, else" in pair.explanation
        assert (
            "another driver: other in the second runs, Mesa in the first; another host: elsewhere" in pair.explanation
        )
    assert only(compared(a, b, across=["driver", "host"])).verdict in (Verdict.SAME, Verdict.UNCLEAR)
    with pytest.raises(InvalidArgumentError, match="across device, driver, host; got 'software'"):
        compared(a, b, across=["software"])


@pytest.mark.slow
def test_few_runs_of_another_device_have_no_verdict(tmp_path: Path) -> None:
    a = made_runs(tmp_path / "a", POINT, speeds=SPEEDS[:4], device="A")
    b = made_runs(tmp_path / "b", {("d", 1): 20_000.0}, speeds=SPEEDS, device="B")
    pair = only(compared(a, b, across=["device"]))
    assert pair.verdict is Verdict.UNCLEAR and np.isnan(pair.interval).all()
    assert pair.explanation == "UNCLEAR: 4 and 5 runs, where another device takes 5 of each: --runs 5"
    assert "--across device and --runs 5 of each, else" in only(compared(a, b)).explanation


@pytest.mark.slow
def test_the_same_device_is_judged_by_its_state_whatever_is_asked(tmp_path: Path) -> None:
    a = made_runs(tmp_path / "a", POINT, speeds=MANY, device="A")
    b = made_runs(tmp_path / "b", POINT, speeds=[1.4] * 5, device="A")
    pair = only(compared(a, b, across=["device", "driver", "host"]))
    assert pair.verdict is Verdict.UNCLEAR and "the reference like this point's load" in pair.explanation


@pytest.mark.slow
def test_runs_of_another_device_that_vary_are_told_to_be_more(tmp_path: Path) -> None:
    a = made_runs(tmp_path / "a", POINT, speeds=[0.7, 1, 1.4, 1.2, 0.9], device="A")
    b = made_runs(tmp_path / "b", {("d", 1): 11_000.0}, speeds=[0.7, 1, 1.4, 1.2, 0.9], device="B")
    pair = only(compared(a, b, across=["device"]))
    assert pair.verdict is Verdict.UNCLEAR and pair.explanation.endswith("known to ±2.5 %: add runs (--runs)")


@pytest.mark.slow
def test_points_of_two_devices_are_compared_by_their_runs(tmp_path: Path) -> None:
    placed = [Point(n, "mul", f"d{n}", {"n": 1}, measure="total") for n in range(2)]
    random = np.random.default_rng(1)
    with Store.create(tmp_path / "a", STUDY, placed) as opened:
        for repeat, speed in enumerate(SPEEDS, 1):
            opened.begin_run({}, repeat=repeat)
            for index, point in enumerate(placed):
                opened.add_device(point.device, name=f"GPU {index}", driver="Mesa", facts={})
                add_run(opened, {index: (point, 1e4 * (1 + index / 10))}, random, speed=speed, at=index * 10**12)
            opened.end_run()
    pair = points(tmp_path / "a")
    assert (pair.verdict, pair.how) == (Verdict.SLOWER, "runs") and "5 and 5 runs" in pair.explanation


@pytest.mark.slow
def test_resumptions_are_one_run(tmp_path: Path) -> None:
    """Five resumptions of one run leave as much open as one run, which has one instance."""
    folder = made_runs(tmp_path / "once", POINT, speeds=MANY)
    point = Point(0, "mul", "d", {"n": 1}, measure="total")
    with Store.create(tmp_path / "resumed", STUDY, [point]) as opened:
        for _ in MANY:
            opened.begin_run({}, repeat=1)
            add_run(opened, {0: (point, 1e4)}, np.random.default_rng(3))
            opened.end_run()
    with Results.open(tmp_path / "resumed") as resumed, Results.open(folder) as often:
        assert [len(recorded(results, results.points[0]).runs) for results in (resumed, often)] == [1, 5]
        (run,) = recorded(resumed, resumed.points[0]).runs
        assert run.own["like it"].size == 5 * ROUNDS * BLOCKS
    pair = only(compared(tmp_path / "resumed", folder))
    assert pair.half_width > 0.04
