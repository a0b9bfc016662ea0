"""Compares two sides that were measured in turns, by pairs of blocks; docs/design/study.md has the reasons.

The blocks of a pair are taken in random order, and the sides are opened in random order. If the sides are equal, the
log ratio of a pair is symmetric about 0 regardless of the machine, and the intervals need no other assumption.

**The figure of a pair** is the median over ranks of the log ratio of the two blocks' samples of equal rank (matched
quantiles). If its interval does not overlap that of the ratio of medians, as when the shares of two modes changed, the
ratio of medians is the figure. Other quantiles and the minimum are compared directly, over the number of neighbouring
pairs that they need.

**Two intervals**, of which the result is the hull:

- of pairs: order statistics of the figures (the sign test, SciPy's ``quantile_test``), for the measured instances;
- of rounds: Student's t over the rounds' medians, which includes what differs between instances. A stop rule evaluates
  it several times, so it is at half the error rate.

With fewer than ``ROUNDS`` rounds ten parts of the time replace them, for slow changes, the rounds' medians are in the
hull, and it is widened by ``INSTANCES``, an allowance and not a measurement.

Verdicts are as ``comparison`` defines them.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ...status import InvalidArgumentError
from .bootstrap import Interval
from .comparison import Comparison, Verdict, check_limits, percent, verdict_of
from .samples import STATISTICS, fewest_samples, spread_in_ticks, standard_error, tick_blur, tick_of

ROUNDS: Final = 5
"""The fewest rounds from which their variation can be estimated."""
INSTANCES: Final = 0.04
"""The assumed difference of two equal instances, as a logarithm, if rounds are too few to show it: 2 % each."""

# The number of parts of the time if there are too few rounds.
_PARTS = 10
# A shorter round says little about its instances.
_CUT_SHORT = 1 / 3
# Quantiles are of groups of neighbouring pairs, large enough that this many samples are expected beyond the quantile.
_BEYOND = 2
_FEWEST_FOR_MINIMUM = 50

_Numbers = NDArray[np.float64]


class _Figure(NamedTuple):
    """The log ratio with its interval, the larger p-value of both tests, and the number of rounds."""

    middle: float
    low: float
    high: float
    p_value: float
    rounds: int


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
        old, new: the blocks of each side, pair by pair and in the same unit: either the samples (pairs by samples, NaN
            where a block has fewer), or a statistic of them. Pairs with an empty block are excluded.
        rounds: the round of each pair: any labels, the same for pairs between which neither side was opened afresh.
        confidence: the level of the interval, between 0 and 1.
        resolution, threshold: the same as for ``comparison.compare``.
        statistic: the compared figure, one of ``samples.STATISTICS``.

    Returns:
        A comparison whose ``ratio`` is new over old. ``effect`` is the share of pairs in which new is longer, less the
            share in which it is shorter, -1 to 1; ``p_value`` the larger of those of the sign test of pairs and the
            t-test of rounds; counts are of samples. UNCLEAR also for too few pairs for the level (8 for 99 %), too few
            samples for a quantile, or times of 0.

    Raises:
        InvalidArgumentError: the arrays have different shapes or infinite values, or a parameter is out of range.
    """
    check_limits(confidence, resolution, threshold)
    first, second, labels = _checked(old, new, rounds)
    counts = [int(np.count_nonzero(~np.isnan(side))) for side in (first, second)]
    fewest = fewest_samples(statistic)
    of_quantiles = np.ndim(old) == 2 and statistic != "median"
    tick = tick_of(np.concatenate([first.ravel(), second.ravel()]))
    if of_quantiles:
        first, second, labels = _in_groups(first, second, labels, statistic)
    count = len(first)
    effect = ratio = p_value = math.nan
    interval = Interval(math.nan, math.nan)
    notes: list[str] = []

    def say(verdict: Verdict, why: str) -> Comparison:
        text = f"{verdict}: {why}"
        return Comparison(
            verdict, ratio, interval, confidence, effect, p_value, counts[0], counts[1], text, "paired", notes
        )

    least = fewest_pairs(confidence)
    if of_quantiles and (min(counts) < fewest or count < least):
        fewest = fewest_paired_samples(statistic, confidence)
        why = f"{counts[0]} and {counts[1]} samples; {statistic} takes at least {fewest} of each"
        return say(Verdict.UNCLEAR, f"{why}: raise max_samples and time_limit")
    if count < least:
        return say(Verdict.UNCLEAR, f"{count} pairs; {confidence:.4g} confidence takes at least {least}")
    shortest = np.fmin(np.nanmin(first, axis=1), np.nanmin(second, axis=1))
    if not np.nanmax(np.abs(first)) and not np.nanmax(np.abs(second)):
        return say(Verdict.SAME, "all pairs are of times of 0")
    if zeros := int(np.count_nonzero(shortest <= 0)):
        return say(Verdict.UNCLEAR, f"{zeros} of {count} pairs have a time of 0, and so no ratio")
    blur = tick_blur(first, second, tick)
    if first.shape[1] > 1:
        first, second = spread_in_ticks(first, second)
    of_medians = np.log(np.nanmedian(second, axis=1) / np.nanmedian(first, axis=1))
    logs, figure = of_medians, _figure(of_medians, labels, confidence)
    if first.shape[1] > 1:
        matched = _matched(first, second)
        of_ranks = _figure(matched, labels, confidence)
        if of_ranks.low <= figure.high and figure.low <= of_ranks.high:
            logs, figure = matched, of_ranks
        else:
            notes.append(
                f"samples of equal rank differ by {percent(math.exp(of_ranks.middle))}, medians by "
                f"{percent(math.exp(figure.middle))}: the shares of two modes changed"
            )
    effect = float(np.mean(np.sign(logs)))
    middle, low, high, p_value, told = figure
    ratio, interval = math.exp(middle), Interval(math.exp(low - blur), math.exp(high + blur))
    taken = np.unique(labels).size
    result = (
        f"{statistic} {percent(ratio)} ({percent(interval.low)} to {percent(interval.high)} at "
        f"{100 * confidence:.4g} %, {count} pairs in {taken} round{'s' if taken > 1 else ''})"
    )
    if told < ROUNDS:
        notes.append(f"fewer than {ROUNDS} rounds: ±{100 * INSTANCES:.2g} % allowed for what differs between instances")
    verdict = verdict_of(ratio, interval, resolution, threshold)
    if verdict is not Verdict.UNCLEAR:
        return say(verdict, result)
    if blur > resolution / 2:
        advice = "batch more dispatches, the clock's tick is too coarse"
    elif told < ROUNDS:
        advice = "measure longer, for more rounds (time_limit)"
    else:
        advice = "measure longer (time_limit)"
    return say(Verdict.UNCLEAR, f"{result}; neither certain nor known to ±{100 * resolution:.4g} %: {advice}")


def fewest_pairs(confidence: float) -> int:
    """Returns the fewest pairs that have an interval: all are on one side with probability 2 / 2**count."""
    return max(2, math.ceil(math.log2(2 / (1 - confidence))))


def fewest_paired_samples(statistic: str, confidence: float) -> int:
    """Returns the fewest samples of either side that give an interval of a statistic other than the median."""
    return max(fewest_samples(statistic), fewest_pairs(confidence) * _samples_a_group(statistic))


def _checked(old: ArrayLike, new: ArrayLike, rounds: ArrayLike) -> tuple[_Numbers, _Numbers, NDArray[np.generic]]:
    """Returns both sides as arrays of pairs by samples, and the rounds."""
    first, second, labels = np.asarray(old, np.float64), np.asarray(new, np.float64), np.asarray(rounds)
    if first.ndim not in (1, 2) or first.ndim != second.ndim or not first.shape[:1] == second.shape[:1] == labels.shape:
        raise InvalidArgumentError(
            "pairs are the blocks of the old and the new side and a round of each, all of one length; got shapes "
            f"{first.shape}, {second.shape} and {labels.shape}"
        )
    if np.isinf(first).any() or np.isinf(second).any():
        raise InvalidArgumentError("samples of pairs are finite or NaN, got an infinite one")
    if first.ndim == 1:
        first, second = first[:, np.newaxis], second[:, np.newaxis]
    known = ~(np.isnan(first).all(axis=1) | np.isnan(second).all(axis=1))
    return first[known], second[known], labels[known]


def _samples_a_group(statistic: str) -> int:
    """Returns the number of samples of each side that determine a quantile, or the minimum."""
    level = STATISTICS[statistic]
    return round(_BEYOND / (1 - level)) if level else _FEWEST_FOR_MINIMUM


def _in_groups(
    first: _Numbers, second: _Numbers, rounds: NDArray[np.generic], statistic: str
) -> tuple[_Numbers, _Numbers, NDArray[np.generic]]:
    """Computes the statistic over groups of neighbouring pairs that have enough samples, as one column; returns also
    the round of each group's first pair.
    """
    order = np.argsort(rounds, kind="stable")
    so_far = np.cumsum(np.minimum(*(np.count_nonzero(~np.isnan(side[order]), axis=1) for side in (first, second))))
    parts = max(1, int(so_far[-1]) // _samples_a_group(statistic)) if order.size else 1
    ends = np.searchsorted(so_far, so_far[-1:] * np.arange(1, parts) // parts) + 1
    groups = [group for group in np.split(order, ends) if group.size]
    sides = [
        np.array([np.nanquantile(side[group], STATISTICS[statistic]) for group in groups]) for side in (first, second)
    ]
    return sides[0][:, np.newaxis], sides[1][:, np.newaxis], rounds[[group[0] for group in groups]]


def _matched(first: _Numbers, second: _Numbers) -> _Numbers:
    """Returns the median over ranks of each pair's log ratio. The longer block contributes quantiles at the shorter
    one's ranks.
    """
    counts = np.stack([np.count_nonzero(~np.isnan(side), axis=1) for side in (first, second)], axis=1)
    logs = np.empty(len(first))
    for pair in np.unique(counts, axis=0):
        rows = (counts == pair).all(axis=1)
        fewest = pair.min()
        ranks = (np.arange(fewest) + 0.5) / fewest
        # NaNs are sorted last. Hazen's quantiles at these ranks are the samples themselves if counts are equal.
        shorter, two = (
            np.quantile(np.sort(side[rows])[:, :size], ranks, axis=1, method="hazen")
            for side, size in zip((first, second), pair, strict=True)
        )
        logs[rows] = np.median(np.log(two / shorter), axis=0)
    return logs


def _figure(logs: _Numbers, rounds: NDArray[np.generic], confidence: float) -> _Figure:
    medians = told = _medians(logs, rounds)
    longer, shorter = int(np.count_nonzero(logs > 0)), int(np.count_nonzero(logs < 0))
    p_value = min(1.0, 2 * float(special.bdtr(min(longer, shorter), longer + shorter, 0.5)))
    ends = _ends_of_median(logs, confidence)
    middle, allowance = float(np.median(logs)), 0.0
    if told.size < ROUNDS:
        ends += told.tolist()
        allowance = INSTANCES
        # Slow changes appear between parts of the time.
        parts = np.array_split(logs, min(_PARTS, logs.size // 2))
        medians = np.array([np.median(part) for part in parts])
    else:
        middle = float(np.mean(medians))
    if medians.size >= ROUNDS:
        center, error = float(np.mean(medians)), standard_error(medians)
        reach = error * float(special.stdtrit(medians.size - 1, 1 - (1 - confidence) / 4))
        ends += [center - reach, center + reach]
        if error:
            p_value = max(p_value, 2 * float(special.stdtr(medians.size - 1, -abs(center) / error)))
    return _Figure(middle, min(ends) - allowance, max(ends) + allowance, p_value, told.size)


def _ends_of_median(logs: _Numbers, confidence: float) -> list[float]:
    """Returns the sign test's interval of the median, between ordered values; NaN for too few values."""
    below = special.bdtr(np.arange(logs.size + 1), logs.size, 0.5)
    index = int(np.searchsorted(below, (1 - confidence) / 2))
    ordered = np.sort(logs)
    return [float(ordered[index - 1]), float(ordered[-index])] if index else [math.nan, math.nan]


def _medians(logs: _Numbers, rounds: NDArray[np.generic]) -> _Numbers:
    """Returns the median of each round that was not cut short."""
    order = np.argsort(rounds, kind="stable")
    begins = np.unique(rounds[order], return_index=True)[1]
    parts = np.split(logs[order], begins[1:])
    least = _CUT_SHORT * float(np.median([part.size for part in parts]))
    return np.array([np.median(part) for part in parts if part.size >= least])
