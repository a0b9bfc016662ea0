"""The virtual machine: modules, contexts, invocations. Knows no Vulkan; waits on anything that is a ``WaitSource``."""

from typing import TYPE_CHECKING

from ..lazy import lazy_exports
from ..notification import Cancellable
from .bytecode.archive import ModuleArchive
from .bytecode.calling_convention import CallingConvention
from .bytecode.module_def import ModuleDef
from .bytecode.reader import read_module
from .bytecode.writer import write_module
from .execution.bytecode_module import BytecodeModule
from .execution.context import Context, Function
from .execution.frame import Frame, NativeFrame
from .execution.loop import InlineLoop, Loop, ThreadLoop
from .execution.policy import CONCURRENT, FIFO, REFUSE, InvocationPolicy
from .invocation.background import AsyncInvocation, async_invoke
from .invocation.invocation import Invocation
from .invocation.stages import (
    abort_invoke,
    begin_invoke,
    end_invoke,
    invoke,
    resume_invoke,
    wait_invoke,
    wait_invoke_async,
)
from .invocation.state import InvokeResult, InvokeState
from .native.module import NativeModule, export
from .types.buffer import VmBuffer
from .types.list import VmList
from .wait.frame import Wait, WaitFrame
from .wait.source import Waitable, WaitSource, WhenReady

if TYPE_CHECKING:
    from .invocation.asyncio_loop import AsyncioLoop
    from .wait.futures import AsyncioSource, FutureSource, WhenReadySource, as_wait_source
    from .wait.sources import AllOf, AnyOf, Delay, Event, FileReady

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
        ".invocation.asyncio_loop": ("AsyncioLoop",),
        ".wait.futures": ("AsyncioSource", "FutureSource", "WhenReadySource", "as_wait_source"),
        ".wait.sources": ("AllOf", "AnyOf", "Delay", "Event", "FileReady"),
    },
)
