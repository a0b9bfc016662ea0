"""Contexts: modules linked together, and the stack, frames, deadlines and loops that run their functions.

Imports: `bytecode`, `native`, `translation`, `types`, `wait` and the ground files at the root.

Read: `frame`, `namespace`, `translation`, `bytecode_module`, `hooks`, `module_state`, `linker`; `stack`, `watchdog`,
`deadlines`; `policy`, `admission`, `gate`, `context`, `loop`.
"""

from __future__ import annotations

from .bytecode_module import BytecodeModule
from .context import Context, Function
from .frame import Frame, NativeFrame
from .loop import InlineLoop, Loop, ThreadLoop
from .policy import CONCURRENT, FIFO, REFUSE, InvocationPolicy

__all__ = [
    "CONCURRENT",
    "FIFO",
    "REFUSE",
    "BytecodeModule",
    "Context",
    "Frame",
    "Function",
    "InlineLoop",
    "InvocationPolicy",
    "Loop",
    "NativeFrame",
    "ThreadLoop",
]
