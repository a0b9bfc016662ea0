"""Where the HAL and the VM meet: devices, arrays, kernels, instances and sessions as users see them."""

from .array import ArraySpec, DeviceArray, empty
from .device import Device, list_devices, open_device
from .instance import Instance
from .kernel import Kernel
from .parameter_index import ParameterIndex
from .session import Session
from .session_function import SessionFunction
from .session_options import SessionOptions

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
