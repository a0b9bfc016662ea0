"""Recording: native commands, or commands that are noted until a binding table fills their slots.

With ``binding_capacity`` commands may name slots instead of buffers. Commands are checked and noted, and recorded
natively once a table of buffers fills the slots.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ...hal.buffer import Buffer as AnyBuffer
from ...hal.command_buffer import BindingSlot, CommandBufferState, refuse_slot
from ...hal.memory import MemoryTypeFlags
from ...status import ClosedError, FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from ..images.image import Image
from ..images.image_view import CombinedImageSampler, ImageView
from ..images.sampler import Sampler
from ..images.texel_buffer import TexelBuffer
from ..instance.logical_device import LogicalDevice, guarded
from ..memory.buffer import Buffer
from ..pipelines.pipeline import BoundSets, ComputePipeline
from ..pipelines.resources import Resource, noun_of
from ..vulkan.functions import NULL, ffi, new
from .context import CommandContext
from .recording import Named, Recording
from .recording_cache import RecordingCache
from .timestamps import TimestampRecorder

if TYPE_CHECKING:
    from ..vulkan.functions import CData

# An enum's member, looked up by name, takes five times as long as a global.
_RECORDING: Final = CommandBufferState.RECORDING

# The argument for a descriptor: a resource or a slot, or a sequence of them for an array.
Bound: TypeAlias = AnyBuffer | Resource | BindingSlot | Sequence[AnyBuffer | Resource | BindingSlot | None] | None
_NAMED: Final = (Buffer, ComputePipeline, ImageView, CombinedImageSampler, Sampler, TexelBuffer, Image)


class CommandRecorder:
    """The recording half of ``CommandBuffer``, which documents the attributes."""

    MAX_RECORDINGS = 16  # binding tables whose native commands are kept

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
        if timing not in (False, True, "span"):
            raise InvalidArgumentError(f'timing is False, True (each dispatch) or "span", got {timing!r}')
        self.context = context
        self.device: LogicalDevice
        device = self.device = context.device
        self.name = name
        self.one_shot = one_shot
        self.binding_capacity = binding_capacity
        self.family: int = device.plan.compute_family if family is None else family
        self.state = CommandBufferState.INITIAL
        self._timing = timing
        if timing:
            context.check_timestamps(self.family)
        self._rundown = device.rundown
        # The guard's lock of the recording thread, looked up once: the guard accepts any thread's lock.
        self._inside: threading.RLock = device.guard.lock
        self._barriers = context.barriers[self.family]
        self._groups_max = device.groups_max
        self._dispatch = device.fn.vkCmdDispatch
        self._push_native = device.fn.vkCmdPushConstants
        self._noting = binding_capacity > 0
        self._commands: list[tuple[Callable[..., None], tuple[object, ...], dict[str, int]]] = []
        self._static: list[Named] = []  # resources that the noted commands name directly
        self._recordings: RecordingCache[bytes, Recording] | None = (
            RecordingCache(self.MAX_RECORDINGS, context.release) if binding_capacity else None
        )
        self._checked_epoch = -1  # the device's epoch when all named resources were last checked to be open
        self.ready_epoch = -1
        self.generation = 0
        self._labels = 0
        self._recording: Recording | None = None
        self._timestamps: TimestampRecorder | None = None  # of each dispatch
        self._handle: CData = NULL
        self._pipeline: ComputePipeline | None = None
        self._bound: BoundSets | None = None
        self._bound_layout: CData = NULL
        self._push: bytes = b""

    @guarded
    def _open(self) -> None:
        device, context = self.device, self.context
        self._inside = device.guard.lock
        native = context.take(self.family)
        if device.validation:  # the layers' messages name the command buffer
            device.set_name("VK_OBJECT_TYPE_COMMAND_BUFFER", native.handle, self.name)
        info = context.begin_once if self.one_shot else context.begin_again
        result = device.fn.vkBeginCommandBuffer(native.handle, info)
        if result:
            context.give_back(native)
            device.check(result, f"beginning {self.name}")
        recording = self._recording = Recording(native)
        self._handle = native.handle
        self._pipeline = self._bound = self._timestamps = None
        self._bound_layout = NULL
        self._push = b""
        if self._timing:
            span = self._timing == "span"
            timestamps = TimestampRecorder(context.query_pools, native.handle, self.family, span=span)
            recording.timestamps = timestamps
            if span:
                timestamps.begin(self.name, None)
            else:
                self._timestamps = timestamps

    @guarded
    def _finish(self) -> None:
        barriers, fn, device = self._barriers, self.device.fn, self.device
        if self._timing == "span" and self._recording is not None and self._recording.timestamps is not None:
            self._recording.timestamps.end()
        barriers.record(self._handle, *barriers.at_end)
        result = fn.vkEndCommandBuffer(self._handle)
        if result or device.validation:
            device.check(result, f"ending {self.name}")

    def execution_barrier(self) -> None:
        """Makes later commands start after earlier ones are done, and see their writes."""
        if self.state is not _RECORDING:
            self.check_recording()
        if self._noting:
            self._note(CommandRecorder.execution_barrier)
            return
        if self._timestamps is not None:
            self._timestamps.barrier()
        barriers = self._barriers
        with self._inside:
            if self._rundown.is_over:
                self.device.check_not_ended()
            barriers.record(self._handle, *barriers.between)

    @guarded
    def begin_label(self, label: str) -> None:
        """Opens a debug label, which tools such as RenderDoc show around its commands."""
        self.check_recording()
        if self._noting:
            self._note(CommandRecorder.begin_label, label)
        elif self.device.debug_utils:
            info = new("VkDebugUtilsLabelEXT", pLabelName=label)
            self.device.fn.vkCmdBeginDebugUtilsLabelEXT(self._handle, info)
        self._labels += 1

    @guarded
    def end_label(self) -> None:
        """Closes the innermost debug label; FailedPreconditionError if none is open."""
        self.check_recording()
        if not self._labels:
            raise FailedPreconditionError(f"command buffer {self.name} has no open label; begin_label() first")
        if self._noting:
            self._note(CommandRecorder.end_label)
        elif self.device.debug_utils:
            self.device.fn.vkCmdEndDebugUtilsLabelEXT(self._handle)
        self._labels -= 1

    def check_recording(self) -> None:
        """Raises unless it is being recorded."""
        if self.state is _RECORDING:
            return
        if self.state is CommandBufferState.CLOSED:
            raise ClosedError(f"command buffer {self.name} was closed")
        raise FailedPreconditionError(
            f"command buffer {self.name} is {self.state.value}, not being recorded: begin() it"
        )

    def _scratch(self, size: int, memory_type: MemoryTypeFlags = MemoryTypeFlags.DEVICE_LOCAL) -> Buffer:
        """Returns a buffer that lives as long as the recording."""
        buffer = Buffer.create(self.context.allocator, size, memory_type=memory_type)
        assert self._recording is not None
        self._recording.scratch.append(buffer)
        return buffer

    def _copy(self, source: Buffer, source_offset: int, target: Buffer, target_offset: int, size: int) -> None:
        region = ffi.new("VkBufferCopy *")
        region.srcOffset = source.offset + source_offset
        region.dstOffset = target.offset + target_offset
        region.size = size
        self.device.fn.vkCmdCopyBuffer(self._handle, source.handle, target.handle, 1, region)

    def _own(self, buffer: AnyBuffer | BindingSlot, subject: str) -> Buffer:
        if not isinstance(buffer, Buffer):
            refuse_slot(buffer)
            raise InvalidArgumentError(f"{subject} takes a buffer, got {type(buffer).__name__}")
        if buffer.device is not self.device:
            raise InvalidArgumentError(
                f"{subject}: the buffer belongs to another device; copy it over through the host"
            )
        return buffer

    def _own_resource(self, resource: object, subject: str) -> None:
        if not isinstance(resource, _NAMED) or isinstance(resource, (Image, ComputePipeline)):
            self._own(resource, subject)  # type: ignore[arg-type]  # raises
        elif resource.device is not self.device:
            raise InvalidArgumentError(
                f"{subject}: {noun_of(resource)} belongs to another device; copy it over through the host"
            )

    def _note(self, command: Callable[..., None], *arguments: object, **offsets: int) -> None:
        """Keeps a command until a table fills its slots, and the resources that it names directly."""
        self._commands.append((command, arguments, offsets))
        for argument in arguments:
            if isinstance(argument, _NAMED):
                self._static.append(argument)
            elif isinstance(argument, BoundSets):
                self._static += argument.resources
            elif isinstance(argument, tuple):
                self._static += [item for item in argument if isinstance(item, _NAMED)]

    def _check_slots(
        self, pipeline: ComputePipeline, bindings: BoundSets | Sequence[Bound]
    ) -> BoundSets | tuple[object, ...]:
        if isinstance(bindings, BoundSets):
            return bindings
        flat = pipeline.interface.one_a_descriptor(bindings, pipeline.name)
        for binding in flat:
            if binding is not None:
                self._check_slot(binding)
        return tuple(flat)

    def _check_slot(self, binding: object) -> None:
        if not isinstance(binding, BindingSlot):
            self._own_resource(binding, "binding")
        elif not 0 <= binding.slot < self.binding_capacity:
            raise OutOfRangeError(
                f"slot {binding.slot} is outside the binding table of {self.binding_capacity} slot(s) of {self.name}"
            )
