"""The models of machines: how long states last, how far they differ, and what readers see of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from machine import Machine
from machine_effects import (
    SECOND,
    Bursts,
    Drift,
    Effect,
    Frequencies,
    HeavyTails,
    Instances,
    Noise,
    Starved,
    States,
    Wakes,
)
from machine_models import MODELS, Model
from numpy.typing import NDArray
from scipy import stats

WORK = 100_000.0


def levels(effect: Effect, seconds: float, step: float) -> NDArray[np.float64]:
    """Returns the factors of an effect at equal steps."""
    effect.begin(np.random.default_rng(1), 0.0)
    return np.array([effect.factor(at * SECOND, "work") for at in np.arange(0, seconds, step)])


def lengths(levels: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Returns the seconds of each stretch of one level, without the first and the last stretch."""
    return np.array([step * len(list(same)) for _, same in itertools.groupby(levels)][1:-1])


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_machines_of_one_seed_have_one_history(model: Model) -> None:
    def history(seed: int) -> list[float]:
        machine = model.machine(seed)
        instance = machine.opened()
        return [machine.run(model.work, instance=instance).total for _ in range(50)]

    assert history(1) == history(1) != history(2)


def test_states_last_minutes_and_differ_by_up_to_two() -> None:
    factors = levels(States(), 40_000, 1.0)
    assert 1 <= factors.min() < 1.1 and 1.9 < factors.max() <= 2
    assert 55 <= lengths(factors, 1.0).min() < 100 and 500 < lengths(factors, 1.0).max() <= 605


def test_a_state_has_another_factor_for_another_load() -> None:
    state = States(sensitivity={"compute": 0.0, "like": 0.5, "work": 1.0})
    state.begin(np.random.default_rng(1), 0.0)
    compute, like, work = (state.factor(0.0, load) for load in ("compute", "like", "work"))
    assert compute == 1 < like and work == pytest.approx(like**2)


def test_bursts_last_from_ten_milliseconds_to_seconds() -> None:
    factors = levels(Bursts(), 300, 0.002)
    assert set(np.round(factors[factors < 1.5], 9)) == {1.0} and 2.9 < factors.max() <= 3
    busy = np.array([len(list(same)) * 0.002 for level, same in itertools.groupby(factors) if level > 1])
    assert busy.min() < 0.02 and 1.2 < busy.max() <= 2.01
    assert 0.1 < np.mean(factors > 1) < 0.6


def test_frequencies_move_in_steps() -> None:
    factors = levels(Frequencies(), 2000, 0.1)
    assert set(factors) == {1.0, 1.1, 1.25, 1.5}


def test_drifts_are_slow_and_bounded() -> None:
    line = levels(Drift(hourly=2.0), 10_000, 10.0)
    assert np.abs(np.diff(np.log(line))).max() < 0.01 and 0.49 < line.min() < line.max() < 2.01
    assert line.max() > 1.5 * line.min()
    wave = levels(Drift(swing=0.2, period=40.0), 400, 0.1)
    assert wave.min() == pytest.approx(0.8, abs=0.001) and wave.max() == pytest.approx(1.2, abs=0.001)
    # Ten periods of one frequency.
    assert np.abs(np.fft.rfft(wave - wave.mean())).argmax() == 10


def test_starved_workers_wait_without_processor_time() -> None:
    machine = Machine([Starved()], 1)
    taken = [machine.run(WORK) for _ in range(5000)]
    assert {sample.cpu for sample in taken} == {WORK}
    waits = np.array([sample.execute - sample.cpu for sample in taken])
    assert waits.max() > 5e6 and 0.0 < np.mean(waits > 0) < 0.5
    assert machine.waited == pytest.approx(waits.sum()) and machine.ran == pytest.approx(5000 * WORK)


def test_wake_ups_take_one_time_or_the_other() -> None:
    machine = Machine([Wakes()], 1)
    taken = [machine.run(WORK) for _ in range(5000)]
    assert {round(sample.total - sample.execute) for sample in taken} == {5_000, 250_000}
    assert {sample.execute for sample in taken} == {WORK}


def test_an_opening_keeps_its_factor() -> None:
    machine = Machine([Instances()], 1)
    factors = np.array([machine.opened() for _ in range(2000)])
    # By a test of SciPy: uniformly distributed within 2 %.
    assert stats.kstest(factors, stats.uniform(0.98, 0.04).cdf).pvalue > 0.001
    assert machine.run(WORK, instance=factors[0]).total == pytest.approx(WORK * factors[0])


@pytest.mark.parametrize(
    ("effect", "cdf"),
    [
        (Noise(0.02), stats.lognorm(0.02).cdf),
        # The positive half of Student's t has twice its tail.
        (HeavyTails(0.02, 2.0), lambda factor: 1 - 2 * stats.t(2).sf((factor - 1) / 0.02)),
    ],
    ids=["noise", "heavy tails"],
)
def test_samples_have_the_distribution_of_the_model(
    effect: Effect, cdf: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> None:
    machine = Machine([effect], 1)
    factors = np.array([machine.run(WORK).total for _ in range(3000)]) / WORK
    assert stats.kstest(factors, cdf).pvalue > 0.001


def test_a_clock_that_ticks_reads_whole_ticks_that_are_right_on_average() -> None:
    machine = Machine([], 1, tick=52.0)
    taken = np.array([machine.run(2_010.0).total for _ in range(4000)])
    assert set(taken) == {38 * 52.0, 39 * 52.0}
    assert taken.mean() == pytest.approx(2_010.0, rel=0.002)


def test_readers_see_what_the_model_shows_them() -> None:
    def seen(*effects: Effect) -> object:
        return Machine(effects, 1).see()

    quiet = seen()
    assert quiet.steal == 0 and quiet.run_delay == 0
    assert seen(Starved()).run_delay > 0 < seen(Starved()).pressure
    assert seen(States(wake_exponent=0.0, steal=0.0)) == quiet
    assert seen(Bursts()).others > 5 * quiet.others
    assert {round(Machine([Frequencies()], seed).see().cpu_mhz, -2) for seed in range(20)} > {3000.0}


def test_medians_of_separate_runs_mislead_on_states() -> None:
    """The reason for the models: a test of samples finds a difference between equal work if the machine's state is
    unknown.
    """
    model = next(model for model in MODELS if model.name == "states")
    different = 0
    for seed in range(50):
        machine = model.machine(seed)
        sides = []
        for _ in range(2):
            instance = machine.opened()
            sides.append([machine.run(model.work, instance=instance).total for _ in range(50)])
            machine.pass_time(300)
        different += stats.mannwhitneyu(*sides).pvalue < 0.01
    assert different > 25
