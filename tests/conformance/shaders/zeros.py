"""Runs any kernel with zeros for everything that it takes: buffers, push constants, device addresses, images."""

from __future__ import annotations

from typing import Final

import numpy as np

from pumice import Device
from pumice.runtime.kernels.kernel import Kernel
from pumice.spirv.reflection.reflection_types import Binding

_FORMATS: Final = {"float": "rgba32f", "int": "rgba32i", "uint": "rgba32ui"}
_SHAPES: Final = {"1d": (8,), "2d": (8, 8), "rect": (8, 8), "3d": (8, 8, 8), "cube": (6, 8, 8)}
_LENGTH: Final = 64


def run_with_zeros(device: Device, kernel: Kernel) -> None:
    """One workgroup, each buffer just long enough for what it declares and ``_LENGTH`` elements.

    Raises:
        PumiceError: what the call says; with a sanitised device, also what the shader did wrong.
    """
    arguments: list[object] = []
    for parameter in kernel.parameters:
        binding = parameter.binding
        one = _zero(device, binding, parameter.stride)
        arguments.append(one if binding.count else [one])
    block = kernel.pipeline.entry.push_constants
    push = None if block is None else bytes(block.size)
    kernel(*arguments, groups=1, push=push)  # type: ignore[arg-type]
    device.wait()


def _zero(device: Device, binding: Binding, stride: int) -> object:
    image = binding.image
    if binding.descriptor_type_name == "sampler":
        return device.sampler()
    if image is None:
        size = binding.fixed_size + _LENGTH * (stride or 16)
        return device.zeros(-(-size // 16) * 16 if binding.descriptor_type_name != "uniform_buffer" else size, np.uint8)
    texels = image.format if image.format != "unknown" else _FORMATS[image.sampled.kind]
    if image.depth:
        texels = "d32float"
    if image.dim == "buffer":
        return device.texel_buffer(device.zeros(_LENGTH * 16, np.uint8), texels)
    shape = _SHAPES[image.dim]
    if image.arrayed:
        shape = (12, *shape[1:]) if image.dim == "cube" else (2, *shape)
    dim = ("2d" if image.dim == "rect" else image.dim) + ("_array" if image.arrayed else "")
    return device.empty_image(shape, texels, dim=dim, samples=4 if image.multisampled else 1)
