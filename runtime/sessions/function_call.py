"""One call of a session's function, from the caller's arguments to the caller's results.

Calling sequence: construction, which checks the fences → ``values`` → the program → ``settle`` → ``results`` → ``end``.
``call`` does this in the calling thread, ``submit`` in an ``Invocation``.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any

from ...hal.fence import Fence
from ...hal.programs.fence import HalFence
from ...status import DeadlineExceededError
from ...vm.execution.deadlines import await_source, deadline_after
from ...vm.execution.loop import Loop
from ...vm.execution.policy import InvocationPolicy
from ...vm.invocation.invocation import Invocation
from ...vm.invocation.marshalling import outputs_of
from ...waits.wait_mode import WaitMode
from ..arrays.recorder import open_recorders
from ..profiling.call import CallRecord, now
from .donation import Donate
from .function_binding import FunctionBinding
from .output_call import OutputCall
from .outputs import Out

AnyFence = Fence | HalFence


class FunctionCall:
    """One call.

    Args:
        function: the called function; with ``out`` or ``donate``, or without storages, a sibling that writes these
            results may run instead.
        arguments, named: the caller's arguments.
        out, donate: the results' arrays and the donated arguments, as for a call.
        wait, signal: the fences of an asynchronous function.
        is_direct: whether arguments and results are the VM's values.
    """

    __slots__ = (
        "_arguments",
        "_donate",
        "_done",
        "_function",
        "_is_direct",
        "_named",
        "_out",
        "_output",
        "_record",
        "_signal",
        "_wait",
        "_writer",
        "_writes",
    )

    def __init__(
        self,
        function: FunctionBinding,
        arguments: tuple[object, ...],
        named: Mapping[str, object],
        out: Out | None = None,
        donate: Donate | None = None,
        wait: AnyFence | None = None,
        signal: AnyFence | None = None,
        *,
        is_direct: bool = False,
    ) -> None:
        if open_recorders:
            function._refuse_recording()
        if wait is not None or signal is not None:
            function._check_fences(wait, signal)
        self._function = function
        self._arguments, self._named = arguments, named
        self._out, self._donate = out, donate
        self._wait, self._signal = wait, signal
        self._done: AnyFence | None = signal
        self._is_direct = is_direct
        self._writes = out is not None or donate is not None or function._omits_storages(arguments, named)
        self._writer = function._writer_for(out) if self._writes else function
        self._output: OutputCall | None = None
        self._record: CallRecord | None = None

    # -- its parts -----------------------------------------------------------------------------------

    def values(self) -> tuple[Any, ...]:
        """Returns the VM's values for the program, including its two fences."""
        record, writer = self._record, self._writer
        if record is not None and record.is_async:
            record.bind_begin = now()
        try:
            if self._writes:
                self._output = output = OutputCall(
                    writer.outputs, self._arguments, self._named, self._out, self._donate, self._wait, self._signal
                )
                values, self._done = output.bind(), output.done
            elif self._is_direct:
                values = self._arguments
            else:
                values = self._function._bind_all(self._arguments, self._named)
            if not writer.signature.is_async:
                return values
            if self._signal is None:
                self._done = HalFence(writer._target.devices.first().hal)
            return (*values, self._wait, self._done)
        finally:
            if record is not None:
                record.bind_end = now()

    def settle(self) -> AnyFence | None:
        """Returns the fence that the results wait for, once the program is done."""
        return self._done if self._writer.signature.is_async and self._signal is None else None

    def results(self, outputs: tuple[Any, ...]) -> Any:
        """Converts the program's results to the caller's."""
        if self._record is not None:
            self._record.convert_begin = now()
        if self._output is not None:
            return self._output.results(outputs) if self._is_direct else self._output.finish(outputs)
        if self._is_direct:
            return outputs if len(outputs) > 1 else outputs[0] if outputs else None
        return self._function._convert(outputs)

    def end(self) -> None:
        """Releases claims; must follow whether or not the call succeeded. Idempotent."""
        if self._output is not None:
            self._output.end()

    # -- the ways to perform it ----------------------------------------------------------------------

    def call(self, timeout: float | None) -> Any:
        """Performs the call in this thread."""
        observer = self._writer._target.observer
        if observer is not None:
            self._record = observer.new_call(self._function.function, is_async=False)
        try:
            results = self._call(timeout)
        except BaseException as error:
            if self._record is not None:
                self._record.ended(error)
            raise
        finally:
            self.end()
        if self._record is not None:
            self._record.ended(None)
        return results

    def _call(self, timeout: float | None) -> Any:
        record, writer = self._record, self._writer
        timeout = writer._target.context.limited(timeout)
        deadline = deadline_after(timeout)
        values = self.values()
        try:
            result = writer._target.context.invoke(writer.function, values, timeout=timeout, blocks=record is None)
        finally:
            if record is not None:
                record.invoked()
        source = self.settle()
        if source is not None:
            try:
                await_source(source, deadline)
            except DeadlineExceededError:
                if deadline is None or monotonic() < deadline:
                    raise  # the failure of the work
                raise DeadlineExceededError(
                    f"{writer.name} was not done within its timeout of {timeout:g} s; its work continues and its "
                    "results are dropped"
                ) from None
            finally:
                if record is not None:
                    record.settled = now()
        return self.results(outputs_of(writer.function, result))

    def submit(
        self, timeout: float | None, mode: WaitMode | None, policy: InvocationPolicy | None, loop: Loop | None
    ) -> Invocation:
        """Begins the call on a loop; ``mode`` is the loop's wait mode for devices."""
        target = self._writer._target
        observer = target.observer
        if observer is not None:
            self._record = observer.new_call(self._function.function, is_async=True)
        return Invocation()._start(
            target.context, self._writer.function, self.values, policy, loop, timeout, self, self._record, mode
        )
