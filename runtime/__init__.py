"""Where the HAL and the VM meet: devices, arrays, kernels, instances and sessions as users see them."""

from .arrays.array import DeviceArray
from .arrays.spec import ArraySpec, empty
from .device import Device, list_devices, open_device
from .kernels.kernel import Kernel
from .parameters.index import ParameterIndex
from .sessions.instance import Instance
from .sessions.session import Session
from .sessions.session_function import SessionFunction
from .sessions.session_options import SessionOptions

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
