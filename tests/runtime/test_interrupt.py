"""Ctrl-C at any point of a call: whatever returned is right, and the device goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.vulkan,
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this platform has no interval timers"),
]

# In a process of its own: the alarms are not for the test runner. Without the validation layers, whose locks a signal
# may leave taken.
SCRIPT = """
import signal, numpy as np, pumice
from pumice import shaders

class Interrupted(Exception):
    pass

def interrupt(*_):
    raise Interrupted

device = pumice.open_device("vulkan")
mul = device.load_kernel(shaders.path("mul"))
a, b = (np.random.default_rng(seed).random(64, np.float32) for seed in (1, 2))
x, y = device.asarray(a), device.asarray(b)
signal.signal(signal.SIGALRM, interrupt)
interrupts = 0
for step in range(300):
    z = device.zeros(64)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + step % 30))
        for _ in range(20):
            mul(x, y, z)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupted:
        interrupts += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    mul(x, y, z)
    assert np.array_equal(z.numpy(), a * b), step
device.close()
print(interrupts)
"""


def test_interrupts_at_random_points() -> None:
    environment = {**os.environ, "PUMICE_VALIDATION": "0"}
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=100, check=False, env=environment
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 50, "the alarms came too late to interrupt anything"
