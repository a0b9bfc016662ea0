"""pumice: a GPU-first compute runtime on Vulkan and SPIR-V.

>>> import numpy as np, pumice
>>> device = pumice.open_device()
>>> kernel = device.load_kernel("shaders/mul.comp")
>>> kernel(a, b, pumice.empty(a.shape, np.float32))
"""

from importlib import metadata as _metadata

from .hal_vulkan import live_objects
from .runtime import ArraySpec, Device, DeviceArray, Kernel, empty, list_devices, open_device
from .status import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    ClosedError,
    DataLossError,
    DeadlineExceededError,
    DeviceLostError,
    FailedPreconditionError,
    IncompatibleError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    PumiceError,
    ResourceExhaustedError,
    StatusCode,
    UnavailableError,
    UnimplementedError,
    UnknownError,
)

__version__ = _metadata.version("pumice")

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "ArraySpec",
    "CancelledError",
    "ClosedError",
    "DataLossError",
    "DeadlineExceededError",
    "Device",
    "DeviceArray",
    "DeviceLostError",
    "FailedPreconditionError",
    "IncompatibleError",
    "InternalError",
    "InvalidArgumentError",
    "Kernel",
    "NotFoundError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "PumiceError",
    "ResourceExhaustedError",
    "StatusCode",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "empty",
    "list_devices",
    "live_objects",
    "open_device",
]
