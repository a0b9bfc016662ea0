"""Disturbed samples: simulated blocks, and on Linux real waits for a core."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from pumice.study.definition.sample import Sample
from pumice.study.machine.disturbances import Disturbances
from pumice.study.results.storage.records import SampleFlag


def block(totals: Sequence[float], cpu: Sequence[float] | float = 1e5) -> list[Sample]:
    cpu_times = np.broadcast_to(cpu, len(totals))
    return [Sample(0, total, cpu=float(used)) for total, used in zip(totals, cpu_times, strict=True)]


def starved(disturbances: Disturbances, samples: list[Sample], waited: float | None) -> list[bool]:
    return [bool(flag & SampleFlag.STARVED) for flag in disturbances.flags(samples, waited, throttled=False)]


@pytest.fixture
def steady() -> Disturbances:
    """Returns disturbances of blocks of 10 samples of 100 µs, whose threads wait 2 µs a sample for a core."""
    disturbances = Disturbances()
    for _ in range(5):
        assert not any(starved(disturbances, block([1e5] * 10), 20e3))
    return disturbances


def test_samples_are_starved_that_waiting_explains_and_processor_time_does_not(steady: Disturbances) -> None:
    long = [1e5] * 8 + [3e5, 1e5]
    assert starved(steady, block(long), 20e3 + 200e3) == [False] * 8 + [True, False]


@pytest.mark.parametrize(
    ("cpu", "waited", "why"),
    [
        (1e5, 20e3, "nobody waited: the device was slow"),
        ([1e5] * 8 + [3e5, 1e5], 220e3, "it computed for longer"),
        (1e5, None, "the platform does not tell"),
        (math.nan, 220e3, "the platform does not tell"),
    ],
)
def test_long_samples_are_not_starved(
    steady: Disturbances, cpu: Sequence[float] | float, waited: float | None, why: str
) -> None:
    assert not any(starved(steady, block([1e5] * 8 + [3e5, 1e5], cpu), waited)), why


def test_waiting_is_no_disturbance_where_all_samples_wait_alike() -> None:
    disturbances = Disturbances()
    random = np.random.default_rng(0)
    counts = [
        starved(disturbances, block(list(3e5 * random.lognormal(0, 0.03, 10))), float(2e6 * random.lognormal(0, 0.1)))
        for _ in range(200)
    ]
    assert np.mean(counts) < 0.01


def test_throttling_is_of_the_whole_block() -> None:
    flags = Disturbances().flags(block([1e5] * 3), 0, throttled=True)
    assert flags == [SampleFlag.THROTTLED] * 3
