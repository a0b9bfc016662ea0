"""Outliers: samples classified by Tukey's fences, as criterion does. They are counted and shown, not dropped.

The fences are at 1.5 (mild) and 3 (severe) interquartile ranges below the first and above the third quartile; a sample
is outside if it is strictly beyond. Source: criterion.rs 0.5, ``src/stats/univariate/outliers/tukey.rs``.

One difference: if more than half of the samples are in one tick of the clock, their interquartile range is 0, and
samples in the adjacent ticks would be severe outliers. So the range is at least one tick.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...status import InvalidArgumentError
from .samples import tick_of

_MILD = 1.5
_SEVERE = 3.0


@dataclass(frozen=True, slots=True)
class OutlierCounts:
    """How many samples are in each class."""

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
    """The classes of samples.

    Attributes:
        classes: int8 for each sample: -2 (low severe), -1 (low mild), 0 (normal; also NaN, which is not counted), 1, 2.
        fences: low severe, low mild, high mild, high severe, in the samples' unit.
        counts: of the classes.
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
