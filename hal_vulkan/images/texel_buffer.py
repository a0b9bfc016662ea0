"""Texel buffers: ranges of memory that shaders read and write as texels of a format."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from ...formats.image_format import ImageFormat
from ...status import InvalidArgumentError, OutOfRangeError, UnimplementedError
from ..memory.buffer import Buffer
from ..vulkan.functions import handle_value
from .format_features import STORAGE_TEXELS, UNIFORM_TEXELS, format_features, formats_with

if TYPE_CHECKING:
    from ..instance.logical_device import LogicalDevice

# A VkBufferView, and a serial.
_DESCRIPTOR: Final = struct.Struct("=QQQQ")


class TexelBuffer:
    """A buffer as texels of a format. Its native view lives as long as the buffer's memory, so it needs no closing.

    Attributes:
        buffer: the buffer that provides the bytes.
        descriptor: the data that update templates read, and a serial, which makes it the key of the view in caches.
    """

    __slots__ = ("buffer", "descriptor", "device", "features", "format", "texels")

    bindable: Final = False  # like buffers

    def __init__(self, buffer: Buffer, image_format: ImageFormat) -> None:
        self.device: LogicalDevice
        device = self.device = buffer.device
        buffer.check_range(0, None, "texel buffer")
        limits, profile = device.profile.limits, device.profile
        self.buffer: Buffer = buffer
        self.format: ImageFormat = image_format
        self.features: int = format_features(device, image_format).buffer & (UNIFORM_TEXELS | STORAGE_TEXELS)
        self.texels: int
        self.texels, rest = divmod(buffer.size, image_format.texel_bytes)
        if not self.features:
            raise UnimplementedError(
                f"{profile.name} has no texel buffers of format {image_format}; it has: "
                f"{formats_with(device, image_format, buffer=UNIFORM_TEXELS)}"
            )
        if rest or not self.texels:
            raise InvalidArgumentError(
                f"a texel buffer of {image_format} has a multiple of {image_format.texel_bytes} bytes, got "
                f"{buffer.size}"
            )
        if self.texels > limits.max_texel_buffer_elements:
            raise OutOfRangeError(
                f"{profile.name} has texel buffers of up to {limits.max_texel_buffer_elements:,} texels, got "
                f"{self.texels:,}; use a storage buffer, or parts of it"
            )
        if buffer.offset % limits.min_texel_buffer_offset_alignment:
            raise InvalidArgumentError(
                f"a texel buffer starts at a multiple of {limits.min_texel_buffer_offset_alignment} bytes of its "
                f"memory on {profile.name}, this buffer at {buffer.offset}; copy it to a buffer of its own"
            )
        handle, serial = buffer.texel_view(image_format.vk)
        self.descriptor: bytes = _DESCRIPTOR.pack(handle_value(handle), 0, 0, serial)

    @property
    def is_closed(self) -> bool:
        return self.buffer.is_closed

    def describe(self) -> str:
        return f"a texel buffer of {self.texels} {self.format}"

    def __repr__(self) -> str:
        return f"<{'closed ' if self.is_closed else ''}TexelBuffer, {self.texels} {self.format}>"
