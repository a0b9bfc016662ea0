"""JAX functions through ``pumice.jit`` have the results of ``jax.jit``: trees, dtypes, shapes and values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.soak import SOAK

import pumice

jax = pytest.importorskip("jax", reason="needs jax: pip install -e '.[dev]'")
from support.runtime.jit_cases import CASES, Case  # noqa: E402  # after what skips

pytestmark = pytest.mark.vulkan

# Each function on Vulkan or, every third, on the reference device; on both in the long form of the tests.
KINDS = (None, None, "reference")
CHOSEN = [
    (name, kind) for at, name in enumerate(CASES) for kind in ((None, "reference") if SOAK else KINDS[at % 3 :][:1])
]

TOLERANCES = {
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 1e-4,
    "complex64": 1e-4,
    "float16": 5e-3,
    "bfloat16": 3e-2,
}
"""Relative and, times the largest element where that is over 1, absolute. Integers and booleans are equal."""


def fresh(tree: Any) -> Any:
    """Arguments that a call may close or overwrite."""
    return jax.tree.map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, tree)


def check_equal(found: Any, expected: Any) -> None:
    """Checks for the same tree of device arrays, dtype by dtype and value by value."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for array, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert isinstance(array, pumice.DeviceArray)
        assert (array.shape, array.dtype) == (other.shape, other.dtype)
        tolerance = TOLERANCES.get(other.dtype.name)
        if tolerance is None:
            np.testing.assert_array_equal(array.numpy(), other)
        else:
            wide = np.complex128 if other.dtype.kind == "c" else np.float64
            exact = np.asarray(other).astype(wide)
            scale = max(1.0, float(np.max(np.abs(exact), initial=0)))
            np.testing.assert_allclose(array.numpy().astype(wide), exact, tolerance, tolerance * scale)


@pytest.mark.sample(14)
@pytest.mark.parametrize(("name", "kind"), CHOSEN)
def test_results_are_jaxs(name: str, kind: str | None) -> None:
    case: Case = CASES[name]
    static = {key: value for key, value in case.options.items() if key.startswith("static")}
    expected = jax.jit(case.function, **static)(*fresh(case.arguments), **case.keywords)
    with pumice.open_device(kind) as device:
        function = pumice.jit(case.function, device=device, **case.options)
        check_equal(function(*fresh(case.arguments), **case.keywords), expected)
        check_equal(function(*fresh(case.arguments), **case.keywords), expected)  # warm
        assert function.cache_info().misses == 1
        function.clear_cache()


@pytest.mark.parametrize("kind", [pytest.param(None, marks=pytest.mark.features("shaderFloat64")), "reference"])
def test_64_bits_where_jax_computes_in_them(kind: str | None) -> None:
    """One function with and without: two programs."""

    def function(x: Any, n: Any) -> Any:
        return x * n + 0.1, (x > 0).sum(), jax.numpy.fft.fft(x)

    x, n = np.linspace(-1, 1, 8), np.int64(3)
    with pumice.open_device(kind) as device:
        compiled = pumice.jit(function, device=device)
        narrow = compiled(x, n)
        check_equal(narrow, jax.jit(function)(x, n))
        with jax.enable_x64(True):
            wide = compiled(x, n)
            check_equal(wide, jax.jit(function)(x, n))
            check_equal(compiled(wide[0], n), jax.jit(function)(wide[0].numpy(), n))
        assert (narrow[0].dtype, wide[0].dtype) == ("float32", "float64")
        assert compiled.cache_info().misses == 2
        compiled.clear_cache()
