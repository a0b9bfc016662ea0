"""Functions of ``pumice.jit`` that close over tracers of another function, as in ``jax.jit``."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import pumice

jax = pytest.importorskip("jax", reason="needs jax: pip install -e '.[dev]'")
jnp = jax.numpy

X = np.arange(3, dtype=np.float32)


def outer(a: Any) -> Any:
    """The inner function has an argument that is not traced, and closes over one that is."""
    return pumice.jit(lambda x: (x * a).sum(), device="reference")(X)


TRANSFORMS: dict[str, Any] = {
    "jit": lambda function: jax.jit(function)(jnp.ones(3)),
    "grad": lambda function: jax.grad(function)(jnp.ones(3)),
    "vmap": lambda function: jax.vmap(function)(jnp.ones((2, 3))),
    "linearize": lambda function: jax.linearize(function, jnp.ones(3))[1](jnp.ones(3)),
    "scan": lambda function: jax.lax.scan(lambda total, a: (total + function(a), a), 0.0, jnp.ones((2, 3)))[0],
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_closures_over_tracers_become_part_of_what_is_traced(name: str) -> None:
    expected = TRANSFORMS[name](lambda a: jax.jit(lambda x: (x * a).sum())(X))
    np.testing.assert_array_equal(TRANSFORMS[name](outer), expected)


def test_a_closure_over_a_tracer_in_a_function_of_pumice() -> None:
    function = pumice.jit(outer, device="reference")
    assert float(function(np.ones(3, np.float32))) == 3
    function.clear_cache()


def test_a_tracer_that_leaked_is_jaxs_error() -> None:
    kept: list[Any] = []
    pumice.jit(lambda x: kept.append(x) or x, device="reference")(X)
    leaking = pumice.jit(lambda x: kept[0] + x, device="reference")
    with pytest.raises(jax.errors.UnexpectedTracerError):
        leaking(X)
    with pytest.raises(TypeError, match="closes over, is traced by JAX"):
        leaking.lower(X)


def test_a_coroutine_cannot_be_traced() -> None:
    function = pumice.jit(lambda x: x + 1, device="reference")
    with pytest.raises(TypeError, match="traced by JAX: only the function itself"):
        jax.jit(lambda x: asyncio.run(function.call_async(x)))(X)
