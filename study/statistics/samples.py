"""Samples as statistics take them: without what is no number, with their blocks and the tick of their clock.

Timestamps of some devices advance in steps of tens of nanoseconds. Times of few ticks have many ties, and statistics
that take them as exact underestimate the error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...status import InvalidArgumentError

# Steps smaller than this share of the largest value are rounding of the conversion from ticks to nanoseconds.
_ROUNDING = 1e-12


class Samples(NamedTuple):
    """Samples that are numbers, and the block of each, if blocks are known."""

    numbers: NDArray[np.float64]
    blocks: NDArray[np.generic] | None


def samples_of(values: ArrayLike, blocks: ArrayLike | None, who: str) -> Samples:
    """One-dimensional finite samples without NaNs; InvalidArgumentError if ``who`` has others, or none."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or np.isinf(numbers).any():
        raise InvalidArgumentError(f"{who} is one dimension of finite samples, got shape {numbers.shape}")
    known = ~np.isnan(numbers)
    if not known.any():
        raise InvalidArgumentError(f"{who} has {numbers.size} samples, none of which is a number")
    if blocks is None:
        return Samples(numbers[known], None)
    labels = np.asarray(blocks)
    if labels.shape != numbers.shape:
        raise InvalidArgumentError(f"{who}: blocks are the block of each of {numbers.size} samples, got {labels.shape}")
    return Samples(numbers[known], labels[known])


def block_medians(samples: Samples) -> NDArray[np.float64]:
    distinct = () if samples.blocks is None else np.unique(samples.blocks)
    return np.array([np.median(samples.numbers[samples.blocks == block]) for block in distinct])


def tick_of(values: ArrayLike) -> float:
    """The smallest difference of two finite values, in their unit; 0.0 if there is none.

    For a coarse clock this is a multiple of its tick, and the tick itself once two samples are adjacent. For a fine
    clock it is about the range over the squared count: too small to matter.
    """
    numbers = np.asarray(values, dtype=np.float64)
    distinct = np.unique(numbers[np.isfinite(numbers)])
    steps = np.diff(distinct)
    steps = steps[steps > _ROUNDING * np.abs(distinct).max(initial=0)]
    return float(steps.min()) if steps.size else 0.0
