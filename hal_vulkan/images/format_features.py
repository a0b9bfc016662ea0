"""The features of a device for images and texel buffers of each format.

The bits are those of ``VkFormatFeatureFlagBits2``; devices before Vulkan 1.3 report the lower 32 of them.
"""

from __future__ import annotations

import enum
import functools
import weakref
from typing import Final, NamedTuple

from ...formats.image_format import FORMATS, ImageFormat
from ..instance.logical_device import LogicalDevice
from ..vulkan.functions import chain, new


class ImageUsage(enum.IntFlag):
    """The uses of an image: ``VkImageUsageFlagBits``."""

    TRANSFER_SOURCE = 0x1
    TRANSFER_TARGET = 0x2
    SAMPLED = 0x4
    STORAGE = 0x8


SAMPLED: Final = 0x1
STORAGE: Final = 0x2
UNIFORM_TEXELS: Final = 0x8
STORAGE_TEXELS: Final = 0x10
BLIT_SOURCE: Final = 0x400
BLIT_TARGET: Final = 0x800
LINEAR_FILTER: Final = 0x1000
MINMAX_FILTER: Final = 0x1_0000
TRANSFER_SOURCE: Final = 0x4000
TRANSFER_TARGET: Final = 0x8000
STORAGE_READ_WITHOUT_FORMAT: Final = 0x8000_0000
STORAGE_WRITE_WITHOUT_FORMAT: Final = 0x1_0000_0000
DEPTH_COMPARISON: Final = 0x2_0000_0000

_USAGES: Final = {
    ImageUsage.TRANSFER_SOURCE: TRANSFER_SOURCE,
    ImageUsage.TRANSFER_TARGET: TRANSFER_TARGET,
    ImageUsage.SAMPLED: SAMPLED,
    ImageUsage.STORAGE: STORAGE,
}


class FormatFeatures(NamedTuple):
    """Feature bits of images, and of texel buffers."""

    image: int
    buffer: int

    @property
    def usage(self) -> ImageUsage:
        """All uses that images of the format may have."""
        return functools.reduce(
            lambda a, b: a | b, (u for u, bit in _USAGES.items() if self.image & bit), ImageUsage(0)
        )


_known: weakref.WeakKeyDictionary[LogicalDevice, dict[int, FormatFeatures]] = weakref.WeakKeyDictionary()


def format_features(device: LogicalDevice, image_format: ImageFormat) -> FormatFeatures:
    """Returns the device's features for a format."""
    known = _known.setdefault(device, {})
    cached = known.get(image_format.vk)
    if cached is None:
        core = device.profile.version >= (1, 3)
        wide = (
            new("VkFormatProperties3") if core or "VK_KHR_format_feature_flags2" in device.profile.extensions else None
        )
        answer = chain(new("VkFormatProperties2"), wide)
        device.driver.functions.vkGetPhysicalDeviceFormatProperties2(device.physical_device, image_format.vk, answer)
        narrow = answer.formatProperties
        image, buffer = narrow.optimalTilingFeatures, narrow.bufferFeatures
        if wide is not None:
            image, buffer = image | wide.optimalTilingFeatures, buffer | wide.bufferFeatures
        else:  # the wide bits apply to all formats (VkFormatFeatureFlagBits2)
            features = device.plan.features
            if image & STORAGE and "shaderStorageImageReadWithoutFormat" in features:
                image |= STORAGE_READ_WITHOUT_FORMAT
            if image & STORAGE and "shaderStorageImageWriteWithoutFormat" in features:
                image |= STORAGE_WRITE_WITHOUT_FORMAT
            if image & SAMPLED and image_format.is_depth:
                image |= DEPTH_COMPARISON
        if image_format.is_compressed and _compression(image_format) not in device.plan.features:
            image = 0
        cached = known[image_format.vk] = FormatFeatures(image, buffer)
    return cached


def _compression(image_format: ImageFormat) -> str:
    """Returns the feature that a compressed format needs."""
    if image_format.name.startswith("bc"):
        return "textureCompressionBC"
    if image_format.name.startswith("astc"):
        return "textureCompressionASTC_HDR" if image_format.name.endswith("float") else "textureCompressionASTC_LDR"
    return "textureCompressionETC2"


def formats_with(device: LogicalDevice, like: ImageFormat, *, image: int = 0, buffer: int = 0) -> str:
    """Lists formats that have the feature bits and that shaders read like ``like``, for messages."""
    names = []
    for candidate in FORMATS:
        if candidate.scalar == like.scalar and candidate.aspects == like.aspects:
            features = format_features(device, candidate)
            if features.image & image == image and features.buffer & buffer == buffer:
                names.append(candidate.name)
    return ", ".join(names) or "none"


def usage_bits(usage: ImageUsage) -> int:
    """Returns the feature bits that images of a usage need."""
    return functools.reduce(lambda a, b: a | b, (bit for usage_flag, bit in _USAGES.items() if usage & usage_flag), 0)
