"""Images: texels in the device's own arrangement, of one to three dimensions, with layers, mip levels and samples.

Calling sequence: ``Device.create_image`` → ``view`` → bind the views, or copy, clear and blit on a command buffer →
``close``. An image closed while a queue uses it is kept by the device until that work has retired.

An image is in ``VK_IMAGE_LAYOUT_GENERAL`` from its creation on, so that the barriers which order buffers order images
too (``docs/design/hal.md``). Its texels are undefined until something writes them.

Thread rule: an image may be used from any thread; the caller orders accesses to its texels.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from ...base.closeable import Closeable
from ...formats.image_format import Aspect, ImageFormat
from ...status import ClosedError, InvalidArgumentError, OutOfRangeError, PumiceError, UnimplementedError, shown
from ..memory.allocator import Allocator
from ..vulkan.functions import CData, new
from .format_features import ImageUsage, format_features, formats_with, usage_bits
from .image_view import Dim, ImageView, ViewKey

if TYPE_CHECKING:
    from ..instance.logical_device import LogicalDevice

Extent = tuple[int, int, int]

_TYPES: Final[dict[Dim, int]] = {"1d": 0, "2d": 1, "3d": 2, "cube": 1}
_AXES: Final[dict[Dim, int]] = {"1d": 1, "2d": 2, "3d": 3, "cube": 2}
_BY_AXES: Final[dict[int, Dim]] = {1: "1d", 2: "2d", 3: "3d"}
_MUTABLE_FORMAT: Final = 0x8
_CUBE_COMPATIBLE: Final = 0x10
_FORMAT_NOT_SUPPORTED: Final = -11
_FACES: Final = 6


class Image(Closeable):
    """A VkImage with its memory and its views.

    Attributes:
        format: the format of the texels.
        dim: the kind of dimensions: ``"1d"``, ``"2d"``, ``"3d"`` or ``"cube"``.
        extent: the texels of the largest level in x, y and z; 1 beyond the image's dimensions.
        layers: the number of array layers; six per cube.
        levels: the number of mip levels.
        samples: the samples per texel; 1 unless it is multisampled.
        usage: the allowed uses by queues.
        mutable_format: whether views may have other formats of the same size.
    """

    def __init__(
        self,
        allocator: Allocator,
        image_format: ImageFormat,
        extent: tuple[int, ...],
        *,
        dim: Dim | None = None,
        layers: int = 1,
        levels: int = 1,
        samples: int = 1,
        usage: ImageUsage | None = None,
        mutable_format: bool = False,
        name: str = "",
    ) -> None:
        """Makes an image with an undefined layout; see ``Device.create_image``."""
        self.device: LogicalDevice
        device = self.device = allocator.device
        device.check_usable()
        self._allocator = allocator
        self.format = image_format
        self.extent: tuple[int, int, int]
        self.dim, self.extent = _shape(extent, dim)
        self.layers: int
        self.mutable_format: bool
        self.samples: int
        self.layers, self.samples, self.mutable_format = layers, samples, mutable_format
        self.levels: int = levels or max(self.extent).bit_length()
        self.name: str = name or f"{image_format.name} image"
        for noun, value in (("layers", layers), ("levels", self.levels), ("samples", samples)):
            if type(value) is not int or value < 1:
                raise InvalidArgumentError(f"an image's {noun} are a positive int, got {shown(value)}")
        if self.levels > max(self.extent).bit_length():
            raise InvalidArgumentError(
                f"an image of {self.size_text} has up to {max(self.extent).bit_length()} mip levels, got {levels}"
            )
        if self.dim == "cube" and (layers % _FACES or self.extent[0] != self.extent[1]):
            raise InvalidArgumentError(
                f"a cube has square faces, and layers in sixes; got {self.size_text} and {layers} layer(s)"
            )
        if self.dim == "3d" and layers > 1:
            raise InvalidArgumentError(f"three-dimensional images have no layers, got {layers}")
        if samples > 1 and (self.dim != "2d" or self.levels > 1):
            raise InvalidArgumentError(
                f"multisampled images have two dimensions and one mip level, got {self.dim} and {self.levels} level(s)"
            )
        self.usage: ImageUsage = self._usage(usage)
        self._check_limits()
        self._lock = threading.Lock()
        self._views: dict[ViewKey, ImageView] = {}
        self._closed = False
        self.handle: CData = device.create("image", self._info(), f"{self}")
        try:
            self._allocation = allocator.allocate_image(self.handle)
        except PumiceError:
            device.destroy("image", self.handle)
            raise
        device.set_name("VK_OBJECT_TYPE_IMAGE", self.handle, self.name)

    @property
    def size_text(self) -> str:
        """Its extent for messages: ``"640x480"``."""
        return "x".join(map(str, self.extent[: _AXES[self.dim]]))

    @property
    def is_closed(self) -> bool:
        """Whether it or its device was closed."""
        return self._closed or self.device.is_closed

    @property
    def memory_bytes(self) -> int:
        """Bytes of device memory that it takes."""
        return self._allocation.size

    def level_extent(self, level: int) -> Extent:
        """Returns the texels of a mip level in x, y and z."""
        x, y, z = (max(1, size >> level) for size in self.extent)
        return x, y, z

    def view(
        self,
        *,
        dim: Dim | None = None,
        arrayed: bool | None = None,
        format: ImageFormat | None = None,
        base_level: int = 0,
        levels: int | None = None,
        base_layer: int = 0,
        layers: int | None = None,
        aspect: Aspect | None = None,
    ) -> ImageView:
        """Returns a view of its texels that shaders can bind; the same arguments return the same view.

        Args:
            dim: the kind of dimensions that shaders see: such as ``"2d"`` for a cube's faces; ``None`` means the
                image's own.
            arrayed: whether shaders see layers; ``None`` means whether it has several.
            format: another format of the same size, for images with ``mutable_format``.
            base_level, levels: the first mip level and the number of levels; ``None`` takes all up to the last.
            base_layer, layers: the first layer and the number of layers; ``None`` takes all up to the last.
            aspect: the aspect, ``"depth"`` or ``"stencil"``, of formats that have both; ``None`` is the first.

        Raises:
            ClosedError: the image was closed.
            OutOfRangeError: the image does not have these levels or layers.
            InvalidArgumentError: the image cannot be viewed with this dimension or format.
            UnimplementedError: the device cannot view it like this; the message names the missing feature.
        """
        if self.is_closed:
            self.device.check_usable()
            raise ClosedError(f"{self.name} was closed")
        dim = dim or self.dim
        levels = self.levels - base_level if levels is None else levels
        layers = self.layers - base_layer if layers is None else layers
        if arrayed is None:
            arrayed = layers > (_FACES if dim == "cube" else 1)
        shown_format = format or self.format
        aspect = aspect or shown_format.aspects[0]
        key = ViewKey(dim, arrayed, shown_format, base_level, levels, base_layer, layers, aspect)
        view = self._views.get(key)
        if view is None:
            self._check_view(key)
            with self._lock:
                view = self._views.get(key)
                if view is None:
                    view = self._views[key] = ImageView(self, self._allocator, key)
        return view

    def _check_view(self, key: ViewKey) -> None:
        for noun, first, count, most in (
            ("mip levels", key.base_level, key.levels, self.levels),
            ("layers", key.base_layer, key.layers, self.layers),
        ):
            if first < 0 or count < 1 or first + count > most:
                raise OutOfRangeError(
                    f"a view of {noun} [{first}, {first + count}) was asked for; {self.name} has {most}"
                )
        seen = {"cube": ("cube", "2d")}.get(self.dim, (self.dim,))
        if key.dim not in seen:
            raise InvalidArgumentError(
                f"{self.name} ({self.dim}) can be seen as {' or '.join(seen)}, not as {shown(key.dim)}"
            )
        if key.dim == "cube" and (key.layers % _FACES or (not key.arrayed and key.layers != _FACES)):
            raise InvalidArgumentError(f"a view of a cube has six layers, of several cubes sixes; got {key.layers}")
        if key.dim != "cube" and not key.arrayed and key.layers != 1:
            raise InvalidArgumentError(
                f"a view that is not arrayed has one layer, got {key.layers}; ask for arrayed=True or layers=1"
            )
        if key.dim == "3d" and key.arrayed:
            raise InvalidArgumentError("three-dimensional images have no layers; ask for arrayed=False")
        if key.dim == "cube" and key.arrayed and "imageCubeArray" not in self.device.plan.features:
            raise UnimplementedError(f"{self.device.profile.name} has no views of cube arrays (feature imageCubeArray)")
        if key.aspect not in key.format.aspects:
            raise InvalidArgumentError(f"{key.format} has {' and '.join(key.format.aspects)}, no {shown(key.aspect)}")
        if key.format != self.format:
            if not self.mutable_format:
                raise InvalidArgumentError(
                    f"{self.name} was made without mutable_format, so its views have its own format, not {key.format}"
                )
            if key.format.aspects != ("color",) or (key.format.texel_bytes, key.format.block, self.format.aspects) != (
                self.format.texel_bytes,
                self.format.block,
                ("color",),
            ):
                raise InvalidArgumentError(
                    f"a view of {self.format} ({self.format.texel_bytes} bytes a texel) cannot have format "
                    f"{key.format} ({key.format.texel_bytes} bytes)"
                )

    def _usage(self, wanted: ImageUsage | None) -> ImageUsage:
        device = self.device
        supported = format_features(device, self.format).usage
        if self.samples > 1 and "shaderStorageImageMultisample" not in device.plan.features:
            supported &= ~ImageUsage.STORAGE
        usage = supported if wanted is None else wanted
        if wanted is not None and not wanted:
            raise InvalidArgumentError(f"an image's usage names what it is for, one or several of {list(ImageUsage)}")
        missing = usage & ~supported
        if missing or not usage:
            names = (missing or ImageUsage.SAMPLED).name
            raise UnimplementedError(
                f"{device.profile.name} has no {'multisampled ' if self.samples > 1 else ''}images of format "
                f"{self.format} for {names}, only for {supported.name or 'nothing'}; formats that it has for this: "
                f"{formats_with(device, self.format, image=usage_bits(usage or ImageUsage.SAMPLED))}"
            )
        return usage

    def _flags(self) -> int:
        return (_CUBE_COMPATIBLE if self.dim == "cube" else 0) | (_MUTABLE_FORMAT if self.mutable_format else 0)

    def _check_limits(self) -> None:
        device = self.device
        info = new(
            "VkPhysicalDeviceImageFormatInfo2",
            format=self.format.vk,
            type=_TYPES[self.dim],
            usage=self.usage,
            flags=self._flags(),
        )
        answer = new("VkImageFormatProperties2")
        query = device.driver.functions.vkGetPhysicalDeviceImageFormatProperties2
        result = query(device.physical_device, info, answer)
        profile = device.profile
        if result == _FORMAT_NOT_SUPPORTED:
            raise UnimplementedError(
                f"{profile.name} has no {self.dim} images of format {self.format} for {self.usage.name}; formats that "
                f"it has for this: {formats_with(device, self.format, image=usage_bits(self.usage))}",
                vk_result="VK_ERROR_FORMAT_NOT_SUPPORTED",
            )
        device.check(result, f"asking for the limits of {self.format} images")
        most = answer.imageFormatProperties
        largest = (most.maxExtent.width, most.maxExtent.height, most.maxExtent.depth)
        noun = f"{profile.name}: {self.dim} images of format {self.format}"
        if any(size > limit for size, limit in zip(self.extent, largest, strict=True)):
            limit = "x".join(map(str, largest[: _AXES[self.dim]]))
            raise OutOfRangeError(f"{noun} have up to {limit} texels, got {self.size_text}; use several images")
        if self.levels > most.maxMipLevels:
            raise OutOfRangeError(f"{noun} have up to {most.maxMipLevels} mip levels, got {self.levels}")
        if self.layers > most.maxArrayLayers:
            raise OutOfRangeError(f"{noun} have up to {most.maxArrayLayers} layers, got {self.layers}")
        if not self.samples & most.sampleCounts or self.samples & (self.samples - 1):
            counts = [1 << bit for bit in range(7) if most.sampleCounts >> bit & 1]
            raise UnimplementedError(f"{noun} have {counts} samples for {self.usage.name}, got {self.samples}")

    def _info(self) -> CData:
        x, y, z = self.extent
        return new(
            "VkImageCreateInfo",
            flags=self._flags(),
            imageType=_TYPES[self.dim],
            format=self.format.vk,
            extent=new("VkExtent3D", width=x, height=y, depth=z),
            mipLevels=self.levels,
            arrayLayers=self.layers,
            samples=self.samples,
            usage=self.usage,
        )

    def close(self) -> None:
        """Destroys it with its views, once queues that use it have retired; idempotent."""
        if self.is_closed:
            return
        self._closed = True
        self.device.note_closed()
        self.device.defer(self._destroy)

    def _destroy(self) -> None:
        for view in self._views.values():
            view.destroy()
        self.device.destroy("image", self.handle)
        self._allocator.free(self._allocation)

    def __str__(self) -> str:
        parts = [f"a {self.dim} image of {self.size_text} {self.format}"]
        parts += [f"{count} {noun}" for count, noun in ((self.layers, "layers"), (self.levels, "levels")) if count > 1]
        return ", ".join(parts)

    def __repr__(self) -> str:
        return f"<{'closed ' if self.is_closed else ''}Image {self.name}: {self}>"


def _shape(extent: tuple[int, ...], dim: Dim | None) -> tuple[Dim, Extent]:
    sizes = tuple(extent) if isinstance(extent, (tuple, list)) else (extent,)
    if not 1 <= len(sizes) <= 3 or any(type(size) is not int or size < 1 for size in sizes):
        raise InvalidArgumentError(
            f"an image's extent is its width, height and depth in texels, one to three positive ints; "
            f"got {shown(extent)}"
        )
    dim = dim or _BY_AXES[len(sizes)]
    if dim not in _AXES or len(sizes) != _AXES[dim]:
        axes = _AXES.get(dim)
        raise InvalidArgumentError(
            f"dim is one of {', '.join(_AXES)}, got {shown(dim)}"
            if axes is None
            else f"a {dim} image's extent has {axes} size(s), got {shown(extent)}"
        )
    x, y, z = (*sizes, 1, 1)[:3]
    return dim, (x, y, z)
