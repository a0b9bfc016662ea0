"""Views of images, alone and with a sampler, as shaders bind them.

Calling sequence: ``Image.view`` → ``with_sampler`` where the shader samples by a combined binding → bind. Both are
closed with their image.
"""

from __future__ import annotations

import struct
from typing import Final, Literal, NamedTuple, Protocol

from ...formats.image_format import Aspect, ImageFormat
from ...status import ClosedError, InvalidArgumentError, UnimplementedError
from ..instance.logical_device import LogicalDevice
from ..memory.allocator import Allocator
from ..vulkan.functions import CData, chain, handle_value, new
from .format_features import DEPTH_COMPARISON, LINEAR_FILTER, MINMAX_FILTER, ImageUsage, format_features, formats_with
from .sampler import Sampler

Dim = Literal["1d", "2d", "3d", "cube"]

_GENERAL: Final = 1  # VkImageLayout
#: VkImageAspectFlagBits
ASPECTS: Final[dict[Aspect, int]] = {"color": 0x1, "depth": 0x2, "stencil": 0x4}
_TYPES: Final = {"1d": 0, "2d": 1, "3d": 2, "cube": 3}
_ARRAYED_TYPES: Final = {"1d": 4, "2d": 5, "cube": 6}
# VkDescriptorImageInfo, with its padding, and a serial.
_DESCRIPTOR: Final = struct.Struct("=QQQQ")


class Viewed(Protocol):
    """The part of an image that its views use; ``Image`` documents it."""

    device: LogicalDevice
    handle: CData
    name: str
    format: ImageFormat
    usage: ImageUsage
    samples: int

    @property
    def is_closed(self) -> bool: ...


class ViewKey(NamedTuple):
    """The properties that distinguish an image's views."""

    dim: Dim
    arrayed: bool
    format: ImageFormat
    base_level: int
    levels: int
    base_layer: int
    layers: int
    aspect: Aspect


class ImageView:
    """A VkImageView. Made by ``Image.view`` and closed with the image.

    Attributes:
        image: the image whose texels it shows.
        dim, arrayed, format, levels, layers, aspect: the properties that shaders see.
        usage: the image's usage, as far as the view's format allows.
        descriptor: the data that update templates read, and a serial, which makes it the key of the view in caches.
    """

    __slots__ = (
        "_allocator",
        "_combined",
        "arrayed",
        "aspect",
        "base_layer",
        "base_level",
        "descriptor",
        "device",
        "dim",
        "format",
        "handle",
        "image",
        "layers",
        "levels",
        "serial",
        "usage",
    )

    bindable: Final = False  # like buffers

    def __init__(self, image: Viewed, allocator: Allocator, key: ViewKey) -> None:
        self.device: LogicalDevice
        device = self.device = image.device
        self.image: Viewed = image
        self.arrayed: bool
        self.base_layer: int
        self.base_level: int
        self.format: ImageFormat
        self.layers: int
        self.levels: int
        self.dim, self.arrayed, self.format, self.base_level, self.levels, self.base_layer, self.layers = key[:-1]
        self.aspect: Aspect = key.aspect
        self._allocator = allocator
        supported = image.usage & format_features(device, key.format).usage
        self.usage: ImageUsage = supported if key.format != image.format else image.usage
        narrowed = new("VkImageViewUsageCreateInfo", usage=self.usage) if self.usage != image.usage else None
        info = new(
            "VkImageViewCreateInfo",
            image=image.handle,
            viewType=(_ARRAYED_TYPES if key.arrayed else _TYPES)[key.dim],
            format=key.format.vk,
            subresourceRange=new(
                "VkImageSubresourceRange",
                aspectMask=ASPECTS[key.aspect],
                baseMipLevel=key.base_level,
                levelCount=key.levels,
                baseArrayLayer=key.base_layer,
                layerCount=key.layers,
            ),
        )
        self.handle: CData = device.create("image view", chain(info, narrowed), f"a view of {image.name}")
        self.serial: int = allocator.new_serial()
        self.descriptor: bytes = _DESCRIPTOR.pack(0, handle_value(self.handle), _GENERAL, self.serial)
        self._combined: dict[int, CombinedImageSampler] = {}

    @property
    def scalar(self) -> str:
        """The type that shaders read: ``"float"``, ``"int"`` or ``"uint"``."""
        return self.format.aspect_scalar(self.aspect)

    @property
    def is_closed(self) -> bool:
        return self.image.is_closed

    def with_sampler(self, sampler: Sampler) -> CombinedImageSampler:
        """Returns this view and a sampler as one descriptor; the same sampler returns the same descriptor.

        Raises:
            ClosedError: the image or the sampler was closed.
            InvalidArgumentError: they belong to different devices, or the sampler does not accept such a view.
            UnimplementedError: the device does not filter the format as the sampler does.
        """
        combined = self._combined.get(sampler.serial)
        if combined is None or combined.is_closed:
            self._check_sampler(sampler)
            new_one = CombinedImageSampler(self, sampler, self._allocator.new_serial())
            combined = self._combined.setdefault(sampler.serial, new_one)
            sampler.combined[combined.serial] = self
        return combined

    def _check_sampler(self, sampler: Sampler) -> None:
        if self.is_closed or sampler.is_closed:
            raise ClosedError("the image or the sampler was closed")
        if sampler.device is not self.device:
            raise InvalidArgumentError("the sampler belongs to another device than the image; make one on its device")
        if not self.usage & ImageUsage.SAMPLED:
            raise InvalidArgumentError(f"{self.image.name} was made for {self.image.usage.name}, not to be SAMPLED")
        features = format_features(self.device, self.format).image
        for needed, bit, verb in (
            (sampler.is_linear, LINEAR_FILTER, "filter {} linearly; sample it with filter='nearest'"),
            (sampler.reduction != "average", MINMAX_FILTER, "reduce {} to minima or maxima"),
            (sampler.compare is not None, DEPTH_COMPARISON, "compare {}"),
        ):
            if needed and not features & bit:
                raise UnimplementedError(
                    f"{self.device.profile.name} does not {verb.format(self.format)}; formats of its kind that it "
                    f"does: {formats_with(self.device, self.format, image=bit)}"
                )
        if sampler.unnormalized and (self.dim not in ("1d", "2d") or self.arrayed or self.levels > 1):
            raise InvalidArgumentError(
                "a sampler with unnormalized coordinates takes a 1d or 2d view of one level and one layer, got "
                f"{self.describe()}"
            )

    def drop_sampler(self, sampler: Sampler) -> None:
        """Forgets the descriptor with a sampler that is being destroyed."""
        combined = self._combined.pop(sampler.serial, None)
        if combined is not None:
            self._allocator.forget(combined.serial)

    def destroy(self) -> None:
        """Destroys the native view; called by the image, once no queue uses it."""
        for combined in self._combined.values():
            self._allocator.forget(combined.serial)
            combined.sampler.combined.pop(combined.serial, None)
        self._allocator.forget(self.serial)
        self.device.destroy("image view", self.handle)

    def describe(self) -> str:
        levels = f", {self.levels} levels" if self.levels > 1 else ""
        samples = "multisampled " if self.image.samples > 1 else ""
        layers = f" array of {self.layers} layers" if self.arrayed else ""
        aspect = f", {self.aspect} of it" if len(self.format.aspects) > 1 else ""
        return f"a {samples}{self.dim} image{layers} of format {self.format}{aspect}{levels}"

    def __repr__(self) -> str:
        return f"<{'closed ' if self.is_closed else ''}ImageView, {self.describe()}>"


class CombinedImageSampler:
    """A view and a sampler as one descriptor. Made by ``ImageView.with_sampler``; closed with either."""

    __slots__ = ("descriptor", "device", "sampler", "serial", "view")

    bindable: Final = False

    def __init__(self, view: ImageView, sampler: Sampler, serial: int) -> None:
        self.device: LogicalDevice = view.device
        self.view: ImageView = view
        self.sampler: Sampler = sampler
        self.serial: int = serial
        self.descriptor: bytes = _DESCRIPTOR.pack(
            handle_value(sampler.handle_for(view.scalar)), handle_value(view.handle), _GENERAL, serial
        )

    @property
    def is_closed(self) -> bool:
        return self.view.is_closed or self.sampler.is_closed

    def describe(self) -> str:
        return f"{self.view.describe()} with a sampler"

    def __repr__(self) -> str:
        return f"<{'closed ' if self.is_closed else ''}CombinedImageSampler, {self.describe()}>"
