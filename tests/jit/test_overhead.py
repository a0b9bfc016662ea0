"""A warm call of ``pumice.jit`` costs little more than a session call on the same module."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np
import pytest

import pumice

jax = pytest.importorskip("jax", reason="needs jax: pip install -e '.[dev]'")

pytestmark = [pytest.mark.vulkan, pytest.mark.timing]


def seconds(call: Callable[[], object], count: int = 50) -> float:
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return median(times)


def test_a_warm_call_takes_at_most_half_as_long_again_as_a_session_call() -> None:
    with pumice.open_device() as device:
        function = pumice.jit(lambda a, b: a * b, device=device)
        a, b = (device.asarray(np.arange(4, dtype=np.float32)) for _ in range(2))
        with pumice.Session(device) as session:
            module = session.load(function.lower(a, b).compile().module)
            main = session.lookup(f"{module.name}.main")
            seconds(lambda: function(a, b)), seconds(lambda: main(a, b))
            ratios = [seconds(lambda: function(a, b)) / seconds(lambda: main(a, b)) for _ in range(15)]
        assert median(ratios) <= 1.5, sorted(ratios)
        function.clear_cache()
