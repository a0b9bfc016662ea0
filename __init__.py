"""pumice: a GPU-first compute runtime on Vulkan and SPIR-V.

>>> import numpy as np, pumice
>>> device = pumice.open_device()
>>> kernel = device.load_kernel("shaders/mul.comp")
>>> kernel(a, b, pumice.empty(a.shape, np.float32))
"""

from typing import TYPE_CHECKING

from .base.lazy import lazy_exports
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

if TYPE_CHECKING:
    from .compiler.compile import compile
    from .hal.fence import Fence
    from .hal_vulkan import PrintedLine, TimelineSemaphore, live_objects
    from .jit.decorator import jit
    from .runtime import (
        ArraySpec,
        Device,
        DeviceArray,
        DeviceImage,
        ElementwiseKernel,
        Instance,
        Kernel,
        ParameterIndex,
        Recording,
        ReductionKernel,
        Sampler,
        ScanKernel,
        Session,
        SessionFunction,
        SessionOptions,
        TexelArray,
        empty,
        list_devices,
        open_device,
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
    "DeviceImage",
    "DeviceLostError",
    "ElementwiseKernel",
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
    "PrintedLine",
    "PumiceError",
    "Recording",
    "ReductionKernel",
    "ResourceExhaustedError",
    "Sampler",
    "ScanKernel",
    "Session",
    "SessionFunction",
    "SessionOptions",
    "StatusCode",
    "TexelArray",
    "TimelineSemaphore",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "Wait",
    "WaitSource",
    "compile",
    "empty",
    "export",
    "jit",
    "list_devices",
    "live_objects",
    "open_device",
]

# Imported when first used: --version and --help load neither NumPy nor Vulkan.
_look_up, _names = lazy_exports(
    __name__,
    {
        ".compiler.compile": ("compile",),
        ".hal.fence": ("Fence",),
        ".hal_vulkan": ("PrintedLine", "TimelineSemaphore", "live_objects"),
        ".jit": ("jit",),
        ".runtime": (
            "ArraySpec",
            "Device",
            "DeviceArray",
            "DeviceImage",
            "ElementwiseKernel",
            "Instance",
            "Kernel",
            "ParameterIndex",
            "Recording",
            "ReductionKernel",
            "Sampler",
            "ScanKernel",
            "Session",
            "SessionFunction",
            "SessionOptions",
            "TexelArray",
            "empty",
            "list_devices",
            "open_device",
        ),
        ".vm": (
            "AllOf",
            "AnyOf",
            "AsyncioSource",
            "Delay",
            "Event",
            "FileReady",
            "FutureSource",
            "Invocation",
            "InvocationPolicy",
            "NativeModule",
            "Wait",
            "WaitSource",
            "export",
        ),
    },
)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("pumice")
    return _look_up(name)


def __dir__() -> list[str]:
    return sorted({*_names(), "__version__"})
