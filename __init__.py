"""pumice: a GPU-first compute runtime on Vulkan and SPIR-V.

>>> import numpy as np, pumice
>>> device = pumice.open_device()
>>> kernel = device.load_kernel("shaders/mul.comp")
>>> kernel(a, b, pumice.empty(a.shape, np.float32))
"""

# Looked up when first asked for: the command line answers --version and --help without loading NumPy or Vulkan.
import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

    __version__: str

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

_HOMES = {"live_objects": ".hal_vulkan"} | dict.fromkeys(
    ("ArraySpec", "Device", "DeviceArray", "Kernel", "empty", "list_devices", "open_device"), ".runtime"
)


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = importlib.import_module("importlib.metadata").version("pumice")
    elif name in __all__:
        value = getattr(importlib.import_module(_HOMES.get(name, ".status"), __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "__version__"])
