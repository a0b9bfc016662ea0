"""Devices, arrays, kernels, instances and sessions as users see them: here the HAL and the VM meet.

Modules that need Vulkan are imported at their first use, so that the reference device works without it.

Read: arrays, images, kernels, parameters, recordings, device, opening, elementwise, values, modules, profiling,
sessions.
"""

from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports

if TYPE_CHECKING:
    from .arrays import ArraySpec, DeviceArray, empty
    from .device import Device
    from .elementwise import ElementwiseKernel, ReductionKernel, ScanKernel
    from .images import DeviceImage, Sampler, TexelArray
    from .kernels import Kernel
    from .opening import list_devices, open_device
    from .parameters import ParameterIndex
    from .recordings import Recording
    from .sessions import Instance, Session, SessionFunction, SessionOptions

__all__ = [
    "ArraySpec",
    "Device",
    "DeviceArray",
    "DeviceImage",
    "ElementwiseKernel",
    "Instance",
    "Kernel",
    "ParameterIndex",
    "Recording",
    "ReductionKernel",
    "Sampler",
    "ScanKernel",
    "Session",
    "SessionFunction",
    "SessionOptions",
    "TexelArray",
    "empty",
    "list_devices",
    "open_device",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".arrays": ("ArraySpec", "DeviceArray", "empty"),
            ".device": ("Device",),
            ".opening": ("list_devices", "open_device"),
            ".images": ("DeviceImage", "Sampler", "TexelArray"),
            ".parameters": ("ParameterIndex",),
            ".recordings": ("Recording",),
            ".sessions": ("Instance", "Session", "SessionFunction", "SessionOptions"),
            ".elementwise": ("ElementwiseKernel", "ReductionKernel", "ScanKernel"),
            ".kernels": ("Kernel",),
        },
    )
