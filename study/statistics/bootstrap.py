"""The bootstrap of a median or mean.

Resampling is SciPy's (``scipy.stats.bootstrap``), intervals are percentiles of the resampled statistic: the corrections
of BCa assume a smooth function of the samples, which a median is not, and percentiles apply to ratios unchanged.

Samples of a point are taken in blocks, between which other points are sampled. Samples of one block share the state of
the machine (clock, temperature, neighbours), so they tell less than as many independent ones. Therefore:

- with at least twice ``BLOCKS`` blocks, whole blocks are resampled (the cluster bootstrap), whether or not they differ;
- with at least ``BLOCKS`` blocks, too few to resample, as the tails would be too thin, the logarithm of each block's
  statistic is one observation, and the error follows Student's t with one degree of freedom fewer than blocks;
- with fewer blocks the same if they differ by more than their samples explain (Kruskal-Wallis), else samples are
  resampled: Student's t with two or three degrees of freedom is too wide to be useful;
- without blocks, samples are resampled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ...records import dataclass
from ...status import InvalidArgumentError

BLOCKS: Final = 10
"""The fewest blocks from which their variation can be estimated."""
DRIFT_LEVEL: Final = 0.01
"""Level of the test of whether few blocks differ: the rate of false positives."""

_MAX_ELEMENTS = 1_000_000  # resampled at a time: 8 MB of values and as much of indices


class Interval(NamedTuple):
    """A confidence interval; both ends NaN if it is unknown."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """A statistic, its value for each resample (NaN for one sample), its standard error, and what was resampled."""

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
        """The central interval of ``distribution`` at the level ``confidence``, such as 0.95."""
        tail = (1 - confidence) / 2
        low, high = np.quantile(self.distribution, [tail, 1 - tail])
        return Interval(float(low), float(high))


def bootstrap(
    values: ArrayLike,
    statistic: Literal["median", "mean"] = "median",
    *,
    blocks: ArrayLike | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Bootstrap:
    """Bootstraps the median or the mean of finite values, with the block of each, or ``None`` for independent ones; the
    module says what is resampled. 1000 resamples give the standard error a noise of about 2 %.
    """
    numbers, labels = _checked(values, blocks)
    compute = np.median if statistic == "median" else np.mean
    estimate = float(compute(numbers))
    if numbers.size < 2:
        return Bootstrap(estimate, np.full(resamples, np.nan), float("nan"), "samples")
    rng = np.random.default_rng(seed)
    batch = max(1, _MAX_ELEMENTS // numbers.size)
    count = 1 if labels is None else int(labels.max()) + 1

    def resample(data: NDArray[Any], statistic: Callable[..., Any], what: Literal["samples", "blocks"]) -> Bootstrap:
        options = {"vectorized": True, "n_resamples": resamples, "batch": batch, "method": "percentile", "rng": rng}
        result = stats.bootstrap((data,), statistic, **options)
        return Bootstrap(estimate, result.bootstrap_distribution, float(result.standard_error), what)

    if labels is not None and count >= 2 * BLOCKS:
        table = _table(numbers, labels)
        # Blocks of unequal length are padded with NaN; functions that skip NaN are several times slower.
        skipping = np.nanmedian if statistic == "median" else np.nanmean
        reduce = skipping if np.isnan(table).any() else compute

        def of_blocks(drawn: NDArray[np.int64], axis: int = -1) -> NDArray[np.float64]:
            return np.asarray(reduce(table[drawn].reshape(*drawn.shape[:-1], -1), axis=-1))

        return resample(np.arange(count), of_blocks, "blocks")
    # Logarithms need positive values.
    if labels is not None and numbers.min() > 0 and (count >= BLOCKS or _differ(numbers, labels, DRIFT_LEVEL)):
        of_each = np.log([compute(numbers[labels == block]) for block in range(count)])
        error = float(stats.sem(of_each))
        # Two blocks give a Cauchy distribution, whose tails overflow.
        moved = np.clip(error * stats.t.rvs(of_each.size - 1, size=resamples, random_state=rng), -100, 100)
        return Bootstrap(estimate, estimate * np.exp(moved), estimate * error, "few blocks")
    return resample(numbers, compute, "samples")


def blocks_differ(values: ArrayLike, blocks: ArrayLike, *, level: float = DRIFT_LEVEL) -> bool:
    """Whether samples differ between blocks by more than within, by the test of Kruskal and Wallis at ``level``."""
    numbers, labels = _checked(values, blocks)
    return labels is not None and _differ(numbers, labels, level)


def _differ(numbers: NDArray[np.float64], labels: NDArray[np.int64], level: float) -> bool:
    if np.ptp(numbers) == 0:
        return False
    result = stats.kruskal(*(numbers[labels == block] for block in range(int(labels.max()) + 1)))
    return bool(result.pvalue < level)


def _checked(values: ArrayLike, blocks: ArrayLike | None) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
    """The values, and their blocks numbered from 0; ``None`` if blocks imply no correlation."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not numbers.size or not np.isfinite(numbers).all():
        raise InvalidArgumentError(
            f"a bootstrap takes one dimension of at least one finite number, got shape {numbers.shape} of which "
            f"{int(np.isfinite(numbers).sum())} are finite; leave the others out"
        )
    if blocks is None:
        return numbers, None
    given = np.asarray(blocks)
    if given.shape != numbers.shape:
        raise InvalidArgumentError(f"blocks name the block of each of {numbers.size} values, got shape {given.shape}")
    distinct, labels = np.unique(given, return_inverse=True)
    if distinct.size in (1, numbers.size):
        return numbers, None
    return numbers, labels.astype(np.int64)


def _table(numbers: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """One row a block, padded with NaN."""
    order = np.argsort(labels, kind="stable")
    lengths = np.bincount(labels)
    column = np.arange(numbers.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    table = np.full((lengths.size, int(lengths.max())), np.nan)
    table[labels[order], column] = numbers[order]
    return table
