"""Functions that ``jax.export`` writes with a symbolic batch, compiled once and called with several, against JAX."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.soak import SOAK

import pumice

jax = pytest.importorskip("jax", reason="needs jax: pip install jax")
functions = pytest.importorskip("conformance.jax.dynamic_functions", reason="needs jax")
pytestmark = [pytest.mark.vulkan, pytest.mark.slow]

SIZES = (1, 2, 7, 64) if SOAK else (1, 7)


@pytest.fixture
def opened() -> Iterator[pumice.Device]:
    with pumice.open_device() as device:
        yield device


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", list(functions.FUNCTIONS))
def test_results_are_jaxs_for_every_size(name: str, opened: pumice.Device) -> None:
    function, specs = functions.FUNCTIONS[name]
    module = pumice.compile(functions.exported(function, specs), file_name=name)
    with pumice.Session(device=opened) as session:
        loaded = session.load(module)
        for size in SIZES:
            arguments = functions.arguments_of(specs, size)
            expected = [np.asarray(value) for value in jax.tree.leaves(jax.jit(function)(*arguments))]
            given = session.call(f"{loaded.name}.main", *arguments, timeout=60)
            results = given if isinstance(given, tuple | list) else [given]
            found = [np.asarray(value.numpy() if hasattr(value, "numpy") else value) for value in results]
            for one, other in zip(found, expected, strict=True):
                assert one.shape == other.shape
                if other.dtype.name == "bfloat16":
                    np.testing.assert_allclose(one.astype(np.float32), other.astype(np.float32), 1e-2, 1e-2)
                elif other.dtype.kind not in "fc":
                    np.testing.assert_array_equal(one, other, err_msg=str(size))
                else:
                    np.testing.assert_allclose(one, other, 3e-4, 3e-5, err_msg=str(size))
