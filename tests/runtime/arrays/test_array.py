"""Device arrays: contents, views, copies, DLPack, lifetimes."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

import pumice
from pumice.formats.element_type import ElementType

pytestmark = pytest.mark.vulkan

DTYPES = [
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
    np.float16, np.float32, np.float64, np.complex64, np.complex128,
    ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
]  # fmt: skip


@pytest.fixture(params=["mapped", "staging"])
def device(request: pytest.FixtureRequest) -> Iterator[pumice.Device]:
    with pumice.open_device(staging=request.param == "staging") as opened:
        yield opened


@pytest.mark.sample(80)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (0, 4), (2, 3, 4)])
def test_contents_come_back(device: pumice.Device, dtype: type[np.generic], shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(3).integers(0, 2, shape).astype(dtype)
    array = device.asarray(values)
    assert (array.shape, array.dtype, array.nbytes, array.size) == (shape, np.dtype(dtype), values.nbytes, values.size)
    back = array.numpy()
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back, values)
    np.testing.assert_array_equal(np.asarray(array), values)


def test_asarray_converts_and_keeps(device: pumice.Device) -> None:
    array = device.asarray([1, 2, 3], np.float16)
    assert array.dtype == np.float16
    assert device.asarray(array) is array
    assert device.asarray(array, np.float32).dtype == np.float32
    transposed = np.arange(6, dtype=np.int32).reshape(2, 3).T
    np.testing.assert_array_equal(device.asarray(transposed).numpy(), transposed)


def test_zeros_and_empty(device: pumice.Device) -> None:
    for count in (0, 1, 3, 5, 1000):
        np.testing.assert_array_equal(device.zeros(count, np.uint8).numpy(), np.zeros(count, np.uint8))
    assert device.empty((2, 3)).shape == (2, 3)
    for bad in (-1, (2, -3), "x", 1.5):
        with pytest.raises(pumice.InvalidArgumentError):
            device.empty(bad)  # type: ignore[arg-type]
    with pytest.raises(pumice.InvalidArgumentError):
        device.empty(3, object)
    with pytest.raises(pumice.InvalidArgumentError):
        pumice.empty(3, "no such type")


def test_huge_sizes_are_refused_and_leave_nothing(device: pumice.Device) -> None:
    before = pumice.live_objects()
    for count in (1 << 40, 1 << 62, 1 << 70):
        with pytest.raises(pumice.ResourceExhaustedError, match="bytes"):
            device.empty(count, np.float64)
    assert pumice.live_objects() == before


@pytest.mark.parametrize(
    "index",
    [0, -1, 2, slice(1, 3), slice(0, 0), (1, 2), (1, slice(1, 3)), (slice(1, 2), slice(None)), slice(None, None, 1)],
)
def test_contiguous_views(device: pumice.Device, index: object) -> None:
    values = np.arange(24, dtype=np.int32).reshape(4, 3, 2)
    array = device.asarray(values)
    view = array[index]  # type: ignore[index]
    expected = values[index]  # type: ignore[index]
    assert view.shape == np.shape(expected)
    np.testing.assert_array_equal(view.numpy(), expected)


@pytest.mark.parametrize(
    "index", [(slice(None), 0), slice(None, None, 2), (slice(0, 2), slice(0, 1)), slice(None, None, -1)]
)
def test_views_that_are_not_contiguous_are_refused(device: pumice.Device, index: object) -> None:
    array = device.asarray(np.zeros((4, 3, 2), np.int32))
    with pytest.raises(pumice.InvalidArgumentError, match="contiguous"):
        array[index]  # type: ignore[index]


def test_index_errors(device: pumice.Device) -> None:
    array = device.asarray(np.zeros((2, 2)))
    for bad in (2, -3, (0, 5)):
        with pytest.raises(IndexError):
            array[bad]
    with pytest.raises(pumice.InvalidArgumentError, match="3 indices"):
        array[0, 0, 0]
    assert len(array) == 2
    assert [part.shape for part in array] == [(2,), (2,)]
    with pytest.raises(TypeError):
        len(device.asarray(1.0))


def test_writing_through_a_view(device: pumice.Device) -> None:
    array = device.zeros((3, 4), np.int32)
    array[1].copy_from(np.arange(4, dtype=np.int32))
    array[2, 1:3].copy_from(device.asarray(np.array([7, 8], np.int32)))
    np.testing.assert_array_equal(array.numpy(), [[0, 0, 0, 0], [0, 1, 2, 3], [0, 7, 8, 0]])


def test_reshape_and_view(device: pumice.Device) -> None:
    values = np.arange(12, dtype=np.float32)
    array = device.asarray(values)
    np.testing.assert_array_equal(array.reshape(3, -1).numpy(), values.reshape(3, -1))
    np.testing.assert_array_equal(array.view(np.uint32).numpy(), values.view(np.uint32))
    for bad in ((5,), (-1, -1), (0, -1)):
        with pytest.raises(pumice.InvalidArgumentError, match="reshape"):
            array.reshape(*bad)
    with pytest.raises(pumice.InvalidArgumentError, match="view"):
        array.view(np.float64)


def test_copy_from(device: pumice.Device) -> None:
    values = np.random.default_rng(5).standard_normal((5, 3))
    array = device.empty((5, 3), np.float64)
    assert array.copy_from(values) is array
    np.testing.assert_array_equal(array.numpy(), values)
    np.testing.assert_array_equal(device.empty((5, 3), np.float64).copy_from(array).numpy(), values)
    with pumice.open_device(device.uri) as other, other.asarray(values * 2) as far:
        np.testing.assert_array_equal(array.copy_from(far).numpy(), values * 2)
    for bad in (values.astype(np.float32), values[:4], 1.0):
        with pytest.raises(pumice.InvalidArgumentError, match="expected shape"):
            array.copy_from(bad)


def test_numpy_out(device: pumice.Device) -> None:
    array = device.asarray(np.arange(5.0))
    out = np.empty(5)
    assert array.numpy(out) is out
    np.testing.assert_array_equal(out, np.arange(5.0))
    for bad in (np.empty(4), np.empty(5, np.float32), np.empty(10)[::2]):
        with pytest.raises(pumice.InvalidArgumentError, match="out must be"):
            array.numpy(bad)


def test_map_shares_memory_and_outlives_the_array() -> None:
    with pumice.open_device(staging=False) as device:
        array = device.asarray(np.arange(4, dtype=np.int32))
        mapped = array.map()
        mapped[1] = 50
        np.testing.assert_array_equal(array.numpy(), [0, 50, 2, 3])
        array.close()
        del array
        gc.collect()
    np.testing.assert_array_equal(mapped, [0, 50, 2, 3])
    del mapped
    gc.collect()


def test_map_of_device_memory_is_refused_where_the_host_cannot_see_it() -> None:
    with pumice.open_device(staging=True) as device:
        with pytest.raises(pumice.FailedPreconditionError, match="not host-visible"):
            device.zeros(3).map()
        with pytest.raises(BufferError):
            device.zeros(3).__dlpack__(copy=False)


def test_dlpack(device: pumice.Device) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    array = device.asarray(values)
    imported = np.from_dlpack(array)
    np.testing.assert_array_equal(imported, values)
    assert array.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="CPU"):
        array.__dlpack__(dl_device=(2, 0))
    array.close()
    np.testing.assert_array_equal(imported, values, "the exported memory outlives the array")
    del imported
    gc.collect()


def test_array_protocol(device: pumice.Device) -> None:
    array = device.asarray(np.arange(3))
    assert np.asarray(array, np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="without a copy"):
        np.array(array, copy=False)
    with pytest.raises(TypeError):
        np.arange(3) + array
    assert float(device.asarray(2.5)) == 2.5
    assert f"{device.asarray(2.5):.2f} {device.asarray(3)}" == "2.50 3"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{device.asarray([1.0, 2.0]):.2f}"
    assert int(device.asarray([7])) == 7
    assert device.asarray(2.5).item() == 2.5


def test_repr(device: pumice.Device) -> None:
    array = device.asarray(np.arange(3))
    assert "array([0, 1, 2])" in repr(array)
    assert "\n" not in repr(device.zeros(5000))
    array.close()
    assert "closed" in repr(array)


def test_memory_comes_back_when_arrays_are_dropped(device: pumice.Device) -> None:
    for _ in range(3):
        array = device.asarray(np.zeros(1000))
        view = array[10:20]
        del array
        np.testing.assert_array_equal(view.numpy(), np.zeros(10), "a view keeps its array alive")
        del view
    device.wait()
    device.hal.retire()
    gc.collect()
    assert pumice.live_objects().get("allocation", 0) <= 1  # the staging buffer of the last read may retire later


def test_use_after_close(device: pumice.Device) -> None:
    array = device.asarray(np.arange(4))
    view = array[1:]
    array.close()
    array.close()
    for use in (array.numpy, view.numpy, array.map, lambda: array.copy_from(np.arange(4)), lambda: array.reshape(2, 2)):
        with pytest.raises(pumice.ClosedError):
            use()


def test_wait_with_timeout(device: pumice.Device) -> None:
    assert device.zeros(10).wait(5.0).numpy().sum() == 0
    device.wait(timeout=5.0)


def test_closing_the_device_closes_its_arrays() -> None:
    device = pumice.open_device()
    array = device.asarray(np.arange(4))
    device.close()
    device.close()
    with pytest.raises(pumice.PumiceError, match="closed"):
        array.numpy()
    with pytest.raises(pumice.ClosedError):
        device.zeros(3)
    assert "closed" in repr(device)


def test_copies_are_arrays_of_their_own(device: pumice.Device) -> None:
    array = device.asarray(np.arange(4, dtype=np.int32))
    for duplicate in (array.copy(), copy.copy(array), copy.deepcopy(array)):
        duplicate[0] = 9
        duplicate.close()
    np.testing.assert_array_equal(array.numpy(), [0, 1, 2, 3])
    assert array.astype(np.float64).dtype == np.float64
    assert array.tolist() == [0, 1, 2, 3]
    with pytest.raises(TypeError, match=r"pickle x\.numpy\(\)"):
        pickle.dumps(array)


def test_assignment_and_ellipsis(device: pumice.Device) -> None:
    model = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    array = device.asarray(model)
    for index, value in [(0, 5), ((1, 2), [1, 2, 3, 4]), ((0, 1, slice(1, 3)), -1), (..., 7), ((1, ...), 8)]:
        array[index] = value  # type: ignore[index]
        model[index] = value
        np.testing.assert_array_equal(array.numpy(), model)
    assert array[..., :].shape == (2, 3, 4)
    with pytest.raises(pumice.InvalidArgumentError):
        array[0] = np.zeros(7)
    with pytest.raises(pumice.InvalidArgumentError, match="index"):
        array["x"]  # type: ignore[index]
    for mask in (True, False, np.True_, (0, True)):
        with pytest.raises(pumice.InvalidArgumentError, match="an index is an int"):
            array[mask]  # type: ignore[index]


def test_a_write_noted_while_a_program_waits_is_waited_for(
    device: pumice.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = device.zeros(4)
    waited: list[int | None] = []

    def wait(payload: int | None = None, timeout: float | None = None) -> None:
        waited.append(payload)
        if len(waited) == 1:
            array.mark(later, written=True)

    later = device.submit(())
    monkeypatch.setattr(device, "finish", wait)
    array.buffer_view(ElementType.FLOAT_32)
    array.buffer_view(ElementType.FLOAT_32)
    assert waited == [later - 1, later]


def test_arithmetic_of_numpy_says_where_to_compute(device: pumice.Device) -> None:
    array, host = device.asarray(np.arange(4)), np.ones(4)
    for compute in (lambda: host + array, lambda: np.float32(2) * array, lambda: np.sum(array), lambda: host == array):
        with pytest.raises(TypeError, match=r"give it x\.numpy\(\).*ElementwiseKernel"):
            compute()
    np.testing.assert_array_equal(host + np.asarray(array), [1, 2, 3, 4])


def test_comparisons_are_not_silent(device: pumice.Device) -> None:
    array = device.asarray(np.arange(4))
    with pytest.raises(TypeError, match="compare"):
        array == array.copy()  # noqa: B015
    with pytest.raises(ValueError, match="ambiguous"):
        bool(array)
    assert {array: 1}[array] == 1


def test_shapes_dtypes_and_timeouts_of_the_wrong_kind(device: pumice.Device) -> None:
    for bad in ((0, 1 << 70), (1,) * 100):
        with pytest.raises(pumice.InvalidArgumentError):
            device.empty(bad)
    with pytest.raises(pumice.InvalidArgumentError, match="array itself"):
        device.empty(4, ("f4", (2,)))
    assert device.empty(np.array([2, 3])).shape == (2, 3)
    with pytest.raises(pumice.InvalidArgumentError, match="cannot become an array"):
        device.asarray([[1, 2], [3]])
    array = device.zeros(3)
    with pytest.raises(pumice.InvalidArgumentError, match="out must be"):
        array.numpy(out=5)  # type: ignore[arg-type]
    for bad_timeout in ("x", float("nan"), True):
        with pytest.raises(pumice.InvalidArgumentError, match="timeout"):
            array.wait(bad_timeout)  # type: ignore[arg-type]
    for bad_payload in (5.5, "a", 1 << 70, -1):
        with pytest.raises(pumice.InvalidArgumentError, match="payload"):
            device.wait(bad_payload)  # type: ignore[arg-type]
