"""Compares two sides that were measured in separate runs; docs/design/study.md has the reasons.

The unit is the largest of these of which both sides have several: **runs**, else **rounds** (openings of the workload
within a run), else **blocks** of samples. The figure of two units is the figure that ``paired`` computes for two
blocks; the figure of the sides is the mean over all pairs of an old and a new unit, with Welch's interval. A side of
one run borrows the variance of the other side's runs.

Both ends are extended by uncertainty that units do not show:

- ``allowance``, which the caller takes from the reference kernels: the difference of the machine's states of the sides;
- ``INSTANCES``, if the units are blocks: both sides have one instance, and equal instances differ.

Verdicts are as ``comparison`` defines them. The caller decides whether the states of the machine can be compared at
all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ...status import InvalidArgumentError
from .bootstrap import Interval
from .comparison import Comparison, Verdict, check_limits, percent, verdict_of
from .paired import INSTANCES, ROUNDS
from .samples import STATISTICS, fewest_samples, spread_in_ticks, tick_blur, tick_of

# The largest number of ranks of a unit; more would only cost time.
_MAX_RANKS: Final = 50
# Neighbouring blocks are taken together if there are more: they share the machine's state.
_MAX_BLOCKS: Final = 40

_Numbers = NDArray[np.float64]


class RunSamples(NamedTuple):
    """The samples of one run of one side, without NaNs, and the block and the round of each."""

    values: _Numbers
    blocks: NDArray[np.int64]
    rounds: NDArray[np.int64]


class _Figure(NamedTuple):
    """The log ratio, the half-width of its interval, and the p-value."""

    middle: float
    reach: float
    p_value: float


def compare_runs(
    old: Sequence[RunSamples],
    new: Sequence[RunSamples],
    *,
    allowance: float = 0.0,
    allowed_for: str = "the machine's states, by the reference kernel",
    in_turns: bool = True,
    confidence: float = 0.99,
    resolution: float = 0.025,
    threshold: float = 0.01,
    statistic: str = "median",
) -> Comparison:
    """Compares the runs of two sides.

    Args:
        old, new: the runs of each side, at least one with samples.
        allowance: the uncertainty of the ratio, as a logarithm, that the runs' samples do not show.
        allowed_for: the reason for the allowance, for a note.
        in_turns: whether an UNCLEAR verdict recommends measuring both in turns, which is impossible for two machines.
        confidence: the level of the interval, between 0 and 1.
        resolution, threshold: the same as for ``comparison.compare``.
        statistic: the compared figure, one of ``samples.STATISTICS``.

    Returns:
        A comparison whose ``ratio`` is new over old. ``effect`` is the share of pairs of units in which the new one is
            longer, less the share in which it is shorter, -1 to 1; ``p_value`` is that of Welch's test. UNCLEAR also
            for too few units or samples, or times of 0.

    Raises:
        InvalidArgumentError: a side has no samples, or a parameter is out of range.
    """
    check_limits(confidence, resolution, threshold)
    sides = [[run for run in side if run.values.size] for side in (old, new)]
    if not all(sides):
        raise InvalidArgumentError("runs are compared by samples of both sides, got none of one")
    values = [np.concatenate([run.values for run in side]) for side in sides]
    counts = [side.size for side in values]
    ratio = effect = p_value = math.nan
    interval = Interval(math.nan, math.nan)
    notes: list[str] = []

    def say(verdict: Verdict, why: str) -> Comparison:
        text = f"{verdict}: {why}"
        return Comparison(
            verdict, ratio, interval, confidence, effect, p_value, counts[0], counts[1], text, "runs", notes
        )

    fewest = fewest_samples(statistic)
    if min(counts) < fewest:
        return say(Verdict.UNCLEAR, f"{counts[0]} and {counts[1]} samples; {statistic} takes at least {fewest} of each")
    if not np.any(values[0]) and not np.any(values[1]):
        return say(Verdict.SAME, "all samples of both sides are 0")
    if zeros := sum(int(np.count_nonzero(side <= 0)) for side in values):
        return say(Verdict.UNCLEAR, f"{zeros} samples have a time of 0, and so no ratio")
    unit, (first, second) = _units(sides, spread_in_ticks(*values) if statistic == "median" else values)
    units = f"{len(first)} and {len(second)} {unit}s"
    if max(len(first), len(second)) < 2:
        return say(Verdict.UNCLEAR, f"{units}; a difference between them takes several")
    quantiles = _quantiles(first, second, statistic)
    known = values if statistic == "median" else quantiles
    blur = tick_blur(known[0], known[1], tick_of(np.concatenate(values)))
    # For each old and each new unit, the log ratio of their quantile.
    pairs = np.log(quantiles[1]) - np.log(quantiles[0])[:, np.newaxis]
    figure = _figure(pairs, confidence)
    if statistic == "median":
        matched = _matched(first, second)
        of_ranks = _figure(matched, confidence)
        if abs(of_ranks.middle - figure.middle) <= of_ranks.reach + figure.reach:
            pairs, figure = matched, of_ranks
        else:
            notes.append(
                f"samples of equal rank differ by {percent(math.exp(of_ranks.middle))}, medians by "
                f"{percent(math.exp(figure.middle))}: the shares of two modes changed"
            )
    effect, p_value = float(np.mean(np.sign(pairs))), figure.p_value
    open_to = figure.reach + allowance + blur
    if unit == "block":
        open_to += INSTANCES
        notes.append(f"fewer than {ROUNDS} rounds: ±{100 * INSTANCES:.2g} % allowed for what differs between instances")
    if allowance:
        notes.append(f"±{100 * math.expm1(allowance):.3g} % allowed for {allowed_for}")
    ratio = math.exp(figure.middle)
    # A side with very few units allows no conclusion.
    interval = Interval(math.exp(max(figure.middle - open_to, -100)), math.exp(min(figure.middle + open_to, 100)))
    result = (
        f"{statistic} {percent(ratio)} ({percent(interval.low)} to {percent(interval.high)} at "
        f"{100 * confidence:.4g} %, {units} measured apart)"
    )
    verdict = verdict_of(ratio, interval, resolution, threshold)
    if verdict is not Verdict.UNCLEAR:
        return say(verdict, result)
    ways = ["measure both in turns (--against)"] if in_turns else []
    ways += ["--runs 5"] if unit != "run" else [] if in_turns else ["add runs (--runs)"]
    why = f"{result}; neither certain nor known to ±{100 * resolution:.4g} %"
    return say(Verdict.UNCLEAR, f"{why}: {' or '.join(ways)}")


def _units(sides: Sequence[Sequence[RunSamples]], values: Sequence[_Numbers]) -> tuple[str, list[list[_Numbers]]]:
    """Chooses the unit, and divides the samples of either side by it; ``values`` are those of all runs of a side."""
    runs = [np.repeat(np.arange(len(side)), [run.values.size for run in side]) for side in sides]
    rounds = [_labels(numbers, [run.rounds for run in side]) for numbers, side in zip(runs, sides, strict=True)]
    blocks = [_labels(numbers, [run.blocks for run in side]) for numbers, side in zip(runs, sides, strict=True)]
    counts = [len(side) for side in sides]
    if min(counts) >= 2 or max(counts) >= ROUNDS:
        unit, labels = "run", runs
    elif min(numbers[-1] + 1 for numbers in rounds) >= ROUNDS:
        unit, labels = "round", rounds
    else:
        unit, labels = "block", [block * min(_MAX_BLOCKS, block[-1] + 1) // (block[-1] + 1) for block in blocks]
    return unit, [np.split(all_, np.flatnonzero(np.diff(of)) + 1) for all_, of in zip(values, labels, strict=True)]


def _labels(runs: NDArray[np.int64], within: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Numbers rounds or blocks of runs from 0, in their order."""
    both = np.stack([runs, np.concatenate(within)], axis=1)
    return np.asarray(np.unique(both, axis=0, return_inverse=True)[1], np.int64).reshape(-1)


def _matched(first: Sequence[_Numbers], second: Sequence[_Numbers]) -> _Numbers:
    """Returns, for each old and each new unit, the median over ranks of the log ratio of their quantiles."""
    count = min(_MAX_RANKS, *(unit.size for side in (first, second) for unit in side))
    ranks = (np.arange(count) + 0.5) / count
    old, new = (
        np.stack([np.log(np.quantile(unit, ranks, method="hazen")) for unit in side]) for side in (first, second)
    )
    return np.asarray(np.median(new[np.newaxis] - old[:, np.newaxis], axis=2))


def _quantiles(first: Sequence[_Numbers], second: Sequence[_Numbers], statistic: str) -> list[_Numbers]:
    """Returns the quantile of each unit of either side. The minimum falls as samples grow in number, so all units get
    the minimum that the smallest unit's number of samples would have on average.
    """
    fewest = min(unit.size for side in (first, second) for unit in side)
    level = STATISTICS[statistic] or 1 - 0.5 ** (1 / fewest)
    return [np.array([np.quantile(unit, level, method="median_unbiased") for unit in side]) for side in (first, second)]


def _figure(pairs: _Numbers, confidence: float) -> _Figure:
    """Computes Welch's interval of the mean, by the mean of each unit over those of the other side."""
    means = [pairs.mean(axis=1), pairs.mean(axis=0)]
    sizes = np.array([mean.size for mean in means])
    variances = np.array([float(np.var(mean, ddof=1)) if mean.size > 1 else math.nan for mean in means])
    # A single unit is assumed to vary as those of the other side, with their degrees of freedom.
    variances[np.isnan(variances)] = np.nanmax(variances)
    parts = variances / sizes
    middle, error = float(pairs.mean()), math.sqrt(parts.sum())
    if not error:
        return _Figure(middle, 0.0, 0.0 if middle else 1.0)
    freedom = parts.sum() ** 2 / (parts**2 / (sizes - 1)).sum() if sizes.min() > 1 else sizes.max() - 1
    reach = error * float(special.stdtrit(freedom, (1 + confidence) / 2))
    return _Figure(middle, reach, 2 * float(special.stdtr(freedom, -abs(middle) / error)))
