"""Invocations of functions: synchronous, in stages, on a loop with a callback, and as an object to wait for.

Imports: `bytecode`, `execution`, `translation`, `types`, `wait` and the ground files at the root.

Read: `marshalling`, `state`, `stages`, `background`, `invocation`, `asyncio_loop`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_exports
from .background import AsyncInvocation, async_invoke
from .invocation import Invocation
from .stages import (
    abort_invoke,
    begin_invoke,
    end_invoke,
    invoke,
    resume_invoke,
    wait_invoke,
    wait_invoke_async,
)
from .state import InvokeResult, InvokeState

if TYPE_CHECKING:
    from .asyncio_loop import AsyncioLoop

__all__ = [
    "AsyncInvocation",
    "AsyncioLoop",
    "Invocation",
    "InvokeResult",
    "InvokeState",
    "abort_invoke",
    "async_invoke",
    "begin_invoke",
    "end_invoke",
    "invoke",
    "resume_invoke",
    "wait_invoke",
    "wait_invoke_async",
]

# Programs that do not use it start sooner without asyncio.
__getattr__, __dir__ = lazy_exports(__name__, {".asyncio_loop": ("AsyncioLoop",)})
