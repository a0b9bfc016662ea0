"""Buffer views of every element type, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.devices.host_buffers import HOST

from pumice.hal_vulkan import BufferView, Device, ElementType, EncodingType
from pumice.hal_vulkan.instance.driver import Driver
from pumice.status import ClosedError, InvalidArgumentError, OutOfRangeError, PumiceError, UnimplementedError

pytestmark = pytest.mark.vulkan

WITH_DTYPE = [t for t in ElementType if t.dtype is not None and t.dtype.kind != "V"]


@pytest.fixture(scope="module")
def shared_device(driver: Driver) -> Iterator[Device]:
    """One for many small tests: each closes its only buffer, and its view is data."""
    with Device(driver) as opened:
        opened.create_buffer(64, memory_type=HOST).close()  # the memory that a device keeps from then on
        opened.create_buffer(64).close()
        yield opened


@pytest.mark.parametrize("element_type", WITH_DTYPE, ids=lambda t: t.name)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0, 3)])
def test_contents_of_every_element_type(
    shared_device: Device, element_type: ElementType, shape: tuple[int, ...]
) -> None:
    values = np.random.default_rng(2).integers(0, 2, shape).astype(element_type.dtype)
    with shared_device.create_buffer(element_type.storage_bytes(values.size), memory_type=HOST) as buffer:
        view = BufferView(buffer, shape, element_type)
        view.write(values)
        back = view.read()
        assert back.dtype == element_type.dtype
        np.testing.assert_array_equal(back, values)
        assert (view.rank, view.element_count, view.byte_length) == (len(shape), values.size, buffer.size)


@pytest.mark.parametrize("element_type", list(ElementType), ids=lambda t: t.name)
def test_every_element_type_has_a_length(shared_device: Device, element_type: ElementType) -> None:
    with shared_device.create_buffer(64) as buffer:
        assert BufferView(buffer, (3,), element_type).byte_length == -(-3 * element_type.bits // 8)


def test_offsets_and_subviews_against_numpy(device: Device) -> None:
    values = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    with device.create_buffer(values.nbytes, memory_type=HOST) as buffer:
        view = BufferView(buffer, values.shape, ElementType.from_dtype(values.dtype))
        view.write(values)
        for index in np.ndindex(values.shape):
            expected = values[index].tobytes()
            assert buffer.read(view.byte_offset(index), 2) == expected
        np.testing.assert_array_equal(view.subview((1, 1, 0), (1, 2, 4)).read(), values[1:2, 1:3])
        np.testing.assert_array_equal(view.subview((0, 2, 1), (1, 1, 2)).read(), values[0:1, 2:3, 1:3])
        np.testing.assert_array_equal(view.reshape((6, 4)).read(), values.reshape(6, 4))
        assert view.subview((0, 0, 0), (0, 3, 4)).read().shape == (0, 3, 4)
        with pytest.raises(InvalidArgumentError, match="contiguous"):
            view.subview((0, 0, 0), (2, 2, 4))
        for starts, lengths in [((0, 0, 3), (1, 1, 2)), ((0, 0), (1, 1)), ((-1, 0, 0), (1, 1, 1))]:
            with pytest.raises(OutOfRangeError):
                view.subview(starts, lengths)
        with pytest.raises(OutOfRangeError):
            view.byte_offset((0, 0, 4))


def test_refusals(device: Device) -> None:
    buffer = device.create_buffer(16, memory_type=HOST)
    with pytest.raises(OutOfRangeError, match="takes 20 bytes; the buffer has 16"):
        BufferView(buffer, (5,), ElementType.parse("f32"))
    with pytest.raises(InvalidArgumentError, match="negative"):
        BufferView(buffer, (-1,), ElementType.parse("f32"))
    view = BufferView(buffer, (4,), ElementType.parse("f32"))
    with pytest.raises(InvalidArgumentError, match="expected shape"):
        view.write(np.zeros(3, np.float32))
    with pytest.raises(PumiceError):
        view.write(np.zeros(4, np.int64))
    opaque = BufferView(buffer, (1000,), ElementType.parse("f32"), EncodingType.OPAQUE)
    assert opaque.byte_length == 16
    with pytest.raises(UnimplementedError, match="dense"):
        opaque.read()
    with pytest.raises(UnimplementedError, match="share bytes"):
        BufferView(buffer, (8,), ElementType.parse("i4")).byte_offset((1,))
    assert "4xf32" in repr(view)
    buffer.close()
    with pytest.raises(ClosedError):
        view.read()
    with pytest.raises(ClosedError):
        BufferView(buffer, (1,), ElementType.parse("f32"))
