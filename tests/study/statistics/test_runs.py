"""Separate runs: the rates of wrong verdicts if runs differ by more than their samples show."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats
from support.soak import rounds

from pumice.status import InvalidArgumentError
from pumice.study.statistics.comparison import Verdict
from pumice.study.statistics.paired import INSTANCES
from pumice.study.statistics.runs import RunSamples, compare_runs

REPEATS = rounds(60, 2000)
BLOCK = 10


def _run(
    rng: np.random.Generator, level: float = 1.0, *, rounds: int = 6, blocks: int = 4, modes: float = 0.0
) -> RunSamples:
    """Returns a run whose rounds differ by 1 % and samples by 3 %; a share of the samples takes 30 % longer."""
    count = rounds * blocks * BLOCK
    logs = rng.normal(0, 0.01, rounds).repeat(blocks * BLOCK) + rng.normal(0, 0.03, count)
    logs += 0.26 * (rng.random(count) < modes)
    order = np.arange(count)
    return RunSamples(1e4 * level * np.exp(logs), order // BLOCK, order // (blocks * BLOCK))


Runs = Callable[[np.random.Generator, float], list[RunSamples]]


def _quiet(rng: np.random.Generator, level: float) -> list[RunSamples]:
    return [_run(rng, level)]


def _five_that_differ(rng: np.random.Generator, level: float) -> list[RunSamples]:
    """Returns five runs that differ by 2 %."""
    return [_run(rng, level * rng.lognormal(0, 0.02)) for _ in range(5)]


def _five_with_modes(rng: np.random.Generator, level: float) -> list[RunSamples]:
    """Returns five runs in which 40 to 60 % of the samples are in a slower mode."""
    return [_run(rng, level * rng.lognormal(0, 0.005), modes=rng.uniform(0.4, 0.6)) for _ in range(5)]


@pytest.mark.slow
@pytest.mark.parametrize(("draw", "found"), [(_quiet, 0.95), (_five_that_differ, 0.5), (_five_with_modes, 0.95)])
def test_equal_runs_rarely_differ_and_slow_downs_are_found(
    draw: Runs, found: float, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(40)
    different = slower = wrong = same = 0
    for _ in range(REPEATS):
        different += compare_runs(draw(rng, 1.0), draw(rng, 1.0)).verdict in (Verdict.SLOWER, Verdict.FASTER)
        slow = compare_runs(draw(rng, 1.0), draw(rng, 1.05)).verdict
        slower += slow is Verdict.SLOWER
        wrong += slow is Verdict.FASTER
        same += slow is Verdict.SAME
    with capsys.disabled():
        print(
            f"\n{draw.__name__[1:]}: of {REPEATS} equal {different / REPEATS:.1%} different; 5 % slower "
            f"{slower / REPEATS:.1%} found, {same / REPEATS:.1%} SAME, {wrong} FASTER"
        )
    # A right rate exceeds these limits in one of 10,000 tests.
    assert different <= stats.binom.isf(1e-4, REPEATS, 0.01)
    assert slower >= stats.binom.ppf(1e-4, REPEATS, found)
    assert wrong == 0 and same <= stats.binom.isf(1e-4, REPEATS, 0.01)


def test_the_interval_is_welchs_of_what_runs_differ_by() -> None:
    # Runs that differ by factors only, so that the figures are the factors.
    rng = np.random.default_rng(41)
    one = _run(rng)
    levels = [rng.lognormal(0, 0.02, 5), 1.04 * rng.lognormal(0, 0.01, 4)]
    old, new = ([one._replace(values=one.values * level) for level in side] for side in levels)
    comparison = compare_runs(old, new, confidence=0.95)
    oracle = stats.ttest_ind(np.log(levels[1]), np.log(levels[0]), equal_var=False)
    interval = oracle.confidence_interval(0.95)
    # Times move within a tick, the smallest difference of two times.
    assert np.log(comparison.interval) == pytest.approx([interval.low, interval.high], abs=1e-5)
    assert comparison.p_value == pytest.approx(oracle.pvalue, rel=1e-2)
    assert math.log(comparison.ratio) == pytest.approx(
        np.mean(np.log(levels[1])) - np.mean(np.log(levels[0])), abs=1e-5
    )
    assert comparison.how == "runs" and "5 and 4 runs measured apart" in comparison.explanation
    assert (comparison.count_a, comparison.count_b) == (5 * one.values.size, 4 * one.values.size)
    # A single run varies like the others.
    alone = compare_runs(old, new[:1], confidence=0.95)
    reach = stats.t.ppf(0.975, 4) * np.std(np.log(levels[0]), ddof=1) * math.sqrt(1 / 5 + 1)
    assert math.log(alone.interval.high / alone.ratio) == pytest.approx(reach, abs=1e-4)


def test_the_allowance_is_added_to_both_ends() -> None:
    rng = np.random.default_rng(42)
    old, new = [_run(rng)], [_run(rng, 1.1)]
    free, bound = compare_runs(old, new), compare_runs(old, new, allowance=0.2)
    assert free.verdict is Verdict.SLOWER and bound.verdict is Verdict.UNCLEAR
    assert "measure both in turns (--against) or --runs 5" in bound.explanation
    assert np.log(bound.interval) == pytest.approx(np.log(free.interval) + np.array([-0.2, 0.2]))
    assert "by the reference kernel" in bound.notes[0]


def test_one_opening_leaves_room_for_instances() -> None:
    rng = np.random.default_rng(43)
    old, new = (_run(rng, blocks=40, rounds=1) for _ in range(2))
    once = compare_runs([old], [new])
    assert (
        once.half_width > INSTANCES
        and "fewer than 5 rounds" in once.notes[0]
        and "40 and 40 blocks" in once.explanation
    )


def test_what_is_too_little_for_a_verdict_is_unclear() -> None:
    single = RunSamples(np.full(30, 5.0), np.zeros(30, np.int64), np.zeros(30, np.int64))
    assert "1 and 1 blocks" in compare_runs([single], [single]).explanation
    rng = np.random.default_rng(44)
    run = _run(rng)
    assert "p99 takes at least 1000 of each" in compare_runs([run], [run], statistic="p99").explanation
    zero = run._replace(values=np.where(run.blocks == 3, 0.0, run.values))
    assert "10 samples have a time of 0" in compare_runs([run], [zero]).explanation
    with pytest.raises(InvalidArgumentError, match="samples of both sides"):
        compare_runs([run], [])


def test_other_statistics_are_those_of_units() -> None:
    rng = np.random.default_rng(45)
    old, new = [_run(rng, rounds=12)], [_run(rng, rounds=12)]
    for name, level in (("minimum", 1 - 0.5 ** (1 / 40)), ("p90", 0.9)):
        sides = [
            [np.quantile(run.values[run.rounds == index], level, method="median_unbiased") for index in range(12)]
            for run in (*old, *new)
        ]
        oracle = stats.ttest_ind(np.log(sides[1]), np.log(sides[0]), equal_var=False).confidence_interval(0.99)
        comparison = compare_runs(old, new, statistic=name)
        assert np.log(comparison.interval) == pytest.approx([oracle.low, oracle.high])
        assert comparison.explanation.startswith(f"{comparison.verdict}: {name} ")


@pytest.mark.slow
def test_minima_of_more_samples_are_no_lower() -> None:
    rng = np.random.default_rng(46)

    def side(blocks: int) -> list[RunSamples]:
        return [_run(rng, rng.lognormal(0, 0.003), rounds=1, blocks=blocks) for _ in range(5)]

    for few, many in ((25, 400), (400, 25)):
        comparison = [compare_runs(side(few), side(many), statistic="minimum").verdict for _ in range(40)]
        assert sum(verdict in (Verdict.FASTER, Verdict.SLOWER) for verdict in comparison) <= 3


def test_minima_within_a_tick_are_known_to_half_a_tick() -> None:
    rng = np.random.default_rng(47)
    ticks = [run._replace(values=np.floor(run.values / 500) * 500) for run in (_run(rng) for _ in range(5))]
    comparison = compare_runs(ticks, ticks, statistic="minimum")
    assert comparison.interval.low == pytest.approx(1 / comparison.interval.high) and comparison.half_width > 0.05
