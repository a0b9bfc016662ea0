"""Outliers are classified by Tukey's fences, as criterion does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pumice.status import InvalidArgumentError
from pumice.study.statistics.summary import classify


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
