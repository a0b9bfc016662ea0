"""The actions on images of a command buffer: copies from and to buffers, between images, clears, blits and mip levels.

Regions are given by a mip level, layers, an offset and an extent in texels; a value that is left out means everything.
Images belong to the compute family, and only its command buffers take them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

from ...formats.image_format import Aspect
from ...hal.buffer import Buffer as AnyBuffer
from ...hal.command_buffer import BindingSlot
from ...hal.memory import BufferUsage
from ...status import ClosedError, InvalidArgumentError, OutOfRangeError, UnimplementedError
from ..images.format_features import BLIT_SOURCE, BLIT_TARGET, LINEAR_FILTER, ImageUsage, format_features, formats_with
from ..images.image import Image
from ..images.image_view import ASPECTS
from ..images.region import (
    Region,
    aspect_bits,
    check_span,
    native_corners,
    native_extent,
    native_layers,
    native_offset,
    overlap,
    region_bytes,
    region_of,
    subresource_range,
)
from ..instance.logical_device import guarded
from ..memory.buffer import Buffer
from ..vulkan.functions import CData, ffi, new
from .recorder import CommandRecorder

_GENERAL: Final = 1  # VkImageLayout
_TOP_OF_PIPE: Final = 0x1
_COMPUTE_AND_TRANSFER: Final = 0x800 | 0x1000
_ALL_ACCESS: Final = 0x20 | 0x40 | 0x800 | 0x1000  # of shaders and transfers
_QUEUE_FAMILY_IGNORED: Final = 0xFFFF_FFFF
_ORIGIN: Final = (0, 0, 0)


class ImageRecorder(CommandRecorder):
    """A recorder of transfers that images take part in."""

    @guarded
    def initialize_image(self, image: Image) -> None:
        """Brings a new image from the undefined layout into the general one. For ``Device.create_image``."""
        barrier = new(
            "VkImageMemoryBarrier",
            dstAccessMask=_ALL_ACCESS,
            newLayout=_GENERAL,
            srcQueueFamilyIndex=_QUEUE_FAMILY_IGNORED,
            dstQueueFamilyIndex=_QUEUE_FAMILY_IGNORED,
            image=image.handle,
            subresourceRange=subresource_range(image, 0, image.levels),
        )
        self.device.fn.vkCmdPipelineBarrier(
            self._handle, _TOP_OF_PIPE, _COMPUTE_AND_TRANSFER, 0, 0, ffi.NULL, 0, ffi.NULL, 1, barrier
        )

    @guarded
    def copy_buffer_to_image(
        self,
        source: AnyBuffer | BindingSlot,
        target: Image,
        *,
        source_offset: int = 0,
        level: int = 0,
        base_layer: int = 0,
        layers: int | None = None,
        offset: tuple[int, ...] = _ORIGIN,
        extent: tuple[int, ...] | None = None,
        aspect: Aspect | None = None,
    ) -> None:
        """Copies texels, packed row by row, slice by slice and layer by layer, from any byte of a buffer.

        For compressed formats the rows consist of blocks, and a region starts and ends on block boundaries or at the
        image's edge. ``aspect`` selects depth or stencil.

        Raises:
            OutOfRangeError: the image does not have these texels, or the buffer these bytes.
            InvalidArgumentError: the image is multisampled, or the region cuts a compressed block.
            UnimplementedError: the aspect is depth or stencil, and the device's compute queues have no graphics.
        """
        self.check_recording()
        region = region_of(target, "copy to an image", level, base_layer, layers, offset, extent, aspect)
        self._copy_texels(True, source, target, source_offset, region)

    @guarded
    def copy_image_to_buffer(
        self,
        source: Image,
        target: AnyBuffer | BindingSlot,
        *,
        target_offset: int = 0,
        level: int = 0,
        base_layer: int = 0,
        layers: int | None = None,
        offset: tuple[int, ...] = _ORIGIN,
        extent: tuple[int, ...] | None = None,
        aspect: Aspect | None = None,
    ) -> None:
        """Copies texels to any byte of a buffer; see ``copy_buffer_to_image``."""
        self.check_recording()
        region = region_of(source, "copy from an image", level, base_layer, layers, offset, extent, aspect)
        self._copy_texels(False, target, source, target_offset, region)

    def _copy_texels(
        self, upload: bool, buffer: AnyBuffer | BindingSlot, image: Image, at: int, region: Region
    ) -> None:
        subject = "copy to an image" if upload else "copy from an image"
        self._check_image(image, ImageUsage.TRANSFER_TARGET if upload else ImageUsage.TRANSFER_SOURCE, subject)
        if image.samples > 1:
            raise InvalidArgumentError(
                f"{subject}: {image.name} is multisampled; read and write its samples in a shader"
            )
        if upload and region.aspect != "color":
            self._check_graphics(f"{subject} of {region.aspect}")
        if self._noting:
            self._check_slot(buffer)
            self._note(ImageRecorder._copy_texels, upload, buffer, image, at, region)
            return
        self.device.copy_count += 1
        owned = self._own(buffer, subject)
        size = region_bytes(image, region)
        owned.check_range(at, size, subject)
        if upload:
            owned.check_usage(BufferUsage.TRANSFER_SOURCE, subject)
        else:
            owned.check_target(subject)
        assert self._recording is not None
        self._recording.resources += (owned, image)
        # Texels of a buffer start at a multiple of their size; those of depth and stencil at a multiple of 4 bytes.
        unit = image.format.texel_bytes if region.aspect == "color" else 4
        if not (owned.offset + at) % unit:
            self._copy_region(upload, owned, owned.offset + at, image, region)
            return
        staging = self._scratch(size + unit)
        shift = -staging.offset % unit
        if upload:
            self._copy(owned, at, staging, shift, size)
            self.execution_barrier()
            self._copy_region(upload, staging, staging.offset + shift, image, region)
        else:
            self._copy_region(upload, staging, staging.offset + shift, image, region)
            self.execution_barrier()
            self._copy(staging, shift, owned, at, size)

    def _copy_region(self, upload: bool, buffer: Buffer, start: int, image: Image, region: Region) -> None:
        native = new(
            "VkBufferImageCopy",
            bufferOffset=start,
            imageSubresource=native_layers(region, ASPECTS[region.aspect]),
            imageOffset=native_offset(region.offset),
            imageExtent=native_extent(region.extent),
        )
        fn = self.device.fn
        if upload:
            fn.vkCmdCopyBufferToImage(self._handle, buffer.handle, image.handle, _GENERAL, 1, native)
        else:
            fn.vkCmdCopyImageToBuffer(self._handle, image.handle, _GENERAL, buffer.handle, 1, native)

    @guarded
    def copy_image(
        self,
        source: Image,
        target: Image,
        *,
        source_level: int = 0,
        source_layer: int = 0,
        source_offset: tuple[int, ...] = _ORIGIN,
        target_level: int = 0,
        target_layer: int = 0,
        target_offset: tuple[int, ...] = _ORIGIN,
        layers: int | None = None,
        extent: tuple[int, ...] | None = None,
    ) -> None:
        """Copies texels unchanged between images whose texels have the same size.

        Raises:
            OutOfRangeError: an image does not have these texels.
            InvalidArgumentError: texels have different sizes or numbers of samples, or regions overlap.
        """
        self.check_recording()
        count = source.layers - source_layer if layers is None else layers
        read = region_of(source, "copy source", source_level, source_layer, count, source_offset, extent)
        written = region_of(target, "copy target", target_level, target_layer, count, target_offset, read.extent)
        self._check_image(source, ImageUsage.TRANSFER_SOURCE, "copy source")
        self._check_image(target, ImageUsage.TRANSFER_TARGET, "copy target")
        before, after = source.format, target.format
        if (before.texel_bytes, before.aspects, before.block) != (
            after.texel_bytes,
            after.aspects,
            after.block,
        ) or source.samples != target.samples:
            raise InvalidArgumentError(
                f"copy: {source.name} has {before} texels of {source.samples} sample(s), {target.name} has {after} of "
                f"{target.samples}; copies keep the bytes, so both need texels of one size (see blit_image)"
            )
        if (source.dim == "3d") != (target.dim == "3d"):
            raise InvalidArgumentError(
                f"copy: {source.name} is {source.dim} and {target.name} {target.dim}; copy by a buffer"
            )
        if source is target and overlap(read, written):
            raise InvalidArgumentError(f"copy: the regions of {source.name} overlap")
        self._now_or_noted(ImageRecorder._copy_images, source, target, read, written)

    def _copy_images(self, source: Image, target: Image, read: Region, written: Region) -> None:
        assert self._recording is not None
        self._recording.resources += (source, target)
        self.device.copy_count += 1
        native = new(
            "VkImageCopy",
            srcSubresource=native_layers(read, aspect_bits(source)),
            srcOffset=native_offset(read.offset),
            dstSubresource=native_layers(written, aspect_bits(target)),
            dstOffset=native_offset(written.offset),
            extent=native_extent(read.extent),
        )
        self.device.fn.vkCmdCopyImage(self._handle, source.handle, _GENERAL, target.handle, _GENERAL, 1, native)

    @guarded
    def clear_image(
        self,
        target: Image,
        value: float | Sequence[float] = 0,
        *,
        base_level: int = 0,
        levels: int | None = None,
        base_layer: int = 0,
        layers: int | None = None,
    ) -> None:
        """Sets all texels of some levels and layers to a value.

        Args:
            target: a color image.
            value: the value of each channel in the order red, green, blue, alpha, or one value for all channels; ints
                for formats that shaders read as ints.

        Raises:
            OutOfRangeError: the image does not have these levels or layers, or its channels cannot represent an int.
            UnimplementedError: the image has depth, stencil or compressed blocks.
        """
        self.check_recording()
        levels = target.levels - base_level if levels is None else levels
        layers = target.layers - base_layer if layers is None else layers
        check_span(target, "clear", "mip levels", base_level, levels, target.levels)
        check_span(target, "clear", "layers", base_layer, layers, target.layers)
        self._check_image(target, ImageUsage.TRANSFER_TARGET, "clear")
        if target.format.aspects != ("color",) or target.format.is_compressed:
            raise UnimplementedError(
                f"clear: compute queues clear neither depth and stencil nor compressed blocks, got {target.format}; "
                "copy texels to it"
            )
        color = _clear_color(target, value)
        self._now_or_noted(ImageRecorder._clear, target, color, base_level, levels, base_layer, layers)

    def _clear(self, target: Image, color: CData, base_level: int, levels: int, base_layer: int, layers: int) -> None:
        assert self._recording is not None
        self._recording.resources.append(target)
        span = subresource_range(target, base_level, levels, base_layer, layers)
        self.device.fn.vkCmdClearColorImage(self._handle, target.handle, _GENERAL, color, 1, span)

    @guarded
    def blit_image(
        self,
        source: Image,
        target: Image,
        *,
        filter: Literal["nearest", "linear"] = "linear",
        source_level: int = 0,
        source_layer: int = 0,
        source_offset: tuple[int, ...] = _ORIGIN,
        source_extent: tuple[int, ...] | None = None,
        target_level: int = 0,
        target_layer: int = 0,
        target_offset: tuple[int, ...] = _ORIGIN,
        target_extent: tuple[int, ...] | None = None,
        layers: int | None = None,
    ) -> None:
        """Copies texels with a change of size and format, as ``vkCmdBlitImage`` does.

        Raises:
            OutOfRangeError: an image does not have these texels.
            InvalidArgumentError: shaders read the formats differently, an image is multisampled, or regions overlap.
            UnimplementedError: the device does not blit these formats, or its compute queues do not blit.
        """
        self.check_recording()
        count = source.layers - source_layer if layers is None else layers
        read = region_of(source, "blit source", source_level, source_layer, count, source_offset, source_extent)
        written = region_of(target, "blit target", target_level, target_layer, count, target_offset, target_extent)
        self._check_blit(source, target, filter)
        if source is target and overlap(read, written):
            raise InvalidArgumentError(f"blit: the regions of {source.name} overlap")
        self._now_or_noted(ImageRecorder._blit, source, target, read, written, filter)

    def _blit(self, source: Image, target: Image, read: Region, written: Region, filter: str) -> None:
        assert self._recording is not None
        self._recording.resources += (source, target)
        native = new(
            "VkImageBlit",
            srcSubresource=native_layers(read, aspect_bits(source)),
            srcOffsets=native_corners(read.offset, read.end),
            dstSubresource=native_layers(written, aspect_bits(target)),
            dstOffsets=native_corners(written.offset, written.end),
        )
        self.device.fn.vkCmdBlitImage(
            self._handle, source.handle, _GENERAL, target.handle, _GENERAL, 1, native, int(filter == "linear")
        )

    def _now_or_noted(self, command: Callable[..., None], *arguments: object) -> None:
        if self._noting:
            self._note(command, *arguments)
        else:
            command(self, *arguments)

    def _check_blit(self, source: Image, target: Image, filter: str) -> None:
        device = self.device
        name = device.profile.name
        self._check_image(source, ImageUsage.TRANSFER_SOURCE, "blit source")
        self._check_image(target, ImageUsage.TRANSFER_TARGET, "blit target")
        if filter not in ("nearest", "linear"):
            raise InvalidArgumentError(f"a blit's filter is nearest or linear, got {filter!r}")
        self._check_graphics("blit")
        if source.samples > 1 or target.samples > 1:
            raise InvalidArgumentError("blit: multisampled images cannot be blitted; resolve them in a shader")
        before, after = source.format, target.format
        if (before.scalar, before.aspects) != (after.scalar, after.aspects) or (
            before.aspects != ("color",) and before != after
        ):
            raise InvalidArgumentError(
                f"blit: {before} is read as {before.scalar}s, {after} as {after.scalar}s; both have "
                "to be alike, and depth formats the same"
            )
        if filter == "linear" and before.scalar != "float":
            raise InvalidArgumentError(
                f"blit: texels of {before} are integers, which no filter averages; use filter='nearest', or fill each "
                "mip level with level(i).copy_from()"
            )
        wanted = BLIT_SOURCE | (LINEAR_FILTER if filter == "linear" else 0)
        for image, bits in ((source, wanted), (target, BLIT_TARGET)):
            if bits & ~format_features(device, image.format).image:
                role = "from" if image is source else "to"
                raise UnimplementedError(
                    f"{name} does not blit {role} {image.format} with filter {filter}; formats of its kind that it "
                    f"does: {formats_with(device, image.format, image=bits)}"
                )

    def _check_graphics(self, subject: str) -> None:
        """Raises if the queues lack a feature that only graphics queues have."""
        profile = self.device.profile
        if not profile.queue_families[self.family].has_graphics:
            raise UnimplementedError(
                f"{subject}: queue family {self.family} of {profile.name} has no graphics, without which Vulkan does "
                "not do this; open the device with prefer_dedicated_compute=False, or do it in a shader"
            )

    def _check_image(self, image: Image, usage: ImageUsage, subject: str) -> None:
        if not isinstance(image, Image):
            raise InvalidArgumentError(f"{subject} takes an image, got {type(image).__name__}")
        if image.device is not self.device:
            raise InvalidArgumentError(f"{subject}: {image.name} belongs to another device; copy it through the host")
        if image.is_closed:
            raise ClosedError(f"{subject}: {image.name} was closed")
        if not image.usage & usage:
            raise InvalidArgumentError(
                f"{subject}: {image.name} was made for {image.usage.name}; make it with usage {usage.name} too"
            )
        if self.family != self.device.plan.compute_family:
            raise UnimplementedError(f"{subject}: images belong to the compute queues; record this for one of them")


def _clear_color(target: Image, value: float | Sequence[float]) -> CData:
    texels = target.format
    values = [value] * 4 if isinstance(value, (int, float)) else list(value)
    if not 1 <= len(values) <= 4:
        raise InvalidArgumentError(f"clear: a value has one to four channels, got {len(values)}")
    values += [0] * (4 - len(values))
    color = ffi.new("VkClearColorValue *")
    try:
        if texels.scalar == "float":
            color.float32 = [float(channel) for channel in values]
        elif texels.scalar == "int":
            color.int32 = values
        else:
            color.uint32 = values
    except (OverflowError, TypeError, ValueError):
        raise OutOfRangeError(
            f"clear: channels of {texels} are read as 32-bit {texels.scalar}s, got {values}"
        ) from None
    return color
