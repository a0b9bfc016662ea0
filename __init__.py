"""pumice: a GPU-first compute runtime on Vulkan and SPIR-V.

>>> import numpy as np, pumice
>>> device = pumice.open_device()
>>> kernel = device.load_kernel("shaders/mul.comp")
>>> kernel(a, b, pumice.empty(a.shape, np.float32))
"""

# Looked up when first asked for: the command line answers --version and --help without loading NumPy or Vulkan.
from typing import TYPE_CHECKING

from .lazy import lazy_exports

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

_look_up, _names = lazy_exports(
    __name__,
    {
        ".hal_vulkan": (
            "Fence",
            "TimelineSemaphore",
            "live_objects",
        ),
        ".runtime.arrays.array": ("DeviceArray",),
        ".runtime.arrays.spec": (
            "ArraySpec",
            "empty",
        ),
        ".runtime.device": (
            "Device",
            "list_devices",
            "open_device",
        ),
        ".runtime.kernels.kernel": ("Kernel",),
        ".runtime.parameters.index": ("ParameterIndex",),
        ".runtime.sessions.instance": ("Instance",),
        ".runtime.sessions.session": ("Session",),
        ".runtime.sessions.session_function": ("SessionFunction",),
        ".runtime.sessions.session_options": ("SessionOptions",),
        ".status": (
            "AbortedError",
            "AlreadyExistsError",
            "CancelledError",
            "ClosedError",
            "DataLossError",
            "DeadlineExceededError",
            "DeviceLostError",
            "FailedPreconditionError",
            "IncompatibleError",
            "InternalError",
            "InvalidArgumentError",
            "NotFoundError",
            "OutOfRangeError",
            "PermissionDeniedError",
            "PumiceError",
            "ResourceExhaustedError",
            "StatusCode",
            "UnavailableError",
            "UnimplementedError",
            "UnknownError",
        ),
        ".vm.execution.policy": ("InvocationPolicy",),
        ".vm.invocation.invocation": ("Invocation",),
        ".vm.native.module": (
            "NativeModule",
            "export",
        ),
        ".vm.wait.frame": ("Wait",),
        ".vm.wait.futures": (
            "AsyncioSource",
            "FutureSource",
        ),
        ".vm.wait.source": ("WaitSource",),
        ".vm.wait.sources": (
            "AllOf",
            "AnyOf",
            "Delay",
            "Event",
            "FileReady",
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
