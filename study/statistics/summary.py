"""Summary statistics of the samples of a point, and its outliers.

The median is the headline: preemptions and clock ramps only lengthen times, so the mean measures disturbances as much
as the work. Mean and minimum are also given. Statistics are NumPy's and SciPy's; intervals are by ``bootstrap``.

Outliers are classified by Tukey's fences, as criterion does (criterion.rs 0.5,
``src/stats/univariate/outliers/tukey.rs``): at 1.5 (mild) and 3 (severe) interquartile ranges below the first and above
the third quartile. They are counted and shown, not dropped. One difference: if more than half of the samples are in one
tick of the clock, their interquartile range is 0, and samples in the adjacent ticks would be severe outliers. So the
range is at least one tick.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...base.lazy_dataclass import dataclass
from ...base.notebook import figure_text, html_table, interval_text
from ...status import InvalidArgumentError
from .bootstrap import Interval, bootstrap, relative_error
from .samples import STATISTICS, fewest_samples, samples_of, tick_of

QUANTILES: Final[Mapping[str, float]] = {name: level for name, level in STATISTICS.items() if level > 0.5}
"""The upper quantiles, by name."""

_MILD = 1.5
_SEVERE = 3.0


@dataclass(frozen=True, slots=True)
class OutlierCounts:
    """The number of samples in each class."""

    low_severe: int
    low_mild: int
    normal: int
    high_mild: int
    high_severe: int

    @property
    def outliers(self) -> int:
        """All that are not normal."""
        return self.low_severe + self.low_mild + self.high_mild + self.high_severe

    @property
    def total(self) -> int:
        """All classified samples: those that are numbers."""
        return self.outliers + self.normal


@dataclass(frozen=True, slots=True, eq=False)
class Outliers:
    """The class of each sample, from -2 (low severe) over 0 (normal, or NaN) to 2; the fences between the classes, in
    the samples' unit; and how many samples are in each.
    """

    classes: NDArray[np.int8]
    fences: tuple[float, float, float, float]
    counts: OutlierCounts


def classify(values: ArrayLike) -> Outliers:
    """Classifies samples of one dimension by Tukey's fences; InvalidArgumentError if none is a number."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1:
        raise InvalidArgumentError(f"samples to classify have one dimension, got shape {numbers.shape}")
    known = numbers[~np.isnan(numbers)]
    if not known.size:
        raise InvalidArgumentError(f"of {numbers.size} samples to classify, none is a number; at least one is needed")
    first, third = np.quantile(known, [0.25, 0.75])
    spread = max(third - first, tick_of(known))
    low_severe, low_mild = first - _SEVERE * spread, first - _MILD * spread
    high_mild, high_severe = third + _MILD * spread, third + _SEVERE * spread
    # Comparisons with NaN are false, so a NaN adds up to NORMAL.
    above = (numbers > high_mild).astype(np.int8) + (numbers > high_severe)
    below = (numbers < low_mild).astype(np.int8) + (numbers < low_severe)
    classes = (above - below).astype(np.int8)
    counts = OutlierCounts(*np.bincount(classes[~np.isnan(numbers)] + 2, minlength=5).tolist())
    return Outliers(classes, (float(low_severe), float(low_mild), float(high_mild), float(high_severe)), counts)


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of samples; times are in the samples' unit.

    Attributes:
        count: the number of samples that are not NaN, to which all figures refer.
        missing: the number of samples that are NaN.
        median, q1, q3: the quartiles, by linear interpolation.
        iqr: the interquartile range ``q3 - q1``.
        minimum, maximum, mean: the minimum, maximum and mean of the samples.
        standard_deviation: the standard deviation of the samples (``ddof=1``); NaN for one sample.
        confidence: the level of the intervals.
        median_interval, mean_interval: the intervals by bootstrap; NaN for one sample.
        relative_error: the relative standard error of the median, see ``bootstrap.relative_error``; NaN for one sample.
        resampled: the units that the bootstrap drew: ``"samples"``, ``"blocks"``, or ``"few blocks"``; see
            ``bootstrap``.
        quantiles: the quantiles of ``QUANTILES`` that have ten samples beyond: 100 samples for p90, 10 000 for p99.9.
        outliers: the number of samples beyond Tukey's fences.
    """

    count: int
    missing: int
    median: float
    q1: float
    q3: float
    iqr: float
    minimum: float
    maximum: float
    mean: float
    standard_deviation: float
    confidence: float
    median_interval: Interval
    mean_interval: Interval
    relative_error: float
    resampled: Literal["samples", "blocks", "few blocks"]
    quantiles: Mapping[str, float]
    outliers: OutlierCounts

    def _repr_html_(self) -> str:
        rows = [
            ("median", figure_text(self.median), interval_text(*self.median_interval)),
            ("mean", figure_text(self.mean), interval_text(*self.mean_interval)),
            ("standard deviation", figure_text(self.standard_deviation), ""),
            ("relative error of the median", figure_text(self.relative_error), ""),
            ("minimum", figure_text(self.minimum), ""),
            *((name, figure_text(value), "") for name, value in (("q1", self.q1), ("q3", self.q3))),
            *((name, figure_text(value), "") for name, value in self.quantiles.items()),
            ("maximum", figure_text(self.maximum), ""),
            ("outliers", str(self.outliers.outliers), ""),
        ]
        missing = f", {self.missing} missing" if self.missing else ""
        columns = ("", f"of {self.count} samples{missing}", f"interval at {100 * self.confidence:.4g} %")
        return html_table(columns, rows)


def summarize(
    values: ArrayLike,
    *,
    confidence: float = 0.95,
    blocks: ArrayLike | None = None,
    runs: ArrayLike | None = None,
    seed: int = 0,
) -> Summary:
    """Summarizes the samples of a point.

    Args:
        values: the values, one-dimensional, such as nanoseconds; NaNs are excluded and counted.
        confidence: the level of the intervals, between 0 and 1.
        blocks: the block of each sample, whose correlation widens intervals; ``None`` for independent samples.
        runs: the run of each sample, if there are several: they are the blocks then, and known to differ.
        seed: the seed of the bootstrap.

    Raises:
        InvalidArgumentError: no sample is a number, a sample is infinite, ``values`` or ``blocks`` has the wrong shape,
            or ``confidence`` is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise InvalidArgumentError(f"confidence is between 0 and 1, such as 0.95; got {confidence!r}")
    differ = None
    if runs is not None and np.unique(np.asarray(runs)[~np.isnan(np.asarray(values, np.float64))]).size > 1:
        blocks, differ = runs, True
    numbers, labels = samples_of(values, blocks, "what is summarized")
    count = numbers.size
    of_median = bootstrap(numbers, "median", blocks=labels, differ=differ, seed=seed)
    of_mean = bootstrap(numbers, "mean", blocks=labels, differ=differ, seed=seed)
    q1, q3 = (float(quartile) for quartile in np.quantile(numbers, [0.25, 0.75]))
    enough = {name: level for name, level in QUANTILES.items() if count >= fewest_samples(name)}
    return Summary(
        count=count,
        missing=np.size(values) - count,
        median=of_median.estimate,
        q1=q1,
        q3=q3,
        iqr=q3 - q1,
        minimum=float(numbers.min()),
        maximum=float(numbers.max()),
        mean=of_mean.estimate,
        standard_deviation=float(np.std(numbers, ddof=1)) if count > 1 else float("nan"),
        confidence=confidence,
        median_interval=of_median.interval(confidence),
        mean_interval=of_mean.interval(confidence),
        relative_error=relative_error(numbers, blocks=labels, differ=differ, seed=seed),
        resampled=of_median.resampled,
        quantiles={name: float(np.quantile(numbers, level)) for name, level in enough.items()},
        outliers=classify(numbers).counts,
    )
