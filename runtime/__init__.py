"""Where the HAL and the VM meet: devices, arrays, kernels, instances and sessions as users see them."""

from .arrays.array import DeviceArray
from .arrays.spec import ArraySpec, empty
from .device import Device, list_devices, open_device
from .kernels.kernel import Kernel
from .parameters.index import ParameterIndex
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
