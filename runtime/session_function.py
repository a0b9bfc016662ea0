"""Functions of a session, ready to be called with arrays and numbers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..hal_vulkan import Fence
from ..status import ClosedError, DeadlineExceededError, InvalidArgumentError
from ..vm.function import Function
from ..vm.invocation import await_source, timeout_seconds
from .modules.hal_fence import HalFence
from .signature import Signature, make_signature

if TYPE_CHECKING:
    from .session import Session

__all__ = ["SessionFunction"]


class SessionFunction:
    """An exported function, ready to be called; ``Session.lookup`` makes it.

    Attributes:
        name: ``module.function``.
        signature: arguments and results.
    """

    __slots__ = ("_binders", "_count", "_function", "_session", "_single", "_unbinders", "name", "signature")

    def __init__(self, session: Session, function: Function) -> None:
        self._session = session
        self._function = function
        self.name = function.full_name
        self.signature: Signature = make_signature(
            self.name, function.convention, function.declaration, dict(function.attributes)
        )
        self._binders = tuple(
            one.binder(self.name, session.default_device, session._array_devices) for one in self.signature.arguments
        )
        self._unbinders = tuple(one.unbinder(session.wrap_view, session.wrap_known) for one in self.signature.results)
        self._count = len(self._binders)
        self._single = self._unbinders[0] if len(self._unbinders) == 1 else None

    def __call__(
        self,
        *arguments: object,
        timeout: float | None = None,
        wait: Fence | HalFence | None = None,
        signal: Fence | HalFence | None = None,
        **named: object,
    ) -> Any:
        """Calls the function and waits for its results.

        Args:
            arguments: for tensors arrays (NumPy's, DeviceArrays, others that offer ``__array__`` or DLPack) of the declared
                dtype, buffer views, or (nested) Python numbers; for scalars Python or NumPy numbers; fences and other
                references as they are. Arrays on a device of the session are passed without a copy, but for parts that
                begin where the device cannot bind them, which are copied on the device first.
            timeout: seconds for the whole call, waits and endless loops of the program included; ``None`` is for ever. A native
                function written in Python is not interrupted: the call ends when it returns.
            wait: for asynchronous functions: what the work waits for, such as
                ``pumice.Fence([(session.device.hal.create_semaphore(), 1)])``.
            signal: for asynchronous functions: signalled when the work is done. The call then returns as soon as it is
                submitted, and its results are ready when the fence is. If the call raises, the fence is as it was.
            named: arguments by the names that the program declares.

        Returns:
            ``None``, the result, or a tuple of several: DeviceArrays for tensors (a buffer view where NumPy has no dtype for
            the elements, or packs them otherwise), Python numbers for scalars (bools where declared ``i1``).

        Raises:
            InvalidArgumentError: arguments that are not what is declared; the message says which, what was declared, what came.
            DeadlineExceededError: the time passed first; everything of the call is released.
            FailedPreconditionError: another thread is using the session.
            ClosedError: the session or an array was closed.
            PumiceError: what the program failed with, located.
        """
        if self._session.is_closed:
            raise ClosedError(f"cannot call {self.name}: this session was closed")
        if named or len(arguments) != self._count:
            arguments = self.signature.place(arguments, named)
        values = tuple([bind(value) for bind, value in zip(self._binders, arguments)])  # noqa: B905  # counted above
        if self.signature.is_async:
            return self._call_async(values, timeout, wait, signal)
        if wait is not None or signal is not None:
            raise InvalidArgumentError(f"{self.name} is synchronous: it takes no wait and signal fences")
        result = self._session.context.invoke(self._function, values, timeout=timeout)
        if self._single is not None:
            return self._single(result)
        return self._results(result)

    def _results(self, result: Any) -> Any:
        if not self._unbinders:
            return None
        if self._single is not None:
            return self._single(result)
        return tuple([unbind(value) for unbind, value in zip(self._unbinders, result, strict=True)])

    def _call_async(
        self,
        values: tuple[Any, ...],
        timeout: float | None,
        wait: Fence | HalFence | None,
        signal: Fence | HalFence | None,
    ) -> Any:
        for name, fence in (("wait", wait), ("signal", signal)):
            if fence is not None and not isinstance(fence, (Fence, HalFence)):
                raise InvalidArgumentError(f"{self.name}: {name} is a fence or None, got {type(fence).__name__}")
        context = self._session.context
        if signal is not None:
            return self._results(context.invoke(self._function, (*values, wait, signal), timeout=timeout))
        deadline = None if timeout is None else time.monotonic() + timeout_seconds(timeout)
        done = HalFence(self._session.default_device().hal)
        result = context.invoke(self._function, (*values, wait, done), timeout=timeout)
        try:
            await_source(done, deadline)
        except DeadlineExceededError:
            if deadline is None or time.monotonic() < deadline:
                raise  # what the work failed with
            raise DeadlineExceededError(
                f"{self.name} was not done within its timeout of {timeout:g} s; its work goes on and its results are dropped"
            ) from None
        return self._results(result)

    def call_direct(self, values: Sequence[Any], *, timeout: float | None = None) -> Any:
        """Calls with the VM's own values, of which only the number is checked, and returns the VM's own values.

        Args:
            values: one a letter of ``signature.convention``: ints (signed), floats, buffer views and other references, the two
                fences of asynchronous functions included.
            timeout: seconds; ``None`` is for ever.

        Returns:
            ``None``, a value, or a tuple of several.

        Raises:
            InvalidArgumentError: another number of values.
            PumiceError: as a call; for values of other kinds whatever the program makes of them.
        """
        count = len(self._function.convention.arguments)
        try:
            direct = tuple(values)
        except TypeError:
            raise InvalidArgumentError(f"{self.name}: values is a sequence, got {type(values).__name__}") from None
        if len(direct) != count:
            raise InvalidArgumentError(
                f"{self.name} takes {count} value{'s' * (count != 1)} ({self._function.convention.text}), got {len(direct)}"
            )
        return self._session.context.invoke(self._function, direct, timeout=timeout)

    @property
    def function(self) -> Function:
        """The function in the session's context."""
        return self._function

    def __repr__(self) -> str:
        return f"<SessionFunction {self.signature}>"
