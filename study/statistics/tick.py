"""The tick of a clock: the step that times of it come in, read off the times themselves.

Device timestamps step by tens of nanoseconds on some devices, whatever unit they are told in. Times that are few ticks
long have many ties, and statistics that take them for exact are too sure of themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["tick_of"]

# Steps smaller than this share of the largest value are rounding of the conversion from ticks to nanoseconds.
_ROUNDING = 1e-12


def tick_of(values: ArrayLike) -> float:
    """The smallest step between two different values, in their unit; 0.0 where all are equal or there are none.

    For times of a clock that ticks this is a multiple of its tick, and the tick itself as soon as two samples are
    neighbours. For times without a visible tick it is about the range over the squared count: too small to matter.

    Args:
        values: one-dimensional; what is not finite is left out.
    """
    numbers = np.asarray(values, dtype=np.float64)
    distinct = np.unique(numbers[np.isfinite(numbers)])
    if distinct.size < 2:
        return 0.0
    steps = np.diff(distinct)
    steps = steps[steps > _ROUNDING * np.abs(distinct).max()]
    return float(steps.min()) if steps.size else 0.0
