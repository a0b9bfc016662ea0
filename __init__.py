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
    from .vm import (
        AllOf,
        AnyOf,
        AsyncioSource,
        Delay,
        Event,
        FileReady,
        FutureSource,
        Invocation,
        InvocationPolicy,
        NativeModule,
        Wait,
        WaitSource,
        export,
    )

    __version__: str

__all__ = [
    "AbortedError",
    "AllOf",
    "AlreadyExistsError",
    "AnyOf",
    "ArraySpec",
    "AsyncioSource",
    "CancelledError",
    "ClosedError",
    "DataLossError",
    "DeadlineExceededError",
    "Delay",
    "Device",
    "DeviceArray",
    "DeviceLostError",
    "Event",
    "FailedPreconditionError",
    "Fence",
    "FileReady",
    "FutureSource",
    "IncompatibleError",
    "Instance",
    "InternalError",
    "InvalidArgumentError",
    "Invocation",
    "InvocationPolicy",
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
    "AllOf": ".vm.wait_sources",
    "AnyOf": ".vm.wait_sources",
    "ArraySpec": ".runtime.array",
    "AsyncioSource": ".vm.future_sources",
    "Delay": ".vm.wait_sources",
    "Device": ".runtime.device",
    "DeviceArray": ".runtime.array",
    "Event": ".vm.wait_sources",
    "Fence": ".hal_vulkan",
    "FileReady": ".vm.wait_sources",
    "FutureSource": ".vm.future_sources",
    "Instance": ".runtime.instance",
    "Invocation": ".vm.stateful_invocation",
    "InvocationPolicy": ".vm.policy",
    "Kernel": ".runtime.kernel",
    "NativeModule": ".vm.native_module",
    "ParameterIndex": ".runtime.parameter_index",
    "Session": ".runtime.session",
    "SessionFunction": ".runtime.session_function",
    "SessionOptions": ".runtime.session_options",
    "TimelineSemaphore": ".hal_vulkan",
    "Wait": ".vm.wait_frame",
    "WaitSource": ".vm.wait_source",
    "empty": ".runtime.array",
    "export": ".vm.native_module",
    "list_devices": ".runtime.device",
    "live_objects": ".hal_vulkan",
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
