"""Waits: what an invocation can wait for, and how a thread or a loop waits for it.

Imports: the ground files at the root.

Read: `source`, `frame`, `latch`, `sources`, `futures`, `armed`, `blocking`, `deferred`, `reactor`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_exports
from ...notification import Cancellable
from .frame import Wait, WaitFrame
from .source import Waitable, WaitSource, WhenReady

if TYPE_CHECKING:
    from .futures import AsyncioSource, FutureSource, WhenReadySource, as_wait_source
    from .sources import AllOf, AnyOf, Delay, Event, FileReady

__all__ = [
    "AllOf",
    "AnyOf",
    "AsyncioSource",
    "Cancellable",
    "Delay",
    "Event",
    "FileReady",
    "FutureSource",
    "Wait",
    "WaitFrame",
    "WaitSource",
    "Waitable",
    "WhenReady",
    "WhenReadySource",
    "as_wait_source",
]

# Programs that use none of these start sooner without selectors.
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        ".futures": ("AsyncioSource", "FutureSource", "WhenReadySource", "as_wait_source"),
        ".sources": ("AllOf", "AnyOf", "Delay", "Event", "FileReady"),
    },
)
