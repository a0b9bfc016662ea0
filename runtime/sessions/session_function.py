"""Functions of a session, ready to be called with arrays and numbers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ...hal_vulkan import Fence
from ...status import ClosedError, DeadlineExceededError, InvalidArgumentError
from ...vm.execution.context import Function
from ...vm.execution.deadlines import await_source, timeout_seconds
from ...vm.execution.loop import Loop
from ...vm.execution.policy import InvocationPolicy
from ...vm.invocation.invocation import Invocation
from ..modules.hal.fence import HalFence
from ..profiling.call import CallRecord, now
from .binding import argument_binder, result_unbinder
from .call_observer import CallObserver
from .call_stream import stream_calls
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
            argument_binder(one, self.name, session.default_device, session._array_devices)
            for one in self.signature.arguments
        )
        self._unbinders = tuple(
            result_unbinder(one, session.wrap_view, session.wrap_known) for one in self.signature.results
        )
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
        session = self._session
        context = session._context
        if context.is_closed:
            raise ClosedError(f"cannot call {self.name}: this session was closed")
        if session._observer is not None:
            return self._observed_call(session._observer, arguments, named, timeout, wait, signal)
        if named or len(arguments) != self._count:
            arguments = self.signature.place(arguments, named)
        values = tuple([bind(value) for bind, value in zip(self._binders, arguments)])  # noqa: B905  # counted above
        if self.signature.is_async:
            return self._call_async(values, timeout, wait, signal)
        if wait is not None or signal is not None:
            self._check_fences(wait, signal)
        result = context.invoke(self._function, values, timeout=timeout)
        if self._single is not None:
            return self._single(result)
        return self._results(result)

    def _observed_call(
        self,
        observer: CallObserver,
        arguments: tuple[object, ...],
        named: Mapping[str, object],
        timeout: float | None,
        wait: Fence | HalFence | None,
        signal: Fence | HalFence | None,
    ) -> Any:
        """``__call__`` with its times noted."""
        function = self._function
        if self.signature.is_async:
            record = observer.new_call(function, is_async=False)
            try:
                values = self.bind(*(self.signature.place(arguments, named) if named else arguments))
                record.bind_end = now()
                result = self._call_async(values, timeout, wait, signal, record)
            except BaseException as error:
                record.ended(error)
                raise
            record.ended(None)
            return result
        phase, bound, invoked, error_name = observer.phase, 0, 0, ""
        begin = now()
        try:
            if named or len(arguments) != self._count:
                arguments = self.signature.place(arguments, named)
            values = tuple([bind(value) for bind, value in zip(self._binders, arguments)])  # noqa: B905  # counted above
            self._check_fences(wait, signal)
            bound = now()
            try:
                result = self._session._context.invoke(function, values, timeout=timeout)
            finally:
                invoked = now()
            return self._results(result)
        except BaseException as error:
            error_name = type(error).__name__
            raise
        finally:
            observer.call_ended((function, phase, get_ident(), begin, bound, invoked, now(), error_name))

    def _results(self, result: Any) -> Any:
        if not self._unbinders:
            return None
        if self._single is not None:
            return self._single(result)
        return tuple([unbind(value) for unbind, value in zip(self._unbinders, result, strict=True)])

    def _check_fences(self, wait: object, signal: object) -> None:
        for name, fence in (("wait", wait), ("signal", signal)):
            if fence is None:
                continue
            if not self.signature.is_async:
                raise InvalidArgumentError(f"{self.name} is synchronous: it takes no wait and signal fences")
            if not isinstance(fence, (Fence, HalFence)):
                raise InvalidArgumentError(f"{self.name}: {name} is a fence or None, got {type(fence).__name__}")

    def _call_async(
        self,
        values: tuple[Any, ...],
        timeout: float | None,
        wait: Fence | HalFence | None,
        signal: Fence | HalFence | None,
        record: CallRecord | None = None,
    ) -> Any:
        self._check_fences(wait, signal)
        context = self._session.context
        deadline = None if timeout is None else time.monotonic() + timeout_seconds(timeout)
        done = HalFence(self._session.default_device().hal) if signal is None else signal
        try:
            result = context.invoke(self._function, (*values, wait, done), timeout=timeout)
        finally:
            if record is not None:
                record.invoked()
        if signal is not None:
            return self._results(result)
        try:
            await_source(done, deadline)
        except DeadlineExceededError:
            if deadline is None or time.monotonic() < deadline:
                raise  # what the work failed with
            raise DeadlineExceededError(
                f"{self.name} was not done within its timeout of {timeout:g} s; its work goes on and its results are dropped"
            ) from None
        finally:
            if record is not None:
                record.settled = now()
        return self._results(result)

    # -- asynchronous calls --------------------------------------------------------------------------

    def submit(
        self,
        *arguments: object,
        timeout: float | None = None,
        wait: Fence | HalFence | None = None,
        signal: Fence | HalFence | None = None,
        policy: InvocationPolicy | None = None,
        loop: Loop | None = None,
        **named: object,
    ) -> Invocation:
        """Begins a call and returns at once.

        Args:
            arguments, named: as for a call. Arrays of the host are read when the call begins, on its loop: do not change them before it
                is done.
            timeout: seconds for the whole call, the wait for a turn included; ``None`` is for ever.
            wait, signal: for asynchronous functions, as for a call: with ``signal`` it is done when the work is submitted.
            policy: how it is ordered among the session's other calls; ``None`` waits for its turn, or overlaps where the session was made
                with ``SessionOptions(concurrent=True)``.
            loop: where it runs; ``None`` is a thread of the session's, which all its calls share: while one computes in the virtual machine,
                the others do not go on.

        Returns:
            the call: ``result()``, ``await``, ``cancel()``, ``add_done_callback()``. What is wrong with arguments is its error.

        Raises:
            InvalidArgumentError: a policy, loop, timeout or fence that is none.
            ClosedError: the session was closed.
        """
        if self._session.is_closed:
            raise ClosedError(f"cannot call {self.name}: this session was closed")
        is_async = self.signature.is_async
        self._check_fences(wait, signal)
        made: list[HalFence] = []
        observer = self._session._observer
        record = None if observer is None else observer.new_call(self._function, is_async=True)

        def inputs() -> tuple[Any, ...]:
            if record is not None:
                record.bind_begin = now()
            try:
                return bound()
            finally:
                if record is not None:
                    record.bind_end = now()

        def bound() -> tuple[Any, ...]:
            placed = self.signature.place(arguments, named) if named or len(arguments) != self._count else arguments
            values = tuple([bind(value) for bind, value in zip(self._binders, placed, strict=True)])
            if not is_async:
                return values
            if signal is None:
                made.append(HalFence(self._session.default_device().hal))
            return (*values, wait, signal if signal is not None else made[0])

        def converted(outputs: tuple[Any, ...]) -> Any:
            if record is not None:
                record.convert_begin = now()
            return self._converted(outputs)

        return Invocation()._start(
            self._session.context,
            self._function,
            inputs if record is not None else bound,
            policy,
            loop,
            timeout,
            settle=(lambda _: made[0]) if is_async and signal is None else None,
            convert=self._converted if record is None else converted,
            observer=record,
        )

    def _converted(self, outputs: tuple[Any, ...]) -> Any:
        if not outputs:
            return None
        return self._results(outputs[0] if len(outputs) == 1 else outputs)

    async def call_async(
        self,
        *arguments: object,
        timeout: float | None = None,
        wait: Fence | HalFence | None = None,
        signal: Fence | HalFence | None = None,
        policy: InvocationPolicy | None = None,
        loop: Loop | None = None,
        **named: object,
    ) -> Any:
        """Calls the function from a coroutine: nothing of it runs in the event loop, and its thread is never blocked.

        If the task is cancelled (``asyncio.timeout`` does that), so is the call, and what it holds is released. Arguments are those
        of ``submit``.

        Returns:
            as a call.

        Raises:
            as a call; CancelledError of pumice only if somebody else cancelled the invocation.
        """
        return await self.submit(
            *arguments, timeout=timeout, wait=wait, signal=signal, policy=policy, loop=loop, **named
        )

    def stream(
        self,
        calls: Iterable[Any] | AsyncIterable[Any],
        *,
        depth: int = 8,
        ordered: bool = True,
        timeout: float | None = None,
        policy: InvocationPolicy | None = None,
        loop: Loop | None = None,
    ) -> AsyncIterator[Any]:
        """Calls the function for each of many arguments, some at a time: ``async for y in f.stream(xs): …``.

        Args:
            calls: for each call a tuple of arguments, or one argument that is no tuple. It is read only as far as ``depth`` allows.
            depth: most calls in flight, results that nobody took included.
            ordered: whether results come in the order of the calls, or of their ends.
            timeout: seconds for each call.
            policy, loop: as for ``submit``.

        Yields:
            the result of each call. An error of a call is raised there, and the others are cancelled, as they are when the iteration
            is left: use ``contextlib.aclosing`` to leave it early.

        Raises:
            InvalidArgumentError: a depth below 1, or ``calls`` that cannot be iterated.
        """
        return stream_calls(
            lambda call: self.submit(
                *(call if isinstance(call, tuple) else (call,)), timeout=timeout, policy=policy, loop=loop
            ),
            calls,
            depth,
            ordered,
        )

    def bind(self, *arguments: object) -> tuple[Any, ...]:
        """Positional arguments of a call as the VM's own values, for ``call_direct``; fences are left to the caller.

        Raises:
            InvalidArgumentError: as a call.
        """
        if len(arguments) != self._count:
            arguments = self.signature.place(arguments, {})
        return tuple([bind(value) for bind, value in zip(self._binders, arguments, strict=True)])

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
        observer = self._session._observer
        if observer is None:
            return self._session.context.invoke(self._function, direct, timeout=timeout)
        phase, error_name = observer.phase, ""
        begin = now()
        try:
            return self._session.context.invoke(self._function, direct, timeout=timeout)
        except BaseException as error:
            error_name = type(error).__name__
            raise
        finally:
            end = now()
            observer.call_ended((self._function, phase, get_ident(), begin, begin, end, end, error_name))

    @property
    def function(self) -> Function:
        """The function in the session's context."""
        return self._function

    def __repr__(self) -> str:
        return f"<SessionFunction {self.signature}>"
