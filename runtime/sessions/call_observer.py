"""What watches a session's calls. A session knows its observer by this protocol only; ``Profile`` is one."""

from __future__ import annotations

from typing import Protocol

from ...vm.execution.context import Function
from ..profiling.call import CallRecord, SynchronousCall


class CallObserver(Protocol):
    """Is told of every call from the moment at which the session has it, from the threads that call.

    Attributes:
        phase: a number that calls note when they begin.
    """

    @property
    def phase(self) -> int: ...

    def modules_changed(self) -> None:
        """The session has, or is about to have, another module."""

    def call_ended(self, call: SynchronousCall) -> None:
        """A call ended that went without records of its steps."""

    def new_call(self, function: Function, *, is_async: bool) -> CallRecord:
        """A call begins whose steps are to be recorded: of an asynchronous function, or in steps (``is_async``)."""

    def stop(self) -> None:
        """The session is about to close."""
