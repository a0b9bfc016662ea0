"""Where the HAL and the VM meet: devices, arrays, kernels, instances and sessions as users see them.

Imports: hal_vulkan, vm, spirv, formats, shaders and the ground.
Read: arrays, kernels, device, values, parameters, modules, profiling, sessions.
"""

from .arrays import ArraySpec, DeviceArray, empty
from .device import Device, list_devices, open_device
from .kernels import Kernel
from .parameters import ParameterIndex
from .sessions import Instance, Session, SessionFunction, SessionOptions

__all__ = [
    "ArraySpec",
    "Device",
    "DeviceArray",
    "Instance",
    "Kernel",
    "ParameterIndex",
    "Session",
    "SessionFunction",
    "SessionOptions",
    "empty",
    "list_devices",
    "open_device",
]
