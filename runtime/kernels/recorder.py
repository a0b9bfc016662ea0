"""The dispatches of a kernel as command buffers, kept by the memory ranges that they bind.

Thread rule: any thread; ``recorded`` and ``close`` require the kernel's lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn, cast

from ...hal_vulkan import Buffer, CommandBuffer, ComputePipeline, SetPins, check_groups
from ...hal_vulkan.commands.recording_cache import RecordingCache
from ...hal_vulkan.pipelines.resources import Resource
from ...spirv.instrument.wide_grid import split_counts
from ...status import ClosedError, InvalidArgumentError
from ..arrays.array import DeviceArray
from ..arrays.array_device import ArrayDevice
from ..images.bound import Bound
from .bound_call import BoundCall
from .parameters.arguments import Counts, PerElement, inferred_counts
from .parameters.parameter import KernelArgument, Parameter
from .wide_grids import WideGridError

_MAX_RECORDINGS: Final = 256
_MAX_COUNTS: Final = 256


class DispatchRecorder:
    """Records dispatches of one pipeline, and keeps the last 256 recordings.

    Attributes:
        recordings: the recordings by descriptors, workgroup counts and push constants.
        count: the number of recordings made so far.
    """

    def __init__(
        self, device: ArrayDevice, pipeline: ComputePipeline, parameters: Sequence[Parameter], name: str
    ) -> None:
        self._device = device
        self._pipeline = pipeline
        self._name = name
        written = [parameter for parameter in parameters if parameter.written]
        # Whose size alone tells the workgroup counts.
        self._written = written[0].index if len(written) == 1 and not written[0].binding.shared_output else -1
        local = pipeline.local_size
        by_size = all(p.stride and p.binding.count for p in parameters)
        self._most = device.vulkan.profile.limits.max_compute_work_group_count
        self._groups_by_shape = local[1] != 1 or local[2] != 1 or not by_size
        self._accepted = tuple(parameter.accepted for parameter in parameters)
        self._alignment_mask = pipeline.offset_alignment - 1
        # Push descriptors are copied while commands are recorded, so no descriptor set has to be kept.
        self._pushes = pipeline.push_template is not None
        self._push_bytes = pipeline.interface.push_constant_bytes
        self._counts: dict[int, Counts] = {}
        self.count: int = 0
        self.recordings: RecordingCache[tuple[object, ...], CommandBuffer] = RecordingCache(
            _MAX_RECORDINGS, CommandBuffer.close
        )

    def resident_ranges(self, arrays: Sequence[KernelArgument]) -> bytes | None:
        """Returns the descriptors of a call's arrays; ``None`` unless all are known to fit."""
        device, mask, ranges = self._device, self._alignment_mask, []
        for array, accepted in zip(arrays, self._accepted, strict=True):
            if type(array) is not DeviceArray or (array.dtype, array.nbytes) not in accepted:
                return None
            buffer = array.buffer
            if buffer._closed or buffer.offset & mask or array.device is not device:
                return None
            if buffer.parent is not None and buffer.is_closed:
                return None
            ranges.append(buffer.descriptor)
        return b"".join(ranges)

    def _ranges(self, bound: Sequence[DeviceArray | Bound]) -> bytes:
        """Returns the descriptors of a call's resources.

        Raises:
            ClosedError: an array was closed.
            InvalidArgumentError: an array is on another device.
        """
        ranges = []
        for array in bound:
            if isinstance(array, DeviceArray):
                buffer = array.buffer
                is_closed = buffer._closed or (buffer.parent is not None and buffer.is_closed)
                if is_closed or array.device is not self._device:
                    self._refuse(array)
                ranges.append(buffer.descriptor)
            else:
                ranges.append(array.descriptor)
        return b"".join(ranges)

    def check_bound(self, bound: Sequence[DeviceArray | Bound]) -> None:
        """Raises for arrays that are closed, or on another device, and if the kernel was closed."""
        if self._pipeline.is_closed:
            raise ClosedError(f"kernel {self._name} was closed")
        self._ranges(bound)

    def recorded(self, call: BoundCall, epoch: int | None) -> CommandBuffer | None:
        """Returns the commands of a planned call; records them the first time.

        Caller must hold the lock until the commands are submitted: the oldest are recorded again for other buffers.

        Args:
            epoch: the device's ``close_epoch`` from before the arrays were checked. ``None`` if the caller has a
                pending submission (``LogicalDevice.begin_pending``).

        Returns:
            ``None`` if there are none and only a caller with a pending submission may record them: something was closed
            since ``epoch``, or the device has no push descriptors.
        """
        ranges = call.ranges
        if ranges is None or (epoch is None and call.epoch != self._device.vulkan.close_epoch):
            ranges = self._ranges(call.bound)
        key: tuple[object, ...] = (ranges, call.groups, call.push)
        if call.indirect is not None:
            key = (*key, call.indirect.buffer.descriptor)
        if self._groups_by_shape and type(call.groups) is not tuple:
            key = (*key, *[array.shape for array in call.bound])
        known = self.recordings.get(key)
        if known is None and (epoch is None or self._pushes):
            return self._record(call, key, ranges, epoch)
        return known

    def _record(
        self, call: BoundCall, key: tuple[object, ...], ranges: bytes, epoch: int | None
    ) -> CommandBuffer | None:
        """Records the commands of a call; ``None`` if something was closed since ``epoch``."""
        bound, push, pipeline = call.bound, call.push, self._pipeline
        if pipeline.is_closed:
            raise ClosedError(f"kernel {self._name} was closed")
        counts = self.counts(bound, call.groups, call.parameters)
        if len(push) != self._push_bytes:
            self.check_push(push)
        # The key contains the memory block's unique serial, so commands for freed memory are never found again.
        sets: SetPins = ()
        ranges += pipeline.tail
        infos = ranges if self._pushes else None
        if infos is None:
            sets = pipeline.pin_sets(cast("list[Resource | None]", [array.buffer for array in bound]), ranges)
        self.count += 1
        recordings = self.recordings
        commands = recordings.evict() or self._device.vulkan.create_command_buffer(name=self._name)
        is_recorded = False
        try:
            groups = counts if call.indirect is None else cast("Buffer", call.indirect.buffer)
            is_recorded = commands.record_dispatch(pipeline, sets, infos, groups, push, epoch)
        finally:
            if not is_recorded:
                commands.close()
        if not is_recorded:
            return None
        recordings[key] = commands
        return commands

    def _refuse(self, array: DeviceArray) -> NoReturn:
        """Raises for an array that is closed or on another device."""
        array._check_open()
        raise InvalidArgumentError(
            f"{self._name} runs on {self._device.name}; an array is on another device, "
            f"{array.device.name}: copy it with device.asarray(x)"
        )

    def timed(self, call: BoundCall) -> CommandBuffer:
        """Records the dispatch of a planned call with timestamps; the caller closes the commands."""
        if self._pipeline.is_closed:
            raise ClosedError(f"kernel {self._name} was closed")
        self._ranges(call.bound)  # for its checks
        counts = self.counts(call.bound, call.groups, call.parameters)
        resources = cast("list[Resource]", [bound.buffer for bound in call.bound])
        commands = self._device.vulkan.create_command_buffer(name=self._name, timing=True)
        try:
            if call.indirect is not None:
                commands.begin().dispatch_indirect(self._pipeline, resources, call.indirect.buffer, push=call.push)
            else:
                commands.begin().dispatch(self._pipeline, resources, counts, call.push)
            commands.end()
        except BaseException:
            commands.close()
            raise
        return commands

    def counts(
        self,
        bound: Sequence[DeviceArray | Bound],
        groups: Counts | PerElement | None,
        parameters: Sequence[Parameter],
    ) -> Counts:
        """Returns workgroup counts within the device's limits; cached if they follow from one array's size."""
        nbytes = -1
        if groups is None and self._written >= 0 and not self._groups_by_shape:
            nbytes = bound[self._written].nbytes
            known = self._counts.get(nbytes)
            if known is not None:
                return known
        if groups is None or isinstance(groups, PerElement):
            counts = inferred_counts(parameters, bound, self._pipeline.local_size, self._name, groups)
        else:
            counts = groups
        if split_counts(counts, self._most, self._pipeline.local_size[0]) is not None:
            raise WideGridError(self._pipeline.name, counts)
        check_groups(self._pipeline, counts)
        if nbytes >= 0 and len(self._counts) < _MAX_COUNTS:
            self._counts[nbytes] = counts
        return counts

    def check_push(self, push: bytes) -> None:
        """Raises for push constants of a wrong size."""
        if len(push) != self._push_bytes:
            raise InvalidArgumentError(
                f"{self._name} takes {self._push_bytes} bytes of push constants, got {len(push)}"
            )

    def close(self) -> None:
        """Closes the recordings; idempotent."""
        self.recordings.drop()
