"""One call whose results go into arrays of the caller, or whose arguments are donated.

Calling sequence: made, which checks all that is known before → ``bind`` → the function, with ``done`` as its signal
fence → ``finish``. An error before the function runs leaves everything as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...formats.element_type import ElementType
from ...hal.buffer import Buffer
from ...hal.buffer_view import BufferView
from ...hal.command_buffer import CommandBuffer
from ...hal.fence import Fence
from ...hal.logical_device import LogicalDevice
from ...hal.programs.fence import HalFence, join, signal_after
from ..arrays.array import DeviceArray, new_array
from .donation import Donate, Donation, buffer_of
from .outputs import BUFFER, Out, Output, Outputs, Target

AnyFence = Fence | HalFence


class OutputCall:
    """A call with ``out=``, ``donate=``, or storages that are left out.

    Args:
        outputs: of the function that runs.
        arguments, named: its inputs.
        out: the caller's arrays; ``None`` for results in new memory.
        donate: numbers or names of arguments.
        wait, signal: the fences of an asynchronous call.

    Attributes:
        done: what the function signals: ``signal``, or a fence that copies wait for.
    """

    def __init__(
        self,
        outputs: Outputs,
        arguments: tuple[object, ...],
        named: Mapping[str, object],
        out: Out | None,
        donate: Donate | None,
        wait: AnyFence | None,
        signal: AnyFence | None,
    ) -> None:
        self._outputs = outputs
        self._values = values = outputs.signature.place(arguments, named, outputs.inputs)
        self._targets: dict[int, Target] = {}
        self._copied: list[Output] = []
        self._views: dict[int, BufferView] = {}  # of storages, by number of the result
        if out is not None:
            targets = outputs.targets(out)
            outputs.check_inputs(targets, values)
            for output, target in zip(outputs.tensors, targets, strict=True):
                self._targets[output.number] = target
                if output.storage is None or _is_misaligned(target.buffer):
                    self._copied.append(output)
        self._donation = None
        if donate is not None:
            self._donation = Donation(outputs.signature, outputs.inputs, values, donate, wait)
        self._signal = self.done = signal
        if signal is not None and self._copied:
            self.done = HalFence(outputs.target.devices.first().hal)

    def bind(self) -> tuple[Any, ...]:
        """The VM's values for the arguments, without fences."""
        outputs = self._outputs
        binders = outputs.binders
        bound: list[Any] = [None] * len(binders)
        for argument, value in zip(outputs.inputs, self._values, strict=True):
            bound[argument.position] = binders[argument.position](value)
        if not outputs.storages:
            return tuple(bound)
        missing = [(one, nbytes) for one, nbytes in outputs.storages if one.storage not in self._targets]
        donated = self._donation.match(missing) if self._donation is not None and missing else {}
        for output in outputs.tensors:
            storage = output.storage
            if storage is None:
                continue
            target = self._targets.get(output.number)
            if target is None:
                view = outputs.new_view(output, donated.get(storage.position))
            else:
                if output in self._copied and isinstance(target, DeviceArray):
                    target = new_array(target.device, target.shape, target.dtype)
                view = _view_of(output, target)
            self._views[output.number] = view
            bound[storage.position] = view.buffer if storage.type_text == BUFFER else view
        return tuple(bound)

    def finish(self, result: Any) -> Any:
        """The caller's results for the VM's; it copies what was not written in place.

        Raises:
            InvalidArgumentError: a result has another shape or element type than the array for it.
        """
        outputs = self._outputs
        found = self._found(result)
        copies: list[tuple[Buffer, Target]] = []
        for output in outputs.tensors:
            target = self._targets.get(output.number)
            if target is None:
                continue
            value = found[output.number]
            outputs.check_result(output, target, value)
            if output in self._copied:
                source = buffer_of(self._views.get(output.number, value))
                assert source is not None
                copies.append((source, target))
        if copies:
            self._copy(copies)
        for target in self._targets.values():
            if isinstance(target, DeviceArray):
                target.mark_pending(self._signal)
        if self._donation is not None:
            found = self._donation.finish(found)
        results = [
            self._targets[number] if number in self._targets else unbind(value)
            for number, (value, unbind) in enumerate(zip(found, outputs.unbinders, strict=True))
        ]
        if len(results) > 1:
            return tuple(results)
        return results[0] if results else None

    def _found(self, result: Any) -> list[object]:
        """The results as the VM has them, those in storages included."""
        outputs = self._outputs
        if not outputs.is_returned:
            return [self._views[output.number] for output in outputs.outputs]
        return [result] if len(outputs.outputs) == 1 else list(result)

    def _copy(self, copies: Sequence[tuple[Buffer, Target]]) -> None:
        """Copies results into their arrays: at once, or when the function's work is done."""
        by_device: dict[LogicalDevice, list[tuple[Buffer, Buffer]]] = {}
        for source, target in copies:
            size = target.nbytes if isinstance(target, DeviceArray) else target.byte_length
            if not size or (source.overlaps(target.buffer) and source.offset == target.buffer.offset):
                continue  # nothing, or the program has returned the array's own memory
            if source.size != size:
                source = source.subspan(0, size)
            if self._signal is None and isinstance(target, DeviceArray):
                target.mark(target.device.copy(source, target.buffer, "copy to out"), written=True)
            else:
                by_device.setdefault(source.device, []).append((source, target.buffer))
        fences = []
        for device, pairs in by_device.items():

            def record(commands: CommandBuffer, pairs: Sequence[tuple[Buffer, Buffer]] = pairs) -> None:
                for source, target in pairs:
                    commands.copy(source, target)

            fences.append(self._outputs.contexts()[device].run("copy to out", record, self.done))
        if self._signal is not None:
            signal_after(join(fences or [self.done]), self._signal)
        else:
            for fence in fences:
                fence.wait_until()


def _view_of(output: Output, target: Target) -> BufferView:
    if isinstance(target, BufferView):
        return target
    element_type = None if output.tensor is None else output.tensor.element_type
    return target.buffer_view(element_type or ElementType.from_dtype(target.dtype))


def _is_misaligned(buffer: Buffer) -> bool:
    return not buffer.bindable and bool(buffer.size) and bool(buffer.offset % buffer.device.bind_alignment)
