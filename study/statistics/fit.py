"""Lines through points: marginal and fixed costs.

With ``x`` dispatches in a command buffer the slope is the marginal cost and the intercept the fixed one.

The line is weighted least squares through the medians at each ``x``. Without weights a 1 % error at ``x = 256`` would
outweigh everything that ``x = 1`` says about the intercept; Theil-Sen has none. A weight is the inverse of the median's
bootstrap standard error, to which the clock's tick and a thousandth of the median are added: clocks are not more exact,
and a point of equal samples would otherwise determine the line.

Intervals come from fitting each set of resampled medians. If points are off the line by more than their errors
(``misfit`` above 1), intervals are widened by that factor, as the Particle Data Group does (Review of Particle Physics,
section 5.2.2 of the introduction).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import ArrayLike, NDArray

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError
from .bootstrap import Interval, bootstrap
from .samples import samples_of, tick_of

_RESAMPLES = 1000
_MIN_ERROR = 1e-3

_Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Line:
    """A line ``y = intercept + slope * x`` through points.

    Attributes:
        slope, intercept: the marginal cost (unit of the samples per unit of ``x``) and the fixed one (unit of the
            samples).
        slope_interval, intercept_interval: the intervals of slope and intercept, at the level ``confidence``.
        confidence: the level of the intervals.
        r_squared: the share of the medians' variance that the line explains; NaN if all medians are equal.
        misfit: the distance of the medians from the line in units of their errors: root of chi-squared per degree of
            freedom. About 1 for a line; NaN for two points.
        x: the values of the axis, ascending.
        medians: the median at each ``x``.
        residuals: the median minus the line, at each ``x``.
    """

    slope: float
    slope_interval: Interval
    intercept: float
    intercept_interval: Interval
    confidence: float
    r_squared: float
    misfit: float
    x: tuple[float, ...]
    medians: tuple[float, ...]
    residuals: tuple[float, ...]


def fit_line(
    x: Sequence[float],
    samples: Sequence[ArrayLike],
    *,
    confidence: float = 0.95,
    blocks: Sequence[ArrayLike | None] | None = None,
    seed: int = 0,
) -> Line:
    """Fits a line to the samples at each ``x``.

    Args:
        x: the positions: at least two different values, in any order.
        samples: the samples for each ``x``, one-dimensional; NaNs are excluded.
        confidence: the level of the intervals, between 0 and 1.
        blocks: for each ``x`` the block of each of its samples, or ``None``; see ``bootstrap``.
        seed: the seed of the bootstrap.

    Returns:
        The slope and intercept with their intervals; see ``Line``.

    Raises:
        InvalidArgumentError: there are fewer than two different ``x``, or an ``x`` twice; the number of sets of samples
            differs, a set has fewer than two samples that are not NaN, or ``confidence`` is out of range.
    """
    where, medians, errors, resampled = _points(x, samples, confidence, blocks, seed)
    # If all times are 0 all weigh the same.
    weights = 1 / np.where(errors > 0, errors, errors.max() or 1)
    line = polynomial.polyfit(where, medians, 1, w=weights)
    residuals = medians - polynomial.polyval(where, line)
    freedom = where.size - 2
    misfit = math.sqrt(float(np.sum((residuals * weights) ** 2)) / freedom) if freedom else math.nan
    varied = polynomial.polyfit(where, resampled, 1, w=weights)
    tail = (1 - confidence) / 2
    low, high = np.quantile(varied, [tail, 1 - tail], axis=1)
    widening = np.fmax(misfit, 1)
    low, high = line + (low - line) * widening, line + (high - line) * widening
    spread = float(np.sum((medians - medians.mean()) ** 2))
    return Line(
        slope=float(line[1]),
        slope_interval=Interval(float(low[1]), float(high[1])),
        intercept=float(line[0]),
        intercept_interval=Interval(float(low[0]), float(high[0])),
        confidence=confidence,
        r_squared=1 - float(np.sum(residuals**2)) / spread if spread else math.nan,
        misfit=misfit,
        x=tuple(where.tolist()),
        medians=tuple(medians.tolist()),
        residuals=tuple(residuals.tolist()),
    )


def _points(
    x: Sequence[float],
    samples: Sequence[ArrayLike],
    confidence: float,
    blocks: Sequence[ArrayLike | None] | None,
    seed: int,
) -> tuple[_Array, _Array, _Array, _Array]:
    """Returns the ascending x, the median at each, its error, and ``(len(x), resamples)`` resampled medians."""
    where = np.asarray(x, dtype=np.float64)
    if not 0 < confidence < 1:
        raise InvalidArgumentError(f"confidence is between 0 and 1, such as 0.95; got {confidence!r}")
    if where.ndim != 1 or len(samples) != where.size or (blocks is not None and len(blocks) != where.size):
        sets = "" if blocks is None else f" and {len(blocks)} of blocks"
        raise InvalidArgumentError(
            f"each x has a set of samples, got shape {where.shape} and {len(samples)} sets{sets}"
        )
    if where.size < 2 or not np.isfinite(where).all() or np.unique(where).size != where.size:
        raise InvalidArgumentError(f"a line takes at least two x, all different, got {list(x)}")
    medians, errors, resampled = [], [], []
    order = np.argsort(where)
    for index in order:
        values, labels = samples_of(samples[index], None if blocks is None else blocks[index], f"x = {where[index]:g}")
        if values.size < 2:
            raise InvalidArgumentError(
                f"a fit takes at least two samples at each x; at x = {where[index]:g} there is one number"
            )
        drawn = bootstrap(values, blocks=labels, resamples=_RESAMPLES, seed=seed + int(index))
        tick = tick_of(values)
        # The error within a tick is uniformly distributed.
        least = math.hypot(tick / math.sqrt(12), _MIN_ERROR * abs(drawn.estimate))
        medians.append(drawn.estimate)
        errors.append(math.hypot(drawn.standard_error, least))
        noise = np.random.default_rng([seed, int(index)]).normal(0, least, _RESAMPLES)
        resampled.append(drawn.distribution + noise)
    return where[order], np.array(medians), np.array(errors), np.stack(resampled)
