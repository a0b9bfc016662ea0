"""Decides when a point has enough samples.

Calling sequence: one ``StopRule`` per point → ``update`` with all samples so far after each block, until a ``Decision``
is done.

**Error** (the default): the relative standard error of the median (``bootstrap.relative_error``) is small enough. At
least six blocks are required, as three or four often agree by chance, and ``bootstrap.BLOCKS`` if blocks differ
visibly. Errors are computed only when the count has grown by a quarter: a bootstrap costs more than a sample, and
frequent decisions let lucky sequences end a point too early.

**Entropy**: more samples no longer change the shape of their distribution. As in nvbench
(``nvbench/detail/entropy_criterion.cxx``), a line is fitted to the entropy of the histogram of the first k samples, and
the point ends when it is flat. Here bins cover all samples each time, so that drift appears as new bins; the line is
over the logarithm of k, so that its slope is the growth of entropy when samples are doubled; and the scatter about the
line is bounded instead of R², which is 0 for a flat line.

With either criterion a point ends at ``max_samples`` or ``time_limit``; it is ``noisy`` if the error of its median is
then above ``noise_limit``.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError
from ..definition.settings import Sampling
from ..statistics.bootstrap import BLOCKS, blocks_differ, relative_error

_GROWTH = 1.25
# Fewer blocks often agree by chance.
_MIN_BLOCKS = 6
# Level of the test of whether blocks differ: high, as a false positive only costs a few more samples.
_DRIFT_LEVEL = 0.1
# The entropy is settled when doubling the samples adds less than _FLAT bits, known to within _SCATTER bits.
_FLAT = 0.05
_SCATTER = 0.05
_LENGTHS = 16


class StopReason(enum.StrEnum):
    """The reason why a point is done."""

    ERROR_REACHED = "error reached"
    ENTROPY_SETTLED = "entropy settled"
    MAX_SAMPLES = "max samples"
    TIME_LIMIT = "time limit"
    PRECISION_REACHED = "precision reached"


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of a stop rule.

    Attributes:
        reason: the reason why the point is done; None to continue.
        relative_error: the last relative standard error of the median, or for a pair the half-width of the ratio's
            interval; NaN before the first.
        noisy: whether the error is above its limit, or unknown, at the end.
    """

    reason: StopReason | None
    relative_error: float
    noisy: bool = False

    @property
    def done(self) -> bool:
        return self.reason is not None


class StopRule:
    """Decides when a point has enough samples; see the module. One thread at a time."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._next = sampling.min_samples
        self._error = math.nan

    def update(
        self,
        values: Sequence[float] | NDArray[np.float64],
        *,
        blocks: ArrayLike | None = None,
        elapsed: float,
    ) -> Decision:
        """Decides by the headline of all samples so far, in their order, the block of each, and the seconds of
        sampling. NaNs only count for ``max_samples``.
        """
        sampling = self._sampling
        count = len(values)
        limit: StopReason | None = None
        if count >= sampling.max_samples:
            limit = StopReason.MAX_SAMPLES
        elif elapsed >= sampling.time_limit:
            limit = StopReason.TIME_LIMIT
        if limit is None and count < self._next:
            return Decision(None, self._error)
        self._next = math.ceil(count * _GROWTH)
        reached = self._reached(np.asarray(values, dtype=np.float64), blocks)
        reason = limit if reached is None else reached
        return Decision(reason, self._error, noisy=reason is not None and not self._error <= sampling.noise_limit)

    def _reached(self, values: NDArray[np.float64], blocks: ArrayLike | None) -> StopReason | None:
        """Updates the error, and returns the reason if the criterion is met."""
        labels = None if blocks is None else np.asarray(blocks)
        if labels is not None and labels.shape != values.shape:
            raise InvalidArgumentError(f"blocks name the block of each of {values.size} samples, got {labels.shape}")
        known = ~np.isnan(values)
        values, labels = values[known], None if labels is None else labels[known]
        self._error, resolved = self._relative_error(values, labels)
        if values.size < self._sampling.min_samples:
            return None
        if self._sampling.criterion == "entropy":
            return StopReason.ENTROPY_SETTLED if self._settled(values) else None
        return StopReason.ERROR_REACHED if resolved and self._error <= self._sampling.relative_error else None

    def _relative_error(self, values: NDArray[np.float64], labels: NDArray[np.generic] | None) -> tuple[float, bool]:
        """Returns the relative standard error of the median, and whether there are enough blocks for it."""
        if not values.size:
            return math.nan, False
        error = relative_error(values, blocks=labels, seed=self._sampling.seed)
        if labels is None:
            return error, True
        wanted = BLOCKS if blocks_differ(values, labels, level=_DRIFT_LEVEL) else _MIN_BLOCKS
        # Long blocks limit how many there can be.
        wanted = min(wanted, self._sampling.max_samples // self._sampling.block)
        return error, np.unique(labels).size >= wanted

    def _settled(self, values: NDArray[np.float64]) -> bool:
        """Whether the second half of the samples leaves the entropy of their histogram unchanged."""
        edges = _bin_edges(values)
        bins = np.searchsorted(edges, values, side="right")
        lengths = np.unique(np.linspace(values.size / 2, values.size, _LENGTHS).astype(int))
        if lengths.size < 3:
            return False
        shapes = np.stack([np.bincount(bins[:length], minlength=edges.size + 1) for length in lengths])
        entropies = special.entr(shapes / lengths[:, np.newaxis]).sum(axis=1) / math.log(2)
        slope, intercept = np.polyfit(np.log2(lengths), entropies, 1)
        scatter = np.std(entropies - (intercept + slope * np.log2(lengths)))
        return bool(abs(slope) <= _FLAT and scatter <= _SCATTER)


def _bin_edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the inner edges of bins for these values; the end bins are unbounded."""
    first, third = np.quantile(values, [0.25, 0.75])
    reach = 3 * (third - first)
    within = (float(first - reach), float(third + reach)) if reach else (float(values.min()), float(values.max()))
    return np.asarray(np.histogram_bin_edges(values, bins="auto", range=within))[1:-1]
