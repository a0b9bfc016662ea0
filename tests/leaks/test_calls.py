"""A hundred thousand kernel calls leave memory and live objects where they were."""

from __future__ import annotations

import gc
import os

import numpy as np
import psutil
import pytest

import pumice
from pumice import shaders

pytestmark = pytest.mark.vulkan

# The layers keep records of their own, so resident memory is compared without them; live objects are compared always.
_VALIDATION = os.environ.get("PUMICE_VALIDATION", "0") not in ("", "0")
_CALLS = 20_000 if _VALIDATION else 100_000


def test_kernel_calls_are_flat() -> None:
    process = psutil.Process()
    with pumice.open_device(persistent_cache=False) as device:
        kernel = device.load_kernel(shaders.path("mul"))
        a = np.arange(16, dtype=np.float32)
        held = [device.asarray(a + i) for i in range(100)]
        out = device.empty(16)

        def call(step: int) -> None:
            if step % 10 == 0:
                kernel(a, a, pumice.empty(16))  # NumPy in and out
            elif step % 10 == 1:
                kernel(held[step % 100], a, pumice.empty(16))  # a new array on the device
            else:
                kernel(held[step % 100], held[step * 7 % 100], out)
            if step % 50 == 0:
                out.wait()

        for step in range(5_000):
            call(step)
        out.wait()
        device.hal.retire()
        gc.collect()
        objects, resident = pumice.live_objects(), process.memory_info().rss
        for step in range(_CALLS):
            call(step)
        out.wait()
        device.hal.retire()
        gc.collect()
        assert pumice.live_objects() == objects
        if not _VALIDATION:
            grown = process.memory_info().rss - resident
            assert grown < 8 << 20, f"resident memory grew by {grown / 2**20:.1f} MiB in {_CALLS} calls"
        np.testing.assert_array_equal(
            out.numpy(), held[(_CALLS - 1) % 100].numpy() * held[(_CALLS - 1) * 7 % 100].numpy()
        )
        for array in held:
            array.close()
