"""A call of a kernel as a step of a recording: its arguments on the device, and the dispatch that they make."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from ...hal.command_buffer import CommandBuffer as AnyCommandBuffer
from ...hal_vulkan import Buffer, CommandBuffer, ComputePipeline
from ...hal_vulkan.pipelines.resources import Resource
from ...status import ClosedError
from ..arrays.array import DeviceArray
from ..arrays.recorder import Marks
from ..arrays.transfer import Transfer
from ..images.image import DeviceImage
from .bound_call import Binder, BoundCall
from .parameters.arguments import Counts, check_indirect
from .parameters.parameter import KernelArgument, KernelResult, Parameter
from .push_memory import PushMemory


class RecordedCall:
    """A planned call. Immutable; ``with_push`` and ``with_arguments`` plan others.

    Attributes:
        name: the kernel's name.
        pipeline: the kernel's pipeline.
        call: the call.
        arguments: the arguments on the device, one for each parameter of the kernel; lists for arrays of bindings of
            run-time size.
        groups: the workgroup counts; not used where ``call.indirect`` has them.
        constants: the indices of the arguments that were copied from the host and are only read.
        result: the results of the call, which each run writes.
        marks: the memory that it uses.
        binder: the kernel's binder, for the names of values.
        memory: the kernel's pipeline that reads push constants from memory.
        lock: the kernel's lock, for submissions whose shaders report.
    """

    def __init__(
        self,
        plan: Callable[[BoundCall], RecordedCall],
        pipeline: ComputePipeline,
        call: BoundCall,
        transfer: Transfer,
        parameters: Sequence[Parameter],
        arguments: Sequence[KernelArgument],
        constants: frozenset[int],
        groups: Counts,
        result: KernelResult,
        binder: Binder,
        memory: PushMemory,
        lock: threading.Lock,
    ) -> None:
        """Takes over what ``Dispatcher.recorded``, which is ``plan``, has planned."""
        self._plan = plan
        self._parameters = parameters
        self._transfer = transfer
        self.name: str = pipeline.name
        self.pipeline: ComputePipeline = pipeline
        self.call: BoundCall = call
        self.arguments: Sequence[KernelArgument] = arguments
        self.constants: frozenset[int] = constants
        self.groups: Counts = groups
        self.binder: Binder = binder
        self.memory: PushMemory = memory
        self.lock: threading.Lock = lock
        self.result: KernelResult = result
        marks = [
            (placed.uses, parameter.binding.readable, written)
            for (placed, written), parameter in zip(transfer.marks, parameters, strict=True)
            if isinstance(placed, (DeviceArray, DeviceImage))
        ]
        # The code decides which of the memory that it has addresses of it writes.
        marks += [(array.uses, True, array is not call.indirect) for array in call.pointed]
        self.marks: Marks = marks

    @property
    def is_moved(self) -> bool:
        """Whether arrays are copied, because the device cannot bind them where they are."""
        return bool(self._transfer.before)

    @property
    def labelled(self) -> Sequence[tuple[str, object]]:
        pairs: list[tuple[str, object]] = [
            (f"the argument of {self.name} for {parameter.label}", placed)
            for (placed, _), parameter in zip(self._transfer.marks, self._parameters, strict=True)
        ]
        return pairs + [(f"an array that {self.name} has the address of", array) for array in self.call.pointed]

    def record(self, commands: AnyCommandBuffer, block: Buffer | None = None) -> None:
        """Adds the dispatch, between copies of the arrays that the device cannot bind where they are.

        ``block`` is the memory that has the push constants, if commands have not.
        """
        assert isinstance(commands, CommandBuffer)
        call, before, after = self.call, self._transfer.before, self._transfer.after
        for source, target in before:
            commands.copy(source, target)
        if before:
            commands.execution_barrier()
        resources = cast("list[Resource]", [bound.buffer for bound in call.bound])
        pipeline, push = self.pipeline, call.push
        if block is not None:
            moved = self.memory.pipeline()
            if moved is None:
                raise ClosedError(f"kernel {self.name} was closed")
            pipeline, push, resources = moved, b"", [*resources, block]
        if call.indirect is not None:
            commands.dispatch_indirect(pipeline, resources, call.indirect.buffer, push=push)
        else:
            commands.dispatch(pipeline, resources, self.groups, push)
        if after:
            commands.execution_barrier()
        for source, target in after:
            commands.copy(source, target)

    # -- other values ----------------------------------------------------------------------------------

    def push_bytes(self, name: str) -> bytes:
        """Returns the bytes of a push constant."""
        member = self.binder.push_members[name]
        return (self.call.loose or self.call.push)[member.offset : member.offset + member.size]

    def packed(self, name: str, value: object) -> bytes:
        """Returns the bytes of another value of a push constant."""
        member = self.binder.push_members[name]
        return self.binder.with_push_value(self.call.push, name, value)[member.offset : member.offset + member.size]

    def with_push(self, name: str, value: object) -> RecordedCall:
        """Returns the call with another value of a push constant."""
        data = self.binder.with_push_value(self.call.loose or self.call.push, name, value)
        if self.binder.loose is not None:  # uniforms outside of blocks, which are an argument
            other = self.with_argument(self.binder.loose, np.frombuffer(data, np.uint8))
            other.call.loose = data
            return other
        return self.with_push_bytes(data)

    def with_push_bytes(self, push: bytes) -> RecordedCall:
        """Returns the call with other push constants."""
        if push == self.call.push:
            return self
        other = copy.copy(self)
        other.call = copy.copy(self.call)
        other.call.push = push
        return other

    def with_argument(self, index: int, value: KernelArgument) -> RecordedCall:
        """Returns the call with another argument for the parameter of an index; errors are those of a call."""
        return self._with([value if at == index else old for at, old in enumerate(self.arguments)], self.call.indirect)

    def replaced(self, old: object, new: KernelArgument) -> RecordedCall:
        """Returns the call with another argument in place of one, as often as that is used."""
        indirect = self.call.indirect
        if old is not indirect and not any(argument is old for argument in self.arguments):
            return self
        if old is indirect:
            assert isinstance(new, DeviceArray)
            check_indirect(new, new.device, self.name)
            indirect = new
        return self._with([new if argument is old else argument for argument in self.arguments], indirect)

    def _with(self, arguments: Sequence[KernelArgument], indirect: DeviceArray | None) -> RecordedCall:
        call = self.call
        pointed = [indirect if array is call.indirect else array for array in call.pointed]
        other = self._plan(BoundCall(arguments, call.groups, call.push, None, pointed, indirect, call.loose))  # type: ignore[arg-type]
        kept = {index for index in self.constants if arguments[index] is self.arguments[index]}
        other.constants |= kept
        return other
