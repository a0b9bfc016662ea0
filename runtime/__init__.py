"""Where the HAL and the VM meet: devices, arrays and kernels as users see them."""

from .array import ArraySpec, DeviceArray, empty
from .device import Device, list_devices, open_device
from .kernel import Kernel

__all__ = ["ArraySpec", "Device", "DeviceArray", "Kernel", "empty", "list_devices", "open_device"]
