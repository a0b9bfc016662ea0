"""Cases that are images and texel buffers, compared with NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ... import shaders
from ...runtime.device import Device
from ...testing.closeness import assert_close
from .case import Case


def _picture(device: Device) -> None:
    """Copies a picture texel by texel, and filters it."""
    height, width = 37, 53
    picture = np.random.default_rng(1).integers(0, 256, (height, width, 4)).astype(np.uint8)
    with (
        device.asimage(picture) as image,
        device.empty_image((height, width), "rgba8unorm") as copied,
        device.empty((height, width, 4)) as means,
        device.load_kernel(shaders.path("check/image_filter")) as kernel,
    ):
        sampled = image.with_sampler(device.sampler("linear"))
        kernel(sampled, copied, means, groups=(-(-width // 8), -(-height // 8), 1))
        assert_close(copied.numpy(), picture, what="texels copied")
        padded = np.pad(picture.astype(np.float64), ((0, 1), (0, 1), (0, 0)), "edge") / 255
        expected = (padded[:-1, :-1] + padded[1:, :-1] + padded[:-1, 1:] + padded[1:, 1:]) / 4
        assert_close(means.numpy(), expected, atol=1 / 250, what="means of four texels")


def _counts(device: Device) -> None:
    """Counts by atomic additions in an image."""
    with (
        device.asimage(np.zeros((16, 24), np.uint32)) as image,
        device.load_kernel(shaders.path("check/image_atomics")) as kernel,
    ):
        kernel(image, groups=(9, 6, 1))
        assert_close(image.numpy(), np.full((16, 24), 9), what="texels counted")


def _volume(device: Device) -> None:
    """Mirrors a 3D image."""
    volume = np.random.default_rng(2).standard_normal((7, 9, 11)).astype(np.float32)
    with (
        device.asimage(volume, dim="3d") as image,
        device.empty_image((7, 9, 11), "r32float", dim="3d") as mirrored,
        device.load_kernel(shaders.path("check/image_3d")) as kernel,
    ):
        kernel(image, mirrored, groups=(3, 3, 2))
        assert_close(mirrored.numpy(), volume[::-1, ::-1, ::-1], what="texels")


def _texels(device: Device) -> None:
    """Reads and writes texel buffers of bytes and of floats."""
    values = np.random.default_rng(3).integers(0, 256, (500, 4)).astype(np.uint8)
    with (
        device.asarray(values) as source,
        device.empty((500, 4)) as doubled,
        device.load_kernel(shaders.path("check/texels")) as kernel,
    ):
        kernel(
            device.texel_buffer(source, "rgba8unorm"), device.texel_buffer(doubled, "rgba32float"), groups=-(-500 // 64)
        )
        assert_close(doubled.numpy(), values / 127.5, what="texels")


def _mips(device: Device) -> None:
    """Makes the smaller levels of a picture by halving."""
    with device.asimage(np.full((64, 64, 4), 200, np.uint8), mips=True) as image:
        assert_close(image.numpy(), np.full((64, 64, 4), 200), what="level 0")
        level = image.level(3).numpy()
        assert_close(level, np.full((8, 8, 4), 200), what="level 3")


def image_cases() -> Iterator[Case]:
    """Yields the cases of the area ``images``."""
    for title, function in (
        ("texels and filters", _picture),
        ("atomics", _counts),
        ("three dimensions", _volume),
        ("texel buffers", _texels),
        ("smaller levels", _mips),
    ):
        yield Case("images", title, function)
