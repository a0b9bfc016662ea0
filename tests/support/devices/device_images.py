"""Images for tests: texels in, texels out, and shaders that use them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from support.devices.host_buffers import HOST, host_buffer, submitted

from pumice.formats.image_format import ImageFormat
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.images.image import Image
from pumice.hal_vulkan.pipelines.pipeline import ComputePipeline
from pumice.spirv.sources.glsl import compile_glsl, find_compiler
from pumice.status import UnavailableError

HEADER = "#version 460\n#extension GL_EXT_samplerless_texture_functions : require\n"


def glsl(text: str) -> bytes:
    """SPIR-V of a compute shader."""
    try:
        find_compiler()
    except UnavailableError as error:
        pytest.skip(error.message)
    return compile_glsl(HEADER + text)


def texel_noise(texels: ImageFormat, count: int, seed: int = 0) -> np.ndarray:
    """Bytes of texels of a format, of no NaN, which copies through shaders need not keep."""
    rng = np.random.default_rng(seed)
    if texels.kind == "float":
        dtype = texels.stored_dtype
        return rng.uniform(-8, 8, count * texels.texel_bytes // dtype.itemsize).astype(dtype).view(np.uint8)
    most = 128 if texels.kind in ("ufloat", "snorm") else 256  # no exponent of all ones, and no second -1.0
    noise = rng.integers(0, most, count * texels.texel_bytes, dtype=np.uint8)
    return noise & 0x77 if texels.kind == "ufloat" else noise


def upload(device: Device, image: Image, data: np.ndarray, level: int = 0) -> None:
    """Fills a mip level with packed texels."""
    raw = np.ascontiguousarray(data).view(np.uint8).reshape(-1).tobytes()
    with host_buffer(device, raw) as buffer, submitted(device) as commands:
        commands.copy_buffer_to_image(buffer, image, level=level)


def download(device: Device, image: Image, dtype: np.typing.DTypeLike = np.uint8, level: int = 0) -> np.ndarray:
    """The packed texels of a mip level."""
    x, y, z = image.level_extent(level)
    width, height = image.format.block
    size = -(-x // width) * -(-y // height) * z * image.layers * image.format.aspect_bytes(image.format.aspects[0])
    with device.create_buffer(size, memory_type=HOST) as buffer:
        with submitted(device) as commands:
            commands.copy_image_to_buffer(image, buffer, level=level)
        return np.frombuffer(buffer.read(), dtype)


def picture(device: Device, data: np.ndarray, texels: str, **options: object) -> Image:
    """A two-dimensional image of an array of texels (rows, columns, channels) as they are stored."""
    image = device.create_image(texels, (data.shape[1], data.shape[0]), **options)  # type: ignore[arg-type]
    upload(device, image, data)
    return image


def run(
    device: Device,
    pipeline: ComputePipeline,
    resources: Sequence[object],
    groups: tuple[int, int, int] = (1, 1, 1),
    push: bytes = b"",
) -> None:
    """One dispatch, waited for."""
    with submitted(device, one_shot=True) as commands:
        commands.dispatch(pipeline, resources, groups, push)  # type: ignore[arg-type]
