"""A window's surface, on which a swapchain shows images."""

from __future__ import annotations

from collections.abc import Callable

from ...base.closeable import Closeable
from ...status import UnavailableError
from ..instance.driver import Driver
from ..instance.logical_device import LogicalDevice
from ..vulkan.functions import CData, ffi, handle_value, load_library
from ..vulkan.live_objects import live
from ..vulkan.results import check


def loader_address() -> int:
    """Returns the address of vkGetInstanceProcAddr, so that window libraries use the same Vulkan library.

    Raises:
        UnavailableError: there is no Vulkan library; the message says what to install.
    """
    return int(ffi.cast("uintptr_t", load_library().vkGetInstanceProcAddr))


class Surface(Closeable):
    """A VkSurfaceKHR. Close its swapchains first, and the surface before its window and its driver."""

    def __init__(self, driver: Driver, create: Callable[[CData, CData], int]) -> None:
        """Makes a surface.

        Args:
            driver: the driver of an instance with the extensions of the window system.
            create: a function of the window system, called with the VkInstance and a pointer for the VkSurfaceKHR; it
                returns a VkResult.
        """
        self._driver = driver
        handle = ffi.new("VkSurfaceKHR *")
        check(create(driver.handle, handle), "creating the surface of a window")
        self.handle: CData = handle[0]
        live["surface", 0, handle_value(self.handle)] = None

    def check_device(self, device: LogicalDevice) -> None:
        """Raises UnavailableError unless the device's compute queue can show images on this surface."""
        can = ffi.new("VkBool32 *")
        family = device.plan.compute_family
        query = self._driver.functions.vkGetPhysicalDeviceSurfaceSupportKHR
        check(query(device.physical_device, family, self.handle, can), "asking whether the surface can be presented to")
        if not can[0]:
            raise UnavailableError(
                f"{device.name} cannot show images in this window (queue family {family}); take the device that the "
                "display is connected to"
            )

    def close(self) -> None:
        """Destroys it; idempotent."""
        if self.handle != ffi.NULL:
            handle, self.handle = self.handle, ffi.NULL
            self._driver.functions.vkDestroySurfaceKHR(self._driver.handle, handle, ffi.NULL)
            live.pop(("surface", 0, handle_value(handle)), None)
