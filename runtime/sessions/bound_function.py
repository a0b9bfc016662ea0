"""Functions of a session, called with the VM's values: what every kind of call of them has in common."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

from ...hal.fence import Fence
from ...hal.programs.fence import HalFence
from ...status import DeadlineExceededError, InvalidArgumentError, shown
from ...vm.execution.context import Function
from ...vm.execution.deadlines import await_source, deadline_after
from ...waits.wait_mode import WAIT_MODES
from ..profiling.call import CallRecord, now
from .observed_call import observed_async, observed_sync
from .session_devices import CallTarget
from .signature import make_signature


class BoundFunction:
    """A function of a session without conversions: the base of ``SessionFunction``.

    Attributes:
        name: ``module.function``.
        signature: arguments and results.
    """

    __slots__ = ("_function", "_profiled", "_target", "name", "signature")

    def __init__(self, target: CallTarget, function: Function, called: Function | None = None) -> None:
        self._target = target
        self._function = function
        self._profiled = called or function  # what its calls are calls of
        self.name = self._profiled.full_name
        self.signature = make_signature(self.name, function.convention, function.declaration, function.attributes)

    @property
    def function(self) -> Function:
        """The function in the session's context."""
        return self._function

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
        if self._target.observer is None:
            return self._target.context.invoke(self._function, direct, timeout=timeout)
        return self._perform_sync(lambda: direct, lambda value: value, timeout)

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

    def _perform(
        self,
        bind: Callable[[], tuple[Any, ...]],
        convert: Callable[[Any], Any],
        timeout: float | None,
        wait: Fence | HalFence | None,
        signal: Fence | HalFence | None,
    ) -> Any:
        """A call with the values that ``bind`` makes and the results that ``convert`` makes."""
        if not self.signature.is_async:
            self._check_fences(wait, signal)
            return self._perform_sync(bind, convert, timeout)
        observer = self._target.observer
        if observer is None:
            return convert(self._invoke_async(bind(), timeout, wait, signal))
        return observed_async(
            observer,
            self._profiled,
            bind,
            lambda values, record: self._invoke_async(values, timeout, wait, signal, record),
            convert,
        )

    def _perform_sync(
        self, bind: Callable[[], tuple[Any, ...]], convert: Callable[[Any], Any], timeout: float | None
    ) -> Any:
        invoke = functools.partial(self._target.context.invoke, self._function, timeout=timeout)
        observer = self._target.observer
        if observer is None:
            return convert(invoke(bind()))
        return observed_sync(observer, self._profiled, bind, invoke, convert)

    def _check_fences(self, wait: object, signal: object) -> None:
        for name, fence in (("wait", wait), ("signal", signal)):
            if fence is None:
                continue
            if not isinstance(fence, (Fence, HalFence)):
                modes = f", one of {', '.join(WAIT_MODES)}," if name == "wait" else ""
                raise InvalidArgumentError(f"{self.name}: {name} is a fence{modes} or None, got {shown(fence)}")
            if not self.signature.is_async:
                raise InvalidArgumentError(f"{self.name} is synchronous: it takes no wait and signal fences")

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
