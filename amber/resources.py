"""The buffers, images and samplers of a script on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, cast

import numpy as np

from ..base.closeable import Closeable
from ..base.lazy_dataclass import dataclass
from ..formats.image_format import ImageFormat as TexelFormat
from ..hal_vulkan import Image, Sampler
from ..hal_vulkan.commands.command_buffer import CommandBuffer
from ..hal_vulkan.images.sampler import Address, Border, Compare, Filter
from ..hal_vulkan.memory.buffer import Buffer as HalBuffer
from ..hal_vulkan.pipelines.resources import Resource
from ..runtime.arrays.array import DeviceArray
from ..runtime.device import Device
from ..status import InvalidArgumentError, UnimplementedError
from .script import BUFFER_KINDS, IMAGE_KINDS, WHOLE, Binding, Buffer, Script
from .types import ImageFormat, Number, format_of
from .values import Bytes

_DIMENSIONS: Final[dict[int, Literal["1d", "2d", "3d"]]] = {1: "1d", 2: "2d", 3: "3d"}


@dataclass(slots=True)
class _DeviceImage:
    """An image on the device, beside the bytes of its declaration; ``is_newer`` if a shader wrote it since they were
    read.
    """

    image: Image
    is_newer: bool = False
    is_filled: bool = False


class Resources(Closeable):
    """The buffers, images and samplers that a script's pipelines bind, made on first use; ``close`` frees them.

    A buffer is in device memory from its first use to the end of the script. A buffer bound as an image also has an
    image; the one written last is copied to the other before the other is used.
    """

    def __init__(self, device: Device, script: Script) -> None:
        self._device = device
        self._script = script
        self._arrays: dict[str, DeviceArray] = {}
        self._images: dict[str, _DeviceImage] = {}
        self._samplers: dict[str, Sampler] = {}

    # -- contents ------------------------------------------------------------------------------------

    def read(self, name: str) -> Bytes:
        """Returns a buffer's contents, or the texels of an image's first level, once submitted work is done."""
        return np.asarray(self._current(name).numpy(), np.uint8)

    def write(self, name: str, offset: int, data: bytes) -> None:
        self._current(name)[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
        self._forget_image(name)

    def copy(self, source: str, target: str) -> None:
        """Copies all of a buffer to another of its size."""
        self._array(target).copy_from(self._current(source))
        self._forget_image(target)

    def _array(self, name: str) -> DeviceArray:
        array = self._arrays.get(name)
        if array is None:
            data = np.frombuffer(self._script.buffers[name].data, np.uint8)
            array = self._arrays[name] = self._device.asarray(data)
        return array

    def _current(self, name: str) -> DeviceArray:
        """Returns a buffer's memory, updated from its image if a shader wrote to the image."""
        array = self._array(name)
        image = self._images.get(name)
        if image is not None and image.is_newer:
            if image.image.samples > 1:
                raise UnimplementedError(f"the texels of {name} cannot be read: it has {image.image.samples} samples")
            buffer = cast("HalBuffer", array.buffer)
            payload = self._submit(lambda commands: commands.copy_image_to_buffer(image.image, buffer))
            array.mark(payload, written=True)
            image.is_newer = False
        return array

    def _forget_image(self, name: str) -> None:
        """Drops a buffer's image from use, because its bytes are newer."""
        image = self._images.get(name)
        if image is not None:
            image.is_newer = image.is_filled = False

    def _submit(self, record: Callable[[CommandBuffer], object]) -> int:
        commands = self._device.vulkan.create_command_buffer(one_shot=True, name="transfer").begin()
        try:
            record(commands)
            return self._device.submit((commands.end(),))
        finally:
            commands.close()

    # -- what pipelines bind -------------------------------------------------------------------------

    def bound(self, binding: Binding) -> list[Resource]:
        """Returns the resources of a binding, in the order of its descriptors."""
        if binding.kind == "sampler":
            return [self._sampler(name) for name in binding.resources]
        if binding.kind in IMAGE_KINDS:
            return self._bound_images(binding)
        if binding.kind in BUFFER_KINDS:
            return [self._range(binding, index) for index in range(len(binding.resources))]
        return [self._texels(name) for name in binding.resources]

    def _range(self, binding: Binding, index: int) -> HalBuffer:
        """Returns the bytes of a buffer that a descriptor can access."""
        buffer = cast("HalBuffer", self._current(binding.resources[index]).buffer)
        offset = sum(offsets[index] for offsets in (binding.offsets, binding.descriptor_offsets) if offsets)
        length = binding.ranges[index] if binding.ranges else WHOLE
        if not offset and length == WHOLE:
            return buffer
        return buffer.subspan(offset, None if length == WHOLE else length)

    def _texels(self, name: str) -> Resource:
        declared = self._script.buffers[name]
        buffer = cast("HalBuffer", self._current(name).buffer)
        return self._device.vulkan.texel_buffer(buffer, _texel_format(declared))

    def _bound_images(self, binding: Binding) -> list[Resource]:
        images: list[Resource] = []
        for index, name in enumerate(binding.resources):
            image = self._image(name)
            levels = 1 if binding.kind == "storage_image" else None
            view = image.view(base_level=binding.base_mip_level, levels=levels)
            sampled = binding.kind == "combined_image_sampler"
            images.append(view.with_sampler(self._sampler(binding.samplers[index])) if sampled else view)
        return images

    def _image(self, name: str) -> Image:
        """Returns the image of a buffer, with the buffer's contents if they are newer."""
        declared = self._script.buffers[name]
        extent = declared.extent
        assert extent is not None
        device_image = self._images.get(name)
        if device_image is None:
            sizes = (extent.width, extent.height, extent.depth)[: extent.dimensions]
            image = self._device.vulkan.create_image(
                _texel_format(declared),
                sizes,
                dim=_DIMENSIONS[extent.dimensions],
                levels=extent.mip_levels,
                samples=extent.samples,
                name=name,
            )
            device_image = self._images[name] = _DeviceImage(image)
        if not device_image.is_newer and not device_image.is_filled:
            self._fill(device_image, self._array(name))
            device_image.is_filled = True
        return device_image.image

    def _fill(self, image: _DeviceImage, array: DeviceArray) -> None:
        if image.image.samples > 1:  # no buffer is copied to these; only a shader sets their texels
            self._submit(lambda commands: commands.clear_image(image.image))
            return
        payload = self._submit(lambda commands: commands.copy_buffer_to_image(array.buffer, image.image))
        array.mark(payload, written=False)

    def _sampler(self, name: str) -> Sampler:
        sampler = self._samplers.get(name)
        if sampler is None:
            declared = self._script.samplers[name]
            kind, _, border = declared.border_color.partition("_")
            modes = (declared.address_mode_u, declared.address_mode_v, declared.address_mode_w)
            address = tuple(mode.replace("mirrored_clamp", "mirror_clamp") for mode in modes)
            sampler = self._samplers[name] = self._device.vulkan.create_sampler(
                filter=cast("Filter", declared.mag_filter),
                min_filter=cast("Filter", declared.min_filter),
                address=cast("tuple[Address, ...]", address),
                min_lod=declared.min_lod,
                max_lod=declared.max_lod,
                compare=cast("Compare", declared.compare_op) if declared.compare else None,
                border=cast("Border", border),
                integer_border=kind == "int",
                unnormalized=not declared.normalized,
            )
        return sampler

    def used(self, binding: Binding, payload: int, *, written: bool) -> None:
        """Records that submitted work uses a binding's resource."""
        for name in binding.resources:
            if binding.kind in IMAGE_KINDS:
                self._images[name].is_newer |= written
            elif name in self._arrays:
                self._arrays[name].mark(payload, written=written)
                if written:
                    self._forget_image(name)

    def close(self) -> None:
        """Frees everything; idempotent."""
        closing: Sequence[Closeable] = (
            *(image.image for image in self._images.values()),
            *self._samplers.values(),
            *self._arrays.values(),
        )
        for resource in closing:
            resource.close()
        self._images.clear()
        self._samplers.clear()
        self._arrays.clear()


def _texel_format(declared: Buffer) -> TexelFormat:
    if isinstance(declared.type, ImageFormat):
        return declared.type.texels
    if isinstance(declared.type, Number) and declared.type.columns == 1:
        name = format_of(declared.type)
        if not TexelFormat.is_name(name):
            raise UnimplementedError(f"{declared.name}: pumice has no images of format {name}")
        return TexelFormat.parse(name)
    raise InvalidArgumentError(f"{declared.name} is of {declared.type}, which no texels are of")
