"""``pumice.jit``: what is traced, for what, and what calls take and give."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import numpy as np
import pytest

import pumice

jax = pytest.importorskip("jax", reason="needs jax: pip install 'pumice[jax]'")
jnp = jax.numpy

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
W = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2)


def step(x, w):
    return jax.nn.relu(x @ w)


def test_a_result_is_jaxs_on_the_device() -> None:
    function = pumice.jit(step, device="reference")
    found = function(X, W)
    assert isinstance(found, pumice.DeviceArray) and found.device is function.device
    np.testing.assert_allclose(found.numpy(), jax.jit(step)(X, W), 1e-6)


@pytest.mark.parametrize(
    "first", ["pumice.jit", "from pumice.jit.stages import Lowered", "import pumice.jit.cache as c"]
)
def test_the_name_is_callable_whoever_imported_the_package_first(first: str) -> None:
    program = f"""
import pumice
{first}
assert callable(pumice.jit)
import pumice.jit.stages as stages
from pumice import jit
assert jit is pumice.jit
assert float(jit(lambda x: x + 1, device="reference")(2.0)) == 3.0
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_package_has_the_decorators_signature() -> None:
    decorator = importlib.import_module("pumice.jit.decorator")
    assert inspect.signature(pumice.jit) == inspect.signature(decorator.jit)


def test_one_trace_for_shapes_and_dtypes() -> None:
    traces = []

    @pumice.jit(device="reference")
    def double(x):
        traces.append(x.aval)
        return x * 2

    for given in (X, X + 1, jnp.asarray(X), double.device.asarray(X), X[:2], X.astype(np.int32), 2.0, 3.0, 2):
        np.testing.assert_allclose(double(given).numpy(), np.asarray(given) * 2)
    assert [str(one) for one in traces] == ["float32[3,4]", "float32[2,4]", "int32[3,4]", "~float32[]", "~int32[]"] or [
        one.str_short() for one in traces
    ] == ["float32[3,4]", "float32[2,4]", "int32[3,4]", "float32[]", "int32[]"]
    assert double.cache_info()[:2] == (4, 5)
