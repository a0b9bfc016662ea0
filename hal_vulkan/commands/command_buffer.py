"""Command buffers: recorded once, run once or many times.

Calling sequence: ``Device.create_command_buffer`` → ``begin`` → ``dispatch``/``fill``/``copy``/``update``/
``execution_barrier``… → ``end`` → ``Queue.submit`` (a one-shot buffer once, a reusable one any number of times, also
while it is pending) → ``close``.

Commands may run in any order and at the same time unless an ``execution_barrier`` stands between them: hazards
within the recorded range are the caller's to order, as in Vulkan. Between command buffers of one queue there is
none to care for: each ends with a full barrier, which also makes its writes visible to the host.

With ``binding_capacity`` the buffer takes *slots* in place of buffers; a table given at submit fills them. The
native commands are recorded for a table when it is first seen and replayed when it comes again.

Thread rule: record in one thread at a time; submit from any.
"""

from __future__ import annotations

import enum
import struct
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Literal

from ...status import (
    ClosedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    PermissionDeniedError,
)
from ..memory.buffer import Buffer, as_bytes
from ..memory.memory_type import BufferUsage, MemoryAccess, MemoryTypeFlags
from ..sync.timeline import wait_timeline
from ..vulkan.functions import NULL, CData, ffi, new
from .context import CommandContext
from .descriptors import SetPins
from .pipeline import BoundSets, ComputePipeline, check_groups
from .recording import Recording
from .timestamps import DispatchTiming, TimestampRecorder

__all__ = ["BindingSlot", "CommandBuffer", "CommandBufferState", "Groups"]

Groups = tuple[int, int, int]

_BIND_POINT_COMPUTE: Final = 1
_COMPUTE_STAGE: Final = 0x20
_ONE_TIME_SUBMIT: Final = 0x1
_SIMULTANEOUS_USE: Final = 0x4
_MOST_UPDATE_BYTES: Final = 65536
_MOST_RECORDINGS: Final = 16
_BDA_ROOT: Final = struct.Struct("<QQIIII")


class CommandBufferState(enum.Enum):
    """Where a command buffer is in its life."""

    INITIAL = "initial"
    RECORDING = "recording"
    EXECUTABLE = "executable"
    SUBMITTED = "submitted"  # a one-shot one that has been handed to a queue
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class BindingSlot:
    """A place for a buffer that comes with the submission.

    Attributes:
        slot: index into the binding table.
        offset: bytes added to the table entry's offset.
        size: bytes; ``None`` goes to the end of the table entry.
    """

    slot: int
    offset: int = 0
    size: int | None = None


# An enum's member, looked up by name, takes five times as long as a global.
_INITIAL: Final = CommandBufferState.INITIAL
_RECORDING: Final = CommandBufferState.RECORDING
_EXECUTABLE: Final = CommandBufferState.EXECUTABLE
_SUBMITTED: Final = CommandBufferState.SUBMITTED
_CLOSED: Final = CommandBufferState.CLOSED


class CommandBuffer:
    """Recorded commands. See the module's text for the calling sequence and the rules on hazards.

    Attributes:
        context, device: what it shares with the other command buffers of its device, and the device.
        name: for messages, debug labels and what was in flight at a fault.
        one_shot: submitted at most once and recycled when it has retired.
        binding_capacity: slots; 0 for a buffer whose bindings are all given at recording.
    """

    __slots__ = (
        "__weakref__",
        "_barriers",
        "_bound",
        "_bound_layout",
        "_checked_epoch",
        "_commands",
        "_dispatch",
        "_groups_max",
        "_handle",
        "_labels",
        "_pipeline",
        "_push",
        "_recording",
        "_recordings",
        "_timing",
        "binding_capacity",
        "context",
        "device",
        "family",
        "name",
        "one_shot",
        "state",
    )

    def __init__(
        self,
        context: CommandContext,
        *,
        one_shot: bool = False,
        binding_capacity: int = 0,
        timing: bool | Literal["span"] = False,
        name: str = "commands",
        family: int | None = None,
    ) -> None:
        if binding_capacity < 0:
            raise InvalidArgumentError(f"binding_capacity must not be negative, got {binding_capacity}")
        self.context = context
        device = self.device = context.device
        self.name = name
        self.one_shot = one_shot
        self.binding_capacity = binding_capacity
        self.family = device.plan.compute_family if family is None else family
        self.state = _INITIAL
        if timing not in (False, True, "span"):
            raise InvalidArgumentError(f'timing is False, True (each dispatch) or "span", got {timing!r}')
        self._timing = timing
        if timing:
            context.check_timestamps(self.family)
        self._barriers = context.barriers(self.family)
        self._groups_max = device.groups_max
        self._recording: Recording | None = None
        self._recordings: dict[tuple[int, ...], Recording] = {}
        self._commands: list[tuple[Callable[..., None], tuple[object, ...]]] = []
        self._handle: CData = NULL
        self._pipeline: ComputePipeline | None = None
        self._bound: BoundSets | None = None
        self._bound_layout: CData = NULL
        self._push: bytes = b""
        self._labels = 0
        self._checked_epoch = -1
        self._dispatch = device.fn.vkCmdDispatch

    # -- recording -----------------------------------------------------------------------------------

    def begin(self) -> CommandBuffer:
        """Starts recording, from nothing: what was recorded before is dropped. Returns itself.

        Raises:
            FailedPreconditionError: it is being recorded already.
        """
        if self.state is _CLOSED:
            raise ClosedError(f"command buffer {self.name} was closed")
        if self.state is _RECORDING:
            raise FailedPreconditionError(f"command buffer {self.name} is being recorded; end() it first")
        device = self.device
        if device.lost is not None or device._closed:
            device.check_usable()
        if self.state is not _INITIAL:
            self._drop()
            self.state = _INITIAL
        # What is closed from here on is found by end() and at submission.
        self._checked_epoch = device.close_epoch
        self._labels = 0
        if not self.binding_capacity:
            self._open()
        self.state = _RECORDING
        self.context.recording[id(self)] = weakref.ref(self)
        return self

    def _open(self) -> None:
        """Takes native commands and starts them."""
        device, context = self.device, self.context
        native = context.take(self.family)
        info = context.begin_once if self.one_shot else context.begin_again
        result = device.fn.vkBeginCommandBuffer(native.handle, info)
        if result:
            context.give_back(native)
            device.check(result, f"beginning {self.name}")
        self._recording = Recording(native)
        self._handle = native.handle
        self._pipeline = self._bound = None
        self._bound_layout = NULL
        self._push = b""
        if self._timing:
            span = self._timing == "span"
            timestamps = TimestampRecorder(context.query_pools, native.handle, self.family, span=span)
            self._recording.timestamps = timestamps
            if span:
                timestamps.begin(self.name, None)

    def end(self) -> CommandBuffer:
        """Ends recording; the buffer can be submitted then. Returns itself.

        Raises:
            ClosedError: something recorded was closed meanwhile; the recording is dropped.
            InternalError: the validation layers found wrong use in the recorded range (with validation on).
        """
        if self.state is not _RECORDING:
            self._check_recording()
        self.context.recording.pop(id(self), None)
        if not self.binding_capacity:
            try:
                # Native commands that name something destroyed may not even be ended.
                if self._recording is not None and self._checked_epoch != self.device.close_epoch:
                    self._check_open(self._recording)
                self._finish()
            except Exception:
                self._drop()
                self.state = _INITIAL
                raise
        self.state = _EXECUTABLE
        return self

    def _finish(self) -> None:
        barriers, fn, device = self._barriers, self.device.fn, self.device
        if self._timing == "span" and self._recording is not None and self._recording.timestamps is not None:
            self._recording.timestamps.end()
        barriers.record(self._handle, *barriers.at_end)
        result = fn.vkEndCommandBuffer(self._handle)
        if result or device.validation:
            device.check(result, f"ending {self.name}")

    def dispatch(
        self,
        pipeline: ComputePipeline,
        bindings: BoundSets | Sequence[Buffer | BindingSlot],
        groups: Groups,
        push: bytes = b"",
    ) -> None:
        """Runs a pipeline over ``groups`` workgroups.

        Args:
            pipeline: what to run.
            bindings: a buffer for each descriptor, in order of (set, binding, array element), or what
                ``pipeline.bind`` made of them, which saves a look-up; a ``BindingSlot`` where the buffer is to come with
                the submission.
            groups: workgroup counts (x, y, z).
            push: the push constants, from offset 0, of the size that the pipeline declares (for the address ABI the HAL
                constants alone).

        Raises:
            InvalidArgumentError: a wrong number of buffers, wrong push-constant size, or a misaligned offset.
            ResourceExhaustedError: more workgroups than the device dispatches at once.
        """
        if self.state is not _RECORDING:
            self._check_recording()
        if self.binding_capacity and self._handle == NULL:
            self._check_slots(pipeline, bindings)
            check_groups(pipeline, groups)
            self._check_push(pipeline, push)
            kept = bindings if isinstance(bindings, BoundSets) else tuple(bindings)
            self._commands.append((CommandBuffer.dispatch, (pipeline, kept, groups, bytes(push))))
            return
        x, y, z = groups
        most = self._groups_max
        if x < 0 or y < 0 or z < 0 or x > most[0] or y > most[1] or z > most[2]:
            check_groups(pipeline, groups)
        self._prepare_dispatch(pipeline, bindings, push)
        recording = self._recording
        if self._timing is True and recording is not None and recording.timestamps is not None:
            recording.timestamps.begin(pipeline.name, groups)
            self._dispatch(self._handle, x, y, z)
            recording.timestamps.end()
        else:
            self._dispatch(self._handle, x, y, z)

    def dispatch_indirect(
        self,
        pipeline: ComputePipeline,
        bindings: BoundSets | Sequence[Buffer | BindingSlot],
        parameters: Buffer | BindingSlot,
        offset: int = 0,
        push: bytes = b"",
    ) -> None:
        """Runs a pipeline over workgroup counts read from a buffer: three uint32 at byte ``offset``, a multiple of 4.

        The counts are read when the command runs; counts past the device's limits are undefined behaviour there.
        """
        self._check_recording()
        if self.binding_capacity and self._handle == NULL:
            self._check_slots(pipeline, bindings)
            self._check_slot(parameters)
            self._check_push(pipeline, push)
            kept = bindings if isinstance(bindings, BoundSets) else tuple(bindings)
            self._commands.append((CommandBuffer.dispatch_indirect, (pipeline, kept, parameters, offset, bytes(push))))
            return
        parameters = self._own(parameters, "indirect parameters")
        _range(parameters, offset, 12, "indirect parameters")
        if (parameters.offset + offset) % 4:
            raise InvalidArgumentError(f"indirect parameters lie at a multiple of 4 bytes, got offset {offset}")
        _usage(parameters, BufferUsage.DISPATCH_INDIRECT_PARAMETERS, "indirect parameters")
        self._prepare_dispatch(pipeline, bindings, push)
        recording = self._recording
        assert recording is not None
        recording.resources.append(parameters)
        timestamps = recording.timestamps if self._timing is True else None
        if timestamps is not None:
            timestamps.begin(pipeline.name, None)
        self.device.fn.vkCmdDispatchIndirect(self._handle, parameters.handle, parameters.offset + offset)
        if timestamps is not None:
            timestamps.end()

    def _prepare_dispatch(
        self, pipeline: ComputePipeline, bindings: BoundSets | Sequence[Buffer | BindingSlot], push: bytes
    ) -> None:
        """Binds what differs from the dispatch before."""
        recording, handle, fn = self._recording, self._handle, self.device.fn
        assert recording is not None
        if pipeline is not self._pipeline:
            if pipeline.is_closed:
                raise ClosedError(f"pipeline {pipeline.name} was closed")
            if pipeline.device is not self.device:
                raise InvalidArgumentError(
                    f"pipeline {pipeline.name} belongs to another device; make one on this device"
                )
            self._check_push(pipeline, push)
            fn.vkCmdBindPipeline(handle, _BIND_POINT_COMPUTE, pipeline.handle)
            recording.resources.append(pipeline)
            self._pipeline = pipeline
            if pipeline.layout != self._bound_layout:
                self._bound = None
                self._push = b""
                self._bound_layout = pipeline.layout
        if isinstance(bindings, BoundSets):
            bound = bindings
            if bound is not self._bound:
                bound.check_open()
                if bound not in recording.bound:
                    recording.bound.add(bound.retain())
            if bound.pipeline.layout != pipeline.layout:
                raise InvalidArgumentError(
                    f"these sets were bound for {bound.pipeline.name}, whose layout differs from that of {pipeline.name}"
                )
        else:
            for binding in bindings:
                if type(binding) is BindingSlot:
                    _no_slot(binding)
            bound = pipeline.bind(bindings)  # type: ignore[arg-type]  # no slots here
            recording.bound.add(bound)
        if pipeline.interface.buffer_device_addresses:
            recording.resources.extend(bound.buffers)
            self._push_addresses(pipeline, bound, push)
            return
        if bound is not self._bound:
            self._bound = bound
            recording.resources.extend(bound.buffers)
            if bound.infos is not None:
                fn.vkCmdPushDescriptorSetWithTemplateKHR(
                    handle, pipeline.push_template, pipeline.layout, 0, bound.infos
                )
            self._bind_sets(pipeline, bound)
        if push is not self._push and push != self._push:
            self._check_push(pipeline, push)
            self._push_constants(pipeline, push)
            self._push = bytes(push)

    def _check_push(self, pipeline: ComputePipeline, push: bytes) -> None:
        expected = pipeline.interface.push_constant_bytes - pipeline.interface.constant_offset
        if len(push) != expected:
            raise InvalidArgumentError(f"{pipeline.name} takes {expected} bytes of push constants, got {len(push)}")

    def _push_addresses(self, pipeline: ComputePipeline, bound: BoundSets, push: bytes) -> None:
        """The address ABIs: a table of device addresses, named by a root in the push constants or bound to a set."""
        recording, interface = self._recording, pipeline.interface
        assert recording is not None
        self._check_push(pipeline, push)
        table = None
        if bound.buffers:
            table = self._scratch(8 * len(bound.buffers), MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.DEVICE_VISIBLE)
            table.write(struct.pack(f"<{len(bound.buffers)}Q", *(b.device_address for b in bound.buffers)))
        self._bound, self._push = None, b""
        if interface.table_set is None:
            root = _BDA_ROOT.pack(0 if table is None else table.device_address, 0, 0, 0, 0, 0)
            push = root.ljust(interface.constant_offset, b"\0") + push
        elif table is not None:
            sets = pipeline.bind_table(table)
            recording.bound.add(sets)
            self._bind_sets(pipeline, sets)
        if push:
            self._push_constants(pipeline, push)

    def _bind_sets(self, pipeline: ComputePipeline, bound: BoundSets) -> None:
        for index, descriptor_set in enumerate(bound.sets):
            self.device.fn.vkCmdBindDescriptorSets(
                self._handle, _BIND_POINT_COMPUTE, pipeline.layout, index, 1, descriptor_set.array, 0, NULL
            )

    def _push_constants(self, pipeline: ComputePipeline, push: bytes) -> None:
        words = push if len(push) % 4 == 0 else bytes(push) + bytes(-len(push) % 4)  # as the layout's range
        self.device.fn.vkCmdPushConstants(
            self._handle, pipeline.layout, _COMPUTE_STAGE, 0, len(words), ffi.from_buffer(words)
        )

    def _scratch(self, size: int, memory_type: MemoryTypeFlags) -> Buffer:
        buffer = Buffer.create(self.context.allocator, size, memory_type=memory_type)
        assert self._recording is not None
        self._recording.scratch.append(buffer)
        return buffer

    def record_dispatch(
        self,
        pipeline: ComputePipeline,
        sets: SetPins,
        infos: bytes | None,
        groups: Groups,
        push: bytes,
    ) -> None:
        """``begin``, one ``dispatch`` and ``end`` in one step, in place where the last run has retired.

        For caches of single dispatches, which check the arguments and answer for the memory that ``sets``, or for push
        descriptors ``infos``, name at each submission. Takes over the pins of ``sets``.
        """
        recording, device = self._recording, self.device
        if (
            recording is None
            or recording.queue is None
            or recording.number > recording.queue.completed
            or device.held
            or self.state is not _EXECUTABLE
            or device.lost is not None
        ):
            self.begin()
            self.state = _EXECUTABLE
            self.context.recording.pop(id(self), None)
            recording = self._recording
            assert recording is not None
            native = recording.native
        else:
            native = recording.native
            recording.unpin()
            result = device.fn.vkBeginCommandBuffer(native.handle, self.context.begin_again)
            if result:
                device.check(result, f"beginning {self.name}")
        fn, handle, barriers = device.fn, native.handle, self._barriers
        recording.pinned = sets
        recording.resources = [pipeline]
        fn.vkCmdBindPipeline(handle, _BIND_POINT_COMPUTE, pipeline.handle)
        if infos is not None:
            fn.vkCmdPushDescriptorSetWithTemplateKHR(
                handle, pipeline.push_template, pipeline.layout, 0, ffi.from_buffer(infos)
            )
        for index, (_, descriptor_set) in enumerate(sets):
            fn.vkCmdBindDescriptorSets(
                handle, _BIND_POINT_COMPUTE, pipeline.layout, index, 1, descriptor_set.array, 0, NULL
            )
        if push:
            if len(push) % 4:
                push += bytes(-len(push) % 4)
            fn.vkCmdPushConstants(handle, pipeline.layout, _COMPUTE_STAGE, 0, len(push), ffi.from_buffer(push))
        fn.vkCmdDispatch(handle, *groups)
        barriers.record(handle, *barriers.at_end)
        result = fn.vkEndCommandBuffer(handle)
        if result or device.validation:
            device.check(result, f"recording {self.name}")

    def execution_barrier(self) -> None:
        """Commands after it start once all before it are done, and see what they wrote."""
        if self.state is not _RECORDING:
            self._check_recording()
        if self.binding_capacity and self._handle == NULL:
            self._commands.append((CommandBuffer.execution_barrier, ()))
            return
        if self._timing is True and self._recording is not None and self._recording.timestamps is not None:
            self._recording.timestamps.barrier()
        barriers = self._barriers
        barriers.record(self._handle, *barriers.between)

    def fill(self, target: Buffer | BindingSlot, pattern: bytes, offset: int = 0, size: int | None = None) -> None:
        """Fills bytes ``[offset, offset + size)`` with a pattern of 1, 2 or 4 bytes that starts at ``offset``.

        Any offset and length will do; ``size`` must be a multiple of the pattern's length.
        """
        pattern = as_bytes(pattern)
        if self._defer(CommandBuffer.fill, target, pattern, offset, size):
            return
        target = self._own(target, "fill")
        size = _range(target, offset, target.size - offset if size is None else size, "fill")
        _writable(target, "fill")
        if len(pattern) not in (1, 2, 4):
            raise InvalidArgumentError(f"a fill pattern has 1, 2 or 4 bytes, got {len(pattern)}")
        if size % len(pattern):
            raise InvalidArgumentError(f"{size} bytes are not a multiple of the {len(pattern)}-byte pattern")
        if not size:
            return
        recording = self._recording
        assert recording is not None
        recording.resources.append(target)
        start = target.offset + offset
        word = int.from_bytes(pattern * (4 // len(pattern)), "little")
        if start % 4 == 0 and size % 4 == 0:
            self.device.fn.vkCmdFillBuffer(self._handle, target.handle, start, size, word)
            return
        for pipeline, window, groups, push in self.context.builtins.fill(self.family, target, offset, size, word):
            self.dispatch(pipeline, [window], groups, push)

    def update(self, target: Buffer | BindingSlot, data: bytes, offset: int = 0) -> None:
        """Writes bytes, captured now, at ``offset``; any offset and length will do. For small data (64 KiB or so)."""
        data = as_bytes(data)
        if self._defer(CommandBuffer.update, target, data, offset):
            return
        target = self._own(target, "update")
        _range(target, offset, len(data), "update")
        _writable(target, "update")
        if not data:
            return
        recording, fn = self._recording, self.device.fn
        assert recording is not None
        recording.resources.append(target)
        start = target.offset + offset
        if start % 4 == 0 and len(data) % 4 == 0:
            for at in range(0, len(data), _MOST_UPDATE_BYTES):
                piece = data[at : at + _MOST_UPDATE_BYTES]
                fn.vkCmdUpdateBuffer(self._handle, target.handle, start + at, len(piece), ffi.from_buffer(piece))
            return
        # The API updates whole words only; a copy has no such rule. Stage what is captured and copy it.
        staged = self._scratch(len(data), MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.DEVICE_VISIBLE)
        staged.write(data)
        self._copy(staged, 0, target, offset, len(data))

    def copy(
        self,
        source: Buffer | BindingSlot,
        target: Buffer | BindingSlot,
        size: int | None = None,
        *,
        source_offset: int = 0,
        target_offset: int = 0,
    ) -> None:
        """Copies bytes at any alignment; the ranges must not overlap.

        Args:
            source, target: buffers, or slots.
            size: bytes; ``None`` goes to the end of the source.
            source_offset, target_offset: bytes.
        """
        if self._defer_two(source, target, size, source_offset, target_offset):
            return
        source, target = self._own(source, "copy source"), self._own(target, "copy target")
        size = _range(source, source_offset, source.size - source_offset if size is None else size, "copy source")
        _range(target, target_offset, size, "copy target")
        _usage(source, BufferUsage.TRANSFER_SOURCE, "copy source")
        _writable(target, "copy target")
        if source.block_serial == target.block_serial and size:
            first, second = source.offset + source_offset, target.offset + target_offset
            if abs(first - second) < size:
                raise InvalidArgumentError(
                    f"copy of {size} bytes: source and target overlap by {size - abs(first - second)} bytes"
                )
        if size:
            recording = self._recording
            assert recording is not None
            recording.resources += (source, target)
            self._copy(source, source_offset, target, target_offset, size)

    def _copy(self, source: Buffer, source_offset: int, target: Buffer, target_offset: int, size: int) -> None:
        region = ffi.new("VkBufferCopy *")
        region.srcOffset = source.offset + source_offset
        region.dstOffset = target.offset + target_offset
        region.size = size
        self.device.fn.vkCmdCopyBuffer(self._handle, source.handle, target.handle, 1, region)

    def begin_label(self, label: str) -> None:
        """Opens a debug label, which tools such as RenderDoc show around the commands in it."""
        self._check_recording()
        self._labels += 1
        if self.binding_capacity and self._handle == NULL:
            self._commands.append((CommandBuffer.begin_label, (label,)))
        elif self.device.debug_utils:
            info = new("VkDebugUtilsLabelEXT", pLabelName=label)
            self.device.fn.vkCmdBeginDebugUtilsLabelEXT(self._handle, info)

    def end_label(self) -> None:
        """Closes the debug label opened last.

        Raises:
            FailedPreconditionError: none is open.
        """
        self._check_recording()
        if not self._labels:
            raise FailedPreconditionError(f"command buffer {self.name} has no open label; begin_label() first")
        self._labels -= 1
        if self.binding_capacity and self._handle == NULL:
            self._commands.append((CommandBuffer.end_label, ()))
        elif self.device.debug_utils:
            self.device.fn.vkCmdEndDebugUtilsLabelEXT(self._handle)

    def _own(self, buffer: Buffer | BindingSlot, what: str) -> Buffer:
        """The buffer, if it can be named in these commands."""
        if not isinstance(buffer, Buffer):
            _no_slot(buffer)
            raise InvalidArgumentError(f"{what} takes a buffer, got {type(buffer).__name__}")
        if buffer.device is not self.device:
            raise InvalidArgumentError(f"{what}: the buffer belongs to another device; copy it over through the host")
        return buffer

    # -- slots ---------------------------------------------------------------------------------------

    def _defer(self, command: Callable[..., None], target: Buffer | BindingSlot, *arguments: object) -> bool:
        self._check_recording()
        if not self.binding_capacity:
            _no_slot(target)
            return False
        if self._handle != NULL:
            return False
        self._check_slot(target)
        self._commands.append((command, (target, *arguments)))
        return True

    def _defer_two(
        self,
        source: Buffer | BindingSlot,
        target: Buffer | BindingSlot,
        size: int | None,
        source_offset: int,
        target_offset: int,
    ) -> bool:
        self._check_recording()
        if not self.binding_capacity:
            _no_slot(source)
            _no_slot(target)
            return False
        if self._handle != NULL:
            return False
        self._check_slot(source)
        self._check_slot(target)
        self._commands.append((_copy_positional, (source, target, size, source_offset, target_offset)))
        return True

    def _check_slots(self, pipeline: ComputePipeline, bindings: BoundSets | Sequence[Buffer | BindingSlot]) -> None:
        if isinstance(bindings, BoundSets):
            return
        if len(bindings) != pipeline.interface.binding_count:
            raise InvalidArgumentError(
                f"{pipeline.name} takes {pipeline.interface.binding_count} buffer(s), got {len(bindings)}"
            )
        for binding in bindings:
            self._check_slot(binding)

    def _check_slot(self, binding: Buffer | BindingSlot) -> None:
        if not isinstance(binding, BindingSlot):
            self._own(binding, "binding")
        elif not 0 <= binding.slot < self.binding_capacity:
            raise OutOfRangeError(
                f"slot {binding.slot} is outside the binding table of {self.binding_capacity} slot(s) of {self.name}"
            )

    def _replay(self, table: Sequence[Buffer]) -> Recording:
        """Records the deferred commands for a binding table."""
        self._open()
        recording = self._recording
        assert recording is not None
        self.state = _RECORDING
        try:
            for command, arguments in self._commands:
                command(self, *(_resolve(argument, table) for argument in arguments))
            self._finish()
        except Exception:
            self.context.recycle(recording)  # no queue has seen it
            raise
        finally:
            if not self.device.is_closed:
                self.state = _EXECUTABLE
            self._recording = None
            self._handle = NULL
        return recording

    # -- submission (for Queue) ----------------------------------------------------------------------

    def prepare(self, bindings: Sequence[Buffer] | None) -> Recording:
        """The native commands to submit, after the checks that a submission needs. For ``Queue``."""
        if self.state is not _EXECUTABLE:
            self._check_executable()
        if self.binding_capacity:
            recording = self._recording_for(bindings or ())
            if self.one_shot:
                self.state = _SUBMITTED
            return recording
        if bindings:
            raise InvalidArgumentError(f"{self.name} has no binding slots, but a binding table was given")
        assert self._recording is not None
        recording = self._recording
        if self._checked_epoch != self.device.close_epoch:
            self._check_open(recording)
        if self.one_shot:
            self.state = _SUBMITTED
        return recording

    def unprepare(self, recording: Recording) -> None:
        """Takes the ``prepare`` that gave ``recording`` back, after a submission that failed."""
        if self.state is _SUBMITTED and self._holds(recording):
            self.state = _EXECUTABLE

    def _holds(self, recording: Recording) -> bool:
        """Whether it is of the last ``begin`` and not evicted since."""
        return recording is self._recording or any(recording is one for one in self._recordings.values())

    def _recording_for(self, table: Sequence[Buffer]) -> Recording:
        if len(table) < self.binding_capacity:
            raise InvalidArgumentError(
                f"{self.name} has {self.binding_capacity} binding slot(s); the table given has {len(table)}"
            )
        if self._checked_epoch != self.device.close_epoch:
            for recording in self._recordings.values():
                self.context.release(recording)
            self._recordings.clear()
            self._checked_epoch = self.device.close_epoch
        parts: list[int] = []
        for buffer in table:
            if buffer.is_closed:
                raise ClosedError(f"{self.name}: a buffer of the binding table was closed")
            self._own(buffer, "the binding table")
            parts += (buffer.block_serial, buffer.offset, buffer.size)
        key = tuple(parts)
        found = self._recordings.pop(key, None)
        if found is None:
            found = self._replay(table)
            if len(self._recordings) >= _MOST_RECORDINGS:
                oldest = next(iter(self._recordings))
                self.context.release(self._recordings.pop(oldest))
        self._recordings[key] = found  # last in order: most recently used
        return found

    def _check_open(self, recording: Recording) -> None:
        for resource in recording.resources:
            if resource.is_closed:
                what = f"pipeline {resource.name}" if isinstance(resource, ComputePipeline) else "a buffer"
                raise ClosedError(f"{self.name} cannot run: {what} that it uses was closed; record it again")
        self._checked_epoch = self.device.close_epoch

    @property
    def timestamps(self) -> TimestampRecorder | None:
        """What writes and reads the timestamps of its latest recording; ``None`` without."""
        recording = self._recording or next(reversed(self._recordings.values()), None)
        return None if recording is None else recording.timestamps

    def timings(self) -> tuple[DispatchTiming, ...]:
        """Device time of each dispatch, in recording order, of the last run; call it once that run has finished.

        With ``timing="span"`` it is one: from the device's begin with the commands to the end of all of them.

        Raises:
            FailedPreconditionError: it was not created with ``timing=True``, or has not finished a run.
        """
        self.device.check_usable()
        recording = self._recording or next(reversed(self._recordings.values()), None)
        if recording is None or recording.timestamps is None:
            raise FailedPreconditionError(
                f"{self.name} has no timings: create it with timing=True, record, submit and wait first"
            )
        if recording.queue is None:
            raise FailedPreconditionError(f"{self.name} was not submitted yet; submit it and wait first")
        try:
            wait_timeline(self.device, recording.queue.timeline, recording.number, 0.1, f"{self.name} to finish")
        except DeadlineExceededError:
            raise FailedPreconditionError(f"{self.name} has not finished its run; wait for it first") from None
        return recording.timestamps.read()

    # -- end -----------------------------------------------------------------------------------------

    def retired(self, recording: Recording) -> None:
        """A one-shot buffer has run: its native commands go back. For ``Queue``."""
        # After another begin() or close() the recording is no longer this buffer's to give back.
        if not self._timing and self._recording is recording:
            self._recording = None
            self.context.recycle(recording)

    def device_closed(self) -> None:
        """The device is being closed while this is recorded."""
        self.state = _CLOSED

    def _drop(self) -> None:
        self.context.recording.pop(id(self), None)
        if self._recording is not None:
            self.context.release(self._recording)
            self._recording = None
        for recording in self._recordings.values():
            self.context.release(recording)
        self._recordings.clear()
        self._commands.clear()
        self._handle = NULL

    def close(self) -> None:
        """Gives everything back, once no queue runs it any more; idempotent."""
        if self.state is not _CLOSED:
            self._drop()
            self.state = _CLOSED

    def __enter__(self) -> CommandBuffer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _check_recording(self) -> None:
        if self.state is _RECORDING:
            return
        if self.state is _CLOSED:
            raise ClosedError(f"command buffer {self.name} was closed")
        raise FailedPreconditionError(
            f"command buffer {self.name} is {self.state.value}, not being recorded: begin() it"
        )

    def _check_executable(self) -> None:
        if self.state is _CLOSED:
            raise ClosedError(f"command buffer {self.name} was closed")
        if self.state is _SUBMITTED:
            raise FailedPreconditionError(
                f"command buffer {self.name} is one-shot and was submitted; record it again, or create it reusable"
            )
        if self.state is not _EXECUTABLE:
            raise FailedPreconditionError(
                f"command buffer {self.name} is {self.state.value}; begin(), record and end() it before submitting"
            )

    def __repr__(self) -> str:
        kind = "one-shot" if self.one_shot else "reusable"
        return f"<CommandBuffer {self.name}, {kind}, {self.state.value}>"


def _copy_positional(
    commands: CommandBuffer, source: Buffer, target: Buffer, size: int | None, source_offset: int, target_offset: int
) -> None:
    commands.copy(source, target, size, source_offset=source_offset, target_offset=target_offset)


def _resolve(argument: object, table: Sequence[Buffer]) -> object:
    if isinstance(argument, BindingSlot):
        entry = table[argument.slot]
        return entry if not argument.offset and argument.size is None else entry.subspan(argument.offset, argument.size)
    if isinstance(argument, (list, tuple)) and any(isinstance(item, BindingSlot) for item in argument):
        return [_resolve(item, table) for item in argument]
    return argument


def _no_slot(binding: object) -> None:
    if isinstance(binding, BindingSlot):
        raise InvalidArgumentError("this command buffer has no binding slots; create it with binding_capacity")


def _range(buffer: Buffer, offset: int, size: int, what: str) -> int:
    if buffer.is_closed:
        raise ClosedError(f"{what}: the buffer was closed")
    if offset < 0 or size < 0 or offset + size > buffer.size:
        raise OutOfRangeError(
            f"{what}: bytes [{offset}, {offset + size}) do not lie within the buffer of {buffer.size} bytes"
        )
    return size


def _writable(buffer: Buffer, what: str) -> None:
    _usage(buffer, BufferUsage.TRANSFER_TARGET, what)
    if not buffer.access & MemoryAccess.WRITE:
        raise PermissionDeniedError(f"{what}: the buffer may only be read: its access bits have no WRITE")


def _usage(buffer: Buffer, needed: BufferUsage, what: str) -> None:
    if not buffer.usage & needed:
        raise PermissionDeniedError(f"{what}: the buffer was created without usage {needed.name}")
