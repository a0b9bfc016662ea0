"""A swapchain: images of the window system, to which pictures are copied.

Calling sequence: ``Swapchain(device, surface, size)`` → ``present`` for each frame → ``close``, before the surface and
the device. ``size`` is called whenever the swapchain has to be made again: after the window was resized, and while it
has no area (when nothing is shown).

Pictures are copied into the swapchain's images, which shaders can write on few devices only. Pictures of their format
and size are copied bytewise; others by blits, which scale, convert and flip.

Thread rule: one thread at a time. Other threads may use the device's queue meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...base.closeable import Closeable
from ...base.lazy_dataclass import dataclass
from ...formats.image_format import ImageFormat
from ...status import UnavailableError, UnimplementedError
from ..device import Device
from ..images.format_features import LINEAR_FILTER, format_features
from ..images.image import Image
from ..images.region import native_corners, native_extent, native_offset
from ..instance.logical_device import guarded
from ..vulkan.functions import NULL, CData, ffi, new
from ..vulkan.results import VK_SUCCESS, listed
from .surface import Surface

_SUBOPTIMAL: Final = 1000001003
_OUT_OF_DATE: Final = -1000001004
_SURFACE_LOST: Final = -1000000000
_UNDEFINED, _GENERAL, _TRANSFER_TARGET, _PRESENT = 0, 1, 7, 1000001002  # VkImageLayout
_STAGE_TRANSFER: Final = 0x1000
_STAGE_ALL: Final = 0x10000
_ACCESS_TRANSFER_WRITE: Final = 0x1000
_USAGE_TRANSFER_TARGET: Final = 0x2
_COLOR: Final = 0x1
_FAMILY_IGNORED: Final = 0xFFFF_FFFF
_ANY_EXTENT: Final = 0xFFFF_FFFF
_NEAREST, _LINEAR = 0, 1  # VkFilter
# Formats of plain values, without an sRGB encoding, in order of preference.
_FORMATS: Final = tuple(ImageFormat.parse(name) for name in ("bgra8unorm", "rgba8unorm"))
_IMMEDIATE, _MAILBOX, _FIFO = 0, 1, 2  # VkPresentModeKHR
_ACQUIRE_NS: Final = 200_000_000
_MIN_IMAGES: Final = 3


@dataclass(frozen=True, slots=True)
class Layer:
    """An image that is shown.

    Attributes:
        image: a color image of any format that can be blitted; its writers were submitted before.
        at: the position of its upper left corner in the window, which clips it; ``None`` scales it to fill the window.
        is_upward: whether the first row of the image is the lowest.
    """

    image: Image
    at: tuple[int, int] | None = None
    is_upward: bool = False


@dataclass(slots=True)
class _Slot:
    """The objects of a frame in flight; free for the next frame when the queue is past ``number``."""

    acquired: CData
    number: int = 0


@dataclass(slots=True)
class _Target:
    """An image of the swapchain, and the commands that copy layers to it.

    Attributes:
        image: the VkImage.
        rendered: the semaphore that is signalled when the image may be shown.
        pool, commands: the commands recorded for ``layers``; they may be recorded anew when the queue is past
            ``number``.
    """

    image: CData
    rendered: CData
    pool: CData
    commands: CData
    layers: tuple[Layer, ...] = ()
    number: int = 0


class Swapchain(Closeable):
    """A VkSwapchainKHR, made again when the window changes.

    Attributes:
        size: the width and height of the images; (0, 0) without images.
        format: the name of the format that is copied bytewise.
    """

    def __init__(
        self, device: Device, surface: Surface, window_size: Callable[[], tuple[int, int]], *, vsync: bool = True
    ) -> None:
        """Makes a swapchain.

        Args:
            device: a device opened with ``PlanOptions(presentation=True)``.
            surface: the window's surface.
            window_size: a function that returns the window's width and height in pixels, for systems whose surfaces
                report none.
            vsync: whether to wait for the display's refresh; otherwise frames are shown immediately, if the system can.

        Raises:
            UnavailableError: the device cannot show images there.
            UnimplementedError: the surface's images cannot be copied to.
        """
        surface.check_device(device)
        self.device, self._surface, self._window_size, self._vsync = device, surface, window_size, vsync
        self._queue = device.compute_queue
        self._handle: CData = NULL
        self._targets: list[_Target] = []
        self._slots: list[_Slot] = []
        self._next = 0
        self._has_free_size = False  # whether the size is the window's: nothing else reports a change
        self._index = ffi.new("uint32_t *")
        self.size: tuple[int, int] = (0, 0)
        self.format: str = _FORMATS[0].name
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    # -- frames --------------------------------------------------------------------------------------

    def present(self, layers: tuple[Layer, ...]) -> bool:
        """Shows images, later images over earlier ones. The previous frame's commands are reused for the same layers.

        Returns:
            Whether they will be shown: not while the window has no area, or if the system returns no image for 0.2 s.

        Raises:
            UnavailableError: the surface was lost; make another surface, and a swapchain for it.
        """
        is_out_of_date = self._has_free_size and self.size != self._window_size()
        if (self._handle == NULL or is_out_of_date) and not self._make():
            return False
        slot = self._slots[self._next % len(self._slots)]
        self._queue.stream.wait(slot.number)
        result = self._acquire(slot)
        if result == _OUT_OF_DATE:
            if not self._make():
                return False
            slot = self._slots[0]
            result = self._acquire(slot)
        if result not in (VK_SUCCESS, _SUBOPTIMAL):
            return False
        self._next += 1
        index = self._index[0]
        target = self._targets[index]
        self._queue.stream.wait(target.number)
        if target.layers != layers:
            self._record(target, layers)
        target.number = slot.number = self._queue.submit_native(target.commands, slot.acquired, target.rendered)
        swapchains, indices = ffi.new("VkSwapchainKHR[]", [self._handle]), ffi.new("uint32_t[]", [index])
        info = new(
            "VkPresentInfoKHR",
            waitSemaphoreCount=1,
            pWaitSemaphores=[target.rendered],
            swapchainCount=1,
            pSwapchains=swapchains,
            pImageIndices=indices,
        )
        shown = self._check(self._queue.call_native(self.device.fn.vkQueuePresentKHR, info), "presenting an image")
        if shown in (_OUT_OF_DATE, _SUBOPTIMAL) or result == _SUBOPTIMAL:
            self._make()
        return True

    @guarded
    def _acquire(self, slot: _Slot) -> int:
        """Acquires the next image, whose number is then in ``_index``; returns the result."""
        acquire = self.device.fn.vkAcquireNextImageKHR
        result = acquire(self.device.handle, self._handle, _ACQUIRE_NS, slot.acquired, NULL, self._index)
        return self._check(result, "acquiring an image of the window")

    def _check(self, result: int, action: str) -> int:
        """Returns a result with which presentation may continue; raises for other results."""
        if result == _SURFACE_LOST:
            raise UnavailableError(
                "the window's surface was lost; make another one, and a swapchain for it",
                vk_result="VK_ERROR_SURFACE_LOST_KHR",
            )
        self.device.check(0 if result == _OUT_OF_DATE else result, action)
        return result

    @guarded
    def _record(self, target: _Target, layers: tuple[Layer, ...]) -> None:
        device, fn, image, commands = self.device, self.device.fn, target.image, target.commands
        target.layers = ()
        device.check(fn.vkResetCommandPool(device.handle, target.pool, 0), "resetting a frame's commands")
        begin = new("VkCommandBufferBeginInfo")
        device.check(fn.vkBeginCommandBuffer(commands, begin), "beginning a frame's commands")
        self._change_layout(commands, image, _UNDEFINED, _TRANSFER_TARGET)
        for number, layer in enumerate(layers):
            if number:  # overlapping layers stay in order
                self._change_layout(commands, image, _TRANSFER_TARGET, _TRANSFER_TARGET)
            x, y, _ = layer.image.extent
            left, top = layer.at or (0, 0)
            width, height = self.size[0] - left, self.size[1] - top
            if layer.at is not None:
                x, y = width, height = min(width, x), min(height, y)
            if width <= 0 or height <= 0:
                continue
            where = (layer.image.handle, _GENERAL, image, _TRANSFER_TARGET)
            if layer.image.format.name == self.format and (x, y) == (width, height) and not layer.is_upward:
                copied = new("VkImageCopy", extent=native_extent((x, y, 1)), dstOffset=native_offset((left, top, 0)))
                _set_layers(copied)
                fn.vkCmdCopyImage(commands, *where, 1, copied)
            else:
                region = new("VkImageBlit")
                _set_layers(region)
                first, last = (y, 0) if layer.is_upward else (0, y)
                region.srcOffsets = native_corners((0, first, 0), (x, last, 1))
                region.dstOffsets = native_corners((left, top, 0), (left + width, top + height, 1))
                can_filter = format_features(device, layer.image.format).image & LINEAR_FILTER
                fn.vkCmdBlitImage(commands, *where, 1, region, _LINEAR if can_filter else _NEAREST)
        self._change_layout(commands, image, _TRANSFER_TARGET, _PRESENT)
        device.check(fn.vkEndCommandBuffer(commands), "ending a frame's commands")
        target.layers = layers

    def _change_layout(self, commands: CData, image: CData, old: int, new_layout: int) -> None:
        """Records a barrier that changes the layout.

        The last barrier delays the queue's later work, which may write the layers again.
        """
        barrier = new(
            "VkImageMemoryBarrier",
            srcAccessMask=0 if old == _UNDEFINED else _ACCESS_TRANSFER_WRITE,
            dstAccessMask=0 if new_layout == _PRESENT else _ACCESS_TRANSFER_WRITE,
            oldLayout=old,
            newLayout=new_layout,
            srcQueueFamilyIndex=_FAMILY_IGNORED,
            dstQueueFamilyIndex=_FAMILY_IGNORED,
            image=image,
            subresourceRange=new("VkImageSubresourceRange", aspectMask=_COLOR, levelCount=1, layerCount=1),
        )
        after = _STAGE_ALL if new_layout == _PRESENT else _STAGE_TRANSFER
        self.device.fn.vkCmdPipelineBarrier(commands, _STAGE_TRANSFER, after, 0, 0, NULL, 0, NULL, 1, barrier)

    # -- making --------------------------------------------------------------------------------------

    @guarded
    def _make(self) -> bool:
        """Makes the swapchain for the window's current size; returns ``False`` if the size is empty."""
        device, functions = self.device, self.device.driver.functions
        physical, surface = device.physical_device, self._surface.handle
        capabilities = new("VkSurfaceCapabilitiesKHR")
        query = functions.vkGetPhysicalDeviceSurfaceCapabilitiesKHR
        self._check(query(physical, surface, capabilities), "asking for the capabilities of a surface")
        self._has_free_size = capabilities.currentExtent.width == _ANY_EXTENT
        extent = _extent(capabilities, self._window_size)
        old = self._handle
        if 0 in extent:
            self._destroy_frames()
            self._destroy(old)
            return False
        if not capabilities.supportedUsageFlags & _USAGE_TRANSFER_TARGET:
            raise UnimplementedError(f"{device.name}: the window's images cannot be copied to")
        query = functions.vkGetPhysicalDeviceSurfaceFormatsKHR
        surface_formats = listed(query, "VkSurfaceFormatKHR", "surface formats", physical, surface)
        offered = {surface_format.format: surface_format.colorSpace for surface_format in surface_formats}
        plain = next((surface_format for surface_format in _FORMATS if surface_format.vk in offered), None)
        image_format = plain.vk if plain is not None else next(iter(offered))
        least, most = capabilities.minImageCount, capabilities.maxImageCount
        alpha = capabilities.supportedCompositeAlpha
        info = new(
            "VkSwapchainCreateInfoKHR",
            surface=surface,
            minImageCount=min(max(least, _MIN_IMAGES), most or _MIN_IMAGES + least),
            imageFormat=image_format,
            imageColorSpace=offered[image_format],
            imageExtent=new("VkExtent2D", width=extent[0], height=extent[1]),
            imageArrayLayers=1,
            imageUsage=_USAGE_TRANSFER_TARGET,
            preTransform=capabilities.currentTransform,
            compositeAlpha=alpha & -alpha,  # opaque if there is a choice
            presentMode=self._present_mode(),
            clipped=1,
            oldSwapchain=old,
        )
        self._destroy_frames()
        try:
            self._handle = NULL
            self._handle = device.create("swapchain khr", info, "a swapchain")
        finally:
            self._destroy(old)
        self.size = extent
        images = listed(
            device.fn.vkGetSwapchainImagesKHR, "VkImage", "a swapchain's images", device.handle, self._handle
        )
        self._targets = [self._target(image) for image in images]
        self._slots = [_Slot(self._semaphore()) for _ in self._targets]
        self._next = 0
        return True

    def _present_mode(self) -> int:
        """Returns the presentation mode; every surface has FIFO."""
        if self._vsync:
            return _FIFO
        query = self.device.driver.functions.vkGetPhysicalDeviceSurfacePresentModesKHR
        where = self.device.physical_device, self._surface.handle
        offered = set(listed(query, "VkPresentModeKHR", "present modes", *where))
        return next((mode for mode in (_IMMEDIATE, _MAILBOX) if mode in offered), _FIFO)

    def _semaphore(self) -> CData:
        return self.device.create("semaphore", new("VkSemaphoreCreateInfo"))

    def _target(self, image: CData) -> _Target:
        device = self.device
        pool = device.create("command pool", new("VkCommandPoolCreateInfo", queueFamilyIndex=self._queue.family))
        commands = ffi.new("VkCommandBuffer *")
        info = new("VkCommandBufferAllocateInfo", commandPool=pool, commandBufferCount=1)
        device.check(device.fn.vkAllocateCommandBuffers(device.handle, info, commands), "a frame's command buffer")
        return _Target(image, self._semaphore(), pool, commands[0])

    def _destroy_frames(self) -> None:
        """Destroys the objects of frames in flight, once the queue is done with it, presentation included."""
        device = self.device
        if device.is_closed:
            return
        if self._slots and device.lost is None:
            self._queue.call_native(device.fn.vkQueueWaitIdle)
        for slot in self._slots:
            device.destroy("semaphore", slot.acquired)
        for target in self._targets:
            device.destroy("semaphore", target.rendered)
            device.destroy("command pool", target.pool)
        self._slots, self._targets, self.size = [], [], (0, 0)

    def _destroy(self, handle: CData) -> None:
        if handle == self._handle:
            self._handle = NULL
        if handle != NULL and not self.device.is_closed:
            self.device.destroy("swapchain khr", handle)

    def close(self) -> None:
        """Destroys it once the queue is done with it; idempotent."""
        self._destroy_frames()
        self._destroy(self._handle)


def _extent(capabilities: CData, window_size: Callable[[], tuple[int, int]]) -> tuple[int, int]:
    """Returns the size of a swapchain's images: the surface's, or the window's within the surface's limits."""
    current = capabilities.currentExtent
    if current.width != _ANY_EXTENT:
        return int(current.width), int(current.height)
    least, most = capabilities.minImageExtent, capabilities.maxImageExtent
    width, height = window_size()
    if not width or not height:
        return 0, 0
    return (
        int(min(max(width, least.width), most.width)),
        int(min(max(height, least.height), most.height)),
    )


def _set_layers(region: CData) -> None:
    for side in (region.srcSubresource, region.dstSubresource):
        side.aspectMask, side.layerCount = _COLOR, 1
