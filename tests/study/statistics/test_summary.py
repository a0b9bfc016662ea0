"""Summaries and their bootstrap, compared with NumPy, SciPy and planted truths."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from support.soak import rounds

from pumice.status import InvalidArgumentError
from pumice.study.definition.settings import Sampling
from pumice.study.sampling.stopping import StopRule
from pumice.study.statistics.bootstrap import BLOCKS, blocks_differ, bootstrap
from pumice.study.statistics.samples import tick_of
from pumice.study.statistics.summary import QUANTILES, classify, summarize


def _samples(count: int, seed: int = 0) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return 10_000 * rng.lognormal(0, 0.02, count) + (rng.random(count) < 0.03) * rng.exponential(1e5, count)


def test_figures_are_those_of_numpy_and_scipy() -> None:
    values = _samples(1000)
    summary = summarize(values)
    assert summary.count == 1000 and summary.missing == 0
    assert summary.median == np.median(values) and summary.mean == np.mean(values)
    assert (summary.minimum, summary.maximum) == (values.min(), values.max())
    assert summary.standard_deviation == stats.tstd(values)
    assert summary.iqr == pytest.approx(stats.iqr(values))
    assert (summary.q1, summary.q3) == tuple(np.quantile(values, [0.25, 0.75]))
    assert summary.outliers.total == 1000 and summary.outliers.high_severe > 10


def test_bootstrap_and_the_test_of_blocks_are_those_of_scipy() -> None:
    values = np.round(_samples(90), -2)  # with ties
    drawn = bootstrap(values, seed=3)
    options = {"vectorized": True, "n_resamples": 1000, "method": "percentile"}
    oracle = stats.bootstrap((values,), np.median, **options, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(drawn.distribution, oracle.bootstrap_distribution)
    assert drawn.standard_error == pytest.approx(oracle.standard_error)
    labels = np.repeat(np.arange(3), [20, 30, 40])
    level = stats.kruskal(*(values[labels == block] for block in range(3))).pvalue
    assert blocks_differ(values, labels, level=level * (1 + 1e-9))
    assert not blocks_differ(values, labels, level=level * (1 - 1e-9))


def test_the_error_of_the_median_is_that_of_maritz_and_jarrett() -> None:
    # SciPy's estimate is the limit of the bootstrap for many resamples.
    values = _samples(301)
    oracle = float(stats.mstats.mjci(values, prob=[0.5])[0])
    assert summarize(values).relative_error * np.median(values) == pytest.approx(oracle, rel=0.1)


def test_the_interval_of_the_median_is_near_the_one_by_order_statistics() -> None:
    values = _samples(400)
    oracle = stats.mstats.median_cihs(values, alpha=0.05)
    assert summarize(values).median_interval == pytest.approx(oracle, rel=1e-3)


def _median_of_normal(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    return 1000 + 20 * rng.standard_normal(count)


def _median_of_lognormal(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    return 1000 * rng.lognormal(0, 0.3, count)


def _with_preemptions(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    body = 1000 + 20 * rng.standard_t(3, count)
    return np.where(rng.random(count) < 0.01, body + 1e6, body)


@pytest.mark.parametrize("draw", [_median_of_normal, _median_of_lognormal, _with_preemptions])
def test_intervals_of_the_median_hold_the_truth_as_often_as_they_say(
    draw: Callable[[np.random.Generator, int], NDArray[np.float64]],
) -> None:
    rng = np.random.default_rng(1)
    # With a probability of 95 %, seventy repetitions detect intervals that contain the truth in less than 80 % of
    # cases; the 400 of a soak detect 90 %.
    times = rounds(70, 400)
    held = 0
    for seed in range(times):
        low, high = bootstrap(draw(rng, 50), seed=seed).interval(0.95)
        held += low <= 1000 <= high
    # Three standard deviations of a binomial around 95 %; preemptions shift the truth by half a percent of the spread.
    slack = 3 * math.sqrt(0.05 * 0.95 / times)
    assert (0.95 - slack) * times <= held <= min(0.95 + slack, 1) * times


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [BLOCKS, 2 * BLOCKS, 40])
def test_intervals_hold_the_truth_when_blocks_drift(blocks: int) -> None:
    rng = np.random.default_rng(2)
    label = np.repeat(np.arange(blocks), 10)
    # With a probability of 95 %, fifty repetitions detect intervals that contain the truth in less than 78 % of cases.
    times = rounds(50, 400)
    held = naive = 0
    for seed in range(times):
        drift = rng.normal(0, 0.02, blocks)[label]
        values = 1000 * np.exp(drift + rng.normal(0, 0.01, label.size))
        drawn = bootstrap(values, blocks=label, seed=seed, resamples=500)
        assert drawn.resampled == ("few blocks" if blocks == BLOCKS else "blocks")
        low, high = drawn.interval(0.95)
        held += low <= 1000 <= high
        low, high = bootstrap(values, seed=seed, resamples=200).interval(0.95)
        naive += low <= 1000 <= high
    assert held >= 0.88 * times
    assert naive <= 0.7 * times  # the error of counting samples as independent


def test_few_blocks_count_where_they_differ_and_only_there() -> None:
    rng = np.random.default_rng(3)
    label = np.repeat(np.arange(4), 10)
    alike = rng.normal(1000, 10, 40)
    apart = alike * np.array([1, 1.03, 0.98, 1.05])[label]
    assert not blocks_differ(alike, label) and blocks_differ(apart, label)
    assert summarize(alike, blocks=label).resampled == "samples"
    few = summarize(apart, blocks=label)
    assert few.resampled == "few blocks"
    medians = np.array([np.median(apart[label == block]) for block in range(4)])
    # The true median is below all four or above all four with a probability of 1 / 8: the interval extends beyond.
    low, high = few.median_interval
    assert apart.min() < low < medians.min() and medians.max() < high < apart.max()
    assert few.mean_interval.low >= apart.min() and few.mean_interval.high <= apart.max()


@pytest.mark.parametrize("blocks", [3, 5, 10, 19])
def test_an_interval_of_a_median_has_samples_on_both_sides(blocks: int) -> None:
    # Three blocks, one of them much slower, had an interval of [3.541, 6.596] with samples from 4.229.
    rng = np.random.default_rng(47)
    label = np.repeat(np.arange(blocks), 10)
    for _ in range(20):
        values = 5 * rng.lognormal(0, 0.3, blocks)[label] * rng.lognormal(0, 0.02, label.size)
        drawn = summarize(values, blocks=label, confidence=0.99)
        assert drawn.resampled == "few blocks"
        assert values.min() <= drawn.median_interval.low <= drawn.median <= drawn.median_interval.high <= values.max()


def test_the_interval_of_few_blocks_is_that_of_the_sign_test() -> None:
    rng = np.random.default_rng(48)
    label = np.repeat(np.arange(16), 10)
    values = 1000 * rng.lognormal(0, 0.1, 16)[label] * rng.lognormal(0, 0.001, label.size)
    medians = [np.median(values[label == block]) for block in range(16)]
    # At the exact levels of order statistics there is nothing to draw between them.
    for below in (2, 3, 4):
        level = 1 - 2 * stats.binom.cdf(below, 16, 0.5)
        oracle = stats.quantile_test(medians, p=0.5).confidence_interval(level - 1e-9)
        drawn = bootstrap(values, blocks=label, resamples=20_000).interval(level)
        assert drawn == pytest.approx((oracle.low, oracle.high), rel=0.01)


def test_runs_are_the_blocks_where_there_are_several() -> None:
    rng = np.random.default_rng(49)
    label = np.arange(600) // 10
    values = 1000 * rng.lognormal(0, 0.01, 600)
    one, several = (summarize(values, blocks=label, runs=runs) for runs in (np.zeros(600), label // 20))
    assert one == summarize(values, blocks=label)
    assert several.resampled == "few blocks" and several.median_interval != one.median_interval
    medians = [np.median(values[label // 20 == run]) for run in range(3)]
    assert several.relative_error >= stats.sem(medians) / np.median(medians)


def test_the_error_is_the_one_by_which_points_end() -> None:
    rng = np.random.default_rng(50)
    for blocks in (3, 6, 12, 30):
        label = np.repeat(np.arange(blocks), 10)
        values = 1000 * rng.lognormal(0, 0.05, blocks)[label] * rng.lognormal(0, 0.01, label.size)
        values[3] = np.nan
        sampling = Sampling(max_samples=values.size, relative_error=0.0, seed=7)
        decision = StopRule(sampling).update(values, blocks=label, elapsed=0.0)
        assert decision.relative_error == summarize(values, blocks=label, seed=7).relative_error


def test_blocks_of_unequal_length_are_resampled_whole() -> None:
    rng = np.random.default_rng(4)
    label = np.repeat(np.arange(30), rng.integers(3, 12, 30))
    values = 1000 * np.exp(rng.normal(0, 0.03, 30)[label])  # no spread within a block
    drawn = bootstrap(values, "mean", blocks=label)
    assert drawn.resampled == "blocks"
    sizes = np.bincount(label)
    weighted = np.average(np.unique(values), weights=sizes[np.argsort([values[label == b][0] for b in range(30)])])
    assert drawn.estimate == pytest.approx(weighted)
    assert drawn.standard_error > 2 * bootstrap(values, "mean").standard_error


def test_missing_samples_are_left_out_and_counted() -> None:
    values = _samples(60)
    holed = np.insert(values, [5, 30], np.nan)
    label = np.insert(np.arange(60) // 2, [5, 30], [2, 15])
    assert summarize(holed).missing == 2
    assert (
        summarize(holed, blocks=label).median_interval == summarize(values, blocks=np.arange(60) // 2).median_interval
    )


@pytest.mark.parametrize(("count", "names"), [(99, 0), (100, 1), (199, 1), (200, 2), (1000, 3), (9999, 3), (10_000, 4)])
def test_quantiles_are_given_where_ten_samples_lie_beyond(count: int, names: int) -> None:
    values = np.random.default_rng(5).lognormal(0, 0.1, count)
    quantiles = summarize(values).quantiles
    assert list(quantiles) == list(QUANTILES)[:names]
    assert list(quantiles.values()) == [np.quantile(values, QUANTILES[name]) for name in quantiles]


def test_one_sample_has_no_error_that_could_be_told() -> None:
    summary = summarize([5.0, np.nan])
    assert summary.median == summary.mean == summary.q1 == 5.0
    figures = (*summary.median_interval, *summary.mean_interval, summary.relative_error, summary.standard_deviation)
    assert np.isnan(figures).all()


def test_equal_samples_have_no_error() -> None:
    summary = summarize([5.0] * 40)
    assert summary.relative_error == 0 and summary.median_interval == (5.0, 5.0)
    zeros = summarize([0.0] * 40, blocks=np.arange(40) // 10)
    assert zeros.relative_error == 0
    mostly_zero = summarize([0.0] * 21 + [1.0] * 20)
    assert mostly_zero.relative_error == np.inf


def test_the_same_seed_gives_the_same_summary() -> None:
    values = _samples(100)
    assert summarize(values, seed=3) == summarize(values, seed=3)
    assert summarize(values, seed=3).mean_interval != summarize(values, seed=4).mean_interval


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([], {}, "0 samples, none of which is a number"),
        ([np.nan], {}, "1 samples, none"),
        ([1.0, np.inf], {}, "finite"),
        ([[1.0], [2.0]], {}, "one dimension"),
        ([1.0, 2.0], {"confidence": 95.0}, "between 0 and 1"),
        ([1.0, 2.0], {"blocks": [1]}, "block of each of 2 samples"),
    ],
)
def test_what_cannot_be_summarized_is_an_error(values: object, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        summarize(values, **options)  # type: ignore[arg-type]


def test_the_tick_of_a_clock_is_found() -> None:
    rng = np.random.default_rng(6)
    ticks = np.round(rng.normal(100, 3, 200))
    assert tick_of(ticks * 52.083) == pytest.approx(52.083)
    assert tick_of([*(ticks * 52.083), np.nan]) == pytest.approx(52.083)
    assert tick_of([4.0, 4.0]) == tick_of([]) == tick_of([np.nan]) == 0
    assert tick_of(rng.normal(1000, 10, 100)) < 0.1


def test_planted_outliers_of_every_class_are_found() -> None:
    body = np.arange(100.0, 201.0)  # quartiles 125 and 175: fences at -25, 50, 250 and 325
    values = np.concatenate([body, [-26.0, 49.0, 251.0, 252.0, 326.0]])
    q1, q3 = np.quantile(values, [0.25, 0.75])
    outliers = classify(values)
    assert outliers.fences == pytest.approx(
        (q1 - 3 * (q3 - q1), q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1), q3 + 3 * (q3 - q1))
    )
    assert outliers.classes[-5:].tolist() == [-1, 0, 0, 0, 1]  # planted outliers shift the quartiles slightly
    severe = classify(np.concatenate([body, [-1e4, 1e4, 1e5]]))
    assert (severe.counts.low_severe, severe.counts.high_severe, severe.counts.outliers) == (1, 2, 3)
    assert (np.abs(severe.classes) == 2).tolist() == [False] * 101 + [True] * 3


def test_a_sample_on_a_fence_is_inside() -> None:
    body = [0.0, 1.0, 2.0, 3.0, 4.0]
    fences = classify([*body, *body]).fences
    quartiles = np.quantile([*body, *body], [0.25, 0.75])
    assert fences[2] == quartiles[1] + 1.5 * (quartiles[1] - quartiles[0]) == 6.0
    # Among 106 values, 4 of the 6 added ones leave the quartiles where they are.
    many = np.tile(body, 100)
    assert classify([*many, 6.0]).counts.outliers == 0
    assert classify([*many, np.nextafter(6.0, 7.0)]).counts.high_mild == 1


def test_no_number_is_no_outlier_and_not_counted() -> None:
    outliers = classify([1.0, 2.0, np.nan, 3.0, 1000.0, np.nan, 2.0, 2.5, 1.5])
    assert outliers.counts.total == 7 and outliers.counts.high_severe == 1 and outliers.counts.normal == 6
    assert (outliers.classes != 0).tolist() == [False, False, False, False, True, False, False, False, False]


def test_neighbours_of_the_commonest_tick_are_no_outliers() -> None:
    ticks = [52.0] * 70 + [104.0] * 20 + [52.0 * 9]
    assert stats.iqr(ticks) == 0
    outliers = classify(ticks)
    assert outliers.counts.high_severe == 1 and outliers.counts.outliers == 1


def test_equal_samples_are_normal() -> None:
    assert classify([7.0] * 5).counts.normal == 5
    assert classify([7.0]).counts.total == 1


@pytest.mark.slow
@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=60))
def test_counts_and_mask_agree(values: list[float]) -> None:
    outliers = classify(values)
    assert outliers.counts.total == len(values)
    assert outliers.counts.outliers == np.count_nonzero(outliers.classes)
    assert outliers.counts.low_severe + outliers.counts.high_severe == np.count_nonzero(np.abs(outliers.classes) == 2)


@pytest.mark.parametrize("values", [[], [np.nan, np.nan]])
def test_no_samples_is_an_error(values: list[float]) -> None:
    with pytest.raises(InvalidArgumentError, match="none is a number"):
        classify(values)


def test_a_table_is_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match=r"shape \(2, 2\)"):
        classify(np.ones((2, 2)))
