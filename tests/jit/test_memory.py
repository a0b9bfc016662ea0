"""Warm calls of ``pumice.jit`` leave memory where it was, and executables that are retraced stay bounded."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pytest
from support.flat import hold_flat
from support.soak import SOAK

import pumice

jax = pytest.importorskip("jax", reason="needs jax: pip install -e '.[dev]'")
jnp = jax.numpy

pytestmark = [pytest.mark.vulkan, pytest.mark.sample(1)]

CALLS = 25_000 if SOAK else 500
SHAPES = 50 if SOAK else 20
X, W = np.ones((4, 8), np.float32), np.full((8, 8), 0.1, np.float32)


def _hold_flat(device: pumice.Device, call: Callable[[int], object]) -> None:
    allocator = device.vulkan.allocator

    def block() -> None:
        for step in range(CALLS):
            call(step)

    def idle() -> None:
        device.hal.wait_idle()
        device.hal.trim()
        gc.collect()
        device.hal.trim()

    for step in range(10):
        call(step)
    idle()
    before = allocator.statistics()
    hold_flat(block, idle)
    idle()
    after = allocator.statistics()
    for figure in ("allocated", "allocations", "reserved"):
        assert getattr(after, figure) == getattr(before, figure), figure


def test_warm_calls() -> None:
    """Arrays of NumPy, of JAX and on the device, trees, numbers, and results that are kept for a while."""
    with pumice.open_device() as device:
        function = pumice.jit(lambda p, x, scale: {"y": jnp.tanh(x @ p["w"]) * scale, "p": p}, device=device)
        held, jaxs = device.asarray(X), jnp.asarray(X)
        kept: list[object] = [None] * 10

        def call(step: int) -> None:
            kept[step % 10] = function({"w": W}, (X, held, jaxs)[step % 3], 2.0 + step)

        _hold_flat(device, call)
        assert function.cache_info().misses == 1
        kept.clear()
        function.clear_cache()


def test_steps_that_donate_their_state() -> None:
    def step(state: dict[str, object], x: object) -> tuple[dict[str, object], object]:
        def loss(w: object) -> object:
            return ((x @ w - 1) ** 2).mean()

        value, gradient = jax.value_and_grad(loss)(state["w"])
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, state["m"], gradient)
        return {"w": state["w"] - 0.01 * momentum, "m": momentum}, value

    with pumice.open_device() as device:
        function = pumice.jit(step, device=device, donate_argnums=0)
        state = {"w": device.asarray(W), "m": device.asarray(np.zeros_like(W))}

        def call(number: int) -> None:
            nonlocal state
            state, loss = function(state, X)
            if number % 100 == 0:
                assert np.isfinite(float(loss))

        _hold_flat(device, call)
        state = {}
        function.clear_cache()


def test_calls_that_fail() -> None:
    with pumice.open_device() as device:
        function = pumice.jit(lambda a, b: a @ b, device=device)
        function(X, W)
        closed = device.asarray(X)
        closed.close()
        failing: list[tuple[object, ...]] = [(closed, W), ("x", W), (X,)]

        def call(step: int) -> None:
            with pytest.raises((pumice.PumiceError, TypeError)):
                function(*failing[step % len(failing)])

        _hold_flat(device, call)
        function.clear_cache()


def test_a_function_retraced_for_many_shapes_keeps_as_many_programs_as_it_may() -> None:
    traced = []

    def function(x: object) -> object:
        traced.append(x.shape)
        return x + 1

    with pumice.open_device() as device:
        compiled = pumice.jit(function, device=device, cache_size=4)
        live: list[dict[str, int]] = []
        for length in range(1, SHAPES + 1):
            x = np.arange(length * 3, dtype=np.float32).reshape(length, 3)
            np.testing.assert_array_equal(compiled(x).numpy(), x + 1)
            assert compiled.cache_info().currsize <= 4
            gc.collect()
            device.hal.trim()
            live.append(pumice.live_objects())
        assert len(traced) == SHAPES
        assert compiled.cache_info()[1:] == (SHAPES, 4, 4)
        grown = {kind: (live[9].get(kind, 0), count) for kind, count in live[-1].items()}
        assert not {kind: counts for kind, counts in grown.items() if counts[1] > counts[0] + 16}
        compiled(np.zeros((SHAPES, 3), np.float32))  # one of the four that are kept
        assert compiled.cache_info().misses == SHAPES
        compiled(np.zeros((1, 3), np.float32))
        assert compiled.cache_info().misses == SHAPES + 1
        compiled.clear_cache()
