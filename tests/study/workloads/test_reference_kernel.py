"""Reference kernels: loads that two runs have in common, and which differences of their times count as a change."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from pumice.hal_vulkan.instance.driver import Driver
from pumice.study.workloads.reference_kernel import ReferenceKernel
from pumice.study.workloads.workload import DevicePool, Load

pytestmark = pytest.mark.vulkan


@pytest.fixture
def pool(driver: Driver) -> Iterator[DevicePool]:
    with DevicePool() as pool:
        yield pool


def test_a_reference_does_what_it_says(pool: DevicePool) -> None:
    """Compared with the same multiply-adds by NumPy."""
    with ReferenceKernel(pool.open("vulkan"), Load(3, 32, 4096), 1.0) as reference:
        started = np.arange(4 * 4096 // 16, dtype=np.float32).reshape(-1, 4) / 64
        reference._array.copy_from(started)
        reference._run(5)
        chains = [started + shift for shift in np.float32([0, 1, 2, 3])]
        for _ in range(10):
            chains = [chain * np.float32(0.5) + np.float32(1) for chain in chains]
        np.testing.assert_allclose(reference._array.numpy(), sum(chains) / 4, rtol=1e-6)


def test_runs_whose_times_differ_by_less_than_a_factor_of_two_have_a_load_in_common(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, speed = pool.open("vulkan"), 1.0
    monkeypatch.setattr(ReferenceKernel, "_run", lambda self, rounds: speed * (5_000 + 700.0 * rounds))
    random = np.random.default_rng(0)
    for _ in range(30):
        loads = []
        wanted = float(random.uniform(2e4, 2e7))
        for speed in random.uniform(1, 1.95, 2):  # of the machine: the point follows it, with noise
            with ReferenceKernel(device, Load(), wanted * speed * float(random.uniform(1, 1.9))) as reference:
                loads.append({reference.read().load for _ in range(6)})
        assert all(len(load) == 3 for load in loads) and len(loads[0] & loads[1]) >= 2


def test_what_is_mostly_overhead_gets_no_arithmetic_to_make_up_for_noise(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReferenceKernel, "_run", lambda self, rounds: 50_000 + 0.01 * rounds)
    for wanted in (40_000, 60_000):
        with ReferenceKernel(pool.open("vulkan"), Load(), wanted) as reference:
            assert "no arithmetic" in reference.read().load and reference._rounds == (0,)


def planted(pool: DevicePool, monkeypatch: pytest.MonkeyPatch, times: Iterator[float]) -> ReferenceKernel:
    monkeypatch.setattr(ReferenceKernel, "_run", lambda self, rounds: 1e9 if rounds else 1.0)
    reference = ReferenceKernel(pool.open("vulkan"), Load(), 1e6)
    monkeypatch.setattr(ReferenceKernel, "_run", lambda self, rounds: next(times))
    reference._rounds = (1,)
    return reference


def test_a_lasting_change_is_told_and_a_reading_by_itself_is_not(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = [1e5] * 90 + [1e6] * 3 + [1e5] * 30 + [1.5e5] * 15 + [1e5] * 15 + [0.7e5] * 15
    with planted(pool, monkeypatch, iter(times)) as reference:
        told = []
        for _ in range(len(times) // 3):
            reference.read()
            told.append(reference.changed(0.1))
    # The third of the last five readings decides.
    assert [index for index, reading in enumerate(told) if reading] == [*range(43, 48), *range(53, 56)]


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.3])
def test_noise_alone_is_seldom_called_a_change(pool: DevicePool, monkeypatch: pytest.MonkeyPatch, noise: float) -> None:
    random = np.random.default_rng(1)
    times = (1e5 * float(random.lognormal(0, noise)) for _ in itertools.count())
    with planted(pool, monkeypatch, times) as reference:
        told = []
        for _ in range(1500):
            reference.read()
            told.append(reference.changed(0.1))
    assert np.mean(told) < 0.01
