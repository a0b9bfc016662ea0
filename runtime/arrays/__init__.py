"""Arrays on a device, with NumPy's shape and dtype, and how NumPy arrays get there and back.

Imports: hal and the ground.
Read: spec, array_device, host_value, pending, array, staging, transfer.
"""

from .array import DeviceArray
from .spec import ArraySpec, empty

__all__ = ["ArraySpec", "DeviceArray", "empty"]
