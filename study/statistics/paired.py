"""Compares two sides that were measured in turns, pair of blocks by pair of blocks.

The figure is the logarithm of the ratio of the two blocks' statistic (their median, or another quantile), over pairs.
The blocks of a pair are taken in random order, and so are the sides opened. If the sides are equal, "old" and "new" are
labels that a coin gave: the log ratio is symmetric about 0 whatever the machine does, with bursts, states or drift. So
both intervals need symmetry only, and no model of the machine:

- **of pairs**: order statistics of the log ratios (the sign test, SciPy's ``quantile_test``), which holds for any
  tails. It is of the two instances that were measured;
- **of rounds**: Student's t over the rounds' medians. In each round both sides are opened afresh, so placement in
  memory and layout of code are drawn again, and what differs between instances is part of the interval. A stop rule
  looks at it several times, so it is at half the error rate.

The interval is the hull of both. With fewer than ``ROUNDS`` rounds a variance of rounds is not known: the hull then is
of the interval of pairs and the rounds' medians, widened by ``INSTANCES``, an allowance and no measurement.

Verdicts are as ``comparison`` defines them.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ...status import InvalidArgumentError
from .bootstrap import Interval
from .comparison import Comparison, Verdict, check_limits, percent
from .samples import tick_of

ROUNDS: Final = 5
"""The fewest rounds from which their variation can be estimated."""
INSTANCES: Final = 0.02
"""How far two equal instances are taken to differ, as a logarithm, where rounds are too few to tell."""

# A round that was cut short says little of its instances.
_CUT_SHORT = 1 / 3
# With more than this share of a side's statistics in one tick, where in the tick they are is not known.
_WITHIN_TICK = 0.75

_Numbers = NDArray[np.float64]


def compare_pairs(
    old: ArrayLike,
    new: ArrayLike,
    rounds: ArrayLike,
    *,
    confidence: float = 0.99,
    resolution: float = 0.025,
    threshold: float = 0.01,
    statistic: str = "median",
) -> Comparison:
    """Compares pairs of blocks.

    Args:
        old, new: a statistic of each block, pair by pair, in the same unit; pairs with a NaN are excluded.
        rounds: the round of each pair: any labels, the same for pairs between which neither side was opened afresh.
        confidence: level of the interval, between 0 and 1.
        resolution, threshold: see ``comparison.compare``.
        statistic: its name, for the explanation.

    Returns:
        ``ratio`` is of new over old, ``effect`` how much more often new is the longer of a pair than the shorter one,
        -1 to 1, ``p_value`` the larger of those of the sign test of pairs and the t-test of rounds. UNCLEAR also for
        too few pairs for the level (8 for 99 %), or times of 0.

    Raises:
        InvalidArgumentError: arrays of different shapes, infinite values, or a parameter out of range.
    """
    check_limits(confidence, resolution, threshold)
    first, second, labels = _checked(old, new, rounds)
    count = first.size
    longer, shorter = int(np.count_nonzero(second > first)), int(np.count_nonzero(second < first))
    effect = (longer - shorter) / count if count else math.nan
    ratio = p_value = math.nan
    interval = Interval(math.nan, math.nan)

    def say(verdict: Verdict, why: str) -> Comparison:
        text = f"{verdict}: {why}"
        return Comparison(verdict, ratio, interval, confidence, effect, p_value, count, count, text, "paired")

    # All pairs on one side of the median has a probability of 2 / 2**count.
    least = max(2, math.ceil(math.log2(2 / (1 - confidence))))
    if count < least:
        return say(Verdict.UNCLEAR, f"{count} pairs; {confidence:.4g} confidence takes at least {least}")
    if not np.any(first) and not np.any(second):
        return say(Verdict.SAME, "all pairs are of times of 0")
    if min(first.min(), second.min()) <= 0:
        zeros = np.count_nonzero(np.minimum(first, second) <= 0)
        return say(Verdict.UNCLEAR, f"{zeros} of {count} pairs have a time of 0, and so no ratio")
    logs = np.log(second / first)
    medians = _medians(logs, labels)
    p_value = float(stats.binomtest(longer, longer + shorter).pvalue) if longer + shorter else 1.0
    middle = float(np.median(logs))
    ends = [*stats.quantile_test(logs, p=0.5).confidence_interval(confidence)]
    if medians.size >= ROUNDS:
        middle = float(np.mean(medians))
        error = float(stats.sem(medians))
        reach = error * float(stats.t.isf((1 - confidence) / 4, medians.size - 1))
        ends += [middle - reach, middle + reach]
        if error:
            p_value = max(p_value, 2 * float(stats.t.sf(abs(middle) / error, medians.size - 1)))
        allowance = 0.0
    else:
        ends += medians.tolist()
        allowance = INSTANCES
    blur = _blur(first, second)
    low, high = min(ends) - allowance - blur, max(ends) + allowance + blur
    ratio, interval = math.exp(middle), Interval(math.exp(low), math.exp(high))
    found = (
        f"{statistic} {percent(ratio)} ({percent(interval.low)} to {percent(interval.high)} at "
        f"{100 * confidence:.4g} %, {count} pairs in {_counted(np.unique(labels).size, 'round')})"
    )
    if allowance:
        found += f", of which ±{100 * INSTANCES:.2g} % for instances, as fewer than {ROUNDS} rounds do not tell"
    if not interval.low <= 1 <= interval.high and abs(ratio - 1) >= threshold:
        return say(Verdict.SLOWER if ratio > 1 else Verdict.FASTER, found)
    if max((interval.high - interval.low) / 2, abs(ratio - 1)) <= resolution:
        return say(Verdict.SAME, found)
    if blur > resolution / 2:
        advice = "batch more dispatches, the clock's tick is too coarse"
    elif medians.size < ROUNDS:
        advice = "take more rounds"
    else:
        advice = "take more pairs and rounds"
    return say(Verdict.UNCLEAR, f"{found}; neither certain nor known to ±{100 * resolution:.4g} %: {advice}")


def _checked(old: ArrayLike, new: ArrayLike, rounds: ArrayLike) -> tuple[_Numbers, _Numbers, NDArray[np.generic]]:
    first, second, labels = np.asarray(old, np.float64), np.asarray(new, np.float64), np.asarray(rounds)
    if first.ndim != 1 or first.shape != second.shape or first.shape != labels.shape:
        raise InvalidArgumentError(
            f"pairs are an old and a new statistic and a round of each, all of one length; got shapes {first.shape}, "
            f"{second.shape} and {labels.shape}"
        )
    if np.isinf(first).any() or np.isinf(second).any():
        raise InvalidArgumentError("statistics of pairs are finite or NaN, got an infinite one")
    known = ~(np.isnan(first) | np.isnan(second))
    return first[known], second[known], labels[known]


def _medians(logs: _Numbers, rounds: NDArray[np.generic]) -> _Numbers:
    """The median of each round that is not cut short."""
    order = np.argsort(rounds, kind="stable")
    begins = np.unique(rounds[order], return_index=True)[1]
    parts = np.split(logs[order], begins[1:])
    least = _CUT_SHORT * float(np.median([part.size for part in parts]))
    return np.array([np.median(part) for part in parts if part.size >= least])


def _blur(first: _Numbers, second: _Numbers) -> float:
    """How far the clock's tick leaves the log ratio open: half a tick of each side that is within one."""
    tick = tick_of(np.concatenate([first, second]))
    coarse = [side for side in (first, second) if float(stats.mode(side).count) > _WITHIN_TICK * side.size]
    return sum(tick / 2 / float(np.median(side)) for side in coarse)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
