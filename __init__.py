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
    from .hal_vulkan import Fence, TimelineSemaphore, live_objects
    from .runtime import (
        ArraySpec,
        Device,
        DeviceArray,
        Instance,
        Kernel,
        ParameterIndex,
        Session,
        SessionFunction,
        SessionOptions,
        empty,
        list_devices,
        open_device,
    )
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
    from .vm import NativeModule, Wait, WaitSource, export

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
    "Fence",
    "IncompatibleError",
    "Instance",
    "InternalError",
    "InvalidArgumentError",
    "Kernel",
    "NativeModule",
    "NotFoundError",
    "OutOfRangeError",
    "ParameterIndex",
    "PermissionDeniedError",
    "PumiceError",
    "ResourceExhaustedError",
    "Session",
    "SessionFunction",
    "SessionOptions",
    "StatusCode",
    "TimelineSemaphore",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "Wait",
    "WaitSource",
    "empty",
    "export",
    "list_devices",
    "live_objects",
    "open_device",
]

_HOMES = {
    "Fence": ".hal_vulkan",
    "TimelineSemaphore": ".hal_vulkan",
    "live_objects": ".hal_vulkan",
    "ArraySpec": ".runtime.array",
    "Device": ".runtime.device",
    "DeviceArray": ".runtime.array",
    "Instance": ".runtime.instance",
    "Kernel": ".runtime.kernel",
    "NativeModule": ".vm.native_module",
    "ParameterIndex": ".runtime.parameter_index",
    "Session": ".runtime.session",
    "SessionFunction": ".runtime.session_function",
    "SessionOptions": ".runtime.session_options",
    "Wait": ".vm.wait_frame",
    "WaitSource": ".vm.wait_source",
    "empty": ".runtime.array",
    "export": ".vm.native_module",
    "list_devices": ".runtime.device",
    "open_device": ".runtime.device",
}


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
    return sorted({*__all__, "__version__", *(name for name in globals() if name.startswith("__"))})
