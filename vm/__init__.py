"""The virtual machine: modules, contexts, invocations. It knows no Vulkan, and waits for any ``WaitSource``.

Read: bytecode, assembly, types, native, translation, machine_code, execution, invocation.
"""

from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports

if TYPE_CHECKING:
    from ..waits.futures import AsyncioSource, FutureSource, WhenReadySource, as_wait_source
    from ..waits.host_sources import AllOf, AnyOf, Delay, Event, FileReady
    from ..waits.notification import Cancellable
    from ..waits.source import Waitable, WaitSource, WhenReady
    from ..waits.wait_frame import Wait, WaitFrame
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

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "..waits.notification": ("Cancellable",),
            ".bytecode": ("CallingConvention", "ModuleArchive", "ModuleDef", "read_module", "write_module"),
            ".execution.bytecode_module": ("BytecodeModule",),
            ".execution.context": ("Context", "Function"),
            ".execution.frame": ("Frame", "NativeFrame"),
            ".execution.loop": ("InlineLoop", "Loop", "ThreadLoop"),
            ".execution.policy": ("CONCURRENT", "FIFO", "REFUSE", "InvocationPolicy"),
            ".invocation.asyncio_loop": ("AsyncioLoop",),
            ".invocation.background": ("AsyncInvocation", "async_invoke"),
            ".invocation.invocation": ("Invocation",),
            ".invocation.stages": (
                "abort_invoke",
                "begin_invoke",
                "end_invoke",
                "invoke",
                "resume_invoke",
                "wait_invoke",
                "wait_invoke_async",
            ),
            ".invocation.state": ("InvokeResult", "InvokeState"),
            ".native.module": ("NativeModule", "export"),
            ".types.buffer": ("VmBuffer",),
            ".types.list": ("VmList",),
            "..waits.wait_frame": ("Wait", "WaitFrame"),
            "..waits.futures": ("AsyncioSource", "FutureSource", "WhenReadySource", "as_wait_source"),
            "..waits.source": ("Waitable", "WaitSource", "WhenReady"),
            "..waits.host_sources": ("AllOf", "AnyOf", "Delay", "Event", "FileReady"),
        },
    )
