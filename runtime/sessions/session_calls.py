"""The functions of a session by name: look-ups and calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...hal.fence import Fence
from ...hal.programs.fence import HalFence
from ...status import InvalidArgumentError
from ...vm.execution.loop import Loop
from ...vm.execution.policy import InvocationPolicy
from ...vm.invocation.invocation import Invocation
from ...waits.wait_mode import WaitMode
from .donation import Donate
from .outputs import Out
from .session_devices import CallTarget
from .session_function import SessionFunction


class SessionCalls:
    """The calls of a session by function name: the base of ``Session``."""

    def __init__(self, target: CallTarget) -> None:
        self._target = target
        self._context = target.context
        self._functions: dict[str, SessionFunction] = {}

    def lookup(self, full_name: str) -> SessionFunction:
        """Returns the exported function ``module.function``, valid until the session is closed.

        Raises:
            NotFoundError: there is no such module or function; the message suggests similar names.
            InvalidArgumentError: the function has a variable number of arguments, and only programs can call it.
        """
        try:
            function = self._functions.get(full_name)
        except TypeError:
            function = None  # not hashable: the context rejects it
        if function is None:
            function = SessionFunction(self._target, self._context.lookup(full_name))
            return self._functions.setdefault(full_name, function)
        return function

    def call(
        self,
        function: str | SessionFunction,
        /,
        *arguments: object,
        out: Out | None = None,
        donate: Donate | None = None,
        timeout: float | None = None,
        wait: Fence | HalFence | WaitMode | None = None,
        signal: Fence | HalFence | None = None,
        **named: object,
    ) -> Any:
        """Calls a function, by full name or as returned by ``lookup``; see ``SessionFunction.__call__``."""
        return self._function(function)(
            *arguments, out=out, donate=donate, timeout=timeout, wait=wait, signal=signal, **named
        )

    def call_direct(
        self, function: str | SessionFunction, values: Sequence[Any], *, timeout: float | None = None
    ) -> Any:
        """Calls with the VM's own values, unchecked; see ``SessionFunction.call_direct``."""
        return self._function(function).call_direct(values, timeout=timeout)

    def submit(
        self,
        function: str | SessionFunction,
        /,
        *arguments: object,
        out: Out | None = None,
        donate: Donate | None = None,
        timeout: float | None = None,
        wait: Fence | HalFence | WaitMode | None = None,
        signal: Fence | HalFence | None = None,
        policy: InvocationPolicy | None = None,
        loop: Loop | None = None,
        **named: object,
    ) -> Invocation:
        """Begins a call and returns immediately; see ``SessionFunction.submit``."""
        return self._function(function).submit(
            *arguments,
            out=out,
            donate=donate,
            timeout=timeout,
            wait=wait,
            signal=signal,
            policy=policy,
            loop=loop,
            **named,
        )

    async def call_async(
        self,
        function: str | SessionFunction,
        /,
        *arguments: object,
        out: Out | None = None,
        donate: Donate | None = None,
        timeout: float | None = None,
        wait: Fence | HalFence | WaitMode | None = None,
        signal: Fence | HalFence | None = None,
        policy: InvocationPolicy | None = None,
        loop: Loop | None = None,
        **named: object,
    ) -> Any:
        """Calls a function from a coroutine; see ``SessionFunction.call_async``."""
        return await self._function(function).call_async(
            *arguments,
            out=out,
            donate=donate,
            timeout=timeout,
            wait=wait,
            signal=signal,
            policy=policy,
            loop=loop,
            **named,
        )

    def _function(self, function: str | SessionFunction) -> SessionFunction:
        if not isinstance(function, SessionFunction):
            return self.lookup(function)
        if function._target is not self._target:
            raise InvalidArgumentError(f"{function.name} was looked up in another session; look it up in this one")
        return function
