"""Command buffers: noted at recording, checked at submission, run by the queue's thread."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from ..hal.buffer import Buffer as AnyBuffer
from ..hal.command_buffer import BindingSlot, CommandBufferState, refuse_slot, resolve_slots
from ..hal.logical_device import LogicalDevice as AnyDevice
from ..hal.memory import BufferUsage, as_bytes
from ..hal.mirror import Mirror, Use
from ..hal.program import BindingReference, ProgramCommandBuffer, check_buffer, subspan
from ..hal.program import Executable as AnyExecutable
from ..status import (
    ClosedError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    PermissionDeniedError,
    UnimplementedError,
)
from .buffer import Buffer
from .executable import Executable
from .logical_device import LogicalDevice
from .program_format import Function

_ARGUMENTS_IN_BUFFERS = 0x4 | 0x8 | 0x10


class CommandBuffer(ProgramCommandBuffer):
    """Commands over buffers, and over slots that a table fills; see the base class. For users and programs alike."""

    device: LogicalDevice

    def __init__(
        self,
        device: LogicalDevice,
        *,
        one_shot: bool,
        binding_capacity: int,
        name: str,
        peers: Container[AnyDevice] = (),
    ) -> None:
        if binding_capacity < 0:
            raise InvalidArgumentError(f"binding_capacity must not be negative, got {binding_capacity}")
        device.check_usable()
        self.device = device
        self.name = name
        self.one_shot = one_shot
        self.binding_capacity = binding_capacity
        self.peers = peers
        self.state = CommandBufferState.INITIAL
        self._reset()

    def _reset(self) -> None:
        self.mirrors: dict[AnyBuffer, Mirror] = {}
        self.uses: dict[int, set[Use]] = {}
        self.used_slots: set[int] = set()
        self._commands: list[tuple[Callable[..., None], tuple[object, ...]]] = []
        self._labels = 0

    # -- recording -----------------------------------------------------------------------------------

    def begin(self) -> Self:
        if self.state is CommandBufferState.CLOSED:
            raise ClosedError(f"command buffer {self.name} was closed")
        if self.state is CommandBufferState.RECORDING:
            raise FailedPreconditionError(f"command buffer {self.name} is being recorded; end() it first")
        self.device.check_usable()
        self._reset()
        self.state = CommandBufferState.RECORDING
        return self

    def end(self) -> Self:
        self.check_recording()
        self.state = CommandBufferState.EXECUTABLE
        return self

    def check_recording(self) -> None:
        if self.state is CommandBufferState.CLOSED:
            raise ClosedError(f"command buffer {self.name} was closed")
        if self.state is not CommandBufferState.RECORDING:
            raise FailedPreconditionError(
                f"command buffer {self.name} is {self.state.value}, not being recorded: begin() it"
            )

    def execution_barrier(self) -> None:
        """Does nothing: commands run in order."""
        self.check_recording()

    def begin_label(self, label: str) -> None:
        """Counts the label; there are no tools to show it."""
        self.check_recording()
        self._labels += 1

    def end_label(self) -> None:
        self.check_recording()
        if not self._labels:
            raise FailedPreconditionError(f"command buffer {self.name} has no open label; begin_label() first")
        self._labels -= 1

    def new_mirror(self, foreign: AnyBuffer) -> Mirror:
        return Mirror(Buffer.create(self.device, foreign.size), foreign, 0)

    def fill(self, target: AnyBuffer | BindingSlot, pattern: bytes, offset: int = 0, size: int | None = None) -> None:
        pattern = as_bytes(pattern)
        if len(pattern) not in (1, 2, 4):
            raise InvalidArgumentError(f"a fill pattern has 1, 2 or 4 bytes, got {len(pattern)}")
        self._note(_fill, target, pattern, offset, size)

    def update(self, target: AnyBuffer | BindingSlot, data: bytes, offset: int = 0) -> None:
        self._note(_update, target, as_bytes(data), offset)

    def copy(
        self,
        source: AnyBuffer | BindingSlot,
        target: AnyBuffer | BindingSlot,
        size: int | None = None,
        *,
        source_offset: int = 0,
        target_offset: int = 0,
    ) -> None:
        self.device.copy_count += 1
        self._note(_copy, source, target, size, source_offset, target_offset)

    def dispatch_function(
        self,
        executable: AnyExecutable,
        function: int,
        groups: tuple[int, int, int],
        flags: int,
        constants: Sequence[int],
        bindings: Sequence[BindingReference],
    ) -> None:
        arguments = self._dispatch_arguments(executable, function, flags, constants, bindings)
        if all(groups):
            self._note(_dispatch, *arguments)

    def dispatch_function_indirect(
        self,
        executable: AnyExecutable,
        function: int,
        counts: AnyBuffer | BindingSlot,
        flags: int,
        constants: Sequence[int],
        bindings: Sequence[BindingReference],
    ) -> None:
        arguments = self._dispatch_arguments(executable, function, flags, constants, bindings)
        self._note(_dispatch_indirect, counts, *arguments)

    def _dispatch_arguments(
        self,
        executable: AnyExecutable,
        function: int,
        flags: int,
        constants: Sequence[int],
        bindings: Sequence[BindingReference],
    ) -> tuple[Executable, Function, tuple[AnyBuffer | BindingSlot, ...]]:
        self.check_recording()
        if executable.device is not self.device or not isinstance(executable, Executable):
            raise InvalidArgumentError(
                f"{self.name}: the executable was made for {executable.device.name}, the command buffer for "
                f"{self.device.name}"
            )
        if flags & _ARGUMENTS_IN_BUFFERS:
            raise UnimplementedError(f"{self.name}: executables of the reference device take no arguments in buffers")
        specialised = executable.function(function).specialised(constants)
        inputs, outputs = len(specialised.inputs), len(specialised.outputs)
        if len(bindings) != inputs + outputs:
            raise InvalidArgumentError(
                f"{specialised.name} takes {inputs} inputs and {outputs} results, got {len(bindings)} bindings"
            )
        ranges = [
            self.reference(slot, buffer, offset, size, written=index >= inputs)
            for index, (_, slot, buffer, offset, size) in enumerate(bindings)
        ]
        return executable, specialised, tuple(ranges)

    def _note(self, run: Callable[..., None], *arguments: object) -> None:
        """Keeps a command. Parts that need no table are checked immediately."""
        self.check_recording()
        for argument in arguments:
            for item in argument if isinstance(argument, tuple) else (argument,):
                if isinstance(item, BindingSlot):
                    if not self.binding_capacity:
                        refuse_slot(item)
                    if not 0 <= item.slot < self.binding_capacity:
                        raise OutOfRangeError(
                            f"slot {item.slot} is outside the binding table of {self.binding_capacity} slot(s) of "
                            f"{self.name}"
                        )
                    self.used_slots.add(item.slot)
                elif isinstance(item, AnyBuffer):
                    self._check_own(item)
        if not self.binding_capacity:
            run(*arguments, check=True)
        self._commands.append((run, arguments))

    def _check_own(self, buffer: AnyBuffer) -> AnyBuffer:
        if buffer.device is not self.device:
            raise InvalidArgumentError(
                f"{self.name} runs on {self.device.name}, but a buffer is of another device; copy it through the host"
            )
        return buffer

    # -- submission ----------------------------------------------------------------------------------

    def prepare(self, table: Sequence[Any] | None) -> list[Callable[[], None]]:
        """Returns the checked actions, with the table's buffers in place of slots. Called by ``Queue``."""
        self.check_executable()
        buffers = self._buffers(table or ())
        actions: list[Callable[[], None]] = []
        for run, arguments in self._commands:
            resolved = [resolve_slots(argument, buffers) for argument in arguments]
            run(*resolved, check=True)
            actions.append(partial(run, *resolved))
        if self.one_shot:
            self.state = CommandBufferState.SUBMITTED
        return actions

    def _buffers(self, table: Sequence[Any]) -> list[AnyBuffer | None]:
        """Returns the buffers of a table of buffers or of ``(buffer, offset, length)``; unused slots may be null."""
        if table and not self.binding_capacity:
            raise InvalidArgumentError(f"{self.name} has no binding slots, but a binding table was given")
        buffers: list[AnyBuffer | None] = []
        for entry in table:
            buffer, offset, size = entry if isinstance(entry, tuple) else (entry, 0, -1)
            if buffer is not None:
                buffer = subspan(self._check_own(check_buffer(buffer, "binding table")), offset, size)
            buffers.append(buffer)
        for slot in self.used_slots:
            if slot >= len(buffers) or buffers[slot] is None:
                fault = "is null" if slot < len(buffers) else f"is beyond its {len(buffers)} entries"
                raise InvalidArgumentError(f"{self.name} uses slot {slot} of its binding table, which {fault}")
        return buffers

    def close(self) -> None:
        """Drops the recorded commands; idempotent."""
        self.state: CommandBufferState = CommandBufferState.CLOSED
        for mirror in self.mirrors.values():
            mirror.close()
        self._reset()

    def __repr__(self) -> str:
        return f"<CommandBuffer {self.name}, {self.state.value}>"


# -- commands: with ``check`` they check their arguments, otherwise they run ------------------------------


def _fill(target: Buffer, pattern: bytes, offset: int, size: int | None, *, check: bool = False) -> None:
    if check:
        size = target.check_range(offset, size, "fill")
        target.check_target("fill")
        if size % len(pattern):
            raise InvalidArgumentError(f"{size} bytes are not a multiple of the {len(pattern)}-byte pattern")
        return
    end = target.size if size is None else offset + size
    target.memory[offset:end].reshape(-1, len(pattern))[:] = np.frombuffer(pattern, np.uint8)


def _update(target: Buffer, data: bytes, offset: int, *, check: bool = False) -> None:
    if check:
        target.check_range(offset, len(data), "update")
        target.check_target("update")
        return
    target.memory[offset : offset + len(data)] = np.frombuffer(data, np.uint8)


def _copy(
    source: Buffer, target: Buffer, size: int | None, source_offset: int, target_offset: int, *, check: bool = False
) -> None:
    if check:
        size = source.check_range(source_offset, size, "copy source")
        target.check_range(target_offset, size, "copy target")
        source.check_usage(BufferUsage.TRANSFER_SOURCE, "copy source")
        target.check_target("copy target")
        distance = abs(source.offset + source_offset - target.offset - target_offset)
        if source.serial == target.serial and 0 < distance < size:
            raise InvalidArgumentError(f"copy of {size} bytes: source and target overlap by {size - distance} bytes")
        return
    size = source.size - source_offset if size is None else size
    target.memory[target_offset : target_offset + size] = source.memory[source_offset : source_offset + size]


def _dispatch(executable: Executable, function: Function, bindings: Sequence[Buffer], *, check: bool = False) -> None:
    if check:
        for number, buffer in enumerate(bindings):
            buffer.check_range(0, None, function.name)
            if number >= len(function.inputs) and not buffer.memory.flags.writeable:
                raise PermissionDeniedError(f"{function.name}: result {number - len(function.inputs)} may only be read")
    else:
        executable.run(function, [buffer.memory for buffer in bindings])


def _dispatch_indirect(
    counts: Buffer, executable: Executable, function: Function, bindings: Sequence[Buffer], *, check: bool = False
) -> None:
    if check:
        counts.check_range(0, 12, "indirect parameters")
        counts.check_usage(BufferUsage.DISPATCH_INDIRECT_PARAMETERS, "indirect parameters")
    if check or np.frombuffer(counts.memory[:12], np.uint32).all():
        _dispatch(executable, function, bindings, check=check)
