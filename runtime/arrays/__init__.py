"""Arrays on a device, with NumPy's shape and dtype, and how NumPy arrays get there and back.

Read: spec, verdict, array_device, uses, host_value, array, staging, transfer.
"""

from .array import DeviceArray
from .spec import ArraySpec, empty

__all__ = ["ArraySpec", "DeviceArray", "empty"]
