"""Comparisons: verdicts on planted truths, their rates of being right, and incomparable samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from support.soak import rounds

from pumice.status import InvalidArgumentError
from pumice.study.definition.settings import Sampling
from pumice.study.sampling.stopping import StopRule
from pumice.study.statistics.comparison import Comparison, Verdict, compare

BLOCK = 10
# With a probability of 90 %, forty repetitions detect verdicts that are right in less than 87 % of cases if 95 % are
# required; the 400 of a soak detect 93 %.
REPEATS = rounds(40, 400)
Samples = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Samples]

# -- what dispatches look like: each draws samples around 10 microseconds, in nanoseconds --------------


def _lognormal(rng: np.random.Generator, count: int) -> Samples:
    return np.asarray(10_000 * rng.lognormal(0, 0.02, count))


def _heavy_tail(rng: np.random.Generator, count: int) -> Samples:
    return np.asarray(10_000 * (1 + 0.02 * np.abs(rng.standard_t(2, count))))


def _preempted(rng: np.random.Generator, count: int) -> Samples:
    return _lognormal(rng, count) + (rng.random(count) < 0.03) * rng.exponential(500_000, count)


def _whole_nanoseconds(rng: np.random.Generator, count: int) -> Samples:
    return np.round(_preempted(rng, count))


def _coarse_ticks(rng: np.random.Generator, count: int) -> Samples:
    """Returns times of 2 microseconds on a clock with a tick of 52 ns, about three ticks in all."""
    return np.asarray(np.round(_lognormal(rng, count) / 5 / 52.083) * 52.083)


def _drifting(rng: np.random.Generator, count: int) -> Samples:
    """Returns blocks that differ by 1 %, with samples that differ by 2 %, some of them preempted."""
    return np.asarray(_preempted(rng, count) * np.exp(rng.normal(0, 0.01, -(-count // BLOCK)).repeat(BLOCK)[:count]))


def _slower(values: Samples, draw: Draw, by: float) -> Samples:
    """Returns the samples of more work: times are longer, and the clock still has ticks."""
    longer = values * by
    return np.asarray(np.round(longer / 52.083) * 52.083) if draw is _coarse_ticks else longer


def _blocks(values: Samples) -> NDArray[np.int64]:
    return np.arange(values.size) // BLOCK


def _compare(a: Samples, b: Samples, seed: int = 0) -> Comparison:
    return compare(a, b, blocks_a=_blocks(a), blocks_b=_blocks(b), seed=seed)


def _rates(draw: Draw, take: Callable[[np.random.Generator, Draw], Samples]) -> tuple[float, float]:
    """Returns the shares, over all repetitions, of equal runs with SAME, and of 5 % slow-downs that are found."""
    rng = np.random.default_rng(20)
    same = found = 0
    for seed in range(REPEATS):
        first, second = take(rng, draw), take(rng, draw)
        same += _compare(first, second, seed).verdict is Verdict.SAME
        found += _compare(first, _slower(second, draw, 1.05), seed).verdict is Verdict.SLOWER
    return same / REPEATS, found / REPEATS


def _report(capsys: pytest.CaptureFixture[str], name: str, same: float, found: float) -> None:
    with capsys.disabled():
        print(f"\n{name}: of {REPEATS}, SAME {same:.1%}, slow-down found {found:.1%}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "count"),
    [
        (_lognormal, 30),
        (_heavy_tail, 60),
        (_whole_nanoseconds, 60),
        (_coarse_ticks, 120),
        (_drifting, 160),
    ],
)
def test_equal_runs_are_the_same_and_slow_downs_are_found(
    draw: Draw, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    same, shares = _rates(draw, lambda rng, draw: draw(rng, count))
    _report(capsys, f"{draw.__name__[1:]}, {count} samples", same, shares)
    assert same >= 0.95 and shares >= 0.9


def _until_done(rng: np.random.Generator, draw: Draw) -> Samples:
    values = draw(rng, 2000)
    blocks = _blocks(values)
    rule = StopRule(Sampling())
    for count in range(30, values.size + 1, BLOCK):
        if rule.update(values[:count], blocks=blocks[:count], elapsed=0.0).done:
            return values[:count]
    return values


@pytest.mark.slow
def test_runs_as_long_as_the_stop_rule_makes_them_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    same, shares = _rates(_drifting, _until_done)
    _report(capsys, "drifting, as many samples as the stop rule takes", same, shares)
    assert same >= 0.95 and shares >= 0.9


# -- single comparisons --------------------------------------------------------------------------------


@pytest.mark.parametrize(("by", "verdict"), [(1.2, "SLOWER"), (0.8, "FASTER"), (1.0, "SAME"), (1.004, "SAME")])
def test_plain_changes_have_plain_verdicts(by: float, verdict: str) -> None:
    rng = np.random.default_rng(1)
    comparison = compare(_lognormal(rng, 200), by * _lognormal(rng, 200))
    assert comparison.verdict == verdict
    assert comparison.interval.low <= comparison.ratio <= comparison.interval.high
    assert comparison.ratio == pytest.approx(by, rel=0.02)
    assert comparison.explanation.startswith(f"{verdict}: median {100 * (comparison.ratio - 1):+.1f} % (")
    assert (comparison.count_a, comparison.count_b) == (200, 200)


def test_a_certain_change_below_the_threshold_is_none() -> None:
    rng = np.random.default_rng(2)
    a, b = 10_000 * rng.lognormal(0, 0.002, 200), 10_050 * rng.lognormal(0, 0.002, 200)
    small = compare(a, b)
    assert small.verdict is Verdict.SAME and small.interval.low > 1 and small.p_value < 1e-6
    assert compare(a, b, threshold=0.002).verdict is Verdict.SLOWER


def test_few_or_noisy_samples_are_unclear() -> None:
    rng = np.random.default_rng(3)
    noisy = compare(10_000 * rng.lognormal(0, 0.5, 40), 10_000 * rng.lognormal(0, 0.5, 40))
    assert noisy.verdict is Verdict.UNCLEAR and "take more samples" in noisy.explanation
    few = compare([100.0] * 7, [200.0] * 50)
    assert few.verdict is Verdict.UNCLEAR and "7 and 50 samples; 0.99 confidence takes at least 8" in few.explanation
    a, b = 100 + np.arange(8.0), 200 + np.arange(8.0)
    assert compare(a, b).verdict is Verdict.SLOWER
    assert compare(a[:7], b[:7], confidence=0.9).verdict is Verdict.SLOWER


def test_two_modes_of_about_equal_weight_are_unclear() -> None:
    # The median is anywhere between the modes, so no interval may be narrower.
    rng = np.random.default_rng(4)

    def draw() -> Samples:
        return 10_000 * np.where(rng.random(60) < 0.5, 1.0, 1.3) * rng.lognormal(0, 0.01, 60)

    verdicts = Counter(compare(draw(), draw()).verdict for _ in range(40))
    assert verdicts[Verdict.SLOWER] + verdicts[Verdict.FASTER] <= 2
    assert verdicts[Verdict.UNCLEAR] >= 30


def test_runs_of_few_blocks_that_drifted_apart_are_unclear() -> None:
    levels = np.array([1.0, 1.06, 0.97, 1.03])
    rng = np.random.default_rng(5)
    a = 10_000 * (levels.repeat(10)) * rng.lognormal(0, 0.005, 40)
    b = 10_000 * (levels[::-1].repeat(10)) * 1.03 * rng.lognormal(0, 0.005, 40)
    assert _compare(a, b).verdict is Verdict.UNCLEAR
    assert compare(a, b).interval.high - compare(a, b).interval.low < _compare(a, b).interval.high - 1


def test_a_difference_of_one_tick_is_none_that_is_certain() -> None:
    # All samples are within one tick of the clock; their positions in it are unknown.
    coarse = compare([520.0] * 100, [572.0] * 100)
    assert coarse.verdict is Verdict.UNCLEAR and "tick is too coarse" in coarse.explanation
    assert compare([52_000.0] * 100, [52_052.0] * 100).verdict is Verdict.SAME
    assert compare([520.0] * 90 + [572.0] * 10, [520.0] * 90 + [572.0] * 10).verdict is Verdict.UNCLEAR
    assert compare([520.0, 572.0] * 100, [520.0, 572.0] * 100).verdict is Verdict.SAME
    assert compare([520.0] * 90 + [572.0] * 10, [1040.0] * 90 + [1092.0] * 10).verdict is Verdict.SLOWER


def test_equal_samples_are_the_same() -> None:
    assert compare([1000.0] * 30, [1000.0] * 30).verdict is Verdict.SAME
    zero = compare([0.0] * 30, [0.0] * 30)
    assert zero.verdict is Verdict.SAME and np.isnan(zero.ratio)


def test_medians_without_a_ratio_are_unclear() -> None:
    comparison = compare([0.0] * 30, [100.0] * 30)
    assert comparison.verdict is Verdict.UNCLEAR and np.isnan(comparison.ratio) and "no ratio" in comparison.explanation
    assert compare([100.0] * 30, [-1.0] * 30).verdict is Verdict.UNCLEAR
    # A median near 0, which resampling can reach.
    barely = compare([0.0] * 14 + [100.0] * 16, [100.0] * 30)
    assert barely.verdict is Verdict.UNCLEAR


def test_effect_and_p_value_are_those_of_scipy() -> None:
    rng = np.random.default_rng(6)
    a, b = _preempted(rng, 80), 1.01 * _preempted(rng, 90)
    comparison = compare(a, b)
    oracle = stats.mannwhitneyu(a, b)
    longer, shorter = (b[:, None] > a).mean(), (b[:, None] < a).mean()
    assert comparison.effect == pytest.approx(longer - shorter) and 0 < comparison.effect < 1
    assert comparison.p_value == pytest.approx(oracle.pvalue)
    assert compare(a, a + 1e9).effect == 1 and compare(a + 1e9, a).effect == -1
    swapped = compare(b, a)
    assert swapped.effect == pytest.approx(-comparison.effect)
    assert swapped.ratio == pytest.approx(1 / comparison.ratio)


def test_the_p_value_of_many_blocks_is_of_their_medians() -> None:
    rng = np.random.default_rng(7)
    a, b = _drifting(rng, 150), _drifting(rng, 150)
    medians = [[np.median(run[_blocks(run) == block]) for block in range(15)] for run in (a, b)]
    assert _compare(a, b).p_value == pytest.approx(stats.mannwhitneyu(*medians).pvalue)


@pytest.mark.slow
def test_the_interval_holds_the_ratio_as_often_as_it_says() -> None:
    rng = np.random.default_rng(8)
    held = 0
    # With a probability of 95 %, sixty repetitions detect intervals that contain the ratio in less than 71 % of cases.
    times = rounds(60, 400)
    for seed in range(times):
        comparison = compare(_preempted(rng, 80), 1.03 * _preempted(rng, 80), confidence=0.9, seed=seed)
        held += comparison.interval.low <= 1.03 <= comparison.interval.high
    # Three standard deviations of a binomial around 90 %.
    slack = 3 * math.sqrt(0.09 / times)
    assert (0.9 - slack) * times <= held <= min(0.9 + slack, 1) * times


def test_missing_samples_are_left_out_and_seeds_repeat() -> None:
    rng = np.random.default_rng(9)
    a, b = _lognormal(rng, 60), _lognormal(rng, 60)
    holed = np.insert(a, 7, np.nan)
    label = np.insert(_blocks(a), 7, 0)
    assert compare(holed, b, blocks_a=label, blocks_b=_blocks(b)) == _compare(a, b)
    assert _compare(a, b, 3) == _compare(a, b, 3)


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        ([], [1.0], {}, "first run has 0 samples, none of which is a number"),
        ([1.0], [np.nan], {}, "second run has 1 samples, none"),
        ([1.0, np.inf], [1.0], {}, "first run is one dimension of finite samples"),
        ([[1.0]], [1.0], {}, r"shape \(1, 1\)"),
        ([1.0], [1.0], {"confidence": 1.0}, "confidence is between 0 and 1"),
        ([1.0], [1.0], {"resolution": 0.0}, "resolution is above 0"),
        ([1.0], [1.0], {"threshold": -0.1}, "threshold at least 0"),
        ([1.0], [1.0], {"blocks_b": [1, 2]}, "block of each of 1 samples"),
    ],
)
def test_what_cannot_be_compared_is_an_error(a: object, b: object, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        compare(a, b, **options)  # type: ignore[arg-type]
