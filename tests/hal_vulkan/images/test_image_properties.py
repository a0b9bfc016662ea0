"""Any sequence of copies, clears and mip levels leaves what NumPy's slices say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.devices.device_images import download
from support.devices.host_buffers import HOST

from pumice.hal_vulkan.commands.command_buffer import CommandBuffer
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.images.image import Image
from pumice.hal_vulkan.memory.buffer import Buffer

pytestmark = pytest.mark.vulkan
SHAPES = ({"dim": "1d", "layers": 3}, {"dim": "2d", "layers": 2}, {"dim": "3d"}, {"dim": "cube", "layers": 6})


def _span(data: st.DataObject, size: int) -> tuple[int, int]:
    first = data.draw(st.integers(0, size - 1))
    return first, data.draw(st.integers(1, size - first))


def _texels(image: Image, at: list[tuple[int, int]], layers: tuple[int, int]) -> tuple[slice, ...]:
    """The slices of a region in an array of (layers, z, y, x)."""
    x, y, z = (slice(first, first + count) for first, count in at)
    return slice(layers[0], layers[0] + layers[1]), z, y, x


def _step(
    data: st.DataObject,
    commands: CommandBuffer,
    images: list[Image],
    held: list[list[np.ndarray]],
    raw: np.ndarray,
    buffer: Buffer,
) -> None:
    which = data.draw(st.integers(0, len(images) - 1))
    image, arrays = images[which], held[which]
    level = data.draw(st.integers(0, image.levels - 1))
    at = [_span(data, size) for size in image.level_extent(level)]
    layers = _span(data, image.layers)
    region = {"offset": tuple(first for first, _ in at), "extent": tuple(count for _, count in at)}
    part = _texels(image, at, layers)
    count = arrays[level][part].size
    byte = data.draw(st.integers(0, raw.size - 4 * count))
    match data.draw(st.sampled_from(["upload", "download", "copy", "clear"])):
        case "upload":
            commands.copy_buffer_to_image(
                buffer, image, source_offset=byte, level=level, base_layer=layers[0], layers=layers[1], **region
            )
            taken = raw[byte : byte + 4 * count].copy().view(np.uint32)
            arrays[level][part] = taken.reshape(arrays[level][part].shape)
        case "download":
            commands.copy_image_to_buffer(
                image, buffer, target_offset=byte, level=level, base_layer=layers[0], layers=layers[1], **region
            )
            raw[byte : byte + 4 * count] = np.ascontiguousarray(arrays[level][part]).reshape(-1).view(np.uint8)
        case "copy":
            other = images[1 - which]
            if other.level_extent(level) == image.level_extent(level) and layers[0] + layers[1] <= other.layers:
                commands.copy_image(
                    image,
                    other,
                    source_level=level,
                    target_level=level,
                    source_layer=layers[0],
                    target_layer=layers[0],
                    layers=layers[1],
                    source_offset=region["offset"],
                    target_offset=region["offset"],
                    extent=region["extent"],
                )
                held[1 - which][level][part] = arrays[level][part]
        case "clear":
            value = data.draw(st.integers(0, 2**32 - 1))
            commands.clear_image(image, value, base_level=level, levels=1, base_layer=layers[0], layers=layers[1])
            arrays[level][part[0]] = value
    commands.execution_barrier()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_sequence_of_transfers(device: Device, data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    sizes = st.integers(1, 9)
    side = data.draw(sizes)
    extent = {"1d": 1, "2d": 2, "3d": 3}.get(str(shape["dim"]))
    extents = (side, side) if extent is None else tuple(data.draw(sizes) for _ in range(extent))
    images = [device.create_image("r32uint", extents, levels=0, **shape) for _ in range(2)]  # type: ignore[arg-type]
    raw = np.random.default_rng(0).integers(0, 256, 16384, np.uint8)
    held = []
    with device.create_buffer(raw.size, memory_type=HOST) as buffer, device.create_command_buffer() as commands:
        buffer.write(raw.tobytes())
        commands.begin()
        for image in images:
            commands.clear_image(image, 7)
            held.append(
                [
                    np.full((image.layers, *image.level_extent(level)[::-1]), 7, np.uint32)
                    for level in range(image.levels)
                ]
            )
        commands.execution_barrier()
        for _ in range(data.draw(st.integers(1, 8))):
            _step(data, commands, images, held, raw, buffer)
        device.compute_queue.execute(commands.end())
        device.wait_idle(20)
        np.testing.assert_array_equal(np.frombuffer(buffer.read(), np.uint8), raw)
    for image, arrays in zip(images, held, strict=True):
        for level, array in enumerate(arrays):
            np.testing.assert_array_equal(download(device, image, np.uint32, level).reshape(array.shape), array)
        image.close()
