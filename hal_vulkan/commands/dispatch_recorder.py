"""Dispatches of a command buffer: binds what differs from the previous dispatch, and runs the pipeline."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ...status import ClosedError, InvalidArgumentError, PermissionDeniedError
from ..memory.buffer import Buffer
from ..memory.memory_type import BufferUsage, MemoryTypeFlags
from ..vulkan.functions import NULL, ffi
from .pipeline import BoundSets, ComputePipeline, check_groups
from .recorder import BindingSlot, CommandBufferState, CommandRecorder, refuse_slot

Groups = tuple[int, int, int]

BIND_POINT_COMPUTE: Final = 1
COMPUTE_STAGE: Final = 0x20
_STAGING: Final = MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.DEVICE_VISIBLE
_BDA_ROOT: Final = struct.Struct("<QQIIII")
_RECORDING: Final = CommandBufferState.RECORDING


class DispatchRecorder(CommandRecorder):
    """A recorder of dispatches."""

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
            bindings: a buffer for each descriptor, in order of (set, binding, array element), or the result of
                ``pipeline.bind``, which saves a look-up; a ``BindingSlot`` for a buffer that comes with the
                submission.
            groups: workgroup counts (x, y, z).
            push: the push constants, from offset 0, of the size that the pipeline declares (for the address ABI the
                HAL constants alone).

        Raises:
            InvalidArgumentError: a wrong number of buffers, wrong push-constant size, or a misaligned offset.
            ResourceExhaustedError: more workgroups than the device dispatches at once.
        """
        if self.state is not _RECORDING:
            self._check_recording()
        if self._noting:
            kept = self._check_slots(pipeline, bindings)
            check_groups(pipeline, groups)
            _check_push(pipeline, push)
            self._note(DispatchRecorder.dispatch, pipeline, kept, groups, bytes(push))
            return
        x, y, z = groups
        most = self._groups_max
        if x < 0 or y < 0 or z < 0 or x > most[0] or y > most[1] or z > most[2]:
            check_groups(pipeline, groups)
        self._prepare_dispatch(pipeline, bindings, push)
        timestamps = self._timestamps
        if timestamps is None:
            self._dispatch(self._handle, x, y, z)
        else:
            timestamps.begin(pipeline.name, groups)
            self._dispatch(self._handle, x, y, z)
            timestamps.end()

    def dispatch_indirect(
        self,
        pipeline: ComputePipeline,
        bindings: BoundSets | Sequence[Buffer | BindingSlot],
        parameters: Buffer | BindingSlot,
        offset: int = 0,
        push: bytes = b"",
    ) -> None:
        """Runs a pipeline over workgroup counts in a buffer: three uint32 at byte ``offset``, a multiple of 4.

        The device reads the counts when the command runs; counts past its limits are undefined behaviour.
        """
        self._check_recording()
        if self._noting:
            kept = self._check_slots(pipeline, bindings)
            self._check_slot(parameters)
            _check_push(pipeline, push)
            self._note(DispatchRecorder.dispatch_indirect, pipeline, kept, parameters, offset, bytes(push))
            return
        parameters = self._own(parameters, "indirect parameters")
        parameters.check_range(offset, 12, "indirect parameters")
        if (parameters.offset + offset) % 4:
            raise InvalidArgumentError(f"indirect parameters lie at a multiple of 4 bytes, got offset {offset}")
        check_usage(parameters, BufferUsage.DISPATCH_INDIRECT_PARAMETERS, "indirect parameters")
        self._prepare_dispatch(pipeline, bindings, push)
        assert self._recording is not None
        self._recording.resources.append(parameters)
        timestamps = self._timestamps
        if timestamps is not None:
            timestamps.begin(pipeline.name, None)
        self.device.fn.vkCmdDispatchIndirect(self._handle, parameters.handle, parameters.offset + offset)
        if timestamps is not None:
            timestamps.end()

    def _prepare_dispatch(
        self, pipeline: ComputePipeline, bindings: BoundSets | Sequence[Buffer | BindingSlot], push: bytes
    ) -> None:
        """Binds what differs from the previous dispatch."""
        recording, handle, fn = self._recording, self._handle, self.device.fn
        assert recording is not None
        if pipeline is not self._pipeline:
            if pipeline.is_closed:
                raise ClosedError(f"pipeline {pipeline.name} was closed")
            if pipeline.device is not self.device:
                raise InvalidArgumentError(
                    f"pipeline {pipeline.name} belongs to another device; make one on this device"
                )
            _check_push(pipeline, push)
            fn.vkCmdBindPipeline(handle, BIND_POINT_COMPUTE, pipeline.handle)
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
                if bound.pins:
                    recording.share(bound)
            if bound.pipeline.layout != pipeline.layout:
                raise InvalidArgumentError(
                    f"these sets were bound for {bound.pipeline.name}, whose layout differs from that of "
                    f"{pipeline.name}"
                )
        else:
            for binding in bindings:
                if type(binding) is BindingSlot:
                    refuse_slot(binding)
            bound = pipeline.bind(bindings)  # type: ignore[arg-type]  # no slots here
            recording.take_over(bound)
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
            else:
                self._bind_sets(pipeline, bound)
        if push is not self._push and push != self._push:
            _check_push(pipeline, push)
            self._push_constants(pipeline, push)
            self._push = bytes(push)

    def _push_addresses(self, pipeline: ComputePipeline, bound: BoundSets, push: bytes) -> None:
        """The address ABIs: a table of device addresses, named by a root in the push constants or bound to a set."""
        recording, interface = self._recording, pipeline.interface
        assert recording is not None
        _check_push(pipeline, push)
        table = None
        if bound.buffers:
            table = self._stage(struct.pack(f"<{len(bound.buffers)}Q", *(b.device_address for b in bound.buffers)))
        self._bound, self._push = None, b""
        if interface.table_set is None:
            root = _BDA_ROOT.pack(0 if table is None else table.device_address, 0, 0, 0, 0, 0)
            push = root.ljust(interface.constant_offset, b"\0") + push
        elif table is not None:
            sets = pipeline.bind_table(table)
            recording.take_over(sets)
            self._bind_sets(pipeline, sets)
        if push:
            self._push_constants(pipeline, push)

    def _bind_sets(self, pipeline: ComputePipeline, bound: BoundSets) -> None:
        for index, (_, descriptor_set) in enumerate(bound.pins):
            self.device.fn.vkCmdBindDescriptorSets(
                self._handle, BIND_POINT_COMPUTE, pipeline.layout, index, 1, descriptor_set.array, 0, NULL
            )

    def _push_constants(self, pipeline: ComputePipeline, push: bytes) -> None:
        words = push if len(push) % 4 == 0 else bytes(push) + bytes(-len(push) % 4)  # as the layout's range
        self.device.fn.vkCmdPushConstants(
            self._handle, pipeline.layout, COMPUTE_STAGE, 0, len(words), ffi.from_buffer(words)
        )

    def _stage(self, data: bytes) -> Buffer:
        """A buffer of these bytes that lives as long as the recording."""
        buffer = Buffer.create(self.context.allocator, len(data), memory_type=_STAGING)
        assert self._recording is not None
        self._recording.scratch.append(buffer)
        buffer.write(data)
        return buffer


def _check_push(pipeline: ComputePipeline, push: bytes) -> None:
    expected = pipeline.interface.push_constant_bytes - pipeline.interface.constant_offset
    if len(push) != expected:
        raise InvalidArgumentError(f"{pipeline.name} takes {expected} bytes of push constants, got {len(push)}")


def check_usage(buffer: Buffer, needed: BufferUsage, what: str) -> None:
    """Raises if the buffer was created without a usage."""
    if not buffer.usage & needed:
        raise PermissionDeniedError(f"{what}: the buffer was created without usage {needed.name}")
