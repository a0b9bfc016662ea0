"""The arguments of a measured kernel: arrays, images and samplers on the device, and their contents on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...formats.image_format import ImageFormat
from ...hal_vulkan import Binding, reflect
from ...runtime import Device, DeviceArray, DeviceImage, Sampler, TexelArray
from ...runtime.images.making import image_for
from ...runtime.values.image_text import ImageSpec
from ...status import InvalidArgumentError

KernelValue: TypeAlias = DeviceArray | DeviceImage | TexelArray | Sampler
Given: TypeAlias = "np.ndarray | ImageSpec | Mapping[str, Any]"

_NOTHING = np.empty(0, np.uint8)


def bring(
    device: Device, values: Sequence[Given], code: bytes, entry_point: str | None
) -> list[tuple[KernelValue, np.ndarray]]:
    """Uploads values; returns each on the device, with its array on the host, which is empty for samplers."""
    if all(isinstance(value, np.ndarray) for value in values):
        return [(device.asarray(array), array) for array in values if isinstance(array, np.ndarray)]
    entry = reflect(code).entry_point(entry_point)
    bindings = [binding for binding in entry.bindings for _ in range(binding.count)]
    if len(bindings) != len(values):
        raise InvalidArgumentError(f"expected a binding for each of {len(bindings)}, got {len(values)}")
    return [_bring(device, value, bindings[i], f"bindings[{i}]") for i, value in enumerate(values)]


def _bring(device: Device, value: Given, binding: Binding, where: str) -> tuple[KernelValue, np.ndarray]:
    image = binding.image
    if isinstance(value, Mapping):
        return device.sampler(**value), _NOTHING
    if isinstance(value, np.ndarray):
        return device.asarray(value), value
    if image is None:
        raise InvalidArgumentError(f"{where}: the kernel declares a {binding.descriptor_type_name}, got an image")
    declared = image.format if image.storage and image.format != "unknown" else ""
    image_format, grid, data = value.resolved(declared, image.sampled.kind, where)
    if declared and image_format.spirv_name != declared:
        raise InvalidArgumentError(f"{where}: the kernel declares {ImageFormat.parse(declared)}, got {image_format}")
    if data is None:
        data = np.zeros((*grid, *image_format.texel_shape()), image_format.dtype)
    made = image_for(device, data, image_format, image, levels=value.levels)
    if value.sampler is not None and isinstance(made, DeviceImage):
        made = made.with_sampler(device.sampler(**value.sampler))
    return made, data


def overwrite(device: Device, value: KernelValue, data: np.ndarray) -> None:
    """Brings new contents to the device."""
    if isinstance(value, DeviceArray):
        value.mark(device.upload(data, value.buffer), written=True)
    elif isinstance(value, DeviceImage):
        value.copy_from(data)
    elif isinstance(value, TexelArray):
        overwrite(device, value.array, data)


def read_back(device: Device, value: KernelValue, out: np.ndarray) -> None:
    """Copies the contents to the host."""
    if isinstance(value, DeviceArray):
        device.download(value.buffer, out)
    elif isinstance(value, TexelArray):
        device.download(value.array.buffer, out)
    elif isinstance(value, DeviceImage):
        value.numpy(out)


def host_memory(value: KernelValue) -> np.ndarray:
    """Allocates an array for a value's contents."""
    return _NOTHING if isinstance(value, Sampler) else np.empty(value.shape, value.dtype)
