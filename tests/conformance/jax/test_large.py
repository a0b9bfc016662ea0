"""Programs of JAX at large sizes, compiled by pumice, against NumPy's or JAX's results.

A few run in every suite; ``PUMICE_SOAK=1 pytest tests/conformance/jax/test_large.py`` runs all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from support.soak import SOAK

import pumice

jax = pytest.importorskip("jax", reason="needs jax: pip install 'pumice[dev]'")
jnp, lax = jax.numpy, jax.lax
pytestmark = pytest.mark.vulkan

Array: TypeAlias = npt.NDArray[Any]
Case: TypeAlias = tuple[Callable[..., Any], Sequence[Array]]

random = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    """Normal numbers."""
    return random.normal(size=shape).astype(np.float32)


def below(limit: int, *shape: int) -> Array:
    """Whole numbers."""
    return random.integers(0, limit, shape).astype(np.int32)


def _pooled(window: int, stride: int) -> Callable[[Any], Any]:
    shape, strides = (1, window, window, 1), (1, stride, stride, 1)
    return jax.grad(lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, shape, strides, "VALID") ** 2).sum())


def _filtered(x: Any, w: Any) -> Any:
    numbers = ("NCW", "OIW", "NCW")
    return lax.conv_general_dilated(x, w, (2,), [(40000, 30001)], rhs_dilation=(2,), dimension_numbers=numbers)


def _weights(w: Any, x: Any) -> Any:
    return (lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2).sum()


QUICK: dict[str, Callable[[], Case]] = {
    "sort": lambda: (jnp.sort, (normal(30_000),)),
    "fft_of_a_prime": lambda: (jnp.fft.fft, (normal(10_007),)),
    "elements": lambda: (lambda x: jnp.exp(x) * 2 + 1, (normal(10**7),)),
    "argmax": lambda: (jnp.argmax, (normal(10**6),)),
    "cholesky": lambda: (lambda x: jnp.linalg.cholesky(x @ x.T / 128 + jnp.eye(128)), (normal(128, 128),)),
}
ALL: dict[str, Callable[[], Case]] = {
    **QUICK,
    "sum": lambda: (jnp.sum, (normal(10**7),)),
    "sum_of_the_middle": lambda: (lambda x: x.sum(1), (normal(3, 100_000, 5),)),
    "sum_of_bf16": lambda: (lambda x: jnp.sum(x.astype(jnp.bfloat16)), (np.abs(normal(10**6)),)),
    "any": lambda: (lambda x: (jnp.any(x > 5.5), jnp.all(x < 5)), (normal(10**6),)),
    "sum_of_bytes": lambda: (lambda x: jnp.sum(x.astype(jnp.int8), dtype=jnp.int8), (below(100, 10**6),)),
    "product": lambda: (lambda a, b: a @ b, (normal(3, 300_000), normal(300_000, 2))),
    "einsum": lambda: (
        lambda a, b: jnp.einsum("bijk,bjki->bi", a, b),
        (normal(2, 3, 200, 300), normal(2, 200, 300, 3)),
    ),
    "cumulative_sum": lambda: (jnp.cumsum, (normal(10**6),)),
    "cumulative_sum_of_rows": lambda: (lambda x: lax.cumsum(x, 1, reverse=True), (normal(30, 5000),)),
    "cumulative_logsumexp": lambda: (lambda x: lax.cumlogsumexp(x, 0), (normal(10**5),)),
    "pool": lambda: (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 100, 100, 1), (1, 7, 3, 1), "SAME"),
        (normal(1, 224, 224, 2),),
    ),
    "gradient_of_a_pool": lambda: (_pooled(40, 5), (normal(1, 100, 100, 2),)),
    "gradient_of_a_dense_pool": lambda: (_pooled(30, 1), (normal(1, 60, 60, 2),)),
    "filter": lambda: (_filtered, (normal(1, 2, 20_003), normal(2, 2, 40_000))),
    "gradient_of_weights": lambda: (jax.grad(_weights), (normal(3, 3, 3, 4), normal(2, 120, 120, 3))),
    "argsort": lambda: (jnp.argsort, (normal(3, 50_001),)),
    "top_k": lambda: (lambda x: lax.top_k(x, 10), (normal(10**5),)),
    "sort_of_a_million": lambda: (jnp.sort, (normal(10**6),)),
    "unique": lambda: (lambda x: jnp.unique(x, size=1000), (below(1000, 10**5),)),
    "bincount": lambda: (lambda x: jnp.bincount(x, length=1000), (below(1000, 10**6),)),
    "segment_sum": lambda: (lambda x, i: jax.ops.segment_sum(x, i, 10**5), (normal(10**6), below(10**5, 10**6))),
    "gradient_of_an_embedding": lambda: (
        jax.grad(lambda t, i: (t[i] ** 3).sum()),
        (normal(30_000, 16), below(30_000, 20_000)),
    ),
    "replaced": lambda: (lambda x, i: x.at[i].set(2), (normal(10**6), below(10**6, 10**5))),
    "fft": lambda: (jnp.fft.fft, (normal(2**17),)),
    "fft_of_odd_factors": lambda: (jnp.fft.fft, (normal(3 * 5 * 7 * 11 * 13 * 17),)),
    "irfft": lambda: (lambda x: jnp.fft.irfft(jnp.fft.rfft(x)), (normal(10**5),)),
    "cholesky_of_512": lambda: (lambda x: jnp.linalg.cholesky(x @ x.T / 512 + jnp.eye(512)), (normal(512, 512),)),
    "triangular": lambda: (
        lambda a, b: jax.scipy.linalg.solve_triangular(jnp.tril(a) / 20 + 3 * jnp.eye(700), b, lower=True),
        (normal(700, 700), normal(700, 3)),
    ),
    "uniform": lambda: (
        lambda key: jax.random.uniform(jax.random.wrap_key_data(key), (10**7,)),
        (np.array([1, 2], np.uint32),),
    ),
    "bytes": lambda: (lambda x: x + 1, (below(256, 2 * 10**7).astype(np.uint8),)),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ALL if SOAK else QUICK)
def test_large(name: str) -> None:
    function, arguments = ALL[name]()
    compiled = jax.jit(function)
    expected = [np.asarray(value) for value in jax.tree.leaves(compiled(*arguments))]
    module = pumice.compile(compiled.lower(*arguments).as_text(), file_name=name)
    with pumice.Session(device="vulkan") as session:
        loaded = session.load(module)
        given = session.call(f"{loaded.name}.main", *arguments, timeout=300)
        results = given if isinstance(given, tuple | list) else [given]
        found = [np.asarray(value.numpy() if hasattr(value, "numpy") else value) for value in results]
    for one, other in zip(found, expected, strict=True):
        if other.dtype.kind not in "fc":
            np.testing.assert_array_equal(one, other)
        else:
            assert np.abs(one - other).max() <= 2e-5 * np.abs(other).max()
