"""The bootstrap of a median or mean.

Intervals are percentiles of the resampled statistic: BCa's corrections assume a smooth function of the samples, which a
median is not, and percentiles apply to ratios unchanged. ``scipy.stats`` gives the same figures, but takes longer to
load than everything else that measures; it is loaded on first use where it is needed.

Samples of one block share the state of the machine (clock, temperature, neighbours), so they carry less information
than the same number of independent samples. Therefore:

- with at least twice ``BLOCKS`` blocks, whole blocks are resampled (the cluster bootstrap), whether or not they differ;
- with at least ``BLOCKS`` blocks, too few to resample as the tails would be too thin, each block's statistic is one
  observation. For a median, the number of blocks whose median is below the true one is binomial (the sign test): so the
  true median is between two neighbours of the ordered medians with the binomial's probability, and beyond the smallest
  or largest, where the samples' ends are the limit, with that of all blocks on one side. For a mean, the error of the
  logarithm follows Student's t, limited by the samples' ends, too;
- with fewer blocks the same if they differ by more than their samples explain (Kruskal-Wallis), else samples are
  resampled: two or three blocks carry too little information;
- without blocks, samples are resampled.

``relative_error`` is the one measure of how well a median is known: in stop rules, statuses and tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError
from .samples import standard_error, table_of_blocks

BLOCKS: Final = 10
"""The fewest blocks from which their variation can be estimated."""
DRIFT_LEVEL: Final = 0.01
"""Level of the test of whether few blocks differ: the rate of false positives."""

# This number of resamples gives a standard error a noise of 5 %, less than that of the samples.
_ERROR_RESAMPLES = 200
# Of more samples, every second, third, … is used: 200 resamples of this size take about ten milliseconds.
_MAX_ERROR = 4096
_MAX_ELEMENTS = 1_000_000  # resampled at a time: 8 MB of values, and 8 MB of indices


class Interval(NamedTuple):
    """A confidence interval; both ends NaN if it is unknown."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """A statistic, its value for each resample (NaN for one sample), its standard error, and the resampled unit."""

    estimate: float
    distribution: NDArray[np.float64]
    standard_error: float
    resampled: Literal["samples", "blocks", "few blocks"]

    @property
    def relative_error(self) -> float:
        """The standard error over the estimate: a fraction; 0 if both are 0, infinite if only the estimate is."""
        if self.standard_error == 0:
            return 0.0
        return self.standard_error / abs(self.estimate) if self.estimate else abs(self.standard_error) * np.inf

    def interval(self, confidence: float) -> Interval:
        """Returns the central interval of ``distribution`` at the level ``confidence``, such as 0.95."""
        tail = (1 - confidence) / 2
        low, high = np.quantile(self.distribution, [tail, 1 - tail])
        return Interval(float(low), float(high))


def bootstrap(
    values: ArrayLike,
    statistic: Literal["median", "mean"] = "median",
    *,
    blocks: ArrayLike | None = None,
    differ: bool | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Bootstrap:
    """Bootstraps the median or the mean of finite values, with the block of each, or ``None`` for independent ones; the
    module describes the resampling. ``differ`` says whether few blocks differ, ``None`` to test it. 1000 resamples give
    the standard error a noise of about 2 %.
    """
    numbers, labels = _checked(values, blocks)
    compute = np.median if statistic == "median" else np.mean
    estimate = float(compute(numbers))
    if numbers.size < 2:
        return Bootstrap(estimate, np.full(resamples, np.nan), float("nan"), "samples")
    rng = np.random.default_rng(seed)
    batch = max(1, _MAX_ELEMENTS // numbers.size)
    count = 1 if labels is None else int(labels.max()) + 1

    def resample(data: NDArray[Any], statistic: Callable[..., Any], unit: Literal["samples", "blocks"]) -> Bootstrap:
        sizes = [min(batch, resamples - begin) for begin in range(0, resamples, batch)]
        drawn = [statistic(data[rng.integers(0, data.size, (size, data.size))], axis=-1) for size in sizes]
        distribution = np.concatenate(drawn)
        return Bootstrap(estimate, distribution, float(np.std(distribution, ddof=1)), unit)

    if labels is not None and count >= 2 * BLOCKS:
        table = table_of_blocks(numbers, labels)
        # Blocks of unequal length are padded with NaN; functions that skip NaN are several times slower.
        skipping = np.nanmedian if statistic == "median" else np.nanmean
        reduce = skipping if np.isnan(table).any() else compute

        def of_blocks(drawn: NDArray[np.int64], axis: int = -1) -> NDArray[np.float64]:
            return np.asarray(reduce(table[drawn].reshape(*drawn.shape[:-1], -1), axis=-1))

        return resample(np.arange(count), of_blocks, "blocks")
    if labels is not None and (
        count >= BLOCKS or (differ if differ is not None else _differ(numbers, labels, DRIFT_LEVEL))
    ):
        of_each = np.array([compute(numbers[labels == block]) for block in range(count)])
        if statistic == "median":
            ordered = np.concatenate([[numbers.min()], np.sort(of_each), [numbers.max()]])
            below = rng.binomial(count, 0.5, resamples)
            drawn = ordered[below] + rng.random(resamples) * (ordered[below + 1] - ordered[below])
        elif numbers.min() > 0:
            # Two blocks give a Cauchy distribution, whose tails overflow.
            moved = np.clip(standard_error(np.log(of_each)) * rng.standard_t(count - 1, resamples), -99, 99)
            drawn = np.clip(estimate * np.exp(moved), numbers.min(), numbers.max())
        else:
            moved = standard_error(of_each) * rng.standard_t(count - 1, resamples)
            drawn = np.clip(estimate + moved, numbers.min(), numbers.max())
        return Bootstrap(estimate, drawn, standard_error(of_each), "few blocks")
    return resample(numbers, compute, "samples")


def relative_error(
    values: ArrayLike, *, blocks: ArrayLike | None = None, differ: bool | None = None, seed: int = 0
) -> float:
    """Returns the relative standard error of the median: a fraction, NaN for one value, infinite for a median of 0.

    It is the larger of the error for independent samples and, with blocks, the error between the medians of blocks, so
    that drift of the machine also shows in few blocks. ``blocks`` and ``differ`` are as of ``bootstrap``.
    """
    numbers, labels = _checked(values, blocks)
    stride = -(-numbers.size // _MAX_ERROR)
    thinned = numbers[::stride]
    error = bootstrap(thinned, resamples=_ERROR_RESAMPLES, seed=seed).relative_error
    error *= math.sqrt(thinned.size / numbers.size)
    if labels is None:
        return error
    # The error between blocks does not depend on the samples in them: no correction for thinning.
    kept = labels[::stride]
    medians = np.array([np.median(thinned[kept == block]) for block in np.unique(kept)])
    if differ:
        between = Bootstrap(float(np.median(medians)), medians, standard_error(medians), "few blocks").relative_error
    else:
        between = bootstrap(medians, resamples=_ERROR_RESAMPLES, seed=seed).relative_error
    return float(np.fmax(error, between))


def blocks_differ(values: ArrayLike, blocks: ArrayLike, *, level: float = DRIFT_LEVEL) -> bool:
    """Whether samples differ between blocks by more than within, by the test of Kruskal and Wallis at ``level``."""
    numbers, labels = _checked(values, blocks)
    return labels is not None and _differ(numbers, labels, level)


def _differ(numbers: NDArray[np.float64], labels: NDArray[np.int64], level: float) -> bool:
    if np.ptp(numbers) == 0:
        return False
    count = numbers.size
    places, ties = np.unique(numbers, return_inverse=True, return_counts=True)[1:]
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[places]
    sums, sizes = np.bincount(labels, ranks), np.bincount(labels)
    statistic = 12 / (count * (count + 1)) * (sums**2 / sizes).sum() - 3 * (count + 1)
    statistic /= 1 - (ties**3.0 - ties).sum() / (count**3 - count)
    return bool(special.chdtrc(sizes.size - 1, statistic) < level)


def _checked(values: ArrayLike, blocks: ArrayLike | None) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
    """Returns the values, and their blocks numbered from 0; ``None`` if blocks imply no correlation."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not numbers.size or not np.isfinite(numbers).all():
        raise InvalidArgumentError(
            f"a bootstrap takes one dimension of at least one finite number, got shape {numbers.shape} of which "
            f"{int(np.isfinite(numbers).sum())} are finite; leave the others out"
        )
    if blocks is None:
        return numbers, None
    block_names = np.asarray(blocks)
    if block_names.shape != numbers.shape:
        raise InvalidArgumentError(
            f"blocks name the block of each of {numbers.size} values, got shape {block_names.shape}"
        )
    distinct, labels = np.unique(block_names, return_inverse=True)
    if distinct.size in (1, numbers.size):
        return numbers, None
    return numbers, labels.astype(np.int64)
