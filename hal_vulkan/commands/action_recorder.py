"""The actions of a command buffer: dispatches, fills, updates and copies."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ...hal.buffer import Buffer as AnyBuffer
from ...hal.command_buffer import BindingSlot, CommandBufferState, refuse_slot
from ...hal.memory import BufferUsage, MemoryTypeFlags, as_bytes
from ...status import ClosedError, InvalidArgumentError
from ..images.format_features import ImageUsage
from ..images.image import Image
from ..images.sampler import Filter
from ..instance.logical_device import guarded
from ..memory.buffer import Buffer
from ..pipelines.descriptors import BIND_POINT_COMPUTE, COMPUTE_STAGE
from ..pipelines.pipeline import BoundSets, ComputePipeline, check_groups
from ..pipelines.pipeline_interface import PUSHED_NUMBERS
from ..vulkan.functions import NULL, ffi
from .image_recorder import ImageRecorder
from .recorder import Bound

Groups = tuple[int, int, int]

_STAGING: Final = MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.DEVICE_VISIBLE
_BDA_ROOT: Final = struct.Struct("<QQIIII")
_MAX_UPDATE_BYTES: Final = 65536
_RECORDING: Final = CommandBufferState.RECORDING


class ActionRecorder(ImageRecorder):
    """A recorder of dispatches, and of transfers at any alignment: a kernel fills ranges of partial words."""

    def dispatch(
        self,
        pipeline: ComputePipeline,
        bindings: BoundSets | Sequence[Bound],
        groups: Groups,
        push: bytes = b"",
    ) -> None:
        """Runs a pipeline over ``groups`` workgroups (x, y, z).

        Args:
            bindings: the arguments of ``pipeline.bind``, or its result, which saves a look-up; a ``BindingSlot`` stands
                for a resource that the submission supplies.
            push: the push constants, from offset 0, of the size that the pipeline declares (for the address ABI only
                the HAL constants).

        Raises:
            InvalidArgumentError: the number of buffers or the size of push constants is wrong, or an offset is
                misaligned.
            ResourceExhaustedError: there are more workgroups than the device dispatches at once.
        """
        if self.state is not _RECORDING:
            self.check_recording()
        if self._noting:
            kept = self._check_slots(pipeline, bindings)
            check_groups(pipeline, groups)
            _check_push(pipeline, push)
            self._note(ActionRecorder.dispatch, pipeline, kept, groups, bytes(push))
            return
        with self._inside:
            if self._rundown.is_over:
                self.device.check_not_ended()
            x, y, z = groups
            most = self._groups_max
            if x < 0 or y < 0 or z < 0 or x > most[0] or y > most[1] or z > most[2]:
                check_groups(pipeline, groups)
            bound = self._bound
            if bound is None or bindings is not bound or pipeline is not self._pipeline:
                self._prepare_dispatch(pipeline, bindings, push)
            elif push is not self._push and push != self._push:
                # Only the push constants differ from the previous dispatch (benchmarks/submit_wait.py).
                size = len(push)
                if size != len(self._push):
                    _check_push(pipeline, push)
                if type(push) is bytes and not size & 3:
                    self._push_native(self._handle, pipeline.layout, COMPUTE_STAGE, 0, size, push)
                    self._push = push
                else:
                    self._push_constants(pipeline, push)
                    self._push = bytes(push)
            timestamps = self._timestamps
            if timestamps is None:
                self._dispatch(self._handle, x, y, z)
            else:
                timestamps.begin(pipeline.name, groups)
                self._dispatch(self._handle, x, y, z)
                timestamps.end()

    @guarded
    def dispatch_indirect(
        self,
        pipeline: ComputePipeline,
        bindings: BoundSets | Sequence[Bound],
        parameters: AnyBuffer | BindingSlot,
        offset: int = 0,
        push: bytes = b"",
    ) -> None:
        """Runs a pipeline over workgroup counts in a buffer: three uint32 at byte ``offset``, a multiple of 4.

        The device reads the counts when the command runs; counts past its limits are undefined behaviour.
        """
        self.check_recording()
        if self._noting:
            kept = self._check_slots(pipeline, bindings)
            self._check_slot(parameters)
            _check_push(pipeline, push)
            self._note(ActionRecorder.dispatch_indirect, pipeline, kept, parameters, offset, bytes(push))
            return
        parameters = self._own(parameters, "indirect parameters")
        parameters.check_range(offset, 12, "indirect parameters")
        if (parameters.offset + offset) % 4:
            raise InvalidArgumentError(f"indirect parameters lie at a multiple of 4 bytes, got offset {offset}")
        parameters.check_usage(BufferUsage.DISPATCH_INDIRECT_PARAMETERS, "indirect parameters")
        self._prepare_dispatch(pipeline, bindings, push)
        assert self._recording is not None
        self._recording.resources.append(parameters)
        timestamps = self._timestamps
        if timestamps is not None:
            timestamps.begin(pipeline.name, None)
        self.device.fn.vkCmdDispatchIndirect(self._handle, parameters.handle, parameters.offset + offset)
        if timestamps is not None:
            timestamps.end()

    def _prepare_dispatch(self, pipeline: ComputePipeline, bindings: BoundSets | Sequence[Bound], push: bytes) -> None:
        """Binds the pipeline, sets and constants that differ from the previous dispatch."""
        recording, handle, fn = self._recording, self._handle, self.device.fn
        assert recording is not None
        if pipeline.shift is not None and not isinstance(bindings, BoundSets):
            pipeline, bindings = pipeline.aligned(bindings)  # type: ignore[assignment]  # the same kinds
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
            if pipeline.report is not None:
                recording.reports = (*recording.reports, pipeline.report)
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
            recording.resources.extend(bound.resources)
            self._push_addresses(pipeline, bound, push)
            return
        if bound is not self._bound:
            self._bound = bound
            recording.resources.extend(bound.resources)
            if bound.infos is not None:
                fn.vkCmdPushDescriptorSetWithTemplateKHR(
                    handle, pipeline.push_template, pipeline.layout, 0, bound.infos
                )
            else:
                self._bind_sets(pipeline, bound)
        if pipeline.interface.pushes_addresses:
            _check_push(pipeline, push)
            addresses = [buffer.device_address for buffer in bound.resources]  # type: ignore[union-attr]  # buffers alone
            push = push + struct.pack(f"<{len(addresses)}Q", *addresses) + PUSHED_NUMBERS
            self._push_constants(pipeline, push)
            self._bound, self._push = None, b""
        elif push is not self._push and push != self._push:
            _check_push(pipeline, push)
            self._push_constants(pipeline, push)
            self._push = bytes(push)

    def _push_addresses(self, pipeline: ComputePipeline, bound: BoundSets, push: bytes) -> None:
        """Passes a table of device addresses for the address ABIs, by a root in the push constants or by a set."""
        recording, interface = self._recording, pipeline.interface
        assert recording is not None
        _check_push(pipeline, push)
        table = None
        if bound.resources:
            addresses = [buffer.device_address for buffer in bound.resources]  # type: ignore[union-attr]  # buffers alone
            table = self._stage(struct.pack(f"<{len(addresses)}Q", *addresses))
        self._bound, self._push = None, b""
        if interface.table_set is None:
            root = _BDA_ROOT.pack(0 if table is None else table.device_address, 0, 0, 0, 0, 0)
            push = root.ljust(interface.constant_offset, b"\0") + push
        if pipeline.report is not None or (interface.table_set is not None and table is not None):
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
        words = push if len(push) % 4 == 0 else bytes(push) + bytes(-len(push) % 4)  # padded like the layout's range
        self.device.fn.vkCmdPushConstants(
            self._handle, pipeline.layout, COMPUTE_STAGE, 0, len(words), ffi.from_buffer(words)
        )

    def _stage(self, data: bytes) -> Buffer:
        buffer = self._scratch(len(data), _STAGING)
        buffer.write(data)
        return buffer

    @guarded
    def fill(self, target: AnyBuffer | BindingSlot, pattern: bytes, offset: int = 0, size: int | None = None) -> None:
        """Fills bytes ``[offset, offset + size)`` with a pattern of 1, 2 or 4 bytes that starts at ``offset``.

        Offset and size need no alignment; ``size`` must be a multiple of the pattern's length.
        """
        pattern = as_bytes(pattern)
        self.check_recording()
        if self._noting:
            self._check_slot(target)
            self._note(ActionRecorder.fill, target, pattern, offset, size)
            return
        target = self._own(target, "fill")
        size = target.check_range(offset, size, "fill")
        target.check_target("fill")
        if len(pattern) not in (1, 2, 4):
            raise InvalidArgumentError(f"a fill pattern has 1, 2 or 4 bytes, got {len(pattern)}")
        if size % len(pattern):
            raise InvalidArgumentError(f"{size} bytes are not a multiple of the {len(pattern)}-byte pattern")
        if not size:
            return
        assert self._recording is not None
        self._recording.resources.append(target)
        start = target.offset + offset
        word = int.from_bytes(pattern * (4 // len(pattern)), "little")
        if start % 4 == 0 and size % 4 == 0:
            self.device.fn.vkCmdFillBuffer(self._handle, target.handle, start, size, word)
            return
        for pipeline, window, groups, push in self.context.builtins.fill(self.family, target, offset, size, word):
            self.dispatch(pipeline, [window], groups, push)

    @guarded
    def update(self, target: AnyBuffer | BindingSlot, data: bytes, offset: int = 0) -> None:
        """Writes bytes, captured now, at any ``offset``. For small data (about 64 KiB)."""
        data = as_bytes(data)
        self.check_recording()
        if self._noting:
            self._check_slot(target)
            self._note(ActionRecorder.update, target, data, offset)
            return
        target = self._own(target, "update")
        target.check_range(offset, len(data), "update")
        target.check_target("update")
        if not data:
            return
        assert self._recording is not None
        self._recording.resources.append(target)
        start = target.offset + offset
        if start % 4 == 0 and len(data) % 4 == 0:
            for at in range(0, len(data), _MAX_UPDATE_BYTES):
                piece = data[at : at + _MAX_UPDATE_BYTES]
                self.device.fn.vkCmdUpdateBuffer(
                    self._handle, target.handle, start + at, len(piece), ffi.from_buffer(piece)
                )
            return
        # The API updates whole words only; copies have no such rule.
        self._copy(self._stage(data), 0, target, offset, len(data))

    @guarded
    def copy(
        self,
        source: AnyBuffer | BindingSlot,
        target: AnyBuffer | BindingSlot,
        size: int | None = None,
        *,
        source_offset: int = 0,
        target_offset: int = 0,
    ) -> None:
        """Copies bytes at any alignment, by default to the end of the source.

        The ranges must not overlap, unless they are the same: then nothing is done.
        """
        self.check_recording()
        self.device.copy_count += 1
        if self._noting:
            self._check_slot(source)
            self._check_slot(target)
            self._note(
                ActionRecorder.copy, source, target, size, source_offset=source_offset, target_offset=target_offset
            )
            return
        source, target = self._own(source, "copy source"), self._own(target, "copy target")
        size = source.check_range(source_offset, size, "copy source")
        target.check_range(target_offset, size, "copy target")
        source.check_usage(BufferUsage.TRANSFER_SOURCE, "copy source")
        target.check_target("copy target")
        if source.block_serial == target.block_serial and size:
            first, second = source.offset + source_offset, target.offset + target_offset
            if first == second:
                return
            if abs(first - second) < size:
                raise InvalidArgumentError(
                    f"copy of {size} bytes: source and target overlap by {size - abs(first - second)} bytes"
                )
        if size:
            assert self._recording is not None
            self._recording.resources += (source, target)
            self._copy(source, source_offset, target, target_offset, size)

    @guarded
    def generate_mips(self, image: Image, *, filter: Filter = "linear") -> None:
        """Fills every mip level from the level above it, with barriers between levels.

        Queues without graphics cannot blit; they run a kernel, for formats that shaders can write and read as floats.
        The caller puts barriers between this and commands that write the first level or read another level.

        Raises:
            InvalidArgumentError: the image was made without the usages that blits and kernels need.
            UnimplementedError: the device cannot make mip levels of the format; the message lists the formats it can.
        """
        self.check_recording()
        blits = self.device.profile.queue_families[self.family].has_graphics
        for level in range(1, image.levels):
            if blits:
                self.blit_image(image, image, filter=filter, source_level=level - 1, target_level=level)
            else:
                self._check_image(image, ImageUsage.STORAGE, "generate_mips")
                pipeline, resources, groups = self.context.builtins.mip(image, level, filter)
                self.dispatch(pipeline, resources, groups)
            if level + 1 < image.levels:
                self.execution_barrier()


def _check_push(pipeline: ComputePipeline, push: bytes) -> None:
    expected = pipeline.interface.pushed_by_caller
    if len(push) != expected:
        raise InvalidArgumentError(f"{pipeline.name} takes {expected} bytes of push constants, got {len(push)}")
