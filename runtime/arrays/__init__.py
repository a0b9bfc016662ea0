"""Arrays on a device, with NumPy's shape and dtype, and their copies to and from NumPy.

Read: host_value, spec, uses, recorder, verdict, array_device, preview, array, staging, transfer.
"""

from .array import DeviceArray
from .spec import ArraySpec, empty

__all__ = ["ArraySpec", "DeviceArray", "empty"]
