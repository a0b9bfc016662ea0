"""Regions of images: texels of one mip level in some layers, and the native structures for them."""

from __future__ import annotations

from typing import NamedTuple

from ...formats.image_format import Aspect
from ...status import InvalidArgumentError, OutOfRangeError, shown
from ..vulkan.functions import CData, new
from .image import Extent, Image
from .image_view import ASPECTS


class Region(NamedTuple):
    """Texels of an image; made by ``region_of``."""

    level: int
    base_layer: int
    layers: int
    offset: Extent
    extent: Extent
    aspect: Aspect

    @property
    def end(self) -> Extent:
        """The corner opposite ``offset``."""
        (x, y, z), (width, height, depth) = self.offset, self.extent
        return x + width, y + height, z + depth


def region_of(
    image: Image,
    subject: str,
    level: int,
    base_layer: int,
    layers: int | None,
    offset: tuple[int, ...],
    extent: tuple[int, ...] | None,
    aspect: Aspect | None = None,
) -> Region:
    """Returns a checked region; ``None`` means everything. ``subject`` begins the messages.

    Raises:
        InvalidArgumentError: the argument is not an image, sizes are not ints, the image lacks the aspect, or a
            compressed block would be cut.
        OutOfRangeError: the image does not have these texels, levels or layers.
    """
    if not isinstance(image, Image):
        raise InvalidArgumentError(f"{subject} takes an image, got {type(image).__name__}")
    layers = image.layers - base_layer if layers is None else layers
    check_span(image, subject, "mip levels", level, 1, image.levels)
    check_span(image, subject, "layers", base_layer, layers, image.layers)
    size = image.level_extent(level)
    at = _three(offset, 0, f"{subject}: offset")
    default = (size[0] - at[0], size[1] - at[1], size[2] - at[2])
    count = default if extent is None else _three(extent, 1, f"{subject}: extent")
    text = "x".join(map(str, count))
    axes = list(zip(at, count, size, (*image.format.block, 1), strict=True))
    if any(first < 0 or number < 1 or first + number > most for first, number, most, _ in axes):
        raise OutOfRangeError(
            f"{subject}: texels {at} and {text} from there do not lie within level {level} of {image.name}, which has "
            f"{'x'.join(map(str, size))}"
        )
    if any(first % unit or (number % unit and first + number != most) for first, number, most, unit in axes):
        width, height = image.format.block
        raise InvalidArgumentError(
            f"{subject}: {image.format} has blocks of {width}x{height} texels; offset and extent are multiples, got "
            f"{at} and {text}"
        )
    aspects = image.format.aspects
    if aspect is not None and aspect not in aspects:
        raise InvalidArgumentError(f"{subject}: {image.format} has {' and '.join(aspects)}, no {shown(aspect)}")
    return Region(level, base_layer, layers, at, count, aspect or aspects[0])


def check_span(image: Image, subject: str, of: str, first: int, count: int, most: int) -> None:
    """Raises unless an image has these levels or layers."""
    if type(first) is not int or type(count) is not int or first < 0 or count < 1 or first + count > most:
        number = f"[{first}, {first + count})" if type(first) is type(count) is int else shown((first, count))
        raise OutOfRangeError(f"{subject}: {of} {number} of {image.name}, which has {most}")


def _three(sizes: tuple[int, ...], default: int, subject: str) -> Extent:
    values = tuple(sizes) if isinstance(sizes, (tuple, list)) else (sizes,)
    if not 1 <= len(values) <= 3 or any(type(size) is not int for size in values):
        raise InvalidArgumentError(f"{subject} is one to three ints in the order x, y, z; got {shown(sizes)}")
    x, y, z = (*values, default, default)[:3]
    return x, y, z


def region_bytes(image: Image, region: Region) -> int:
    """Returns the bytes of a region's texels, or blocks, in a buffer."""
    x, y, z = region.extent
    width, height = image.format.block
    blocks = -(-x // width) * -(-y // height) * z * region.layers
    return blocks * image.format.aspect_bytes(region.aspect)


def overlap(first: Region, second: Region) -> bool:
    """Whether two regions of one image have texels in common."""
    pairs = [(first.level, 1, second.level, 1), (first.base_layer, first.layers, second.base_layer, second.layers)]
    pairs += zip(first.offset, first.extent, second.offset, second.extent, strict=True)
    return all(a < b + m and b < a + n for a, n, b, m in pairs)


def aspect_bits(image: Image) -> int:
    """Returns the VkImageAspectFlags of all aspects of an image."""
    return sum(ASPECTS[aspect] for aspect in image.format.aspects)


def subresource_range(
    image: Image, base_level: int, levels: int, base_layer: int = 0, layers: int | None = None
) -> CData:
    """Returns a VkImageSubresourceRange of all aspects."""
    return new(
        "VkImageSubresourceRange",
        aspectMask=aspect_bits(image),
        baseMipLevel=base_level,
        levelCount=levels,
        baseArrayLayer=base_layer,
        layerCount=image.layers if layers is None else layers,
    )


def native_layers(region: Region, aspects: int) -> CData:
    """Returns a VkImageSubresourceLayers."""
    return new(
        "VkImageSubresourceLayers",
        aspectMask=aspects,
        mipLevel=region.level,
        baseArrayLayer=region.base_layer,
        layerCount=region.layers,
    )


def native_offset(at: Extent) -> CData:
    """Returns a VkOffset3D."""
    return new("VkOffset3D", x=at[0], y=at[1], z=at[2])


def native_corners(first: Extent, end: Extent) -> list[CData]:
    """Returns the two VkOffset3D of one side of a blit."""
    return [native_offset(first)[0], native_offset(end)[0]]


def native_extent(size: Extent) -> CData:
    """Returns a VkExtent3D."""
    return new("VkExtent3D", width=size[0], height=size[1], depth=size[2])
