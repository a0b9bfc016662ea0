"""Faults planted between pumice and the Vulkan driver: calls that fail, and devices that are lost.

``install`` replaces every native function that returns a VkResult by one that counts its calls and fails the call that
a ``Fault`` names. A failed call does not reach the driver, and leaves garbage where Vulkan leaves outputs undefined.
"""

from __future__ import annotations

import functools
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from pumice.hal_vulkan.vulkan.functions import NULL, CData, InstanceFunctions, _Functions, ffi

__all__ = ["CODES", "INCOMPLETE", "LEFT_OUT", "LOST", "RESULTS", "UNKNOWN", "Fault", "Faults", "install"]

RESULTS: Final = {
    name.removeprefix("VK_").removesuffix("_KHR").removesuffix("_EXT"): value
    for name, value in ffi.typeof("VkResult").relements.items()
}
LOST: Final = "ERROR_DEVICE_LOST"
INCOMPLETE: Final = "INCOMPLETE"
TIMEOUT: Final = "TIMEOUT"
UNKNOWN: Final = "ERROR_UNKNOWN"
_KEPT: Final = (INCOMPLETE, TIMEOUT)  # codes of calls that are made
_HOST: Final = ("ERROR_OUT_OF_HOST_MEMORY",)
_MEMORY: Final = (*_HOST, "ERROR_OUT_OF_DEVICE_MEMORY")
_ADDRESS: Final = (*_MEMORY, "ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS")
_LISTED: Final = (*_MEMORY, INCOMPLETE)

# Facts of the Vulkan registry (vk.xml, ``errorcodes`` and ``successcodes``), with which a test compares them.
CODES: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        (
            *("vkAllocateCommandBuffers", "vkBeginCommandBuffer", "vkBindImageMemory", "vkCreateBufferView"),
            *("vkCreateCommandPool", "vkCreateDescriptorSetLayout", "vkCreateDescriptorUpdateTemplate"),
            "vkCreateFence",
            *("vkCreatePipelineCache", "vkCreatePipelineLayout", "vkCreateQueryPool", "vkCreateSemaphore"),
            *("vkEndCommandBuffer", "vkFlushMappedMemoryRanges", "vkGetCalibratedTimestampsEXT"),
            *("vkInvalidateMappedMemoryRanges", "vkSetDebugUtilsObjectNameEXT", "vkSignalSemaphore"),
        ),
        _MEMORY,
    ),
    **dict.fromkeys(("vkBindBufferMemory", "vkCreateBuffer", "vkCreateImageView", "vkCreateSampler"), _ADDRESS),
    **dict.fromkeys(
        ("vkDeviceWaitIdle", "vkGetSemaphoreCounterValue", "vkQueueSubmit", "vkQueueWaitIdle"), (*_MEMORY, LOST)
    ),
    **dict.fromkeys(
        (
            *("vkEnumerateInstanceLayerProperties", "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT"),
            "vkGetPipelineCacheData",
        ),
        _LISTED,
    ),
    **dict.fromkeys(
        ("vkEnumerateDeviceExtensionProperties", "vkEnumerateInstanceExtensionProperties"),
        (*_LISTED, "ERROR_LAYER_NOT_PRESENT"),
    ),
    "vkAllocateDescriptorSets": (*_MEMORY, "ERROR_FRAGMENTED_POOL", "ERROR_OUT_OF_POOL_MEMORY"),
    "vkAllocateMemory": (*_ADDRESS, "ERROR_INVALID_EXTERNAL_HANDLE"),
    "vkCreateComputePipelines": (*_MEMORY, "ERROR_INVALID_SHADER_NV"),
    "vkCreateDebugUtilsMessengerEXT": _HOST,
    "vkCreateDescriptorPool": (*_MEMORY, "ERROR_FRAGMENTATION"),
    "vkCreateDevice": (
        *(*_MEMORY, "ERROR_INITIALIZATION_FAILED", "ERROR_EXTENSION_NOT_PRESENT", "ERROR_FEATURE_NOT_PRESENT"),
        *("ERROR_TOO_MANY_OBJECTS", LOST),
    ),
    "vkCreateImage": (*_ADDRESS, "ERROR_COMPRESSION_EXHAUSTED"),
    "vkCreateInstance": (
        *(*_MEMORY, "ERROR_INITIALIZATION_FAILED", "ERROR_LAYER_NOT_PRESENT", "ERROR_EXTENSION_NOT_PRESENT"),
        "ERROR_INCOMPATIBLE_DRIVER",
    ),
    "vkCreateShaderModule": (*_MEMORY, "ERROR_INVALID_SHADER_NV"),
    "vkEnumerateInstanceVersion": _HOST,
    "vkEnumeratePhysicalDevices": (*_LISTED, "ERROR_INITIALIZATION_FAILED"),
    "vkGetMemoryHostPointerPropertiesEXT": (*_HOST, "ERROR_INVALID_EXTERNAL_HANDLE"),
    "vkGetPhysicalDeviceImageFormatProperties2": (*_MEMORY, "ERROR_FORMAT_NOT_SUPPORTED"),
    "vkGetQueryPoolResults": (*_MEMORY, LOST),
    "vkMapMemory": (*_MEMORY, "ERROR_MEMORY_MAP_FAILED"),
    "vkResetCommandPool": ("ERROR_OUT_OF_DEVICE_MEMORY",),
    "vkWaitForFences": (*_MEMORY, LOST),
    "vkWaitSemaphores": (*_MEMORY, LOST, TIMEOUT),
}
"""The codes other than success that the specification allows, by command. ``UNKNOWN`` is allowed for all."""
LEFT_OUT: Final = (
    *("NOT_READY", "PIPELINE_COMPILE_REQUIRED"),  # finished work is ready, and the flag for the other is not set
    TIMEOUT,  # of fences: the driver's self-test gives up after it
    *(UNKNOWN, "ERROR_VALIDATION_FAILED"),
    *("ERROR_INVALID_EXTERNAL_HANDLE", "ERROR_IMAGE_USAGE_NOT_SUPPORTED", "ERROR_NOT_PERMITTED"),
    *(f"ERROR_VIDEO_{what}_NOT_SUPPORTED" for what in ("PROFILE_OPERATION", "PROFILE_FORMAT", "PICTURE_LAYOUT")),
    "ERROR_VIDEO_PROFILE_CODEC_NOT_SUPPORTED",
)
"""Codes of the registry that are not planted: others are, for all, or they belong to what pumice does not use."""

# Calls that exclude each other on a queue, and so the wait for all work that the loss of a device needs.
_EXCLUSIVE: Final = ("vkQueueSubmit", "vkQueueWaitIdle", "vkDeviceWaitIdle", "vkDestroyDevice")
# Left NULL by a failed call; the other outputs are undefined then.
_NULLED: Final = ("vkAllocateCommandBuffers", "vkAllocateDescriptorSets", "vkCreateComputePipelines")
_GARBAGE: Final = 0xDEAD_BEEF_DEAD_BEE8
_UNDEFINED: Final = ("vkAllocateMemory", "vkMapMemory", "vkGetSemaphoreCounterValue", "vkCreate")
_RESULT: Final = ffi.typeof("VkResult")
_SLICE_NS: Final = 20_000_000


@dataclass(frozen=True)
class Fault:
    """What goes wrong: the ``nth`` call of a command (from 1) answers ``code``, or with ``lasting`` every one from it.

    With ``LOST`` the device is lost, so that waits end: with ``lasting``, every later call that may say so does.
    """

    command: str
    code: str
    nth: int
    lasting: bool = False


class Faults:
    """The calls of a process that has ``install``ed it.

    Attributes:
        counts: calls by command since ``plant``.
        fired: how many calls failed since then.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.fired = 0
        self._fault: Fault | None = None
        self._is_lost = False
        self._lost: set[CData] = set()
        self._lock = threading.RLock()
        self._wait_idle: dict[CData, functools.partial[int]] = {}  # by device

    def plant(self, fault: Fault | None) -> None:
        """Counts from the beginning, and fails what ``fault`` names; ``None`` fails nothing."""
        with self._lock:
            self.counts.clear()
            self.fired = 0
            self._fault, self._is_lost = fault, False

    def lift(self) -> None:
        """Fails no more calls, and counts on. Waits of a lost device still end."""
        with self._lock:
            self._fault, self._is_lost = None, False

    def call(self, functions: _Functions, name: str, function: Any, *arguments: Any) -> int:
        """Makes a call, or fails it."""
        with self._lock:
            if name in CODES:
                self.counts[name] += 1
            code = self._code(name, arguments)
            if code is not None:
                self.fired += 1
            if code == LOST:
                self._lose()
            if code not in (None, *_KEPT):
                _spoil(name, arguments)
                return RESULTS[code]
            if name in _EXCLUSIVE:
                if name == "vkDestroyDevice":
                    del self._wait_idle[arguments[0]]
                    self._lost.discard(arguments[0])
                return int(function(*arguments) or 0)
        if name == "vkWaitSemaphores":
            device, info, nanoseconds = arguments
            return self._wait(function, device, info, 0 if code == TIMEOUT else nanoseconds)
        result = int(function(*arguments))
        if name == "vkCreateDevice" and not result:
            self._note_device(functions, arguments[3][0])
        return result if code is None else RESULTS[code]

    def _code(self, name: str, arguments: tuple[Any, ...]) -> str | None:
        fault, count = self._fault, self.counts[name]
        if fault is None:
            return None
        if self._is_lost:
            return LOST if LOST in CODES.get(name, ()) else None
        if name != fault.command or count < fault.nth or (count > fault.nth and not fault.lasting):
            return None
        if fault.code == INCOMPLETE and arguments[-1] == NULL:
            return None  # it asks for the number
        self._is_lost = fault.code == LOST and fault.lasting
        return fault.code

    def _lose(self) -> None:
        self._lost |= self._wait_idle.keys()
        for wait_idle in self._wait_idle.values():
            wait_idle()  # what a lost device has begun counts as done, and may be destroyed

    def _wait(self, function: Any, device: CData, info: CData, nanoseconds: int) -> int:
        """Waits, and ends with the loss of the device as Vulkan has it, although the driver knows of none."""
        while True:
            step = min(nanoseconds, _SLICE_NS)
            result = int(function(device, info, step))
            if device in self._lost:
                return RESULTS[LOST]
            nanoseconds -= step
            if result != RESULTS[TIMEOUT] or nanoseconds <= 0:
                return result

    def _note_device(self, functions: _Functions, device: CData) -> None:
        assert isinstance(functions, InstanceFunctions)
        address = functions.vkGetDeviceProcAddr(device, b"vkDeviceWaitIdle")
        self._wait_idle[device] = functools.partial(ffi.cast("PFN_vkDeviceWaitIdle", address), device)


def _spoil(name: str, arguments: tuple[Any, ...]) -> None:
    """Leaves in a failed call's output what the specification allows."""
    if name.startswith(_UNDEFINED) or name in _NULLED:
        output = ffi.cast("uint64_t *", arguments[-1])
        output[0] = 0 if name in _NULLED else _GARBAGE


def install() -> Faults:
    """Puts itself between this process and Vulkan; before a driver is opened, and for good."""
    faults = Faults()
    resolve = _Functions.__getattr__

    def resolve_counted(self: _Functions, name: str) -> Any:
        function = resolve(self, name)
        if ffi.typeof(f"PFN_{name}").result is _RESULT or name == "vkDestroyDevice":
            known = name.replace("KHR", "EXT")
            assert known in CODES or name == "vkDestroyDevice", f"the codes of {name} are missing"
            function = functools.partial(faults.call, self, known, function)
            setattr(self, name, function)
        return function

    _Functions.__getattr__ = resolve_counted  # type: ignore[method-assign]
    return faults
