"""Functions of a session, callable with arrays and numbers."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from ...hal.fence import Fence
from ...hal.programs.fence import HalFence
from ...status import ClosedError, InvalidArgumentError, NotFoundError
from ...vm.execution.context import Function
from ...vm.execution.loop import Loop
from ...vm.execution.policy import InvocationPolicy
from ...vm.invocation.asyncio_loop import AsyncioLoop
from ...vm.invocation.awaited import AwaitedInvocation
from ...vm.invocation.invocation import Invocation
from ...waits.wait_mode import WaitMode, checked_wait_mode, waits
from ..profiling.call import now
from .binding import argument_binder, result_unbinder
from .bound_function import BoundFunction
from .call_stream import stream_calls
from .donation import Donate
from .output_call import OutputCall
from .outputs import Out, Outputs
from .session_devices import CallTarget
from .signature import Result


class SessionFunction(BoundFunction):
    """An exported function of a session; ``Session.lookup`` makes it.

    Attributes:
        name: ``module.function``.
        signature: arguments and results.
    """

    __slots__ = (
        "_binders",
        "_count",
        "_is_plain",
        "_outputs",
        "_single",
        "_takes_storages",
        "_unbinders",
        "_writer",
    )

    def __init__(self, target: CallTarget, function: Function, called: Function | None = None) -> None:
        super().__init__(target, function, called)
        devices = target.devices
        arguments, results = self.signature.arguments, self.signature.results
        self._binders = tuple(argument_binder(one, self.name, devices.first, devices.known) for one in arguments)
        self._unbinders = tuple(result_unbinder(one, devices.wrap, devices.wrap_dense) for one in results)
        self._count = len(self._binders)
        self._single = self._unbinders[0] if len(self._unbinders) == 1 else None
        self._takes_storages = len(self.signature.inputs) < len(arguments)
        self._is_plain = not (self._takes_storages or self.signature.is_async)
        self._outputs: Outputs | None = None
        self._writer: SessionFunction | None = None

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
                and share no memory with each other or with arguments. docs/out-parameters.md says which modules write
                them in place; other results are copied on the device.
            donate: numbers or names of arguments whose memory the program may take for its results. These arrays are
                closed if the call succeeds. Views and arrays that share memory with other arguments are refused; values
                that are not arrays on a device are ignored.
            timeout: seconds for the whole call, waits and endless loops of the program included; ``None`` is no limit.
                Native functions written in Python are not interrupted; the deadline is checked when they return.
            wait: for asynchronous functions: what the work waits for, such as
                ``pumice.Fence([(session.device.hal.create_semaphore(), 1)])``. For any function, how the call waits:
                ``"adaptive"``, ``"block"`` or ``"spin"``, see ``open_device``; else as its devices were opened.
            signal: for asynchronous functions: signalled when the work is done. The call then returns when the work is
                submitted, and its results are ready when the fence is. If the call raises, the fence is unchanged.
            named: arguments by declared name.

        Returns:
            ``None``, the result, or a tuple of several: for tensors the arrays of ``out``, or else new DeviceArrays
            (buffer views where NumPy has no dtype for the elements, or packs them differently), Python numbers for
            scalars (bools where declared ``i1``).

        Raises:
            InvalidArgumentError: an argument is not what is declared; the message says which, what was declared and
                what came.
            DeadlineExceededError: the timeout; everything of the call is released.
            FailedPreconditionError: another thread is using the session.
            ClosedError: the session or an array was closed.
            PermissionDeniedError: an array of ``out`` is in memory that may only be read.
            PumiceError: the program's failure, with its location. What it had written to ``out`` stays there.
        """
        if wait is not None and isinstance(wait, str):
            with waits(wait):
                return self(*arguments, out=out, donate=donate, timeout=timeout, wait=None, signal=signal, **named)
        target = self._target
        context = target.context
        if context.is_closed:
            raise ClosedError(f"cannot call {self.name}: this session was closed")
        storages = self._takes_storages and self._omits_storages(arguments, named)
        if storages or out is not None or donate is not None:
            self._check_fences(wait, signal)
            writer = self._writer_for(out)
            call = OutputCall(writer.outputs, arguments, named, out, donate, wait, signal)
            try:
                return writer._perform(call.bind, call.finish, timeout, wait, call.done)
            finally:
                call.end()
        if target.observer is not None:
            return self._perform(
                functools.partial(self._bind_all, arguments, named), self._results, timeout, wait, signal
            )
        if named or len(arguments) != self._count:
            arguments = self.signature.place(arguments, named)
        values = tuple([bind(value) for bind, value in zip(self._binders, arguments)])  # noqa: B905  # counted above
        if self.signature.is_async:
            return self._results(self._invoke_async(values, timeout, wait, signal))
        if wait is not None or signal is not None:
            self._check_fences(wait, signal)
        result = context.invoke(self._function, values, timeout=timeout, blocks=True)
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
        wait: Fence | HalFence | WaitMode | None = None,
        signal: Fence | HalFence | None = None,
    ) -> Any:
        """Calls with the VM's values that ``bind`` made, waits like a call, and returns the VM's values.

        Args:
            values: one for each argument of ``signature``, without fences; only their number is checked. Without the
                storages of results these are allocated, and returned if the function returns nothing.
            timeout, wait, signal: as for a call, whose errors it has.
        """
        if isinstance(wait, str):
            with waits(wait):
                return self.call_bound(values, timeout=timeout, signal=signal)
        if self._takes_storages and isinstance(values, Sequence) and len(values) == len(self.outputs.inputs):
            call = OutputCall(self.outputs, tuple(values), {}, None, None, wait, signal)
            return self._perform(call.bind, call.results, timeout, wait, signal)
        if not self.signature.is_async:
            self._check_fences(wait, signal)
            return self.call_direct(values, timeout=timeout)
        bound = self._counted(values, self._count)
        return self._perform(lambda: bound, lambda value: value, timeout, wait, signal)

    # -- results in the caller's arrays --------------------------------------------------------------

    @property
    def outputs(self) -> Outputs:
        """Where its results go."""
        if self._outputs is None:
            self._outputs = self._make_outputs(self.signature.results)
        return self._outputs

    def _make_outputs(self, results: Sequence[Result]) -> Outputs:
        """``results`` are those that callers see: numbers among them may be in storages."""
        signature, devices = self.signature, self._target.devices
        unbinders: Sequence[Callable[[Any], Any]] = self._unbinders
        numbers: set[int] = set()
        if not signature.results:
            unbinders = [result_unbinder(one, devices.wrap, devices.wrap_dense) for one in signature.storages]
            numbers = {number for number, one in enumerate(results) if one.letter != "r"}
        return Outputs(signature, self._binders, unbinders, numbers, self._target)

    def _writer_for(self, out: object) -> SessionFunction:
        """The function that takes storages for these results: this one, or ``NAME$async`` beside it."""
        if self._takes_storages:
            return self
        if self._writer is None:
            self._writer = self._find_writer() or self
        writer = self._writer
        # What the caller leaves out has to be allocated before the call.
        return writer if out is not None or writer.outputs.is_allocatable else self

    def _find_writer(self) -> SessionFunction | None:
        function = self._function
        if self.signature.is_async or not self._unbinders:
            return None
        try:
            found = SessionFunction(self._target, function.context.lookup(f"{function.full_name}$async"), function)
        except (NotFoundError, InvalidArgumentError):  # there is none, or one that only programs can call
            return None
        if not found.signature.writes(self.signature):
            return None
        found._outputs = found._make_outputs(self.signature.results)
        return found

    def _omits_storages(self, arguments: tuple[object, ...], named: Mapping[str, object]) -> bool:
        """Whether it takes storages, and none is among the arguments."""
        if not self._takes_storages or len(arguments) > len(self.outputs.inputs):
            return False
        return not any(one.storage is not None and one.name in named for one in self.signature.arguments)

    def _results(self, result: Any) -> Any:
        if not self._unbinders:
            return None
        if self._single is not None:
            return self._single(result)
        return tuple([unbind(value) for unbind, value in zip(self._unbinders, result, strict=True)])

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
        """Starts a call and returns at once.

        Args:
            arguments, named: as for a call. Host arrays are read when the call starts on its loop: do not change them
                before it is done.
            out, donate: as for a call. Donated arrays are closed when it is done; do not use them until then.
            timeout: seconds for the whole call, the wait for its ticket included; ``None`` is no limit.
            wait, signal: for asynchronous functions, as for a call: with ``signal`` it is done when the work is
                submitted. Or how the loop waits for devices, as for a call: ``"spin"`` keeps its thread busy between
                its other callbacks.
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
        mode: WaitMode | None = None
        if isinstance(wait, str):
            mode, wait = checked_wait_mode(wait), None
        observer = target.observer
        if out is None and donate is None and observer is None and self._is_plain:
            # The usual call, with as few steps of Python as possible (benchmarks/async_calls.py).
            if wait is not None or signal is not None:
                self._check_fences(wait, signal)
            values = functools.partial(self._bind_all, arguments, named)
            return Invocation()._start(
                target.context, self._function, values, policy, loop, timeout, convert=self._convert, wait=mode
            )
        self._check_fences(wait, signal)
        writer, call = self, None
        into = out is not None or donate is not None or self._omits_storages(arguments, named)
        if into:
            writer = self._writer_for(out)
        is_async = writer.signature.is_async
        is_waited_for = is_async and signal is None
        done = signal
        record = None if observer is None else observer.new_call(self._profiled, is_async=True)

        def inputs() -> tuple[Any, ...]:
            nonlocal call, done
            if record is not None:
                record.bind_begin = now()
            try:
                if into:
                    call = OutputCall(writer.outputs, arguments, named, out, donate, wait, signal)
                    values, done = call.bind(), call.done
                else:
                    values = self._bind_all(arguments, named)
                if not is_async:
                    return values
                if is_waited_for:
                    done = HalFence(target.devices.first().hal)
                return (*values, wait, done)
            finally:
                if record is not None:
                    record.bind_end = now()

        def end() -> None:
            if call is not None:
                call.end()

        def convert(outputs: tuple[Any, ...]) -> Any:
            if record is not None:
                record.convert_begin = now()
            if call is not None:
                return call.finish(outputs[0] if len(outputs) == 1 else outputs)
            return self._convert(outputs)

        return Invocation()._start(
            target.context,
            writer._function,
            inputs,
            policy,
            loop,
            timeout,
            settle=(lambda: done) if is_waited_for else None,
            convert=convert,
            observer=record,
            on_end=end if into else None,
            wait=mode,
        )

    def _convert(self, outputs: tuple[Any, ...]) -> Any:
        """The caller's results of an invocation's."""
        if self._single is not None:
            return self._single(outputs[0])
        return self._results(outputs) if outputs else None

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

        Nothing of it runs in the event loop, whose thread is never blocked, unless ``loop`` is an ``AsyncioLoop`` of
        it: then its steps run there, which costs least for programs that leave the work to the device.

        Cancelling the task (as ``asyncio.timeout`` does) cancels the call and releases what it holds. The arguments are
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
            mode = None if wait is None else checked_wait_mode(wait)
            if named or len(arguments) != self._count:
                arguments = self.signature.place(arguments, named)
            values = tuple([bind(value) for bind, value in zip(self._binders, arguments)])  # noqa: B905  # counted
            result = await AwaitedInvocation(loop, context, self._function, values, policy, timeout, mode)
            return self._results(result) if self._single is None else self._single(result)
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
            calls: for each call a tuple of arguments, or one argument that is not a tuple. Read only as far as
                ``depth`` allows.
            out: for each call what ``out`` is for one, taken when the call begins: a list with one for each call, or
                an iterator such as ``itertools.cycle(arrays)``. An array may come again when the iteration has gone on
                from the result in it, so ``depth`` arrays suffice where results are ordered.
            donate: as for a call.
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

        def submit(call: Any, out: Out | None) -> Invocation:
            arguments = call if isinstance(call, tuple) else (call,)
            return self.submit(*arguments, out=out, donate=donate, timeout=timeout, policy=policy, loop=loop)

        return stream_calls(submit, calls, out, depth, ordered)

    def __repr__(self) -> str:
        return f"<SessionFunction {self.signature}>"
