"""Samples for statistics: without NaNs, with their blocks and the tick of their clock.

Timestamps of some devices advance in steps of tens of nanoseconds. Times of few ticks have many ties, and statistics
that treat them as exact underestimate the error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...status import InvalidArgumentError

STATISTICS: Final[Mapping[str, float]] = {
    "minimum": 0.0,
    "median": 0.5,
    "p90": 0.9,
    "p95": 0.95,
    "p99": 0.99,
    "p99.9": 0.999,
}
"""The statistics of samples that may be compared: quantiles by name."""

# A quantile is given if this many samples are expected beyond it: their number then has an error of about a third
# (Poisson: 1 / sqrt(10)), and a single preemption does not determine it.
_BEYOND = 10
# With more than this share of a side's times in one tick, their position within the tick is unknown.
_WITHIN_TICK = 0.75

# Steps smaller than this share of the largest value are rounding of the conversion from ticks to nanoseconds.
_ROUNDING = 1e-12


class Samples(NamedTuple):
    """Samples that are numbers, and the block of each, if blocks are known."""

    numbers: NDArray[np.float64]
    blocks: NDArray[np.generic] | None


def samples_of(values: ArrayLike, blocks: ArrayLike | None, who: str) -> Samples:
    """Checks samples, and returns them without NaNs. InvalidArgumentError: not one-dimensional, infinite, or none;
    ``who`` names them.
    """
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


def standard_error(values: NDArray[np.float64]) -> float:
    """Returns the standard error of the mean of at least two values."""
    return float(np.std(values, ddof=1)) / math.sqrt(values.size)


def table_of_blocks(numbers: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Arranges samples with a row per block, padded with NaN; blocks are numbered from 0."""
    order = np.argsort(labels, kind="stable")
    lengths = np.bincount(labels)
    column = np.arange(numbers.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    table = np.full((lengths.size, int(lengths.max(initial=0))), np.nan)
    table[labels[order], column] = numbers[order]
    return table


def tick_of(values: ArrayLike) -> float:
    """Returns the smallest difference of two finite values; 0.0 if there is none.

    For a coarse clock this is a multiple of its tick, and the tick itself once two samples are adjacent. For a fine
    clock it is about the range over the squared count: too small to matter.
    """
    numbers = np.asarray(values, dtype=np.float64)
    distinct = np.unique(numbers[np.isfinite(numbers)])
    steps = np.diff(distinct)
    steps = steps[steps > _ROUNDING * np.abs(distinct).max(initial=0)]
    return float(steps.min()) if steps.size else 0.0


def fewest_samples(statistic: str) -> int:
    """Returns the fewest samples for which one of ``STATISTICS`` is defined: 100 for p90, 10 000 for p99.9."""
    level = STATISTICS[statistic]
    return round(_BEYOND / (1 - level)) if level > 0.5 else 1


def tick_blur(first: NDArray[np.float64], second: NDArray[np.float64], tick: float) -> float:
    """Returns the uncertainty of two sides' log ratio that the clock's ``tick`` causes: half a tick for each side that
    is within one tick. The sides are times, or quantiles of times; NaNs do not count.
    """
    sides = [side[~np.isnan(side)] for side in (first, second)]
    most_equal = [int(np.unique(side, return_counts=True)[1].max(initial=0)) for side in sides]
    coarse = [side for side, count in zip(sides, most_equal, strict=True) if count > _WITHIN_TICK * side.size]
    return sum(tick / 2 / float(np.median(side)) for side in coarse)


def spread_in_ticks(first: NDArray[np.float64], second: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Moves each time at random by up to half a tick, so that medians do not jump by whole ticks. Both sides use the
    same seed, so that equal sides stay equal. Times stay positive.
    """
    tick = tick_of(np.concatenate([first.ravel(), second.ravel()]))
    tiny = np.finfo(np.float64).tiny
    return [
        np.maximum(side + tick * (np.random.default_rng(0).random(side.shape) - 0.5), tiny) for side in (first, second)
    ]
