"""The tick of a clock, estimated from times.

Timestamps of some devices advance in steps of tens of nanoseconds. Times of few ticks have many ties, and statistics
that take them as exact underestimate the error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

# Steps smaller than this share of the largest value are rounding of the conversion from ticks to nanoseconds.
_ROUNDING = 1e-12


def tick_of(values: ArrayLike) -> float:
    """The smallest difference of two values, in their unit; 0.0 if there is none.

    For a coarse clock this is a multiple of its tick, and the tick itself once two samples are adjacent. For a fine
    clock it is about the range over the squared count: too small to matter.

    Args:
        values: one-dimensional; values that are not finite are excluded.
    """
    numbers = np.asarray(values, dtype=np.float64)
    distinct = np.unique(numbers[np.isfinite(numbers)])
    if distinct.size < 2:
        return 0.0
    steps = np.diff(distinct)
    steps = steps[steps > _ROUNDING * np.abs(distinct).max()]
    return float(steps.min()) if steps.size else 0.0
