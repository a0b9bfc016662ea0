"""Functions of a session, callable with arrays and numbers."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from typing import Any

from ...hal.fence import Fence
from ...hal.programs.fence import HalFence
from ...status import ClosedError, InvalidArgumentError
from ...vm.execution.loop import Loop
from ...vm.execution.policy import InvocationPolicy
from ...vm.execution.run import Run, call
from ...vm.invocation.asyncio_loop import AsyncioLoop
from ...vm.invocation.awaited import AwaitedInvocation
from ...vm.invocation.invocation import Invocation
from ...vm.invocation.marshalling import outputs_of
from ...waits.wait_mode import WaitMode, checked_wait_mode, waits
from ..arrays.recorder import open_recorders
from ..profiling.call import now
from .call_stream import stream_calls
from .donation import Donate
from .function_binding import FunctionBinding
from .function_call import FunctionCall
from .outputs import Out


class SessionFunction(FunctionBinding):
    """An exported function of a session; ``Session.lookup`` makes it.

    Attributes:
        name: the name ``module.function``.
        signature: the arguments and results.
        function: the function in the session's context.
    """

    __slots__ = ()

    def __call__(
        self,
        *arguments: object,
        out: Out | None = None,
        donate: Donate | None = None,
        timeout: float | None = None,
        wait: Fence | HalFence | WaitMode | None = None,
        signal: Fence | HalFence | None = None,
        **named: object,
    ) -> Any:
        """Calls the function and waits for its results.

        Args:
            arguments: for tensors arrays (NumPy's, DeviceArrays, others with ``__array__`` or DLPack) of the declared
                dtype, buffer views, or (nested) Python numbers; for scalars Python or NumPy numbers; fences and other
                references unchanged. Arrays on a device of the session are passed without a copy; parts of them whose
                offset the device cannot bind are copied on the device.
            out: an array for each tensor among the results, a tuple of several, which the results are written to and
                which are returned. They are on a device of the session, writable, of the results' shapes and dtypes,
                and share no memory with each other or with arguments. docs/out-parameters.md lists the modules that
                write them in place; other results are copied on the device.
            donate: the numbers or names of arguments whose memory the program may take for its results. These arrays
                are closed if the call succeeds. Views and arrays that share memory with other arguments are refused;
                values that are not arrays on a device are ignored.
            timeout: the seconds for the whole call, waits and endless loops of the program included; ``None`` means no
                limit. Native functions written in Python are not interrupted; the deadline is checked when they return.
            wait: for asynchronous functions, the fence that the work waits for, such as
                ``pumice.Fence([(session.device.hal.create_semaphore(), 1)])``. For any function, the way the call
                waits: ``"adaptive"``, ``"block"`` or ``"spin"``, see ``open_device``; else as its devices were opened.
            signal: for asynchronous functions, the fence to signal when the work is done. The call then returns when
                the work is submitted, and its results are ready when the fence is. If the call raises, the fence is
                unchanged.
            named: the arguments by declared name.

        Returns:
            ``None``, the result, or a tuple of several: for tensors the arrays of ``out``, or else new DeviceArrays
            (buffer views where NumPy has no dtype for the elements, or packs them differently), Python numbers for
            scalars (bools where declared ``i1``).

        Raises:
            InvalidArgumentError: an argument differs from its declaration; the message has the argument, the declared
                type and the actual type.
            DeadlineExceededError: the time passed; everything of the call is released.
            FailedPreconditionError: another thread is using the session.
            ClosedError: the session or an array was closed.
            PermissionDeniedError: an array of ``out`` is in memory that may only be read.
            PumiceError: the program failed; the error has its location. What it had written to ``out`` stays there.
        """
        if wait is not None and isinstance(wait, str):
            with waits(wait):
                return self(*arguments, out=out, donate=donate, timeout=timeout, wait=None, signal=signal, **named)
        target = self._target
        context = target.context
        if context.gate.is_closed:
            raise ClosedError(f"cannot call {self.name}: this session was closed")
        if open_recorders:
            self._refuse_recording()
        plain = self._is_plain and out is None and donate is None and wait is None and signal is None
        if not plain or target.observer is not None:
            return FunctionCall(self, arguments, named, out, donate, wait, signal).call(timeout)
        # The usual call, with as few steps of Python as possible (benchmarks/call_latency.py).
        if named or len(arguments) != self._count:
            arguments = self.signature.place(arguments, named)
        values = tuple([bind(value) for bind, value in zip(self._binders, arguments)])  # noqa: B905  # counted above
        result = call(Run(context, self.function, values, None, timeout, True, "block"))
        return self._convert(outputs_of(self.function, result)) if self._single is None else self._single(result)

    def bind(self, *arguments: object) -> tuple[Any, ...]:
        """Converts positional arguments to the VM's values, for ``call_bound``; errors as for a call."""
        return self._bind_all(arguments, {})

    # -- calls with the VM's values ------------------------------------------------------------------

    def call_bound(
        self,
        values: Sequence[Any],
        *,
        timeout: float | None = None,
        wait: Fence | HalFence | WaitMode | None = None,
        signal: Fence | HalFence | None = None,
    ) -> Any:
        """Calls with the VM's values from ``bind``, waits like a call, and returns the VM's values.

        Args:
            values: the values, one for each argument of ``signature``, without fences; only their number is checked.
                Omitted storages of results are allocated, and returned if the function returns nothing.
            timeout, wait, signal: the same as for a call, whose errors it has.
        """
        if isinstance(wait, str):
            with waits(wait):
                return self.call_bound(values, timeout=timeout, signal=signal)
        inputs = self._counted(values, self._count, len(self.signature.inputs))
        return FunctionCall(self, inputs, {}, wait=wait, signal=signal, is_direct=True).call(timeout)

    def call_direct(self, values: Sequence[Any], *, timeout: float | None = None) -> Any:
        """Calls with the VM's values, of which only the number is checked, and returns the VM's values.

        Args:
            values: the values, one for each letter of ``signature.convention``: ints (signed), floats, buffer views and
                other references, including the two fences of asynchronous functions.
            timeout: the longest time in seconds; ``None`` means no limit.

        Raises:
            InvalidArgumentError: the number of values differs.
            PumiceError: the call failed; with values of wrong types, any error that the program raises.
        """
        direct = self._counted(values, len(self.function.convention.arguments))
        observer, context = self._target.observer, self._target.context
        if observer is None:
            return context.invoke(self.function, direct, timeout=timeout)
        with observer.new_call(self.function, is_async=False) as record:
            record.bind_end = now()
            try:
                return context.invoke(self.function, direct, timeout=timeout)
            finally:
                record.invoked()

    def _counted(self, values: Sequence[Any], *counts: int) -> tuple[Any, ...]:
        try:
            counted = tuple(values)
        except TypeError:
            raise InvalidArgumentError(f"{self.name}: values is a sequence, got {type(values).__name__}") from None
        if len(counted) not in counts:
            raise InvalidArgumentError(
                f"{self.name} takes {counts[0]} value{'s' * (counts[0] != 1)} ({self.function.convention.text}), "
                f"got {len(counted)}"
            )
        return counted

    # -- asynchronous calls --------------------------------------------------------------------------

    def submit(
        self,
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
        """Starts a call and returns immediately.

        Args:
            arguments, named: the arguments, as for a call. Host arrays are read when the call starts on its loop: do
                not change them before the call is done.
            out, donate: the results' arrays and the donated arguments, as for a call. Donated arrays are closed when it
                is done; do not use them until then.
            timeout: the seconds for the whole call, including the wait for its ticket; ``None`` means no limit.
            wait, signal: the fences of asynchronous functions, as for a call: with ``signal`` it is done when the work
                is submitted. Or the way the loop waits for devices, as for a call: ``"spin"`` keeps its thread busy
                between its other callbacks.
            policy: the order relative to the session's other calls; ``None`` queues it, or lets it overlap in sessions
                with ``SessionOptions(concurrent=True)``.
            loop: the loop that runs it; ``None`` means the session's thread, shared by all its calls: while one call
                computes in the virtual machine, the others wait.

        Returns:
            The call: ``result()``, ``await``, ``cancel()``, ``add_done_callback()``. Wrong arguments become the call's
                error.

        Raises:
            InvalidArgumentError: an argument is no policy, loop, timeout or fence.
            ClosedError: the session was closed.
        """
        if self._target.context.is_closed:
            raise ClosedError(f"cannot call {self.name}: this session was closed")
        mode: WaitMode | None = None
        if isinstance(wait, str):
            mode, wait = checked_wait_mode(wait), None
        return FunctionCall(self, arguments, named, out, donate, wait, signal).submit(timeout, mode, policy, loop)

    async def call_async(
        self,
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
        """Calls the function from a coroutine.

        The call does not run in the event loop and never blocks its thread, unless ``loop`` is an ``AsyncioLoop`` of
        that event loop: then its steps run there, which is cheapest for programs that leave the work to the device.

        Cancelling the task (as ``asyncio.timeout`` does) cancels the call and releases its resources. The arguments are
        those of ``submit``, results and errors those of a call; pumice's CancelledError means that the invocation was
        cancelled elsewhere.
        """
        if (
            loop is not None
            and self._is_plain
            and out is None
            and donate is None
            and signal is None
            and (wait is None or isinstance(wait, str))
            and isinstance(loop, AsyncioLoop)
            and loop.runs_here()
            and self._target.observer is None
        ):
            # The usual call in the loop, with as few steps of Python as possible (benchmarks/async_calls.py).
            context = self._target.context
            if context.is_closed:
                raise ClosedError(f"cannot call {self.name}: this session was closed")
            if open_recorders:
                self._refuse_recording()
            mode = None if wait is None else checked_wait_mode(wait)
            if named or len(arguments) != self._count:
                arguments = self.signature.place(arguments, named)
            values = tuple([bind(value) for bind, value in zip(self._binders, arguments)])  # noqa: B905  # counted
            result = await AwaitedInvocation(loop, context, self.function, values, policy, timeout, mode)
            return self._convert(outputs_of(self.function, result)) if self._single is None else self._single(result)
        return await self.submit(
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

    def stream(
        self,
        calls: Iterable[Any] | AsyncIterable[Any],
        *,
        out: Iterable[Out] | None = None,
        donate: Donate | None = None,
        depth: int = 8,
        ordered: bool = True,
        timeout: float | None = None,
        policy: InvocationPolicy | None = None,
        loop: Loop | None = None,
    ) -> AsyncIterator[Any]:
        """Calls the function for many arguments, several at a time: ``async for y in f.stream(xs): …``.

        Args:
            calls: for each call a tuple of arguments, or a single argument other than a tuple. They are read only as
                far as ``depth`` allows.
            out: the value of ``out`` for each call, taken when the call begins: a list with an entry per call, or an
                iterator such as ``itertools.cycle(arrays)``. An array may be reused when the iteration has passed its
                result, so ``depth`` arrays suffice if results are ordered.
            donate: the donated arguments, as for a call.
            depth: the most calls in flight, including results not yet taken.
            ordered: whether results come in the order of the calls, or of their completion.
            timeout: the seconds for each call.
            policy, loop: the same as for ``submit``.

        Yields:
            The result of each call. A call's error is raised here and cancels the others, as does leaving the
            iteration: use ``contextlib.aclosing`` to leave it early.

        Raises:
            InvalidArgumentError: the depth is below 1, or ``calls`` is not iterable.
        """

        def submit(call: Any, out: Out | None) -> Invocation:
            arguments = call if isinstance(call, tuple) else (call,)
            return self.submit(*arguments, out=out, donate=donate, timeout=timeout, policy=policy, loop=loop)

        return stream_calls(submit, calls, out, depth, ordered)

    def __repr__(self) -> str:
        return f"<SessionFunction {self.signature}>"
