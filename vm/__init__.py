"""The virtual machine: modules, contexts, invocations. Knows no Vulkan; waits on anything that is a ``WaitSource``.

Imports: `formats` and the ground files at the root.

Read: `bytecode`, `assembly`, `wait`, `translation`, `types`, `native`, `execution`, `invocation`.
"""

from typing import TYPE_CHECKING

from ..lazy import lazy_exports
from ..notification import Cancellable
from .bytecode import CallingConvention, ModuleArchive, ModuleDef, read_module, write_module
from .execution import (
    CONCURRENT,
    FIFO,
    REFUSE,
    BytecodeModule,
    Context,
    Frame,
    Function,
    InlineLoop,
    InvocationPolicy,
    Loop,
    NativeFrame,
    ThreadLoop,
)
from .invocation import (
    AsyncInvocation,
    Invocation,
    InvokeResult,
    InvokeState,
    abort_invoke,
    async_invoke,
    begin_invoke,
    end_invoke,
    invoke,
    resume_invoke,
    wait_invoke,
    wait_invoke_async,
)
from .native import NativeModule, export
from .types import VmBuffer, VmList
from .wait import Wait, Waitable, WaitFrame, WaitSource, WhenReady

if TYPE_CHECKING:
    from .invocation import AsyncioLoop
    from .wait import (
        AllOf,
        AnyOf,
        AsyncioSource,
        Delay,
        Event,
        FileReady,
        FutureSource,
        WhenReadySource,
        as_wait_source,
    )

__all__ = [
    "CONCURRENT",
    "FIFO",
    "REFUSE",
    "AllOf",
    "AnyOf",
    "AsyncInvocation",
    "AsyncioLoop",
    "AsyncioSource",
    "BytecodeModule",
    "CallingConvention",
    "Cancellable",
    "Context",
    "Delay",
    "Event",
    "FileReady",
    "Frame",
    "Function",
    "FutureSource",
    "InlineLoop",
    "Invocation",
    "InvocationPolicy",
    "InvokeResult",
    "InvokeState",
    "Loop",
    "ModuleArchive",
    "ModuleDef",
    "NativeFrame",
    "NativeModule",
    "ThreadLoop",
    "VmBuffer",
    "VmList",
    "Wait",
    "WaitFrame",
    "WaitSource",
    "Waitable",
    "WhenReady",
    "WhenReadySource",
    "abort_invoke",
    "as_wait_source",
    "async_invoke",
    "begin_invoke",
    "end_invoke",
    "export",
    "invoke",
    "read_module",
    "resume_invoke",
    "wait_invoke",
    "wait_invoke_async",
    "write_module",
]

# Programs that use none of these start sooner without asyncio and selectors.
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        ".invocation": ("AsyncioLoop",),
        ".wait": (
            "AllOf",
            "AnyOf",
            "AsyncioSource",
            "Delay",
            "Event",
            "FileReady",
            "FutureSource",
            "WhenReadySource",
            "as_wait_source",
        ),
    },
)
