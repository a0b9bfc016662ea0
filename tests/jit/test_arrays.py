"""Arrays in and out of ``pumice.jit``: their memory, which no result shares with an argument."""

from __future__ import annotations

import numpy as np
import pytest
from support.devices.features import require_import

import pumice
from pumice.hal_vulkan.instance.logical_device import LogicalDevice

jax = pytest.importorskip("jax", reason="needs jax: pip install -e '.[dev]'")
jnp = jax.numpy

LARGE = 1 << 19  # float32: 2 MiB


def address(array: pumice.DeviceArray) -> int:
    """Returns the host's address of a device array's memory."""
    return int(array.map().ctypes.data)


@pytest.mark.parametrize("length", [16, LARGE])
def test_results_are_jaxs_and_numpys_arrays_without_a_copy(length: int, device: pumice.Device) -> None:
    function = pumice.jit(lambda x: x * 2, device=device)
    x = np.arange(length, dtype=np.float32)
    y = function(x)
    as_jax, as_numpy = jax.dlpack.from_dlpack(y), np.from_dlpack(y)
    assert as_jax.unsafe_buffer_pointer() == as_numpy.ctypes.data == address(y)
    function.clear_cache()
    y.close()  # the views keep the memory
    np.testing.assert_array_equal(as_jax, x * 2)
    np.testing.assert_array_equal(as_numpy, x * 2)
    np.testing.assert_array_equal(as_jax + 1, x * 2 + 1)
    del as_jax, as_numpy


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
@pytest.mark.parametrize("length", [16, LARGE])
def test_no_result_shares_the_memory_of_an_argument(make, length: int, device: pumice.Device) -> None:
    function = pumice.jit(lambda x: (x, x.reshape(2, -1), x * 1), device=device)
    given = np.arange(length, dtype=np.float32)
    x = make(given)
    results = function(x)
    places = {x.unsafe_buffer_pointer() if isinstance(x, jax.Array) else x.ctypes.data, *map(address, results)}
    assert len(places) == 4
    if isinstance(x, np.ndarray):
        x += 1  # the caller's again
    for result in results:
        np.testing.assert_array_equal(result.numpy().ravel(), np.arange(length, dtype=np.float32))
    held = device.asarray(given)
    again = function(held)[0]
    held.close()
    np.testing.assert_array_equal(again.numpy(), given)
    function.clear_cache()


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_large_arrays_of_the_host_are_read_in_place(make, device: pumice.Device, monkeypatch) -> None:
    if isinstance(device.hal, LogicalDevice):
        require_import(device.hal)
    imported = []
    import_buffer = device.hal.import_buffer

    def spy(data: object, *, copy: bool) -> object:
        buffer = import_buffer(data, copy=copy)
        assert buffer is not None  # over that memory
        imported.append(np.frombuffer(data, np.uint8).ctypes.data)
        return buffer

    monkeypatch.setattr(device.hal, "import_buffer", spy)
    function = pumice.jit(lambda x: x.sum(), device=device)
    x = make(np.ones(LARGE, np.float32))
    assert float(function(x)) == float(function(x)) == LARGE
    assert imported == 2 * [x.unsafe_buffer_pointer() if isinstance(x, jax.Array) else x.ctypes.data]
    function.clear_cache()


def test_arguments_that_are_views_and_copies(device: pumice.Device) -> None:
    function = pumice.jit(lambda x: x + 1, device=device)
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    on_device = device.asarray(whole)
    read_only = whole.copy()
    read_only.flags.writeable = False
    for given in (whole.T, whole[::2, ::-1], np.broadcast_to(whole[0], (3, 6)), read_only, np.asfortranarray(whole)):
        np.testing.assert_array_equal(function(given).numpy(), given + 1)
    np.testing.assert_array_equal(function(on_device[1:3]).numpy(), whole[1:3] + 1)
    np.testing.assert_array_equal(function(on_device[2]).numpy(), whole[2] + 1)
    np.testing.assert_array_equal(function(on_device.reshape(24)).numpy(), whole.ravel() + 1)
    assert function.cache_info().misses == 6
    function.clear_cache()


def test_results_pass_from_function_to_function_and_session(device: pumice.Device) -> None:
    first = pumice.jit(lambda x: x * 2, device=device)
    second = pumice.jit(lambda x: {"y": x + 1}, device=device)
    x = np.arange(4, dtype=np.float32)
    middle = first(x)
    compiled = second.lower(middle).compile()
    with pumice.Session(device) as session:
        module = session.load(compiled.module)
        np.testing.assert_array_equal(session.call(f"{module.name}.main", middle).numpy(), x * 2 + 1)
    np.testing.assert_array_equal(second(middle)["y"].numpy(), x * 2 + 1)
    np.testing.assert_array_equal(compiled(middle)["y"].numpy(), x * 2 + 1)
    compiled.close()
    first.clear_cache()
    second.clear_cache()


def test_values_that_are_not_finite_and_negative_zeros_pass(device: pumice.Device) -> None:
    function = pumice.jit(lambda x: (x, -x), device=device)
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-40], np.float32)
    same, negated = function(x)
    np.testing.assert_array_equal(same.numpy().view(np.uint32), x.view(np.uint32))
    np.testing.assert_array_equal(np.signbit(negated.numpy()[1:]), ~np.signbit(x[1:]))
    function.clear_cache()
