"""The virtual machine: modules, contexts, invocations. Knows no Vulkan; waits on anything that is a ``WaitSource``."""

import importlib
from typing import TYPE_CHECKING

from .archive import ModuleArchive
from .async_invocation import AsyncInvocation, async_invoke
from .buffer import VmBuffer
from .bytecode_module import BytecodeModule
from .calling_convention import CallingConvention
from .context import Context
from .frame import Frame, NativeFrame
from .function import Function
from .invocation import (
    abort_invoke,
    begin_invoke,
    end_invoke,
    invoke,
    resume_invoke,
    wait_invoke,
    wait_invoke_async,
)
from .invoke_state import InvokeResult, InvokeState
from .list import VmList
from .loop import InlineLoop, Loop, ThreadLoop
from .module_def import ModuleDef
from .module_reader import read_module
from .module_writer import write_module
from .native_module import NativeModule, export
from .policy import CONCURRENT, FIFO, REFUSE, InvocationPolicy
from .stateful_invocation import Invocation
from .wait_frame import Wait, WaitFrame
from .wait_source import Cancellable, Waitable, WaitSource, WhenReady

if TYPE_CHECKING:
    from .asyncio_loop import AsyncioLoop
    from .future_sources import AsyncioSource, FutureSource, WhenReadySource, as_wait_source
    from .wait_sources import AllOf, AnyOf, Delay, Event, FileReady

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
    "AllOf": "wait_sources",
    "AnyOf": "wait_sources",
    "AsyncioLoop": "asyncio_loop",
    "AsyncioSource": "future_sources",
    "Delay": "wait_sources",
    "Event": "wait_sources",
    "FileReady": "wait_sources",
    "FutureSource": "future_sources",
    "WhenReadySource": "future_sources",
    "as_wait_source": "future_sources",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value
