"""Functions of a session, callable with arrays and numbers."""

from __future__ import annotations

import functools
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ...hal.fence import Fence
from ...hal.programs.fence import HalFence
from ...status import ClosedError, DeadlineExceededError, InvalidArgumentError
from ...vm.execution.context import Function
from ...vm.execution.deadlines import await_source, deadline_after
from ...vm.execution.loop import Loop
from ...vm.execution.policy import InvocationPolicy
from ...vm.invocation.invocation import Invocation
from ..profiling.call import CallRecord, now
from .binding import argument_binder, result_unbinder
from .call_stream import stream_calls
from .session_devices import CallTarget
from .signature import make_signature

if TYPE_CHECKING:
    from ..profiling.profile import Profile


class SessionFunction:
    """An exported function of a session; ``Session.lookup`` makes it.

    Attributes:
        name: ``module.function``.
        signature: arguments and results.
    """

    __slots__ = ("_binders", "_count", "_function", "_single", "_target", "_unbinders", "name", "signature")

    def __init__(self, target: CallTarget, function: Function) -> None:
        self._target = target
        self._function = function
        self.name = function.full_name
        self.signature = make_signature(self.name, function.convention, function.declaration, function.attributes)
        devices = target.devices
        arguments, results = self.signature.arguments, self.signature.results
        self._binders = tuple(argument_binder(one, self.name, devices.first, devices.known) for one in arguments)
        self._unbinders = tuple(result_unbinder(one, devices.wrap, devices.wrap_dense) for one in results)
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
            arguments: for tensors arrays (NumPy's, DeviceArrays, others with ``__array__`` or DLPack) of the declared
                dtype, buffer views, or (nested) Python numbers; for scalars Python or NumPy numbers; fences and other
                references unchanged. Arrays on a device of the session are passed without a copy; parts of them whose
                offset the device cannot bind are copied on the device.
            timeout: seconds for the whole call, waits and endless loops of the program included; ``None`` is no limit.
                Native functions written in Python are not interrupted; the deadline is checked when they return.
            wait: for asynchronous functions: what the work waits for, such as
                ``pumice.Fence([(session.device.hal.create_semaphore(), 1)])``.
            signal: for asynchronous functions: signalled when the work is done. The call then returns when the work is
                submitted, and its results are ready when the fence is. If the call raises, the fence is unchanged.
            named: arguments by declared name.

        Returns:
            ``None``, the result, or a tuple of several: DeviceArrays for tensors (buffer views where NumPy has no dtype
            for the elements, or packs them differently), Python numbers for scalars (bools where declared ``i1``).

        Raises:
            InvalidArgumentError: an argument is not what is declared; the message says which, what was declared and
                what came.
            DeadlineExceededError: the timeout; everything of the call is released.
            FailedPreconditionError: another thread is using the session.
            ClosedError: the session or an array was closed.
            PumiceError: the program's failure, with its location.
        """
        target = self._target
        context = target.context
        if context.is_closed:
            raise ClosedError(f"cannot call {self.name}: this session was closed")
        if target.observer is not None:
            values_of = functools.partial(self._bind_all, arguments, named)
            return self._observed(target.observer, values_of, timeout, wait, signal, self._results)
        if named or len(arguments) != self._count:
            arguments = self.signature.place(arguments, named)
        values = tuple([bind(value) for bind, value in zip(self._binders, arguments)])  # noqa: B905  # counted above
        if self.signature.is_async:
            return self._results(self._invoke_async(values, timeout, wait, signal))
        if wait is not None or signal is not None:
            self._check_fences(wait, signal)
        result = context.invoke(self._function, values, timeout=timeout)
        if self._single is not None:
            return self._single(result)
        return self._results(result)

    def bind(self, *arguments: object) -> tuple[Any, ...]:
        """Converts positional arguments to the VM's values, for ``call_bound``; errors as for a call."""
        return self._bind_all(arguments, {})

    def _bind_all(self, arguments: tuple[object, ...], named: Mapping[str, object]) -> tuple[Any, ...]:
        if named or len(arguments) != self._count:
            arguments = self.signature.place(arguments, named)
        return tuple([bind(value) for bind, value in zip(self._binders, arguments, strict=True)])

    def call_bound(
        self,
        values: Sequence[Any],
        *,
        timeout: float | None = None,
        wait: Fence | HalFence | None = None,
        signal: Fence | HalFence | None = None,
    ) -> Any:
        """Calls with the VM's values that ``bind`` made, waits like a call, and returns the VM's values.

        Args:
            values: one for each argument of ``signature``, without fences; only their number is checked.
            timeout, wait, signal: as for a call, whose errors it has.
        """
        if not self.signature.is_async:
            self._check_fences(wait, signal)
            return self.call_direct(values, timeout=timeout)
        bound = self._counted(values, self._count)
        observer = self._target.observer
        if observer is not None:
            return self._observed(observer, lambda: bound, timeout, wait, signal, lambda value: value)
        return self._invoke_async(bound, timeout, wait, signal)

    def call_direct(self, values: Sequence[Any], *, timeout: float | None = None) -> Any:
        """Calls with the VM's values, unchecked but for their number, and returns the VM's values.

        Args:
            values: one for each letter of ``signature.convention``: ints (signed), floats, buffer views and other
                references, the two fences of asynchronous functions included.
            timeout: seconds; ``None`` is no limit.

        Raises:
            InvalidArgumentError: another number of values.
            PumiceError: as a call; with values of wrong types whatever the program makes of them.
        """
        direct = self._counted(values, len(self._function.convention.arguments))
        observer = self._target.observer
        if observer is not None:
            return self._observed_sync(observer, lambda: direct, timeout, lambda value: value)
        return self._target.context.invoke(self._function, direct, timeout=timeout)

    def _counted(self, values: Sequence[Any], count: int) -> tuple[Any, ...]:
        try:
            counted = tuple(values)
        except TypeError:
            raise InvalidArgumentError(f"{self.name}: values is a sequence, got {type(values).__name__}") from None
        if len(counted) != count:
            raise InvalidArgumentError(
                f"{self.name} takes {count} value{'s' * (count != 1)} ({self._function.convention.text}), "
                f"got {len(counted)}"
            )
        return counted

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

    def _invoke_async(
        self,
        values: tuple[Any, ...],
        timeout: float | None,
        wait: Fence | HalFence | None,
        signal: Fence | HalFence | None,
        record: CallRecord | None = None,
    ) -> Any:
        """Invokes an asynchronous function with its two fences; waits for its work unless ``signal`` is given."""
        self._check_fences(wait, signal)
        deadline = deadline_after(timeout)
        done = HalFence(self._target.devices.first().hal) if signal is None else signal
        try:
            result = self._target.context.invoke(self._function, (*values, wait, done), timeout=timeout)
        finally:
            if record is not None:
                record.invoked()
        if signal is not None:
            return result
        try:
            await_source(done, deadline)
        except DeadlineExceededError:
            if deadline is None or time.monotonic() < deadline:
                raise  # what the work failed with
            raise DeadlineExceededError(
                f"{self.name} was not done within its timeout of {timeout:g} s; its work goes on and its results are "
                "dropped"
            ) from None
        finally:
            if record is not None:
                record.settled = now()
        return result

    def _observed(
        self,
        observer: Profile,
        bind: Callable[[], tuple[Any, ...]],
        timeout: float | None,
        wait: Fence | HalFence | None,
        signal: Fence | HalFence | None,
        convert: Callable[[Any], Any],
    ) -> Any:
        """A call whose times are recorded, from the binding of arguments to the conversion of results."""
        if not self.signature.is_async:
            self._check_fences(wait, signal)
            return self._observed_sync(observer, bind, timeout, convert)
        record = observer.new_call(self._function, is_async=False)
        try:
            values = bind()
            record.bind_end = now()
            result = convert(self._invoke_async(values, timeout, wait, signal, record))
        except BaseException as error:
            record.ended(error)
            raise
        record.ended(None)
        return result

    def _observed_sync(
        self,
        observer: Profile,
        bind: Callable[[], tuple[Any, ...]],
        timeout: float | None,
        convert: Callable[[Any], Any],
    ) -> Any:
        phase, bound, invoked, error_name = observer.phase, 0, 0, ""
        begin = now()
        try:
            values = bind()
            bound = now()
            try:
                result = self._target.context.invoke(self._function, values, timeout=timeout)
            finally:
                invoked = now()
            return convert(result)
        except BaseException as error:
            error_name = type(error).__name__
            raise
        finally:
            observer.call_ended((self._function, phase, get_ident(), begin, bound, invoked, now(), error_name))

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
        """Starts a call and returns at once.

        Args:
            arguments, named: as for a call. Host arrays are read when the call starts on its loop: do not change them
                before it is done.
            timeout: seconds for the whole call, the wait for its ticket included; ``None`` is no limit.
            wait, signal: for asynchronous functions, as for a call: with ``signal`` it is done when the work is
                submitted.
            policy: its order among the session's other calls; ``None`` queues it, or lets it overlap in sessions with
                ``SessionOptions(concurrent=True)``.
            loop: where it runs; ``None`` is the session's thread, shared by all its calls: while one computes in the
                virtual machine, the others wait.

        Returns:
            the call: ``result()``, ``await``, ``cancel()``, ``add_done_callback()``. Wrong arguments are its error.

        Raises:
            InvalidArgumentError: not a policy, loop, timeout or fence.
            ClosedError: the session was closed.
        """
        target = self._target
        if target.context.is_closed:
            raise ClosedError(f"cannot call {self.name}: this session was closed")
        self._check_fences(wait, signal)
        is_waited_for = self.signature.is_async and signal is None
        done = signal
        record = None if target.observer is None else target.observer.new_call(self._function, is_async=True)

        def inputs() -> tuple[Any, ...]:
            nonlocal done
            if record is not None:
                record.bind_begin = now()
            try:
                values = self._bind_all(arguments, named)
                if not self.signature.is_async:
                    return values
                if is_waited_for:
                    done = HalFence(target.devices.first().hal)
                return (*values, wait, done)
            finally:
                if record is not None:
                    record.bind_end = now()

        def convert(outputs: tuple[Any, ...]) -> Any:
            if record is not None:
                record.convert_begin = now()
            if not outputs:
                return None
            return self._results(outputs[0] if len(outputs) == 1 else outputs)

        return Invocation()._start(
            target.context,
            self._function,
            inputs,
            policy,
            loop,
            timeout,
            settle=(lambda _: done) if is_waited_for else None,
            convert=convert,
            observer=record,
        )

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
        """Calls the function from a coroutine. Nothing of it runs in the event loop, whose thread is never blocked.

        Cancelling the task (as ``asyncio.timeout`` does) cancels the call and releases what it holds. The arguments are
        those of ``submit``, results and errors those of a call; pumice's CancelledError means that the invocation was
        cancelled elsewhere.
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
        """Calls the function for many arguments, several at a time: ``async for y in f.stream(xs): …``.

        Args:
            calls: for each call a tuple of arguments, or one argument that is not a tuple. Read only as far as
                ``depth`` allows.
            depth: the most calls in flight, results not yet taken included.
            ordered: whether results come in the order of the calls, or of their completion.
            timeout: seconds for each call.
            policy, loop: as for ``submit``.

        Yields:
            the result of each call. A call's error is raised here and cancels the others, as does leaving the
            iteration: use ``contextlib.aclosing`` to leave it early.

        Raises:
            InvalidArgumentError: a depth below 1, or ``calls`` is not iterable.
        """
        return stream_calls(
            lambda call: self.submit(
                *(call if isinstance(call, tuple) else (call,)), timeout=timeout, policy=policy, loop=loop
            ),
            calls,
            depth,
            ordered,
        )

    @property
    def function(self) -> Function:
        """The function in the session's context."""
        return self._function

    def __repr__(self) -> str:
        return f"<SessionFunction {self.signature}>"
