"""Lines through points: planted costs are found, within intervals of the right width."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from support.soak import rounds

from pumice.status import InvalidArgumentError
from pumice.study.statistics.fit import fit_line

DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def _times(rng: np.random.Generator, fixed: float, marginal: float, count: int = 40) -> list[NDArray[np.float64]]:
    """Returns samples at each depth, a few of them preempted."""
    return [
        (fixed + marginal * depth) * rng.lognormal(0, 0.02, count)
        + (rng.random(count) < 0.03) * rng.exponential(1e6, count)
        for depth in DEPTHS
    ]


def test_marginal_and_fixed_cost_are_found() -> None:
    line = fit_line(DEPTHS, _times(np.random.default_rng(0), 5000, 120))
    assert line.slope == pytest.approx(120, rel=0.02) and line.intercept == pytest.approx(5000, rel=0.02)
    assert line.slope_interval.low < 120 < line.slope_interval.high
    assert line.intercept_interval.low < 5000 < line.intercept_interval.high
    assert line.r_squared > 0.999 and line.misfit < 3
    assert line.x == DEPTHS and len(line.medians) == len(line.residuals) == len(DEPTHS)
    assert np.subtract(line.medians, line.residuals) == pytest.approx(line.intercept + line.slope * np.array(DEPTHS))


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    slopes = intercepts = 0
    depths = DEPTHS[::4]
    # With a probability of 90 %, thirty repetitions detect intervals that contain the truth in less than 75 % of cases.
    times = rounds(30, 300)
    for seed in range(times):
        rng = np.random.default_rng([1, seed])
        line = fit_line(depths, _times(rng, 5000, 120)[::4], seed=seed)
        slopes += line.slope_interval.low <= 120 <= line.slope_interval.high
        intercepts += line.intercept_interval.low <= 5000 <= line.intercept_interval.high
    # Three standard deviations of a binomial below 95 %.
    assert min(slopes, intercepts) >= 0.95 * times - 3 * math.sqrt(0.05 * 0.95 * times)


@pytest.mark.slow
def test_small_depths_decide_on_the_fixed_cost() -> None:
    # Without weights, the 2 % noise of the largest depth is several times the whole fixed cost.
    errors, unweighted = [], []
    for seed in range(12):
        times = _times(np.random.default_rng([2, seed]), 500, 120)
        errors.append(fit_line(DEPTHS, times).intercept - 500)
        unweighted.append(stats.linregress(DEPTHS, [np.median(time) for time in times]).intercept - 500)
    assert np.std(errors) < np.std(unweighted) / 2


def test_exact_points_are_fitted_exactly() -> None:
    line = fit_line([3, 1, 2], [[9.0, 9.0], [5.0, 5.0], [7.0, 7.0]])
    assert (line.slope, line.intercept) == (pytest.approx(2), pytest.approx(3))
    assert line.r_squared == pytest.approx(1) and line.misfit == pytest.approx(0, abs=1e-6)
    assert line.x == (1, 2, 3) and line.medians == (5, 7, 9)


def test_two_points_are_on_a_line() -> None:
    line = fit_line([1, 2], [[5.0, 5.1, 4.9], [7.0, 7.1, 6.9]])
    assert line.slope == pytest.approx(2) and np.isnan(line.misfit)
    assert line.slope_interval.low < 2 < line.slope_interval.high


def test_what_is_not_a_line_says_so_and_widens_intervals() -> None:
    rng = np.random.default_rng(3)
    straight = [(1000 + 100 * depth) * rng.lognormal(0, 0.01, 40) for depth in DEPTHS]
    bent = [change * (1.5 if depth >= 64 else 1) for depth, change in zip(DEPTHS, straight, strict=True)]
    good, bad = fit_line(DEPTHS, straight), fit_line(DEPTHS, bent)
    assert good.misfit < 3 < 10 < bad.misfit
    assert bad.slope_interval.high - bad.slope_interval.low > 5 * (good.slope_interval.high - good.slope_interval.low)


def test_samples_in_one_tick_do_not_nail_the_line_down() -> None:
    rng = np.random.default_rng(4)
    ticks = [np.round((2000 + 10 * depth) * rng.lognormal(0, 0.005, 60) / 52) * 52 for depth in DEPTHS]
    line = fit_line(DEPTHS, ticks)
    assert line.slope == pytest.approx(10, rel=0.1)
    assert line.slope_interval.low < 10 < line.slope_interval.high


def test_times_that_are_all_zero_have_no_cost() -> None:
    line = fit_line([1, 2, 3], [[0.0] * 3] * 3)
    assert line.slope == line.intercept == 0 and np.isnan(line.r_squared)


def test_blocks_and_missing_samples_are_honoured() -> None:
    rng = np.random.default_rng(7)
    label = np.arange(120) // 10
    drifting = [
        (1000 + 100 * depth) * np.exp(rng.normal(0, 0.03, 12)[label]) * rng.lognormal(0, 0.01, 120) for depth in DEPTHS
    ]
    blind = fit_line(DEPTHS, drifting)
    aware = fit_line(DEPTHS, drifting, blocks=[label] * len(DEPTHS))
    assert aware.misfit < blind.misfit
    holed = [np.append(change, np.nan) for change in drifting]
    assert fit_line(DEPTHS, holed, blocks=[np.append(label, 99)] * len(DEPTHS)) == aware
    assert fit_line(DEPTHS, holed) == blind


@pytest.mark.parametrize(
    ("x", "samples", "options", "message"),
    [
        ([1], [[1.0, 2.0]], {}, "at least two x"),
        ([1, 1], [[1.0, 2.0]] * 2, {}, "all different"),
        ([1, np.nan], [[1.0, 2.0]] * 2, {}, "all different"),
        ([1, 2], [[1.0, 2.0]], {}, "1 sets"),
        ([1, 2], [[1.0, 2.0]] * 2, {"blocks": [None]}, "1 of blocks"),
        ([1, 2], [[1.0, 2.0], [1.0, np.nan]], {}, "at x = 2 there is one number"),
        ([1, 2], [[1.0, 2.0]] * 2, {"confidence": 95}, "between 0 and 1"),
        ([1, 2], [[1.0, 2.0]] * 2, {"blocks": [None, [1]]}, "block of each of 2"),
    ],
)
def test_what_cannot_be_fitted_is_an_error(
    x: list[float], samples: list[list[float]], options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        fit_line(x, samples, **options)  # type: ignore[arg-type]
