"""Pairs of blocks: the rates of wrong verdicts on planted truths on any machine, and pairs without a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from support.soak import rounds

from pumice.status import InvalidArgumentError
from pumice.study.statistics.comparison import Verdict
from pumice.study.statistics.paired import INSTANCES, compare_pairs

REPEATS = rounds(60, 3000)
ROUNDS, PAIRS = 12, 15
LABELS = np.repeat(np.arange(ROUNDS), PAIRS)
Logs = NDArray[np.float64]
Draw = Callable[[np.random.Generator], Logs]

# -- what blocks' medians look like: the logarithms of each, rounds by pairs by sides ------------------

SHAPE, INSTANCE = (ROUNDS, PAIRS, 2), (ROUNDS, 1, 2)
SAMPLES = (*SHAPE, 10)


def _normal(rng: np.random.Generator) -> Logs:
    return rng.normal(0, 0.02, SHAPE)


def _instances(rng: np.random.Generator) -> Logs:
    """Equal instances differ by 2 %."""
    return rng.normal(0, 0.01, SHAPE) + rng.normal(0, 0.02, INSTANCE)


def _two_placements(rng: np.random.Generator) -> Logs:
    return rng.normal(0, 0.01, SHAPE) + 0.02 * rng.choice([-1, 1], INSTANCE)


def _heavy_tails(rng: np.random.Generator) -> Logs:
    return 0.02 * rng.standard_t(2, SHAPE) + rng.normal(0, 0.01, INSTANCE)


def _bursts(rng: np.random.Generator) -> Logs:
    """A fifth of the blocks take twice as long."""
    return rng.normal(0, 0.02, SHAPE) + (rng.random(SHAPE) < 0.2) * np.log1p(rng.exponential(1, SHAPE))


def _wake_ups(rng: np.random.Generator) -> Logs:
    """Three of ten blocks wake up 30 % later."""
    return rng.normal(0, 0.005, SHAPE) + 0.26 * (rng.random(SHAPE) < 0.3)


def _states(rng: np.random.Generator) -> Logs:
    """The machine is twice as slow for some time, which affects both blocks of most pairs."""
    changes = rng.random(ROUNDS * PAIRS * 2) < 0.02
    return rng.normal(0, 0.01, SHAPE) + math.log(2) * (np.cumsum(changes) % 2).reshape(SHAPE)


def _two_ways_to_wake_up(rng: np.random.Generator) -> Logs:
    """Half of the samples take 30 % longer, so a block's median is in either mode."""
    return rng.normal(0, 0.01, SAMPLES) + 0.26 * (rng.random(SAMPLES) < 0.5) + rng.normal(0, 0.01, INSTANCE)[..., None]


def _changing_ways(rng: np.random.Generator) -> Logs:
    """The same in stretches, so that neighbouring samples agree."""
    ways = np.cumsum(rng.random(SAMPLES) < 0.1).reshape(SAMPLES) % 2
    return rng.normal(0, 0.01, SAMPLES) + 0.26 * ways


def _in_turns(logs: Logs, rng: np.random.Generator) -> tuple[Logs, Logs]:
    """Returns the old and the new side, in random order within each pair, as the sampler measures them."""
    swapped = rng.random(logs.shape[:2]) < 0.5
    old, new = np.where(swapped, logs[..., 1], logs[..., 0]), np.where(swapped, logs[..., 0], logs[..., 1])
    return np.exp(old.ravel()), np.exp(new.ravel())


# The required rate of finding 5 % slow-downs is 95 %; block medians with two modes hide some.
@pytest.mark.parametrize(
    ("draw", "found"),
    [
        (_normal, 0.95),
        (_instances, 0.95),
        (_two_placements, 0.95),
        (_heavy_tails, 0.95),
        (_bursts, 0.95),
        (_wake_ups, 0.8),
        (_two_ways_to_wake_up, 0.95),
        (_changing_ways, 0.95),
        (_states, 0.95),
    ],
)
def test_equal_sides_rarely_differ_and_slow_downs_are_found(
    draw: Draw, found: float, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(30)
    different = missed = slower = wrong = same = 0
    for _ in range(REPEATS):
        # Sides are exchangeable in all models, so drawing the order of each pair would change nothing.
        logs = draw(rng)
        old, new = (np.exp(logs[:, :, side].reshape(LABELS.size, *logs.shape[3:])) for side in (0, 1))
        equal = compare_pairs(old, new, LABELS)
        different += equal.verdict in (Verdict.SLOWER, Verdict.FASTER)
        missed += not equal.interval.low <= 1 <= equal.interval.high
        slow = compare_pairs(old, 1.05 * new, LABELS)
        slower += slow.verdict is Verdict.SLOWER
        wrong += slow.verdict is Verdict.FASTER
        same += slow.verdict is Verdict.SAME
    with capsys.disabled():
        shares = [f"{count / REPEATS:.1%}" for count in (different, missed, slower, same)]
        print(
            f"\n{draw.__name__[1:]}: of {REPEATS} equal {shares[0]} different, {shares[1]} outside the interval; "
            f"5 % slower {shares[2]} found, {shares[3]} SAME, {wrong} FASTER"
        )
    # A right rate exceeds these limits in one of 10,000 tests.
    assert different <= missed <= stats.binom.isf(1e-4, REPEATS, 0.01)
    assert slower >= stats.binom.ppf(1e-4, REPEATS, found)
    assert wrong == 0 and same <= stats.binom.isf(1e-4, REPEATS, 0.01)


def test_order_within_a_pair_gives_no_verdict() -> None:
    # The second block of a pair always takes 30 % longer; a coin decides which side is second.
    rng = np.random.default_rng(31)
    verdicts = []
    for _ in range(50):
        logs = rng.normal(0, 0.01, SHAPE) + np.array([0, 0.26])
        verdicts.append(compare_pairs(*_in_turns(logs, rng), LABELS).verdict)
    assert Verdict.SLOWER not in verdicts and Verdict.FASTER not in verdicts


def test_the_interval_is_the_hull_of_scipys_intervals_of_pairs_and_of_rounds() -> None:
    rng = np.random.default_rng(32)
    for draw in (_normal, _instances, _heavy_tails):
        old, new = _in_turns(draw(rng), rng)
        comparison = compare_pairs(old, new, LABELS, confidence=0.95)
        logs = np.log(new / old)
        medians = [np.median(logs[index == LABELS]) for index in range(ROUNDS)]
        # Fewer logs than this are below the median with a probability of at most 2.5 %, by the binomial distribution.
        place = int(stats.binom.ppf(0.025, logs.size, 0.5)) - 1
        ordered = np.sort(logs)
        of_rounds = stats.ttest_1samp(medians, 0).confidence_interval(0.975)
        assert math.log(comparison.interval.low) == pytest.approx(min(ordered[place], of_rounds.low))
        assert math.log(comparison.interval.high) == pytest.approx(max(ordered[-1 - place], of_rounds.high))
        assert comparison.ratio == pytest.approx(np.exp(np.mean(medians)))
        oracle = max(stats.ttest_1samp(medians, 0).pvalue, stats.binomtest(int((logs > 0).sum()), logs.size).pvalue)
        assert comparison.p_value == pytest.approx(oracle)
        assert comparison.how == "paired" and comparison.count_a == comparison.count_b == LABELS.size


def test_a_pairs_figure_is_of_samples_of_equal_rank() -> None:
    rng = np.random.default_rng(37)
    old, new = rng.lognormal(0, 0.1, (2, LABELS.size, 9))
    logs = np.median(np.log(np.sort(new, axis=1) / np.sort(old, axis=1)), axis=1)
    comparison, oracle = compare_pairs(old, new, LABELS), compare_pairs(np.ones(LABELS.size), np.exp(logs), LABELS)
    # Times move within a tick, the smallest difference of two times.
    assert comparison.ratio == pytest.approx(oracle.ratio, rel=1e-5)
    assert comparison.interval == pytest.approx(oracle.interval, rel=1e-5)
    # A block with missing samples is compared at the ranks it has.
    new[::3, 5:] = np.nan
    assert compare_pairs(old, new, LABELS).ratio == pytest.approx(1, abs=0.05)
    new[::3] = np.nan
    assert compare_pairs(old, new, LABELS).count_a == 9 * LABELS.size * 2 // 3


def test_a_change_of_two_modes_shares_is_one_of_the_median() -> None:
    rng = np.random.default_rng(38)
    old, new = (np.exp(rng.normal(0, 0.01, (180, 10)) + 0.26 * (rng.random((180, 10)) < slow)) for slow in (0.2, 0.8))
    comparison = compare_pairs(old, new, LABELS)
    assert comparison.verdict is Verdict.SLOWER and comparison.ratio == pytest.approx(math.exp(0.26), rel=0.03)
    assert "the shares of two modes changed" in comparison.notes[0]


def test_a_clock_of_few_ticks_is_seen_through() -> None:
    # 1000 ns on a clock with a tick of 52 ns, and 3 % more: medians of blocks are whole or half ticks.
    rng = np.random.default_rng(39)
    old, new = (52 * np.round(1000 * by * rng.lognormal(0, 0.03, (180, 10)) / 52) for by in (1, 1.03))
    comparison = compare_pairs(old, new, LABELS)
    assert comparison.verdict is Verdict.SLOWER and comparison.ratio == pytest.approx(1.03, abs=0.01)


def test_other_statistics_are_of_neighbouring_pairs() -> None:
    rng = np.random.default_rng(46)
    old, new = rng.lognormal(0, 0.05, (2, LABELS.size, 10))
    # With 150 samples a round, a minimum takes 50 samples, p90 takes 20, and p99 takes 200 from two rounds.
    for name, level, size in (("minimum", 0.0, 5), ("p90", 0.9, 2), ("p99", 0.99, 20)):
        count = LABELS.size // size
        parts = np.split(np.arange(LABELS.size), -(-LABELS.size * np.arange(1, count) // count))
        figures = [[np.quantile(side[part], level) for part in parts] for side in (old, new)]
        labels = LABELS[[part[0] for part in parts]]
        oracle, comparison = compare_pairs(*figures, labels), compare_pairs(old, new, LABELS, statistic=name)
        assert comparison.interval == oracle.interval and comparison.explanation.startswith(
            f"{comparison.verdict}: {name} "
        )
    # A slow-down of the slowest twentieth affects p99 and not the median.
    tail = np.where(rng.random((720, 20)) < 0.05, 2.0, 1.0)
    old, new = rng.lognormal(0, 0.05, (2, 720, 20))
    labels = np.repeat(np.arange(12), 60)
    assert compare_pairs(old, new * tail, labels, statistic="p99").verdict is Verdict.SLOWER
    assert compare_pairs(old, new * tail, labels).verdict is Verdict.SAME
    few = compare_pairs(old[:100], new[:100], labels[:100], statistic="p99.9")
    assert few.verdict is Verdict.UNCLEAR and "p99.9 takes at least 16000 of each" in few.explanation


def test_swapped_sides_give_the_inverse() -> None:
    rng = np.random.default_rng(33)
    old, new = _in_turns(_instances(rng), rng)
    there, back = compare_pairs(old, 1.03 * new, LABELS), compare_pairs(1.03 * new, old, LABELS)
    assert back.ratio == pytest.approx(1 / there.ratio) and back.effect == pytest.approx(-there.effect)
    assert back.interval.low == pytest.approx(1 / there.interval.high)
    assert back.p_value == pytest.approx(there.p_value)


def test_few_rounds_leave_room_for_instances() -> None:
    rng = np.random.default_rng(34)
    old, new = rng.lognormal(0, 0.01, (2, 200))
    once = compare_pairs(old, 1.03 * new, np.zeros(200))
    assert once.half_width > INSTANCES and "fewer than 5 rounds: ±4 % allowed" in once.notes[0]
    assert once.verdict is not Verdict.SAME
    # The interval contains both of two instances that differ.
    apart = compare_pairs(old, new * np.repeat([1.0, 1.2], 100), np.repeat([0, 1], 100))
    assert apart.verdict is Verdict.UNCLEAR and apart.interval.low < 1 and apart.interval.high > 1.2
    assert "for more rounds (time_limit)" in apart.explanation
    clear = compare_pairs(old, 1.08 * new, np.zeros(200))
    assert clear.verdict is Verdict.SLOWER


def test_what_changes_slowly_is_in_the_interval_of_one_round() -> None:
    # The ratio is constant for some time and then another, which pairs take for certain.
    rng = np.random.default_rng(51)
    levels = np.exp(rng.normal(0, 0.15, 10)).repeat(20)
    old, new = rng.lognormal(0, 0.01, (2, 200))
    assert compare_pairs(old, new * levels, np.zeros(200)).half_width > 0.08


def test_a_round_that_was_cut_short_is_no_instance_like_the_others() -> None:
    rng = np.random.default_rng(35)
    old, new = rng.lognormal(0, 0.01, (2, LABELS.size + 1))
    new[-1] *= 3
    last = compare_pairs(old, new, np.append(LABELS, ROUNDS))
    assert last.verdict is Verdict.SAME and "in 13 rounds" in last.explanation


def test_pairs_with_a_missing_block_are_left_out() -> None:
    rng = np.random.default_rng(36)
    old, new = rng.lognormal(0, 0.01, (2, LABELS.size))
    holed = np.insert(old, 7, np.nan), np.insert(new, 7, 1.0), np.insert(LABELS, 7, 0)
    assert compare_pairs(*holed) == compare_pairs(old, new, LABELS)


def test_what_is_too_little_for_a_verdict_is_unclear() -> None:
    few = compare_pairs([1.0] * 7, [2.0] * 7, range(7))
    assert few.verdict is Verdict.UNCLEAR and "7 pairs; 0.99 confidence takes at least 8" in few.explanation
    eight = 100 + np.arange(8.0)
    assert compare_pairs(eight, 2 * eight, range(8)).verdict is Verdict.SLOWER
    none = compare_pairs([], [], [])
    assert none.verdict is Verdict.UNCLEAR and math.isnan(none.ratio)
    zero = compare_pairs([0.0, *[1.0] * 20], [1.0] * 21, range(21))
    assert zero.verdict is Verdict.UNCLEAR and "1 of 21 pairs have a time of 0" in zero.explanation
    assert compare_pairs([0.0] * 20, [0.0] * 20, range(20)).verdict is Verdict.SAME


def test_a_coarse_clock_leaves_half_a_tick_open() -> None:
    coarse = compare_pairs([520.0] * 40, [572.0] * 40, range(40))
    assert coarse.verdict is Verdict.UNCLEAR and "tick is too coarse" in coarse.explanation
    assert compare_pairs([52_000.0] * 40, [52_052.0] * 40, range(40)).verdict is Verdict.SAME
    two = [520.0] * 36 + [572.0] * 4
    assert compare_pairs(two, [1040.0] * 40, range(40)).verdict is Verdict.SLOWER
    # Minima are within a tick although samples are not.
    times = np.floor((1000 + 40 * np.random.default_rng(0).exponential(size=(40, 25))) / 32) * 32
    assert compare_pairs(times, times, range(40), statistic="minimum").half_width == pytest.approx(32 / 992, rel=0.01)


@pytest.mark.parametrize(
    ("old", "new", "labels", "options", "message"),
    [
        ([1.0, 2.0], [1.0], [0, 0], {}, r"shapes \(2,\), \(1,\) and \(2,\)"),
        ([[1.0]], [[1.0]], [[0]], {}, "all of one length"),
        ([1.0], [math.inf], [0], {}, "finite or NaN"),
        ([1.0], [1.0], [0], {"confidence": 0.0}, "confidence is between 0 and 1"),
        ([1.0], [1.0], [0], {"resolution": 0.0}, "resolution is above 0"),
    ],
)
def test_what_are_no_pairs_is_an_error(
    old: object, new: object, labels: object, options: dict[str, float], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        compare_pairs(old, new, labels, **options)  # type: ignore[arg-type]
