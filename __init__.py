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
    from .hal_vulkan import Fence, TimelineSemaphore
    from .hal_vulkan.vulkan import live_objects
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
    "AllOf": ".vm.wait.sources",
    "AnyOf": ".vm.wait.sources",
    "ArraySpec": ".runtime.arrays.array",
    "AsyncioSource": ".vm.wait.futures",
    "Delay": ".vm.wait.sources",
    "Device": ".runtime.device",
    "DeviceArray": ".runtime.arrays.array",
    "Event": ".vm.wait.sources",
    "Fence": ".hal_vulkan",
    "FileReady": ".vm.wait.sources",
    "FutureSource": ".vm.wait.futures",
    "Instance": ".runtime.sessions.instance",
    "Invocation": ".vm.invocation.invocation",
    "InvocationPolicy": ".vm.execution.policy",
    "Kernel": ".runtime.kernels.kernel",
    "NativeModule": ".vm.native.module",
    "ParameterIndex": ".runtime.parameters.index",
    "Session": ".runtime.sessions.session",
    "SessionFunction": ".runtime.sessions.session_function",
    "SessionOptions": ".runtime.sessions.session_options",
    "TimelineSemaphore": ".hal_vulkan",
    "Wait": ".vm.wait.frame",
    "WaitSource": ".vm.wait.source",
    "empty": ".runtime.arrays.array",
    "export": ".vm.native.module",
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
