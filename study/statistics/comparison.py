"""Compares two runs of a point: SAME, FASTER, SLOWER or UNCLEAR.

The figure is the ratio of medians, second over first, with its interval by bootstrap:

- **FASTER, SLOWER**: the interval excludes 1, the ratio differs from 1 by at least ``threshold``, and the Mann-Whitney
  test finds different distributions at the same level. The percentiles of a bootstrap of few samples are slightly too
  narrow; the test is exact but answers another question, so both must agree.
- **SAME**: otherwise, if the interval's half-width and the ratio's distance from 1 are at most ``resolution``. So every
  ratio in the interval is within about ``2 * resolution`` of 1.
- **UNCLEAR**: otherwise. More samples or a quieter machine are needed.

The default level is 99 %: of a hundred equal points about one is called FASTER or SLOWER by chance. Points that end at
0.5 % relative error have half-widths of ``2.58 * sqrt(2) * 0.5 % = 1.8 %``, so equal points are SAME with a margin.

Coarse clocks: each time is moved at random, with a seed, by up to half a tick, so that medians do not jump by whole
ticks. If more than three quarters of a run's times are in one tick, the interval is widened by half a tick.

The samples of two runs do not show what differs from run to run, nor a drift that is slow compared with blocks.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ...base.lazy_dataclass import dataclass
from ...base.notebook import figure_text, html_table, interval_text
from ...status import InvalidArgumentError
from .bootstrap import BLOCKS, Interval, bootstrap
from .samples import Samples, block_medians, samples_of, tick_of

_RESAMPLES = 1000
# With more than this share of the samples in one tick, the others hardly show where in the tick they are: interpolated
# medians of normal times are then wrong by 0.15 to 0.5 ticks.
_WITHIN_TICK = 0.75


class Verdict(enum.StrEnum):
    """The verdict on the second run, relative to the first."""

    SAME = "SAME"
    FASTER = "FASTER"
    SLOWER = "SLOWER"
    UNCLEAR = "UNCLEAR"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of a second run with a first.

    Attributes:
        verdict: the verdict, as the module defines it.
        ratio: the median of the second over the median of the first, interpolated within ticks of the clock; NaN if
            undefined.
        interval: the interval of ``ratio``, at the level ``confidence``; NaN if unknown.
        confidence: the level of the interval.
        effect: the value of Cliff's delta, -1 to 1: the share of pairs in which the second run's sample is longer, less
            the share in which it is shorter.
        p_value: the two-sided p-value of the Mann-Whitney test; of the medians of blocks if both runs have at least
            ``bootstrap.BLOCKS`` blocks.
        count_a, count_b: the numbers of samples that are not NaN; in blocks of both sides if ``how`` is ``"paired"``.
        explanation: a line of explanation that begins with the verdict.
        how: the kind of interval: ``"paired"`` blocks measured in turns (``paired``), ``"runs"`` measured apart
            (``runs``), or ``"samples"`` of one run each (``compare``).
        notes: the notes for readers of the verdict: samples that were left out, by side and reason; noise.
    """

    verdict: Verdict
    ratio: float
    interval: Interval
    confidence: float
    effect: float
    p_value: float
    count_a: int
    count_b: int
    explanation: str
    how: Literal["paired", "runs", "samples"] = "samples"
    notes: Sequence[str] = ()

    @property
    def half_width(self) -> float:
        """Half the width of the ratio's interval: a fraction; NaN if it is unknown."""
        return (self.interval.high - self.interval.low) / 2

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes of a table: for UNCLEAR the reason and what to do, then ``notes``."""
        why = self.explanation.removeprefix(f"{Verdict.UNCLEAR}: ")
        return (why, *self.notes) if self.verdict is Verdict.UNCLEAR else tuple(self.notes)

    def _repr_html_(self) -> str:
        rows = [
            ("ratio", figure_text(self.ratio)),
            (f"interval at {100 * self.confidence:.4g} %", interval_text(*self.interval)),
            ("effect", figure_text(self.effect)),
            ("p-value", figure_text(self.p_value)),
            ("samples", f"{self.count_a} and {self.count_b}"),
        ]
        return html_table(("", ""), rows, title=self.explanation, notes=self.notes)


def compare(
    a: ArrayLike,
    b: ArrayLike,
    *,
    confidence: float = 0.99,
    resolution: float = 0.025,
    threshold: float = 0.01,
    blocks_a: ArrayLike | None = None,
    blocks_b: ArrayLike | None = None,
    seed: int = 0,
) -> Comparison:
    """Compares two runs of a point.

    Args:
        a, b: the samples of the first and of the second run, one-dimensional, in the same unit; NaNs are excluded.
        confidence: the level of the interval, between 0 and 1.
        resolution: the largest half-width of the ratio's interval for SAME; a fraction.
        threshold: the smallest change of the median that counts; a fraction.
        blocks_a, blocks_b: the block of each sample; ``None`` for independent samples.
        seed: the seed of the bootstrap.

    Returns:
        The verdict with its figures; also UNCLEAR for too few samples for the level (8 for 99 %), or medians that are
        not positive and differ.

    Raises:
        InvalidArgumentError: a run has no sample that is a number, a sample is infinite, an array has the wrong shape,
            or a parameter is out of range.
    """
    check_limits(confidence, resolution, threshold)
    runs = samples_of(a, blocks_a, "the first run"), samples_of(b, blocks_b, "the second run")
    first, second = (run.numbers for run in runs)
    effect, p_value = _mann_whitney(*runs)
    median_a, median_b = float(np.median(first)), float(np.median(second))
    ratio = median_b / median_a if median_a > 0 else math.nan
    unknown = Interval(math.nan, math.nan)

    def say(verdict: Verdict, why: str, interval: Interval = unknown) -> Comparison:
        explanation = f"{verdict}: {why}"
        return Comparison(verdict, ratio, interval, confidence, effect, p_value, first.size, second.size, explanation)

    # The interval from smallest to largest sample misses the median with a probability of 2 / 2**count.
    least = max(2, math.ceil(math.log2(2 / (1 - confidence))))
    if min(first.size, second.size) < least:
        counts = f"{first.size} and {second.size}"
        return say(Verdict.UNCLEAR, f"{counts} samples; {confidence:.4g} confidence takes at least {least} of each")
    if not np.any(first) and not np.any(second):
        return say(Verdict.SAME, "all samples of both runs are 0")
    if not median_a > 0 or not median_b > 0:
        return say(Verdict.UNCLEAR, f"medians of {median_a:g} and {median_b:g} have no ratio that means anything")
    ratio, interval, blur = _ratio(*runs, confidence, seed)
    result = (
        f"median {percent(ratio)} ({percent(interval.low)} to {percent(interval.high)} at {100 * confidence:.4g} %)"
    )
    verdict = verdict_of(ratio, interval, resolution, threshold if p_value <= 1 - confidence else math.inf)
    if verdict is not Verdict.UNCLEAR:
        return say(verdict, result, interval)
    advice = "batch more dispatches, the clock's tick is too coarse" if blur > resolution / 2 else "take more samples"
    why = f"{result}; neither certain nor known to ±{100 * resolution:.4g} %: {advice}"
    return say(Verdict.UNCLEAR, why, interval)


def verdict_of(ratio: float, interval: Interval, resolution: float, threshold: float) -> Verdict:
    """Judges a ratio by its interval; see the module."""
    if not interval.low <= 1 <= interval.high and abs(ratio - 1) >= threshold:
        return Verdict.SLOWER if ratio > 1 else Verdict.FASTER
    within = max((interval.high - interval.low) / 2, abs(ratio - 1)) <= resolution
    return Verdict.SAME if within else Verdict.UNCLEAR


def check_limits(confidence: float, resolution: float, threshold: float) -> None:
    """Raises InvalidArgumentError for a level or a limit of verdicts that is out of range."""
    if not 0 < confidence < 1:
        raise InvalidArgumentError(f"confidence is between 0 and 1, such as 0.99; got {confidence!r}")
    if not resolution > 0 or not threshold >= 0:
        raise InvalidArgumentError(
            f"resolution is above 0 and threshold at least 0, such as 0.025 and 0.01; got {resolution!r}, {threshold!r}"
        )


def _ratio(first: Samples, second: Samples, confidence: float, seed: int) -> tuple[float, Interval, float]:
    """Returns the ratio of medians, its interval, and the fraction by which the clock's tick widens it."""
    tick_a, tick_b = tick_of(first.numbers), tick_of(second.numbers)
    if not tick_a and not tick_b:
        tick_a = tick_b = abs(float(first.numbers[0] - second.numbers[0]))  # they differ by at least a tick
    tick_a, tick_b = tick_a or tick_b, tick_b or tick_a
    rng = np.random.default_rng(seed)
    bounds, medians = [], []
    blur = 0.0
    tiny = np.finfo(np.float64).tiny
    for (numbers, labels), tick in ((first, tick_a), (second, tick_b)):
        within = np.unique(numbers, return_counts=True)[1].max() > _WITHIN_TICK * numbers.size
        half = tick / 2 if within else 0.0
        moved = numbers if within else np.maximum(numbers + tick * (rng.random(numbers.size) - 0.5), tiny)
        drawn = bootstrap(moved, blocks=labels, resamples=_RESAMPLES, seed=int(rng.integers(2**32)))
        bounds.append((np.maximum(drawn.distribution - half, tiny), drawn.distribution + half))
        medians.append(drawn.estimate)
        blur += half / drawn.estimate
    tail = (1 - confidence) / 2
    (least_a, most_a), (least_b, most_b) = bounds
    # A resampled median of 0 gives an infinite ratio.
    with np.errstate(over="ignore"):
        low = np.quantile(least_b / most_a, tail)
        high = np.quantile(most_b / least_a, 1 - tail, method="higher")
    return medians[1] / medians[0], Interval(float(low), float(high)), blur


def _mann_whitney(first: Samples, second: Samples) -> tuple[float, float]:
    """Returns Cliff's delta of the samples, and the p-value."""
    # P(second > first) + P(second = first) / 2, from -1 to 1.
    test = scipy.stats.mannwhitneyu(second.numbers, first.numbers)
    effect = 2 * float(test.statistic) / (first.numbers.size * second.numbers.size) - 1
    blocks = [block_medians(second), block_medians(first)]
    if min(block.size for block in blocks) >= BLOCKS:
        test = scipy.stats.mannwhitneyu(*blocks)
    return effect, float(test.pvalue)


def percent(ratio: float) -> str:
    """Formats a ratio as a change."""
    return f"{100 * (ratio - 1):+.1f} %"
