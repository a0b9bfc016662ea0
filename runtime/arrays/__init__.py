"""Arrays on a device, with NumPy's shape and dtype, and their copies to and from NumPy.

Read: spec, verdict, array_device, uses, host_value, array, preview, staging, transfer.
"""

from .array import DeviceArray
from .spec import ArraySpec, empty

__all__ = ["ArraySpec", "DeviceArray", "empty"]
