"""Calls of jax.numpy and jax.lax in every type of elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import jax.numpy as jnp
import numpy as np
from conformance.jax.numpy_cases import Array, Case, words
from jax import lax

FLOATS: Final = words("float16 bfloat16 float32 float64")
INTEGERS: Final = words("int8 int16 int32 int64 uint8 uint16 uint32 uint64")
COMPLEXES: Final = words("complex64 complex128")

_ARITHMETIC: Final = words("add subtract multiply")
_REAL: Final = words("maximum minimum less equal")
_FUNCTIONS: Final = words("abs exp log sin cos tanh sqrt square")


def made(dtype: str, seed: int, *shape: int) -> Array:
    """Numbers of a type, none of them zero."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape), np.bool_)
    if dtype in INTEGERS:
        low = 1 if dtype.startswith("u") else -100
        found = rng.integers(low, 100, shape)
        return np.asarray(np.where(found == 0, 1, found)).astype(dtype)
    found = rng.normal(size=shape) + 0.01
    if dtype in COMPLEXES:
        found = found + 1j * rng.normal(size=shape)
    return np.asarray(jnp.asarray(found).astype(dtype)) if dtype == "bfloat16" else np.asarray(found).astype(dtype)


def _moved(x: Any, y: Any) -> Any:
    z = jnp.concatenate([x, y[::-1]], 1).T
    return jnp.pad(z, ((1, 0), (0, 2)))[1:, :3].at[0, 1].set(z[2, 2]), x[jnp.array([2, 0])], jnp.where(x == y, x, y)


_OF_ALL: Final[Mapping[str, Callable[..., Any]]] = {
    "moved": _moved,
    "gather and scatter": lambda x, y: x.at[jnp.array([0, 2, 0])].set(y[:3])[jnp.array([2, 1])],
    "loop": lambda x, y: lax.fori_loop(0, 3, lambda i, c: jnp.where(c == y, x, y), x),
}
_OF_NUMBERS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: getattr(jnp, name) for name in _ARITHMETIC},
    "dot": lambda x, y: x @ y.T,
    "sum": lambda x, y: x.sum(1) + y.sum(1),
    "cumsum": lambda x, y: jnp.cumsum(x, 1),
    "prod": lambda x, y: (x[:, :3]).prod(1),
}
_OF_REALS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: getattr(jnp, name) for name in _REAL},
    "sort": lambda x, y: jnp.sort(x, 1),
    "argmax": lambda x, y: jnp.argmax(x, 1),
    "clip": lambda x, y: jnp.clip(x, jnp.minimum(x, y).min(), y.max()),
    "floor_divide": jnp.floor_divide,
    "remainder": jnp.remainder,
}
_CONVERTED: Final = words("float32 int32 uint8 bool float16")


def _cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for dtype in (*FLOATS, *INTEGERS, *COMPLEXES, "bool"):
        given = (made(dtype, 1, 3, 5), made(dtype, 2, 3, 5))
        functions = dict(_OF_ALL)
        if dtype != "bool":
            functions |= _OF_NUMBERS
        if dtype in FLOATS or dtype in INTEGERS:
            functions |= _OF_REALS
        if dtype in FLOATS or dtype in COMPLEXES:
            functions |= {name: partial(lambda f, x, y: f(x), getattr(jnp, name)) for name in _FUNCTIONS}
            functions["divide"] = jnp.divide
        if dtype in INTEGERS or dtype == "bool":
            functions |= {name: getattr(jnp, name) for name in words("bitwise_and bitwise_or bitwise_xor")}
            functions["not"] = lambda x, y: ~x
        if dtype in INTEGERS:
            functions["shift"] = lambda x, y: (x << 2, x >> 1, lax.shift_right_logical(x, lax.full_like(x, 1)))
        if dtype not in COMPLEXES:
            functions |= {f"to {to}": partial(lambda to, x, y: jnp.abs(x).astype(to), to) for to in _CONVERTED}
        found |= {f"{dtype} {name}": (function, given) for name, function in functions.items()}
    return found


DTYPES: Final[Mapping[str, Case]] = _cases()
"""With 64-bit types: these need ``jax.enable_x64``."""
