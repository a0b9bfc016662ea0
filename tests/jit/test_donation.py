"""Donated arguments of ``pumice.jit``: results take their memory where the program allows it, and values are JAX's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pumice

jax = pytest.importorskip("jax", reason="needs jax: pip install -e '.[dev]'")
jnp = jax.numpy


def addresses(tree: Any) -> list[int]:
    return [int(leaf.map().ctypes.data) for leaf in jax.tree.leaves(tree)]


def step(state: Any, x: Any) -> Any:
    """Gradient descent with momentum on a small network."""

    def loss(w: Any) -> Any:
        return ((jnp.tanh(x @ w["w"]) + w["b"] - 1) ** 2).mean()

    value, gradients = jax.value_and_grad(loss)(state["weights"])
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, state["momentum"], gradients)
    return {"weights": jax.tree.map(lambda w, m: w - 0.1 * m, state["weights"], momentum), "momentum": momentum}, value


def test_a_training_step_keeps_its_state_in_place(device: pumice.Device) -> None:
    function, jaxs = pumice.jit(step, device=device, donate_argnums=0), jax.jit(step)
    weights = {"w": np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8), "b": np.zeros(8, np.float32)}
    expected = {"weights": weights, "momentum": jax.tree.map(np.zeros_like, weights)}
    x = np.linspace(0, 1, 32, dtype=np.float32).reshape(4, 8)
    state = jax.tree.map(device.asarray, expected)
    x_there, places = device.asarray(x), addresses(state)
    made = []
    for _ in range(10):
        before, count, copies = state, device.hal.allocation_count, device.hal.copy_count
        state, loss = function(state, x_there)
        made.append(device.hal.allocation_count - count)
        assert device.hal.copy_count == copies
        expected, expected_loss = jaxs(expected, x)
        np.testing.assert_allclose(float(loss), expected_loss, 1e-4)
        assert all(leaf.is_closed for leaf in jax.tree.leaves(before))
        assert addresses(state) == places
    for leaf, other in zip(jax.tree.leaves(state), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(leaf.numpy(), other, 1e-4, 1e-6)
    assert made[-1] < 4 <= len(places)  # the loss and what the program needs itself, and none for the state
    function.clear_cache()


HAZARDS: dict[str, Callable[[Any, Any], Any]] = {
    "swapped": lambda a, b: (b, a),
    "swapped and changed": lambda a, b: (b * 2, a + 1),
    "turned": lambda a, b: (a.T, b[::-1]),
    "read after": lambda a, b: (a + 1, b + a.sum()),
    "products": lambda a, b: (a @ b, b @ a),
    "rolled": lambda a, b: (jnp.roll(a, 1, 0), jnp.cumsum(b, 1)),
    "gathered": lambda a, b: (a[jnp.argsort(b[:, 0])], b.at[::2].set(a[::2])),
    "given back": lambda a, b: (a, b, a + b),
    "looped": lambda a, b: jax.lax.fori_loop(0, 3, lambda i, ab: (ab[1], ab[0] @ ab[1] * 0.1), (a, b)),
    "scanned": lambda a, b: jax.lax.scan(lambda c, row: (c + row, c * row), a[0], b)[1],
    "one for two": lambda a, b: (a * 2, a * 3, b.mean()),
    "other types": lambda a, b: (a.astype(jnp.int32), jax.lax.bitcast_convert_type(b, jnp.int32)),
}


@pytest.mark.sample(10)
@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")  # as in jax.jit
@pytest.mark.parametrize("name", HAZARDS)
def test_no_result_is_written_over_what_is_still_read(name: str, device: pumice.Device) -> None:
    function = pumice.jit(HAZARDS[name], device=device, donate_argnums=(0, 1))
    a, b = (np.random.default_rng(seed).normal(size=(6, 6)).astype(np.float32) for seed in (1, 2))
    for wanted in (jax.jit(HAZARDS[name])(a, b),) * 2:
        given = device.asarray(a), device.asarray(b)
        found = function(*given)
        assert given[0].is_closed and given[1].is_closed
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(one.numpy(), other, 1e-4, 1e-5)
    function.clear_cache()
