"""The common part of a function's calls: conversions, and the transfer of results to the caller's arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...hal.fence import Fence
from ...hal.programs.fence import HalFence
from ...status import InvalidArgumentError, NotFoundError, shown
from ...vm.execution.context import Function
from ...waits.wait_mode import WAIT_MODES
from ..arrays.recorder import refuse_recording
from .binding import argument_binder, result_unbinder
from .outputs import Outputs
from .session_devices import CallTarget
from .signature import Result, make_signature

if TYPE_CHECKING:
    from .signature import Signature


class FunctionBinding:
    """A function of a session with its conversions: the base of ``SessionFunction``.

    Attributes:
        name: the name ``module.function``.
        signature: the arguments and results.
        function: the function in the session's context.
    """

    __slots__ = (
        "_binders",
        "_count",
        "_is_plain",
        "_outputs",
        "_single",
        "_takes_storages",
        "_target",
        "_unbinders",
        "_writer",
        "function",
        "name",
        "signature",
    )

    def __init__(self, target: CallTarget, function: Function, name: str | None = None) -> None:
        """Binds a function; ``name`` is its name in messages."""
        self._target = target
        self.function: Function = function
        self.name: str = name or function.full_name
        self.signature: Signature = make_signature(
            self.name, function.convention, function.declaration, function.attributes
        )
        devices = target.devices
        arguments, results = self.signature.arguments, self.signature.results
        self._binders = tuple(argument_binder(value, self.name, devices.first, devices.known) for value in arguments)
        self._unbinders = tuple(result_unbinder(value, devices.wrap, devices.wrap_dense) for value in results)
        self._count = len(self._binders)
        self._single = self._unbinders[0] if len(self._unbinders) == 1 else None
        self._takes_storages = len(self.signature.inputs) < len(arguments)
        self._is_plain = not (self._takes_storages or self.signature.is_async)
        self._outputs: Outputs | None = None
        self._writer: FunctionBinding | None = None

    def _bind_all(self, arguments: tuple[object, ...], named: Mapping[str, object]) -> tuple[Any, ...]:
        """Returns the VM's values for a call's arguments."""
        if named or len(arguments) != self._count:
            arguments = self.signature.place(arguments, named)
        return tuple([bind(value) for bind, value in zip(self._binders, arguments, strict=True)])

    def _refuse_recording(self) -> None:
        """Raises if this thread records calls on a device of the session."""
        for device in self._target.devices.opened:
            refuse_recording(
                device,
                f"a call of the program {self.name}",
                "a program decides on the host what to run. Call it outside of the recording",
            )

    def _convert(self, outputs: tuple[Any, ...]) -> Any:
        """Converts the program's results to the caller's."""
        if self._single is not None:
            return self._single(outputs[0])
        if not self._unbinders:
            return None
        return tuple([unbind(value) for unbind, value in zip(self._unbinders, outputs, strict=True)])

    def _check_fences(self, wait: object, signal: object) -> None:
        """Rejects values that are no fences, and fences for synchronous functions."""
        for name, fence in (("wait", wait), ("signal", signal)):
            if fence is None:
                continue
            if not isinstance(fence, (Fence, HalFence)):
                modes = f", one of {', '.join(WAIT_MODES)}," if name == "wait" else ""
                raise InvalidArgumentError(f"{self.name}: {name} is a fence{modes} or None, got {shown(fence)}")
            if not self.signature.is_async:
                raise InvalidArgumentError(f"{self.name} is synchronous: it takes no wait and signal fences")

    @property
    def outputs(self) -> Outputs:
        """The destinations of its results."""
        if self._outputs is None:
            self._outputs = self._make_outputs(self.signature.results)
        return self._outputs

    def _make_outputs(self, results: Sequence[Result]) -> Outputs:
        """Makes the outputs for the results that callers see; the program may write some numbers into storages."""
        signature, devices = self.signature, self._target.devices
        unbinders: Sequence[Callable[[Any], Any]] = self._unbinders
        numbers: set[int] = set()
        if not signature.results:
            unbinders = [result_unbinder(value, devices.wrap, devices.wrap_dense) for value in signature.storages]
            numbers = {number for number, value in enumerate(results) if value.letter != "r"}
        return Outputs(signature, self._binders, unbinders, numbers, self._target)

    def _writer_for(self, out: object) -> FunctionBinding:
        """Returns the function that takes storages for these results: this one, or its sibling ``NAME$async``."""
        if self._takes_storages:
            return self
        if self._writer is None:
            self._writer = self._find_writer() or self
        writer = self._writer
        # Omitted storages must be allocated before the call.
        return writer if out is not None or writer.outputs.is_allocatable else self

    def _find_writer(self) -> FunctionBinding | None:
        function = self.function
        if self.signature.is_async or not self._unbinders:
            return None
        try:
            writer = FunctionBinding(self._target, function.context.lookup(f"{function.full_name}$async"), self.name)
        except (NotFoundError, InvalidArgumentError):  # there is none, or only programs can call it
            return None
        if not writer.signature.writes(self.signature):
            return None
        writer._outputs = writer._make_outputs(self.signature.results)
        return writer

    def _omits_storages(self, arguments: tuple[object, ...], named: Mapping[str, object]) -> bool:
        """Whether it takes storages, and none is passed."""
        if not self._takes_storages or len(arguments) > len(self.outputs.inputs):
            return False
        return not any(argument.storage is not None and argument.name in named for argument in self.signature.arguments)
