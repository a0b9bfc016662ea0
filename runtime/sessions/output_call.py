"""A call whose results go to the caller's arrays, or whose arguments are donated.

Calling sequence: construction, which checks everything known beforehand → ``bind`` → the function, with ``done`` as its
signal fence → ``finish`` → ``end``. An error before the function runs changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...formats.element_type import ElementType
from ...hal.buffer import Buffer
from ...hal.buffer_view import BufferView
from ...hal.command_buffer import CommandBuffer
from ...hal.device import Device
from ...hal.fence import Fence
from ...hal.logical_device import LogicalDevice
from ...hal.programs.fence import HalFence, join, signal_after
from ..arrays.array import DeviceArray, new_array
from .donation import Donate, Donation, buffer_of
from .outputs import Out, Output, Outputs, Target

AnyFence = Fence | HalFence


class OutputCall:
    """A call with ``out=``, ``donate=``, or omitted storages.

    Args:
        outputs: the outputs of the function that runs.
        arguments, named: the call's inputs.
        out: the caller's arrays; ``None`` for results in new memory.
        donate: the numbers or names of arguments.
        wait, signal: the fences of an asynchronous call.

    Attributes:
        done: the fence that the function signals: ``signal``, or a fence for which copies wait.
    """

    __slots__ = ("_copied", "_donation", "_outputs", "_signal", "_targets", "_values", "_views", "done")

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
        if named or len(arguments) != len(outputs.inputs):
            arguments = outputs.signature.place(arguments, named, outputs.inputs)
        self._values = arguments
        self._targets: dict[int, Target] = {}
        self._copied: set[int] = set()  # numbers of results
        self._views: dict[int, BufferView] = {}  # the storages, by number of the result
        if out is not None:
            targets = outputs.targets(out)
            outputs.check_inputs(targets, arguments)
            for output, target in zip(outputs.tensors, targets, strict=True):
                self._targets[output.number] = target
                if output.storage is None or (not target.buffer.bindable and _is_misaligned(target.buffer)):
                    self._copied.add(output.number)
        self._donation = None
        if donate is not None:
            self._donation = Donation(
                outputs.signature, outputs.inputs, arguments, outputs.donated_numbers(donate), wait
            )
        self._signal = self.done = signal
        if signal is not None and self._copied:
            self.done = HalFence(outputs.target.devices.first().hal)

    def bind(self) -> tuple[Any, ...]:
        """Returns the VM's values for the arguments, without fences."""
        outputs, targets = self._outputs, self._targets
        binders = outputs.binders
        bound: list[Any] = [None] * len(binders)
        for argument, value in zip(outputs.inputs, self._values, strict=True):
            position = argument.position
            bound[position] = binders[position](value)
        donated: dict[int, Buffer] = {}
        if self._donation is not None:
            self._donation.claim()
            missing = [
                (storage, omitted.nbytes) for omitted, storage in outputs.stored if omitted.number not in targets
            ]
            donated = self._donation.match(missing)
        for output, storage in outputs.stored:
            number = output.number
            target = targets.get(number)
            if target is None:
                view = outputs.new_view(output, donated.get(storage.position))
            elif number in self._copied:
                view = _beside(output, target)
            else:
                view = _view_of(output, target)
            self._views[number] = view
            bound[storage.position] = view.buffer if output.takes_buffer else view
        return tuple(bound)

    def finish(self, returned: tuple[Any, ...]) -> Any:
        """Converts the program's results to the caller's; copies results that were not written in place.

        Raises:
            InvalidArgumentError: a result has another shape or element type than the array for it.
        """
        outputs, targets = self._outputs, self._targets
        values: list[object] = []
        if outputs.is_returned or self._donation is not None or len(targets) < outputs.count:
            values = self._found(returned)
        if outputs.is_returned:
            for output in outputs.tensors:
                if output.number in targets:
                    number = output.number
                    outputs.check_result(output, targets[number], values[number], self._views.get(number))
        if self._copied:
            self._copy(values)
        for target in targets.values():
            if isinstance(target, DeviceArray) and (self._signal is not None or target.is_pending):
                target.mark_pending(self._signal)
        if self._donation is not None:
            values = self._donation.finish(values)
        if not values:
            return next(iter(targets.values())) if len(targets) == 1 else tuple(targets.values())
        results = [
            targets[number] if number in targets else unbind(value)
            for number, (value, unbind) in enumerate(zip(values, outputs.unbinders, strict=True))
        ]
        return results[0] if len(results) == 1 else tuple(results)

    def end(self) -> None:
        """Releases claims; must follow whether or not the call succeeded. Idempotent."""
        if self._donation is not None:
            self._donation.release()

    def results(self, returned: tuple[Any, ...]) -> Any:
        """Finishes a call with the VM's values: returns the program's results, or its storages."""
        values = self._found(returned)
        return values[0] if len(values) == 1 else tuple(values)

    def _found(self, returned: tuple[Any, ...]) -> list[object]:
        if self._outputs.is_returned:
            return list(returned)
        return [self._views[number] for number in range(self._outputs.count)]

    def _copy(self, results: Sequence[object]) -> None:
        """Copies results to their arrays: immediately, or when the function's work is done."""
        by_device: dict[LogicalDevice, list[tuple[Buffer, Buffer]]] = {}
        for number in self._copied:
            target, source = (
                self._targets[number],
                buffer_of(self._views[number] if number in self._views else results[number]),
            )
            assert source is not None
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
    return target.buffer_view(output.tensor.element_type or ElementType.from_dtype(target.dtype))


def _beside(output: Output, target: Target) -> BufferView:
    """Allocates memory for a result that the device cannot write in place."""
    if isinstance(target, DeviceArray):
        return _view_of(output, new_array(target.device, target.shape, target.dtype))
    device = target.buffer.device
    assert isinstance(device, Device)
    return BufferView(device.create_buffer(target.byte_length), target.shape, target.element_type)


def _is_misaligned(buffer: Buffer) -> bool:
    return not buffer.bindable and bool(buffer.size) and bool(buffer.offset % buffer.device.bind_alignment)
