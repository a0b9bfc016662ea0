"""The virtual machine: modules, contexts, invocations. Knows no Vulkan; waits on anything that is a ``WaitSource``."""

import importlib
from typing import TYPE_CHECKING

from .bytecode.archive import ModuleArchive
from .bytecode.calling_convention import CallingConvention
from .bytecode.module_def import ModuleDef
from .bytecode.reader import read_module
from .bytecode.writer import write_module
from .execution.bytecode_module import BytecodeModule
from .execution.context import Context
from .execution.frame import Frame, NativeFrame
from .execution.function import Function
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
from .wait.source import Cancellable, Waitable, WaitSource, WhenReady

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

# Looked up when first asked for: programs that use none of it start sooner without asyncio and selectors.
_LAZY = {
    "AllOf": "wait.sources",
    "AnyOf": "wait.sources",
    "AsyncioLoop": "invocation.asyncio_loop",
    "AsyncioSource": "wait.futures",
    "Delay": "wait.sources",
    "Event": "wait.sources",
    "FileReady": "wait.sources",
    "FutureSource": "wait.futures",
    "WhenReadySource": "wait.futures",
    "as_wait_source": "wait.futures",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value
