"""JAX's public functions, compiled by pumice from the StableHLO that JAX prints, against JAX's own results.

A few of the calls, all of them in a soak. Each run checks that every public function is called, or is none that a
device computes.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pytest
from support.soak import SOAK

import pumice

jax = pytest.importorskip("jax", reason="needs jax: pip install jax")
jax_numpy_cases = pytest.importorskip("conformance.jax.numpy_cases", reason="needs jax")
jax_lax_cases = pytest.importorskip("conformance.jax.lax_cases", reason="needs jax")
jax_science_cases = pytest.importorskip("conformance.jax.science_cases", reason="needs jax")
jax_dtype_cases = pytest.importorskip("conformance.jax.dtype_cases", reason="needs jax")
jax_sweep = pytest.importorskip("conformance.jax.sweep", reason="needs jax")

CASES: Final[Mapping[str, Any]] = {
    **jax_numpy_cases.NUMPY,
    **jax_lax_cases.LAX,
    **jax_lax_cases.NN,
    **jax_lax_cases.INITIALIZERS,
    **jax_science_cases.SCIENCE,
    **jax_dtype_cases.DTYPES,
}


@pytest.fixture
def opened() -> Iterator[pumice.Device]:
    with pumice.open_device() as device:
        yield device


@pytest.mark.sample(6)
@pytest.mark.vulkan
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", sorted(CASES)[:: 1 if SOAK else 100])
def test_results_are_jaxs(name: str, opened: pumice.Device) -> None:
    jax_sweep.run_case(name, CASES[name], opened)


@pytest.mark.parametrize(
    ("prefix", "module", "left_out"),
    [
        ("jnp", jax.numpy, jax_numpy_cases.NOT_NUMPY),
        ("jnp.linalg", jax.numpy.linalg, jax_science_cases.NOT_LINALG),
        ("jnp.fft", jax.numpy.fft, ()),
        ("lax", jax.lax, jax_lax_cases.NOT_LAX),
        ("lax.linalg", jax.lax.linalg, jax_science_cases.NOT_LINALG),
        ("nn", jax.nn, jax_lax_cases.NOT_NN),
        ("nn.initializers", jax.nn.initializers, ()),
        ("random", jax.random, jax_science_cases.NOT_RANDOM),
        ("jsp.special", jax.scipy.special, ()),
        ("jsp.linalg", jax.scipy.linalg, jax_science_cases.NOT_LINALG),
        ("jsp.signal", jax.scipy.signal, ()),
        ("jsp.fft", jax.scipy.fft, ()),
    ],
)
def test_every_public_function_is_called(prefix: str, module: types.ModuleType, left_out: Sequence[str]) -> None:
    public = {
        name
        for name in dir(module)
        if not name.startswith("_") and callable(getattr(module, name)) and not inspect.isclass(getattr(module, name))
    }
    covered = {case.partition(" ")[0] for case in CASES}
    assert {f"{prefix}.{name}" for name in public.difference(left_out)} - covered == set()
