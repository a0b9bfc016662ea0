import numpy as np
import pytest
from particles import Particles

from pumice.testing import assert_close, nothing_left

START = np.linspace(0, 10, 100, dtype=np.float32)


@pytest.fixture
def particles(pumice_device):
    with Particles(START, pumice_device) as particles:
        yield particles


def fallen(seconds, steps):
    height, speed = START.copy(), np.zeros_like(START)
    for _ in range(steps):
        speed -= np.float32(9.81 * seconds)
        height = np.maximum(height + speed * np.float32(seconds), 0)
    return height


def test_one_step(particles):
    particles.step(0.1)
    assert_close(particles.height, fallen(0.1, 1))


def test_many_steps(particles):
    particles.step(0.01, steps=50)
    assert_close(particles.height, fallen(0.01, 50), rtol=1e-4)


@pytest.mark.skip_driver("llvmpipe<9")
def test_a_device_of_its_own(pumice_device):
    with nothing_left(), Particles(START) as particles:
        particles.step(0.1)
        assert_close(particles.height, fallen(0.1, 1))


def test_at_rest(particles):
    assert_close(particles.height, START, atol=0, rtol=0)
