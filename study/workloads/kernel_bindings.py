"""The bindings of a measured kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...base.closeable import Closeable
from ...formats.image_format import ImageFormat
from ...hal_vulkan import Binding, Buffer, reflect
from ...runtime import Device, DeviceArray, DeviceImage, Sampler, TexelArray
from ...runtime.images.making import image_for
from ...runtime.kernels.parameters.parameter import Parameter
from ...runtime.values.image_text import ImageSpec
from ...status import InvalidArgumentError
from ..definition.inputs import make_arrays
from .kernel_settings import bindings_in_order, view_as_declared
from .workload import WorkloadContext

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


class KernelBindings(Closeable):
    """The values of all bindings, with their inputs; ``settings`` are those of kind ``kernel`` in ``target_settings``.

    Attributes:
        values: the values, in the order of a call.
        ranges: the buffers of each binding that dispatches rotate through, each with its inputs; empty for one range,
            which is the values.

    Raises:
        PumiceError: the values cannot be made, or do not match the kernel.
    """

    def __init__(
        self, device: Device, settings: Mapping[str, Any], context: WorkloadContext, code: bytes, name: str
    ) -> None:
        self._device = device
        self._name = name
        self.values: list[KernelValue] = []
        self.ranges: list[tuple[Buffer, ...]] = []
        self._wholes: list[Buffer] = []
        try:
            described, blocks = bindings_in_order(settings, code, name, device.profile.limits)
            arrays = make_arrays(described, settings["dtype"], context.folder, context.seed, blocks)
            brought = bring(device, arrays, code, settings["entry_point"])
            self.values = [value for value, _ in brought]
            self._inputs = [data for _, data in brought]
            if settings["ranges"] > 1 and self.values:
                self._make_ranges(settings["ranges"])
            self._outputs = [host_memory(value) for value in self.values]
        except BaseException:
            self.close()
            raise

    def _make_ranges(self, count: int) -> None:
        hal, limits = self._device.vulkan, self._device.profile.limits
        unit = max(limits.min_storage_buffer_offset_alignment, limits.min_uniform_buffer_offset_alignment, 16)
        columns = []
        for array in self.buffers("ranges"):
            stride = -(-array.nbytes // unit) * unit
            whole = hal.create_buffer(stride * count)
            self._wholes.append(whole)
            hal.compute_queue.copy(array.buffer, whole, array.nbytes)
            # Each copy doubles the filled part; a copy per range would take seconds for thousands of ranges.
            filled = 1
            while filled < count:
                more = min(filled, count - filled)
                hal.compute_queue.copy(whole, whole, more * stride, target_offset=filled * stride)
                filled += more
            columns.append([whole.subspan(index * stride, array.nbytes) for index in range(count)])
        hal.compute_queue.wait_idle()
        self.ranges = list(zip(*columns, strict=True))

    def buffers(self, feature: str) -> list[DeviceArray]:
        """Returns the values as buffers. InvalidArgumentError: a value is not a buffer and has no ``feature``."""
        arrays = [value for value in self.values if isinstance(value, DeviceArray)]
        if len(arrays) < len(self.values):
            raise InvalidArgumentError(f"{self._name}: images and samplers have no {feature}; bind them")
        return arrays

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return sum(value.nbytes for value in self.values if isinstance(value, DeviceArray))

    def declare(self, parameters: Iterable[Parameter]) -> None:
        """Gives signless integers the sign that the kernel declares."""
        for index, (value, parameter) in enumerate(zip(self.values, parameters, strict=False)):
            if isinstance(value, DeviceArray):
                self.values[index] = view_as_declared(value, parameter.dtype)

    def update(self) -> None:
        """Writes the inputs anew."""
        for value, data in zip(self.values, self._inputs, strict=True):
            overwrite(self._device, value, data)

    def read(self, places: Iterable[int]) -> None:
        """Reads values back, which ``results`` returns as well."""
        for index in places:
            read_back(self._device, self.values[index], self._outputs[index])

    def results(self) -> tuple[np.ndarray, ...]:
        """Returns the contents of all bindings, of shape ``(ranges, *shape)`` if they rotate through ranges."""
        if not self.ranges:
            self.read(range(len(self.values)))
            return tuple(out.copy() for out in self._outputs)
        columns = []
        for buffers, like in zip(zip(*self.ranges, strict=True), self._inputs, strict=True):
            contents = np.empty((len(buffers), *like.shape), like.dtype)
            for row, buffer in zip(contents, buffers, strict=True):
                self._device.download(buffer, row)
            columns.append(contents)
        return tuple(columns)

    def close(self) -> None:
        """Frees the values and ranges; idempotent."""
        for value in self.values:
            value.close()
        for whole in self._wholes:
            whole.close()
