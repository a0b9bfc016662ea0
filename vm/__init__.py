"""The virtual machine: modules, contexts, invocations. Knows no Vulkan; waits on anything that is a ``WaitSource``.

Imports: `formats` and the ground files at the root.

Read: `bytecode`, `assembly`, `wait`, `translation`, `types`, `native`, `execution`, `invocation`.
"""

from ..notification import Cancellable
from .bytecode import CallingConvention, ModuleArchive, ModuleDef, read_module, write_module
from .execution.bytecode_module import BytecodeModule
from .execution.context import Context, Function
from .execution.frame import Frame, NativeFrame
from .execution.loop import InlineLoop, Loop, ThreadLoop
from .execution.policy import CONCURRENT, FIFO, REFUSE, InvocationPolicy
from .invocation.asyncio_loop import AsyncioLoop
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
from .wait.futures import AsyncioSource, FutureSource, WhenReadySource, as_wait_source
from .wait.source import Waitable, WaitSource, WhenReady
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
