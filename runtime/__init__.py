"""Where the HAL and the VM meet: devices, arrays, kernels, instances and sessions as users see them.

Imports: hal, hal_vulkan, hal_reference, vm, spirv, formats, shaders and the ground. What needs Vulkan is imported when
first used, so that the reference device works without it.
Read: arrays, images, kernels, device, elementwise, values, parameters, modules, profiling, sessions.
"""

from typing import TYPE_CHECKING

from ..lazy import lazy_exports
from .arrays import ArraySpec, DeviceArray, empty
from .device import Device, list_devices, open_device
from .images import DeviceImage, Sampler, TexelArray
from .parameters import ParameterIndex
from .sessions import Instance, Session, SessionFunction, SessionOptions

if TYPE_CHECKING:
    from .elementwise import ElementwiseKernel, ReductionKernel, ScanKernel
    from .kernels import Kernel

__all__ = [
    "ArraySpec",
    "Device",
    "DeviceArray",
    "DeviceImage",
    "ElementwiseKernel",
    "Instance",
    "Kernel",
    "ParameterIndex",
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

__getattr__, __dir__ = lazy_exports(
    __name__,
    {".kernels": ("Kernel",), ".elementwise": ("ElementwiseKernel", "ReductionKernel", "ScanKernel")},
)
