"""The dispatches of a kernel as command buffers, which are kept by what they bind.

Thread rule: any thread; for ``recorded`` and ``close`` the caller must hold the kernel's lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn, cast

from ...hal_vulkan import Buffer, CommandBuffer, ComputePipeline, SetPins, check_groups
from ...hal_vulkan.commands.recording_cache import RecordingCache
from ...hal_vulkan.pipelines.resources import Resource
from ...status import ClosedError, InvalidArgumentError
from ..arrays.array import DeviceArray
from ..arrays.array_device import ArrayDevice
from ..images.bound import Bound
from .parameters.arguments import Counts, inferred_counts
from .parameters.parameter import Parameter

_MAX_RECORDINGS: Final = 256


class DispatchRecorder:
    """Records dispatches of one pipeline, and keeps the last 256 recordings.

    Attributes:
        recordings: by descriptors, workgroup counts and push constants.
        count: how many it has made.
        is_plain: whether a call may be nothing but a buffer for each binding, and workgroup counts follow from the
            bytes of one.
    """

    def __init__(
        self,
        device: ArrayDevice,
        pipeline: ComputePipeline,
        parameters: Sequence[Parameter],
        name: str,
        *,
        only_buffers: bool,
    ) -> None:
        self._device = device
        self._pipeline = pipeline
        self._parameters = parameters
        self._name = name
        self._only_buffers = only_buffers
        self._written = tuple(p.index for p in parameters if p.written)
        local = pipeline.local_size
        by_size = all(p.stride and p.binding.count for p in parameters)
        self._groups_by_shape = local[1] != 1 or local[2] != 1 or not by_size
        self._is_sized = not self._groups_by_shape and len(self._written) == 1
        self._accepted = tuple(parameter.accepted for parameter in parameters)
        # Push descriptors are copied while commands are recorded, so no descriptor set has to be kept.
        self._pushes = pipeline.push_template is not None
        self._push_bytes = pipeline.interface.push_constant_bytes
        self.is_plain = (
            only_buffers and self._pushes and self._is_sized and not self._push_bytes and pipeline.report is None
        )
        self._counts: dict[int, Counts] = {}
        self.count = 0
        self.recordings: RecordingCache[tuple[object, ...], CommandBuffer] = RecordingCache(
            _MAX_RECORDINGS, CommandBuffer.close
        )

    def recorded(
        self,
        arrays: Sequence[DeviceArray | Bound],
        groups: Counts | None,
        push: bytes,
        parameters: Sequence[Parameter] | None = None,
    ) -> CommandBuffer:
        """The commands for these resources, groups and push constants, recorded the first time they are asked for.

        Caller must hold the lock until the commands are submitted: the oldest are recorded again for other buffers.
        """
        if self._only_buffers:
            device = self._device
            for array in arrays:
                buffer: Buffer = array.buffer  # type: ignore[assignment]
                if buffer._closed or (buffer.parent is not None and buffer.is_closed) or array.device is not device:
                    self._refuse(array)
            ranges = b"".join([array.buffer.descriptor for array in arrays])  # type: ignore[union-attr]
        else:
            for array in arrays:
                if isinstance(array, DeviceArray) and (array.is_closed or array.device is not self._device):
                    self._refuse(array)
            ranges = b"".join([a.buffer.descriptor if isinstance(a, DeviceArray) else a.descriptor for a in arrays])
        key: tuple[object, ...] = (ranges, groups, push)
        if groups is None and self._groups_by_shape:
            key = (*key, *[array.shape for array in arrays])
        recordings = self.recordings
        found = recordings.get(key)
        if found is not None:
            return found
        pipeline = self._pipeline
        if pipeline.is_closed:
            raise ClosedError(f"kernel {self._name} was closed")
        counts = self.counts(arrays, groups, parameters)
        if len(push) != self._push_bytes:
            self.check_push(push)
        # The key has the memory block's serial, which is unique: commands for freed memory are never found again.
        sets: SetPins = ()
        ranges += pipeline.tail
        infos = ranges if self._pushes else None
        if infos is None:
            sets = pipeline.pin_sets(cast("list[Resource | None]", [array.buffer for array in arrays]), ranges)
        self.count += 1
        commands = recordings.evict() or self._device.vulkan.create_command_buffer(name=self._name)
        try:
            commands.record_dispatch(pipeline, sets, infos, counts, push)
        except BaseException:
            commands.close()
            raise
        return recordings.keep(key, commands)

    def recorded_plain(self, arrays: Sequence[DeviceArray]) -> CommandBuffer | None:
        """``recorded``, with all checks, for a buffer for each binding and nothing else (``is_plain``).

        Returns:
            ``None`` if anything is unusual, or an array's size is new.
        """
        device, ranges = self._device, []
        for array, accepted in zip(arrays, self._accepted, strict=True):
            if (array.dtype, array.nbytes) not in accepted or array.device is not device:
                return None
            buffer: Buffer = array.buffer  # type: ignore[assignment]
            if buffer._closed or buffer.parent is not None or not buffer.bindable:
                return None
            ranges.append(buffer.descriptor)
        infos = b"".join(ranges)
        key: tuple[object, ...] = (infos, None, b"")
        recordings = self.recordings
        found = recordings.get(key)
        if found is not None:
            return found
        counts, pipeline = self._counts.get(arrays[self._written[0]].nbytes), self._pipeline
        if counts is None or pipeline.is_closed:
            return None
        self.count += 1
        commands = recordings.evict() or device.vulkan.create_command_buffer(name=self._name)
        try:
            commands.record_dispatch(pipeline, (), infos, counts, b"")
        except BaseException:
            commands.close()
            raise
        recordings[key] = commands
        return commands

    def _refuse(self, array: DeviceArray | Bound) -> NoReturn:
        """Raises for an array that is closed, or on another device."""
        if isinstance(array, DeviceArray):
            array._check_open()
        raise InvalidArgumentError(
            f"{self._name} runs on {self._device.name}; an array is on another device, "
            f"{array.device.name}: copy it with device.asarray(x)"
        )

    def timed(
        self,
        arrays: Sequence[DeviceArray | Bound],
        groups: Counts | None,
        push: bytes,
        parameters: Sequence[Parameter],
    ) -> CommandBuffer:
        """Commands of their own for one dispatch that is timed; the caller closes them."""
        if self._pipeline.is_closed:
            raise ClosedError(f"kernel {self._name} was closed")
        counts = self.counts(arrays, groups, parameters)
        commands = self._device.vulkan.create_command_buffer(name=self._name, timing=True)
        try:
            commands.begin().dispatch(self._pipeline, cast("list[Resource]", [a.buffer for a in arrays]), counts, push)
            commands.end()
        except BaseException:
            commands.close()
            raise
        return commands

    def counts(
        self,
        arrays: Sequence[DeviceArray | Bound],
        groups: Counts | None,
        parameters: Sequence[Parameter] | None = None,
    ) -> Counts:
        """Workgroup counts, checked against the device's limits; cached where they follow from one array's size."""
        nbytes = -1
        if groups is None and self._is_sized:
            nbytes = arrays[self._written[0]].nbytes
            found = self._counts.get(nbytes)
            if found is not None:
                return found
        counts = groups or inferred_counts(
            parameters or self._parameters, arrays, self._pipeline.local_size, self._name
        )
        check_groups(self._pipeline, counts)
        if nbytes >= 0 and len(self._counts) < 256:
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
