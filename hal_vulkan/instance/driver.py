"""The Vulkan instance: the existing devices and their capabilities.

Calling sequence: ``Driver()`` → ``profiles`` → ``select(uri)`` → ``Device(driver, index)`` (device.py) →
``close()``. A driver is immutable after construction and may be shared between threads. Devices hold a
reference to it; it cannot be closed while devices are open.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence

from ...base.closeable import Closeable
from ...base.install_hints import driver_hint, install_hint
from ...status import ClosedError, FailedPreconditionError, UnavailableError
from ..vulkan.functions import CData, InstanceFunctions, chain, ffi, handle_value, new
from ..vulkan.live_objects import live
from ..vulkan.results import VK_ERROR_INCOMPATIBLE_DRIVER, VK_SUCCESS, check, listed, listed_names
from ..vulkan.validation import LAYER, DebugMessenger, validation_requested
from ..vulkan.vendored import vendored_driver
from .physical_device import read_profile
from .profile import MIN_VERSION, VULKAN_VERSION, DeviceProfile
from .uri import parse_device_uri, select_device

_PORTABILITY_ENUMERATION = "VK_KHR_portability_enumeration"
_DEBUG_UTILS = "VK_EXT_debug_utils"
_ENUMERATE_PORTABILITY_BIT = 0x1


class Driver(Closeable):
    """A VkInstance with the profiles of all its physical devices; ``extensions`` are those available to instances."""

    def __init__(self, *, validation: bool | None = None, extensions: Sequence[str] = ()) -> None:
        """Loads the Vulkan library and enumerates.

        Args:
            validation: whether to turn the Khronos validation layers on; ``None`` reads ``PUMICE_VALIDATION``.
            extensions: further instance extensions to enable, such as those of surfaces.

        Raises:
            UnavailableError: there is no Vulkan loader or no such extension, or validation is requested and no layers
                are installed; the message says what to install.
        """
        self.validation: bool = validation_requested(validation)
        self._lock = threading.Lock()
        self._devices: set[int] = set()  # the numbers of the open devices
        self._instance: CData | None = None
        self._messenger: DebugMessenger | None = None
        try:
            with _listing(windows=bool(extensions)):
                version = self._create_instance(extensions)
            self.physical_devices: tuple[CData, ...] = tuple(
                listed(self.functions.vkEnumeratePhysicalDevices, "VkPhysicalDevice", "Vulkan devices", self._instance)
            )
            self.profiles: tuple[DeviceProfile, ...] = tuple(
                read_profile(self.functions, physical, version) for physical in self.physical_devices
            )
        except BaseException:
            self.close()
            raise

    def _create_instance(self, extensions: Sequence[str]) -> tuple[int, int]:
        """Creates the instance, and returns the version of Vulkan that the drivers accepted."""
        functions = InstanceFunctions()
        query = functions.vkEnumerateInstanceExtensionProperties
        available = listed_names(query, "VkExtensionProperties", "extensionName", "instance extensions", ffi.NULL)
        self.extensions: frozenset[str] = frozenset(available)
        portability = _PORTABILITY_ENUMERATION in available
        self.debug_utils: bool = _DEBUG_UTILS in available or self.validation
        if missing := sorted(set(extensions) - available):
            raise UnavailableError(
                f"the Vulkan loader and drivers here lack the instance extension(s) {', '.join(missing)}. "
                + install_hint("driver")
            )
        enabled = [*extensions, *([_PORTABILITY_ENUMERATION] if portability else [])]
        if self.debug_utils:
            enabled.append(_DEBUG_UTILS)
        if self.validation:
            if LAYER not in instance_layers(functions):
                raise UnavailableError(
                    f"validation was asked for, but the layer {LAYER} is not installed. " + install_hint("validation")
                )
            self._messenger = DebugMessenger()
        application = new("VkApplicationInfo", pApplicationName="pumice", pEngineName="pumice")
        info = chain(
            new(
                "VkInstanceCreateInfo",
                flags=_ENUMERATE_PORTABILITY_BIT if portability else 0,
                pApplicationInfo=application,
                enabledLayerCount=int(self.validation),
                ppEnabledLayerNames=[LAYER] if self.validation else None,
                enabledExtensionCount=len(enabled),
                ppEnabledExtensionNames=enabled,
            ),
            self._messenger.create_info() if self._messenger else None,
        )
        for major, minor in (VULKAN_VERSION, MIN_VERSION):
            application.apiVersion = major << 22 | minor << 12
            result = self._make_instance(functions, info)
            if result != VK_ERROR_INCOMPATIBLE_DRIVER:
                break
        else:  # no driver, or all refused: the loader returns the same code for both
            raise UnavailableError(
                f"a Vulkan loader is installed, but it finds no Vulkan driver that takes Vulkan {major}.{minor} or "
                f"later (VK_LOADER_DEBUG=error,driver lists those that it finds). {driver_hint()}",
                vk_result="VK_ERROR_INCOMPATIBLE_DRIVER",
            )
        check(result, "creating a Vulkan instance")
        if self._messenger:
            self._messenger.attach(self.functions, self._instance)
        return major, minor

    def _make_instance(self, functions: InstanceFunctions, info: CData) -> int:
        instance, result = ffi.new("VkInstance *"), VK_SUCCESS
        try:
            result = functions.vkCreateInstance(info, ffi.NULL, instance)
        finally:  # Ctrl-C during the call is raised after it has returned and made the instance
            if result >= 0 and instance[0] != ffi.NULL:  # a failed call may leave garbage there
                self._instance = instance[0]
                self.functions: InstanceFunctions = InstanceFunctions(self._instance)
                live["instance", 0, handle_value(self._instance)] = None
        return int(result)

    def select(self, uri: str | None = None, *, environ: Mapping[str, str] | None = None) -> int:
        """Returns the index of the device that a URI names; ``None`` reads ``PUMICE_DEVICE``, then takes the best.

        Raises:
            NotFoundError: there is no such device; the message lists those that exist.
            InvalidArgumentError: the text is not a device URI, or matches several devices.
        """
        if self._instance is None:
            raise ClosedError("this driver was closed; make a new Driver()")
        if not self.profiles:
            raise UnavailableError("a Vulkan loader is installed, but no Vulkan driver. " + install_hint("driver"))
        return select_device(parse_device_uri(uri, os.environ if environ is None else environ), self.profiles)

    def retain(self, device: int) -> None:
        """Notes a device made from this driver, by its number."""
        with self._lock:
            if self._instance is None:
                raise ClosedError("this driver was closed; make a new Driver()")
            self._devices.add(device)

    def release(self, device: int) -> None:
        """Notes that a device was closed; idempotent."""
        with self._lock:
            self._devices.discard(device)

    @property
    def handle(self) -> CData:
        """The VkInstance; ClosedError once it was destroyed."""
        if self._instance is None:
            raise ClosedError("this driver was closed; make a new Driver()")
        return self._instance

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._instance is None

    def close(self) -> None:
        """Destroys the instance; idempotent. FailedPreconditionError while devices made from it are open."""
        with self._lock:
            if self._instance is None:
                return
            if self._devices:
                raise FailedPreconditionError(
                    f"{len(self._devices)} device(s) of this driver are open; close them first"
                )
            instance, self._instance = self._instance, None
        if self._messenger:
            self._messenger.close()
        self.functions.vkDestroyInstance(instance, ffi.NULL)
        live.pop(("instance", 0, handle_value(instance)), None)

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else f"{len(self.profiles)} devices"
        return f"<Driver vulkan, {state}, validation {'on' if self.validation else 'off'}>"


_shared: dict[bool, Driver] = {}
_shared_lock = threading.Lock()
# One thread at a time: meanwhile an environment variable locates the vendored driver.
_creation_lock = threading.Lock()


@contextlib.contextmanager
def _listing(*, windows: bool) -> Iterator[None]:
    with _creation_lock, vendored_driver(windows=windows):
        yield


def window_drivers() -> contextlib.AbstractContextManager[None]:
    """Makes the Vulkan loader list the drivers for instances with surfaces while open, for libraries that query it."""
    return _listing(windows=True)


def shared_driver(*, validation: bool | None = None) -> Driver:
    """Returns the process-wide driver, made on first use: enumeration takes tens of milliseconds and rarely changes."""
    key = validation_requested(validation)
    with _shared_lock:
        driver = _shared.get(key)
        if driver is None or driver.is_closed:
            driver = _shared[key] = Driver(validation=key)
        return driver


def close_drivers() -> None:
    """Closes the process's drivers without open devices, at the end of the process."""
    for driver in list(_shared.values()):
        with contextlib.suppress(FailedPreconditionError):
            driver.close()


def forget_drivers() -> None:
    """Forgets the parent's drivers in a forked child."""
    global _shared_lock, _creation_lock
    _shared_lock = threading.Lock()
    _creation_lock = threading.Lock()
    _shared.clear()


def loader_version(functions: InstanceFunctions) -> tuple[int, int, int]:
    """Returns the version of Vulkan that the loader knows; drivers have their own."""
    packed = ffi.new("uint32_t *")
    check(functions.vkEnumerateInstanceVersion(packed), "asking for the loader's version")
    return packed[0] >> 22 & 0x7F, packed[0] >> 12 & 0x3FF, packed[0] & 0xFFF


def instance_layers(functions: InstanceFunctions) -> frozenset[str]:
    return listed_names(functions.vkEnumerateInstanceLayerProperties, "VkLayerProperties", "layerName", "layers")
