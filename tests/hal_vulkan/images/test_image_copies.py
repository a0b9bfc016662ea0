"""Texels through images and back: every format, dimension and region, against NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.devices.device_images import download, picture, texel_noise, upload
from support.devices.host_buffers import HOST, host_buffer, submitted

from pumice.formats.image_format import FORMATS, ImageFormat
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.images.format_features import ImageUsage, format_features
from pumice.hal_vulkan.images.image import Image
from pumice.hal_vulkan.instance.profile import QueueFlag
from pumice.status import InvalidArgumentError, UnimplementedError

pytestmark = pytest.mark.vulkan
BOTH = ImageUsage.TRANSFER_SOURCE | ImageUsage.TRANSFER_TARGET


def test_every_format_keeps_its_bytes(device: Device) -> None:
    tried = 0
    for texels in FORMATS:
        whole = texels.is_plain or texels.is_compressed  # depth and stencil are copied apart
        if not whole or format_features(device, texels).usage & BOTH != BOTH:
            continue
        with device.create_image(texels, (8, 12)) as image:
            across, down = texels.block
            data = texel_noise(texels, -(-8 // across) * -(-12 // down))
            upload(device, image, data)
            np.testing.assert_array_equal(download(device, image), data, err_msg=texels.name)
        tried += 1
    assert tried > 60


def test_depth_and_stencil_are_copied_apart(device: Device) -> None:
    texels = ImageFormat.parse("d32floats8uint")
    if format_features(device, texels).usage & BOTH != BOTH:
        pytest.skip(f"{device.profile.name} has no {texels}")
    depths, stencils = np.linspace(0, 1, 15, dtype=np.float32), np.arange(15, dtype=np.uint8)
    with (
        device.create_image(texels, (5, 3)) as image,
        host_buffer(device, depths.tobytes() + stencils.tobytes()) as given,
        device.create_buffer(75, memory_type=HOST) as taken,
        device.create_command_buffer() as commands,
    ):
        commands.begin().copy_buffer_to_image(given, image)
        commands.copy_buffer_to_image(given, image, source_offset=60, aspect="stencil")
        commands.execution_barrier()
        commands.copy_image_to_buffer(image, taken, target_offset=15, aspect="depth")
        commands.copy_image_to_buffer(image, taken, aspect="stencil")
        device.compute_queue.execute(commands.end())
        device.wait_idle(20)
        assert taken.read() == stencils.tobytes() + depths.tobytes()
        commands.begin()
        with pytest.raises(InvalidArgumentError, match="depth and stencil, no 'color'"):
            commands.copy_image_to_buffer(image, taken, aspect="color")


def test_compressed_images_are_copied_by_blocks(device: Device) -> None:
    if not format_features(device, ImageFormat.parse("bc1rgbaunorm")).usage & BOTH:
        pytest.skip(f"{device.profile.name} has no BC formats")
    data = np.random.default_rng(0).integers(0, 256, (3, 4, 8), np.uint8)  # of 14 x 10 texels, edges included
    with (
        device.create_image("bc1rgbaunorm", (14, 10)) as image,
        host_buffer(device, data.tobytes()) as given,
        device.create_buffer(16, memory_type=HOST) as taken,
        device.create_command_buffer() as commands,
    ):
        commands.begin().copy_buffer_to_image(given, image)
        commands.execution_barrier()
        commands.copy_image_to_buffer(image, taken, offset=(8, 8, 0), extent=(6, 2, 1))
        device.compute_queue.execute(commands.end())
        device.wait_idle(20)
        assert taken.read() == data[2, 2:].tobytes()
        commands.begin()
        for offset, extent in (((2, 0, 0), (4, 4, 1)), ((0, 0, 0), (6, 4, 1))):
            with pytest.raises(InvalidArgumentError, match="blocks of 4x4 texels"):
                commands.copy_image_to_buffer(image, taken, offset=offset, extent=extent)
        with pytest.raises(UnimplementedError, match="compressed"):
            commands.clear_image(image)


def test_regions_at_any_byte_of_a_buffer(device: Device) -> None:
    base = np.arange(10 * 16, dtype=np.uint32).reshape(10, 16)
    with picture(device, base, "r32uint") as image, device.create_buffer(4096, memory_type=HOST) as buffer:
        part = np.arange(1000, 1012, dtype=np.uint32)
        buffer.write(part.tobytes(), 13)
        view = buffer.subspan(3)
        with submitted(device) as commands:
            commands.copy_buffer_to_image(view, image, source_offset=10, offset=(5, 2, 0), extent=(4, 3, 1))
            commands.execution_barrier()
            commands.copy_image_to_buffer(image, buffer, target_offset=801, offset=(1, 1, 0), extent=(10, 5, 1))
        base[2:5, 5:9] = part.reshape(3, 4)
        np.testing.assert_array_equal(download(device, image, np.uint32).reshape(10, 16), base)
        got = np.frombuffer(buffer.read(801, 200), np.uint32).reshape(5, 10)
        np.testing.assert_array_equal(got, base[1:6, 1:11])


def test_texels_of_three_bytes_lie_anywhere(device: Device) -> None:
    wanted = [one for one in FORMATS if one.texel_bytes in (3, 6, 12)]
    texels = next((one for one in wanted if format_features(device, one).usage & BOTH == BOTH), None)
    if texels is None:
        pytest.skip(f"{device.profile.name} copies no format whose texels are of 3, 6 or 12 bytes")
    data = texel_noise(texels, 35)
    with device.create_image(texels, (7, 5)) as image, device.create_buffer(1024, memory_type=HOST) as buffer:
        for offset in (0, 1, 4, 256):
            buffer.write(data.tobytes(), offset)
            with submitted(device) as commands:
                commands.copy_buffer_to_image(buffer, image, source_offset=offset)
            np.testing.assert_array_equal(download(device, image), data)


def test_copies_between_images(device: Device) -> None:
    data = np.arange(2 * 6 * 8, dtype=np.uint32).reshape(2, 6, 8)
    with (
        device.create_image("r32uint", (8, 6), layers=2) as source,
        device.create_image("rgba8unorm", (8, 6), layers=3) as target,  # as many bytes a texel
        device.create_command_buffer() as commands,
    ):
        upload(device, source, data)
        commands.begin().clear_image(target, 0)
        commands.execution_barrier()
        commands.copy_image(
            source, target, source_offset=(1, 2, 0), target_offset=(3, 1, 0), target_layer=1, extent=(4, 3, 1)
        )
        device.compute_queue.execute(commands.end())
        device.wait_idle(20)
        expected = np.zeros((3, 6, 8), np.uint32)
        expected[1:, 1:4, 3:7] = data[:, 2:5, 1:5]
        np.testing.assert_array_equal(download(device, target, np.uint32).reshape(3, 6, 8), expected)


@pytest.mark.parametrize(
    ("texels", "value", "expected"),
    [
        ("rgba8unorm", (1.0, 0.0, 0.5, 0.25), (255, 0, 128, 64)),
        ("r32float", 2.5, (2.5,)),
        ("rg16sint", (-3, 77), (-3, 77)),
        ("rgba32uint", 4000000000, (4000000000,) * 4),
    ],
)
def test_clears(device: Device, texels: str, value: float, expected: tuple[float, ...]) -> None:
    with device.create_image(texels, (5, 3), layers=2, levels=2) as image, device.create_command_buffer() as commands:
        zero = np.zeros(30 * image.format.channels, image.format.dtype)
        upload(device, image, zero)
        commands.begin().clear_image(image, value, base_layer=1)
        device.compute_queue.execute(commands.end())
        device.wait_idle(20)
        got = download(device, image, image.format.dtype).reshape(2, 15, image.format.channels)
        assert (got[0] == 0).all()
        np.testing.assert_allclose(got[1].astype(float), np.broadcast_to(expected, got[1].shape), atol=0.6)
        assert (download(device, image, image.format.dtype, 1).reshape(2, -1)[1] != 0).any()


def _generate(device: Device, image: Image) -> None:
    with submitted(device) as commands:
        commands.generate_mips(image)


def test_mip_levels_are_means_of_four(device: Device) -> None:
    level = np.random.default_rng(0).uniform(0, 1, (2, 16, 32)).astype(np.float32)
    with device.create_image("r32float", (32, 16), layers=2, levels=0) as image:
        upload(device, image, level)
        _generate(device, image)
        for number in range(1, image.levels):
            rows = level.shape[1]
            level = level.reshape(2, max(1, rows // 2), min(rows, 2), level.shape[2] // 2, 2).mean(axis=(2, 4))
            got = download(device, image, np.float32, number).reshape(level.shape)
            np.testing.assert_allclose(got, level, atol=1e-5)
        assert number == 5


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("filter", "extent", "options"),
    [
        ("linear", (37,), {}),
        ("linear", (16,), {"layers": 3}),
        ("linear", (20, 7), {"layers": 2}),
        ("linear", (9, 5, 6), {}),
        ("linear", (8, 8), {"dim": "cube", "layers": 6}),
        ("nearest", (8, 8), {"dim": "cube", "layers": 6}),
        ("nearest", (16, 4, 8), {}),
    ],
    ids=str,
)
def test_mip_levels_without_blits_are_those_of_blits(
    device: Device, filter: str, extent: tuple[int, ...], options: dict[str, object]
) -> None:
    """A compute queue without graphics makes them by a kernel."""
    profile = device.profile
    families = tuple(replace(one, flags=one.flags & ~QueueFlag.GRAPHICS) for one in profile.queue_families)
    results = []
    for seen in (profile, replace(profile, queue_families=families)):
        with device.create_image("rgba16float", extent, levels=0, **options) as image:  # type: ignore[arg-type]
            count = int(np.prod(extent)) * image.layers * 4
            upload(device, image, np.random.default_rng(0).uniform(0, 1, count).astype(np.float16))
            device.profile = seen
            with submitted(device) as commands:
                commands.generate_mips(image, filter=filter)  # type: ignore[arg-type]
            device.profile = profile
            results.append([download(device, image, np.float16, level) for level in range(1, image.levels)])
    for blitted, made in zip(*results, strict=True):
        np.testing.assert_allclose(made, blitted, atol=0.01)


def test_queues_without_graphics_say_what_they_do(device: Device) -> None:
    families = tuple(replace(one, flags=one.flags & ~QueueFlag.GRAPHICS) for one in device.profile.queue_families)
    device.profile = replace(device.profile, queue_families=families)
    with (
        device.create_image("rgba8srgb", (8, 8), levels=0) as image,
        device.create_image("d32float", (8, 8)) as depth,
        device.create_buffer(256) as buffer,
        device.create_command_buffer() as commands,
    ):
        commands.begin()
        with pytest.raises(InvalidArgumentError, match="usage STORAGE"):
            commands.generate_mips(image)
        with pytest.raises(UnimplementedError, match="blit: queue family 0 .* has no graphics"):
            commands.blit_image(image, image, target_level=1)
        with pytest.raises(UnimplementedError, match="copy to an image of depth: queue family 0 .* has no graphics"):
            commands.copy_buffer_to_image(buffer, depth)
    with device.create_image("r32uint", (8, 8), levels=0) as numbers, device.create_command_buffer() as commands:
        commands.begin()
        with pytest.raises(UnimplementedError, match="no mip levels of r32uint with filter nearest"):
            commands.generate_mips(numbers, filter="nearest")


def test_blits_change_size_and_format(device: Device) -> None:
    data = np.random.default_rng(1).integers(0, 256, (6, 10, 4), np.uint8)
    with picture(device, data, "rgba8unorm") as source, device.create_image("rgba32float", (20, 12)) as target:
        with submitted(device) as commands:
            commands.blit_image(source, target, filter="nearest")
        expected = data.repeat(2, axis=0).repeat(2, axis=1) / np.float32(255)
        np.testing.assert_allclose(download(device, target, np.float32).reshape(12, 20, 4), expected, atol=1e-6)


def test_copies_are_replayed_for_other_buffers(device: Device) -> None:
    from pumice.hal_vulkan import BindingSlot

    data = np.arange(64, dtype=np.uint8)
    with (
        device.create_image("r8uint", (8, 8)) as image,
        device.create_command_buffer(binding_capacity=2) as commands,
    ):
        commands.begin().copy_buffer_to_image(BindingSlot(0), image)
        commands.execution_barrier()
        commands.copy_image_to_buffer(image, BindingSlot(1))
        commands.end()
        for step in range(3):
            with device.create_buffer(64, memory_type=HOST) as one, device.create_buffer(64, memory_type=HOST) as two:
                one.write((data + step).tobytes())
                device.compute_queue.execute(commands, bindings=[one, two])
                device.wait_idle(20)
                assert two.read() == (data + step).tobytes()
