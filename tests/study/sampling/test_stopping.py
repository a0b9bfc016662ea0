"""When a point has enough samples: each reason, the cost of the decision, and that drift keeps a point open."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from support.soak import rounds

from pumice.status import InvalidArgumentError
from pumice.study.definition.settings import Sampling
from pumice.study.sampling.stopping import Decision, StopReason, StopRule

BLOCK = 10


def _stream(sigma: float, count: int = 2000, *, drift: float = 0.0, seed: int = 0) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    between = rng.normal(0, drift, -(-count // BLOCK))[np.arange(count) // BLOCK]
    return 10_000 * np.exp(between + rng.normal(0, sigma, count))


def _run(sampling: Sampling, values: NDArray[np.float64], *, blocks: bool = True) -> tuple[int, Decision]:
    """Asks the rule after each block; returns the number of samples at which it ends, and its decision."""
    rule = StopRule(sampling)
    for count in range(BLOCK, len(values) + 1, BLOCK):
        decision = rule.update(
            values[:count], blocks=np.arange(count) // BLOCK if blocks else None, elapsed=count * 1e-4
        )
        if decision.done:
            return count, decision
    raise AssertionError("the samples ran out")


def test_quiet_samples_end_at_the_minimum() -> None:
    count, decision = _run(Sampling(), _stream(0.001), blocks=False)
    assert count == 30 and decision.reason == "error reached" and not decision.noisy
    assert 0 < decision.relative_error < 0.001


def test_blocks_that_are_told_have_to_be_six() -> None:
    # If blocks differ at random, the rule looks again at 70 samples.
    counts = [_run(Sampling(), _stream(0.001, seed=seed))[0] for seed in range(9)]
    assert 60 <= min(counts) <= np.median(counts) <= 70
    # Half as many samples if there can be only three blocks.
    few = Sampling(max_samples=59)
    assert _run(few, _stream(0.001, seed=1)) == (
        50,
        Decision(StopReason.ERROR_REACHED, pytest.approx(0.0002, abs=2e-4)),
    )


@pytest.mark.slow
def test_the_error_reached_is_the_error_that_was_asked_for() -> None:
    # The standard deviation of 16 medians has an error of 18 %, so twice the requested error is detected.
    ends = [_run(Sampling(), _stream(0.05, seed=seed)) for seed in range(rounds(16, 200))]
    assert all(decision.reason is StopReason.ERROR_REACHED for _, decision in ends)
    assert all(decision.relative_error <= 0.005 for _, decision in ends)
    medians = [np.median(_stream(0.05, seed=seed)[:count]) for seed, (count, _) in enumerate(ends)]
    # Ending at the first look that is good enough selects lucky looks, so the true error is somewhat larger.
    assert np.std(medians) / 10_000 < 0.0075


def test_noisier_points_take_more_samples() -> None:
    counts = [_run(Sampling(), _stream(sigma))[0] for sigma in (0.01, 0.05, 0.1)]
    assert counts == sorted(counts) and counts[0] < counts[1] < counts[2]


@pytest.mark.slow
def test_drift_between_blocks_keeps_a_point_open() -> None:
    steady = np.median([_run(Sampling(), _stream(0.01, seed=seed))[0] for seed in range(rounds(9, 60))])
    ends = [_run(Sampling(), _stream(0.01, drift=0.02, seed=seed)) for seed in range(rounds(9, 60))]
    assert steady <= 70 and np.median([count for count, _ in ends]) >= 100
    blind = [_run(Sampling(), _stream(0.01, drift=0.02, seed=seed), blocks=False)[0] for seed in range(rounds(9, 60))]
    assert np.median(blind) <= 80


def test_too_noisy_a_point_ends_at_the_most_samples_and_says_so() -> None:
    sampling = Sampling(max_samples=100, relative_error=0.001, noise_limit=0.01)
    count, decision = _run(sampling, _stream(0.5))
    assert count == 100 and decision.reason == "max samples" and decision.noisy
    count, decision = _run(replace(sampling, noise_limit=0.5), _stream(0.5))
    assert decision.reason == "max samples" and not decision.noisy


def test_the_time_limit_holds_whatever_the_count() -> None:
    rule = StopRule(Sampling(time_limit=1.0))
    assert not rule.update([100.0, 101.0], elapsed=0.9).done
    decision = rule.update([100.0, 101.0, 100.5], elapsed=1.0)
    assert decision.reason == "time limit" and not decision.noisy
    single = StopRule(Sampling(time_limit=1.0)).update([100.0], elapsed=2.0)
    assert single.reason == "time limit" and single.noisy and np.isnan(single.relative_error)
    assert StopRule(Sampling(time_limit=1.0)).update([], elapsed=2.0).noisy


def test_the_time_limit_ends_a_point_of_one_sample() -> None:
    assert StopRule(Sampling(time_limit=0.0)).update([1.0], elapsed=0.0).reason is StopReason.TIME_LIMIT
    assert not StopRule(Sampling(time_limit=1000.0)).update([1.0], elapsed=1.0).done


def test_an_error_that_is_reached_at_the_limit_is_reached() -> None:
    values = _stream(0.001, 30)
    assert StopRule(Sampling(max_samples=30)).update(values, elapsed=0.0).reason is StopReason.ERROR_REACHED


def test_missing_samples_count_for_the_most_only() -> None:
    values = _stream(0.001, 60)
    values[::2] = np.nan
    rule = StopRule(Sampling())
    assert not rule.update(values[:40], elapsed=0.0).done
    assert rule.update(values, elapsed=0.0).reason is StopReason.ERROR_REACHED
    nothing = StopRule(Sampling(max_samples=30)).update([np.nan] * 30, elapsed=0.0)
    assert nothing.reason is StopReason.MAX_SAMPLES and nothing.noisy


def test_samples_that_are_all_zero_are_known_exactly() -> None:
    decision = StopRule(Sampling()).update([0.0] * 30, elapsed=0.0)
    assert decision.reason is StopReason.ERROR_REACHED and decision.relative_error == 0


def test_entropy_ends_a_point_when_its_distribution_is_known() -> None:
    sampling = Sampling(criterion="entropy", relative_error=0.0)
    ends = [_run(sampling, _stream(0.05, seed=seed)) for seed in range(rounds(9, 60))]
    assert all(decision.reason is StopReason.ENTROPY_SETTLED for _, decision in ends)
    assert 50 <= np.median([count for count, _ in ends]) <= 500
    assert _run(sampling, np.full(100, 500.0))[0] == 30


def test_entropy_keeps_a_point_open_while_its_distribution_changes() -> None:
    # Samples drift by three times their own spread.
    sampling = Sampling(criterion="entropy", min_samples=200)
    ends = Counter[tuple[int, bool]]()
    for seed in range(20):
        steady = _stream(0.01, 200, seed=seed)
        for creep in (0, 300):
            ends[creep, StopRule(sampling).update(steady + np.linspace(0, creep, 200), elapsed=0.0).done] += 1
    assert ends[0, True] >= 8 and ends[300, True] <= 1


def test_errors_are_computed_when_the_count_has_grown() -> None:
    rule = StopRule(Sampling(relative_error=0.0))
    values = _stream(0.1)
    errors = [rule.update(values[:count], elapsed=0.0).relative_error for count in range(1, 2000)]
    known = [error for error in errors if not np.isnan(error)]
    assert len(known) == 2000 - 30 and len(set(known)) <= 20


@pytest.mark.parametrize("count", [5000, 20_000])
def test_many_samples_are_thinned_for_the_bootstrap(count: int) -> None:
    values = _stream(0.1, count)
    sampling = Sampling(max_samples=count, relative_error=0.0)
    error = StopRule(sampling).update(values, elapsed=0.0).relative_error
    truth = 0.1 * np.sqrt(np.pi / 2 / count)
    assert error == pytest.approx(truth, rel=0.25)


def test_wrong_blocks_are_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="block of each of 30 samples"):
        StopRule(Sampling()).update(_stream(0.1, 30), blocks=[1, 2], elapsed=0.0)
