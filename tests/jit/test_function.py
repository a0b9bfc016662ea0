"""``pumice.jit``: traces, their keys, and arguments and results of calls."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
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


@pytest.mark.slow
def test_it_runs_where_there_is_no_vulkan() -> None:
    program = """
import jax, numpy as np, pumice
step = pumice.jit(lambda x: jax.nn.relu(x) * 2, device="reference")
assert step(np.float32([-1, 3])).tolist() == [0.0, 6.0]
try:
    pumice.jit(lambda x: x)(1.0)
except pumice.UnavailableError as error:
    print("no Vulkan:", error.message)
"""
    environment = {**os.environ, "PUMICE_VULKAN_LIBRARY": "/nonexistent", "VK_DRIVER_FILES": "/nonexistent"}
    environment.pop("PUMICE_DEVICE", None)
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env=environment)


# -- the name ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first",
    ["pumice.jit", "import pumice.jit.parameters as parameters", "from pumice.jit.decorator import jit as other"],
)
def test_the_name_is_callable_whoever_imported_the_package_first_and_says_what_to_install(first: str) -> None:
    program = f"""
import sys
sys.modules["jax"] = None  # as if it were not installed, which is soon tried
import pumice
{first}
import pumice.jit.parameters as parameters
from pumice import jit
assert jit is pumice.jit and parameters.StaticParameters
try:
    pumice.jit(lambda x: x)
except pumice.UnavailableError as error:
    assert "pip install 'pumice[jax]'" in error.message, error
else:
    raise SystemExit("it did not fail")
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_package_has_the_decorators_signature() -> None:
    decorator = importlib.import_module("pumice.jit.decorator")
    assert inspect.signature(pumice.jit) == inspect.signature(decorator.jit)


@pytest.mark.slow
def test_jax_is_not_imported_before_a_function_is_decorated() -> None:
    program = "import sys, pumice; pumice.jit, pumice.Session; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


# -- traces --------------------------------------------------------------------------------------------


def test_one_trace_for_shapes_dtypes_and_weak_types() -> None:
    traces = []

    @pumice.jit(device="reference")
    def double(x):
        traces.append((x.shape, str(x.dtype), x.aval.weak_type))
        return x * 2

    for given in (X, X + 1, jnp.asarray(X), double.device.asarray(X), X[:2], X.astype(np.int32), 2.0, 3.0, 2):
        np.testing.assert_allclose(double(given).numpy(), np.asarray(given) * 2)
    assert traces == [
        ((3, 4), "float32", False),
        ((2, 4), "float32", False),
        ((3, 4), "int32", False),
        ((), "float32", True),
        ((), "int32", True),
    ]
    assert double.cache_info()[:2] == (4, 5)
    double.clear_cache()
    double(X)
    assert len(traces) == 6 and double.cache_info() == (0, 1, 128, 1)


@pytest.mark.slow
def test_trees_in_and_out() -> None:
    @pumice.jit(device="reference")
    def function(parameters, *, scale):
        y = parameters["w"][0] * scale + parameters["b"]
        return {"y": y, "none": None, "more": (y.sum(), [parameters["b"]])}

    parameters = {"w": [X], "b": np.float32(3)}
    found = function(parameters, scale=2.0)
    expected = jax.jit(function.__wrapped__)(parameters, scale=2.0)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert isinstance(one, pumice.DeviceArray) and one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one.numpy(), other, 1e-6)


@pytest.mark.parametrize("tree", [(), None, {}, [], ((), None)])
def test_trees_without_arrays(tree) -> None:
    assert pumice.jit(lambda: tree, device="reference")() == tree


@pytest.mark.parametrize(
    ("choice", "arguments", "named"),
    [
        ({"static_argnums": 1}, (X, 3), {}),
        ({"static_argnums": (1,)}, (X,), {"power": 3}),
        ({"static_argnames": "power"}, (X, 3), {}),
        ({"static_argnames": ["power"]}, (X,), {"power": 3}),
    ],
)
def test_static_arguments_are_inferred_as_jax_does(choice, arguments, named) -> None:
    traces = []

    def function(x, power=2):
        traces.append(power)
        assert isinstance(power, int)
        return x**power

    compiled = pumice.jit(function, device="reference", **choice)
    for _ in range(2):
        np.testing.assert_allclose(compiled(*arguments, **named).numpy(), X**3, 1e-6)
    np.testing.assert_allclose(compiled(X).numpy(), X**2, 1e-6)
    np.testing.assert_allclose(compiled(X, 4).numpy(), X**4, 1e-6)
    assert traces == [3, 2, 4]


def test_a_static_argument_from_the_end_is_that_of_the_call() -> None:
    function = pumice.jit(lambda *values: sum(values[:-1]) ** values[-1], static_argnums=-1, device="reference")
    np.testing.assert_allclose(function(X, 2).numpy(), X**2)
    np.testing.assert_allclose(function(X, X, 3).numpy(), (2 * X) ** 3)


def test_static_values_of_other_types_are_other_programs() -> None:
    function = pumice.jit(lambda x, n: x * n, static_argnums=1, device="reference")
    assert function(2, 3).dtype == np.int32 and function(2, 3.0).dtype == np.float32
    assert function.cache_info().misses == 2


def test_masked_arrays_are_refused_by_a_warm_function_too() -> None:
    function = pumice.jit(lambda x: x + 1, device="reference")
    function(X)
    with pytest.raises(ValueError, match="masked arrays are not supported"):
        function(np.ma.array(X, mask=X > 0))


def test_a_static_value_has_to_be_hashable() -> None:
    function = pumice.jit(lambda x, n: x, static_argnums=1, device="reference")
    with pytest.raises(pumice.InvalidArgumentError, match="static argument 1 must be hashable, got list"):
        function(X, [1])


@pytest.mark.parametrize(
    "wrong",
    [{"static_argnums": "x"}, {"static_argnames": 3}, {"donate_argnums": 1.5}, {"static_argnums": 5}],
)
def test_wrong_choices_of_arguments_are_jaxs_errors(wrong) -> None:
    with pytest.raises((TypeError, ValueError)) as expected:
        jax.jit(step, **wrong)
    with pytest.raises(expected.type) as found:
        pumice.jit(step, **wrong)
    assert str(found.value) == str(expected.value)


def test_settings_of_jax_are_part_of_the_key() -> None:
    function = pumice.jit(lambda x: x + 1, device="reference")
    x = np.arange(3.0)
    assert function(x).dtype == np.float32
    enable = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
    with enable(True):
        wide = function(x)
        assert wide.dtype == np.float64
    assert function(x).dtype == np.float32 and function.cache_info().misses == 2
    with pytest.raises(pumice.InvalidArgumentError, match="JAX computes in float32 unless 64-bit types are on"):
        function(wide)


@pytest.mark.slow
def test_random_keys_raw_and_typed() -> None:
    def draw(key):
        key, used = jax.random.split(key)
        return key, jax.random.normal(used, (4,))

    function = pumice.jit(draw, device="reference")
    for key in (jax.random.PRNGKey(3), jax.random.key(3), jax.random.key(3, impl="rbg")):
        expected = key
        for _ in range(2):
            key, found = function(key)
            expected, values = jax.jit(draw)(expected)
            np.testing.assert_allclose(found.numpy(), values, 1e-5)
        if jnp.issubdtype(expected.dtype, jax.dtypes.prng_key):
            assert jax.random.key_impl(key) == jax.random.key_impl(expected)
            assert (jax.random.key_data(key) == jax.random.key_data(expected)).all()
    assert function.cache_info().misses == 3


# -- composition ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_takes_functions_that_jax_transformed_and_is_part_of_them() -> None:
    inner = pumice.jit(step, device="reference")

    def loss(w, x):
        return inner(x, w).sum()

    def scanned(w, x):
        return jax.lax.scan(lambda total, row: (total + inner(row[None], w).sum(), row), 0.0, x)[0]

    for outer in (loss, scanned, jax.grad(loss), jax.jit(loss), jax.vmap(loss, (None, 0))):
        x = np.stack([X, X + 1]) if outer not in (loss, scanned) else X
        found = pumice.jit(outer, device="reference")(W, x)
        np.testing.assert_allclose(found.numpy(), jax.jit(outer)(W, x), 1e-5)
    assert inner.cache_info().misses == 0  # all of its calls were traced


def test_arrays_on_a_device_may_be_closed_over_and_are_jaxs_where_it_asks() -> None:
    with pumice.open_device("reference") as device:
        w = device.asarray(W)
        function = pumice.jit(lambda x: (x @ w) * w[0], device=device)
        np.testing.assert_allclose(function(X).numpy(), (X @ W) * W[0], 1e-5)
        assert (jnp.asarray(X) @ w).shape == (3, 2)
        # As an argument, where another function is traced.
        assert jax.jit(lambda x: pumice.jit(step, device=device)(x, w))(X).shape == (3, 2)


def test_methods_are_bound() -> None:
    class Model:
        scale = 3.0

        @pumice.jit(static_argnums=0, device="reference")
        def apply(self, x):
            return x * self.scale

    assert Model().apply(np.float32([1, 2])).tolist() == [3.0, 6.0]


# -- calls ---------------------------------------------------------------------------------------------


def test_a_cancelled_call_leaves_an_executable_that_can_be_closed() -> None:
    function = pumice.jit(step, device="reference")

    async def main():
        task = asyncio.ensure_future(function.call_async(X, W))
        await asyncio.sleep(0)  # it is being compiled in a thread
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not function.cache_info().currsize:
            await asyncio.sleep(0.01)

    asyncio.run(main())
    (executable,) = function._cache.executables
    function.clear_cache()
    assert executable.is_closed


@pytest.mark.parametrize("choice", [{"donate_argnums": 0}, {"donate_argnames": "state"}])
def test_donated_arrays_are_closed_and_memory_of_the_host_is_not(choice) -> None:
    def update(state, change, *, rate):
        return jax.tree.map(lambda one, by: one - rate * by, state, change)

    function = pumice.jit(update, device="reference", **choice)
    change = {"w": function.device.asarray(X), "b": jnp.ones(3)}
    state = {"w": function.device.asarray(X), "b": jnp.ones(3)}
    first = function(state, change, rate=0.5)
    second = asyncio.run(function.call_async(first, change, rate=0.5))
    assert state["w"].is_closed and first["w"].is_closed and first["b"].is_closed and not change["w"].is_closed
    with pytest.raises(pumice.PumiceError, match="donated"):
        state["w"].numpy()
    assert second["w"].tolist() == np.zeros_like(X).tolist() and second["b"].tolist() == [0, 0, 0]
    assert state["b"].tolist() == [1, 1, 1]
    with pytest.raises(pumice.InvalidArgumentError, match="cannot donate argument"):
        function(second, second, rate=0.5)


def test_an_array_of_another_device_is_refused() -> None:
    function = pumice.jit(step, device="reference")
    with (
        pumice.open_device("reference") as other,
        pytest.raises(pumice.InvalidArgumentError, match="on another device object"),
    ):
        function(other.asarray(X), W)


@pytest.mark.parametrize("wrong", [3, np.float32, pumice.Session()])
def test_a_device_is_a_uri_or_open(wrong) -> None:
    with pytest.raises(pumice.InvalidArgumentError, match="device is a URI or an open pumice.Device, got"):
        pumice.jit(step, device=wrong)


@pytest.mark.vulkan
def test_a_device_that_is_not_there_is_told_when_it_is_opened() -> None:
    function = pumice.jit(step, device="vulkan://no-such-device")
    with pytest.raises(pumice.NotFoundError, match="no-such-device"):
        function(X, W)


def test_a_shape_is_lowered_and_not_called() -> None:
    function = pumice.jit(step, device="reference")
    shape = jax.ShapeDtypeStruct(X.shape, X.dtype)
    with pytest.raises(TypeError, match=r"which lower\(…\) takes"):
        function(shape, W)
    with function.lower(shape, W).compile() as compiled, pytest.raises(TypeError, match=r"which lower\(…\) takes"):
        compiled(shape, W)


@pytest.mark.parametrize("size", [0, -1, True, 2.0])
def test_a_wrong_cache_size_is_refused(size) -> None:
    with pytest.raises(pumice.InvalidArgumentError, match="cache_size"):
        pumice.jit(step, cache_size=size)
