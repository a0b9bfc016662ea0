"""Command buffers: recorded once, run once or many times."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Final, Self

from ...hal.command_buffer import CommandBuffer as AnyCommandBuffer
from ...hal.command_buffer import CommandBufferState, resolve_slots
from ...status import ClosedError, DeadlineExceededError, FailedPreconditionError, InvalidArgumentError
from ..images.image import Image
from ..instance.logical_device import LogicalDevice
from ..memory.buffer import Buffer
from ..pipelines.descriptors import BIND_POINT_COMPUTE, COMPUTE_STAGE, SetPins
from ..pipelines.pipeline import ComputePipeline
from ..pipelines.resources import Resource, noun_of
from ..sync.timeline import wait_timeline
from ..vulkan.functions import NULL
from .action_recorder import ActionRecorder, Groups
from .recording import Named, Recording
from .timestamps import DispatchTiming, TimestampRecorder

# An enum's member, looked up by name, takes five times as long as a global.
_INITIAL: Final = CommandBufferState.INITIAL
_RECORDING: Final = CommandBufferState.RECORDING
_EXECUTABLE: Final = CommandBufferState.EXECUTABLE
_SUBMITTED: Final = CommandBufferState.SUBMITTED
_CLOSED: Final = CommandBufferState.CLOSED


class CommandBuffer(ActionRecorder, AnyCommandBuffer):
    """Recorded commands.

    Calling sequence: ``Device.create_command_buffer`` → ``begin`` → ``dispatch``/``fill``/``copy``/``update``/
    ``execution_barrier``… → ``end`` → ``Queue.submit`` (a one-shot buffer once, a reusable one any number of times,
    also while it is pending) → ``close``.

    Commands may run in any order and at the same time unless an ``execution_barrier`` stands between them: the caller
    orders hazards within a command buffer, as in Vulkan. Each command buffer ends with a full barrier, which orders it
    before later ones of the same queue and makes its writes visible to the host.

    With ``binding_capacity`` commands may name *slots* instead of buffers; a table passed at submission fills them. The
    native commands are recorded for a table at its first submission, and replayed for tables with the same memory
    ranges.

    Thread rule: record in one thread at a time; submit from any.

    Attributes:
        name: the name in messages, debug labels and reports of faults.
        one_shot: whether it is submitted at most once, and recycled after it has retired.
        binding_capacity: the number of slots; 0 for a buffer whose bindings are all known at recording.
        ready_epoch: the device's epoch of the last check that it is ready for any number of submissions; -1 if it is
            not ready. Until the device's epoch changes, queues need not check again.
        generation: the number of recordings so far. It increases before ``record_dispatch`` records, perhaps while
            other threads submit the buffer.
    """

    device: LogicalDevice

    def begin(self) -> Self:
        """Starts recording anew and returns itself; FailedPreconditionError while it is being recorded."""
        if self.state is _CLOSED:
            raise ClosedError(f"command buffer {self.name} was closed")
        if self.state is _RECORDING:
            raise FailedPreconditionError(f"command buffer {self.name} is being recorded; end() it first")
        device = self.device
        if device.lost is not None or device.is_closed:
            device.check_usable()
        if self.state is not _INITIAL:
            self._drop()
            self.state = _INITIAL
        self.ready_epoch = -1
        # end() and submission detect resources that are closed from here on.
        self._checked_epoch = device.close_epoch
        self._labels = 0
        if not self._noting:
            self._open()
        self.state = _RECORDING
        self.context.recording[id(self)] = weakref.ref(self)
        return self

    def end(self) -> Self:
        """Ends recording; the buffer can then be submitted. Returns itself.

        Raises:
            ClosedError: something recorded was closed meanwhile; the recording is dropped.
            InternalError: the validation layers found wrong use in the recorded range (with validation on).
        """
        if self.state is not _RECORDING:
            self.check_recording()
        self.context.recording.pop(id(self), None)
        if self._recording is not None:
            try:
                # Native commands that name a destroyed object may not even be ended.
                if self._checked_epoch != self.device.close_epoch:
                    self._check_open(self._recording.resources)
                self._finish()
            except BaseException:
                self._drop()
                self.state = _INITIAL
                raise
        self.state = _EXECUTABLE
        return self

    def record_dispatch(
        self,
        pipeline: ComputePipeline,
        sets: SetPins,
        infos: bytes | None,
        groups: Groups | Buffer,
        push: bytes,
        epoch: int | None = None,
    ) -> bool:
        """Performs ``begin``, one ``dispatch`` and ``end`` in one step.

        Reuses the recording if its last run has retired.

        For caches of single dispatches, which check the arguments and, at each submission, the memory that ``sets`` (or
        for push descriptors ``infos``) name. Takes over the pins of ``sets``, even if it raises; in that case nothing
        is recorded.

        Args:
            groups: the workgroup counts, or a buffer that starts with them, which the caller keeps as it keeps memory.
            epoch: the device's ``close_epoch`` from before the caller checked the memory; ``None`` if the caller has a
                pending submission (``LogicalDevice.begin_pending``) that does not use these commands yet.

        Returns:
            Whether it was recorded: ``False``, and nothing is recorded, if something was closed since ``epoch``.
        """
        try:
            recording = self._reopen(int(epoch is None))
        except BaseException:
            for layout, descriptor_set in sets:
                layout.unpin(descriptor_set)
            self._reset()
            raise
        if sets:
            recording.pinned = list(sets)
        recording.resources = [pipeline]
        try:
            device = self.device
            fn, handle, barriers = device.fn, recording.native.handle, self._barriers
            with device.lock:  # nothing that the native commands name is destroyed under the lock
                if device.is_closed:
                    device.check_usable()
                if epoch is not None and epoch != device.close_epoch:
                    self._reset()
                    return False
                fn.vkCmdBindPipeline(handle, BIND_POINT_COMPUTE, pipeline.handle)
                if infos is not None:
                    fn.vkCmdPushDescriptorSetWithTemplateKHR(handle, pipeline.push_template, pipeline.layout, 0, infos)
                else:
                    for index, (_, descriptor_set) in enumerate(sets):
                        fn.vkCmdBindDescriptorSets(
                            handle, BIND_POINT_COMPUTE, pipeline.layout, index, 1, descriptor_set.array, 0, NULL
                        )
                if push:
                    if len(push) % 4:
                        push += bytes(-len(push) % 4)
                    fn.vkCmdPushConstants(handle, pipeline.layout, COMPUTE_STAGE, 0, len(push), push)
                if isinstance(groups, tuple):  # isinstance of a Buffer, which is an ABC, takes ten times as long
                    fn.vkCmdDispatch(handle, *groups)
                else:
                    fn.vkCmdDispatchIndirect(handle, groups.handle, groups.offset)
                barriers.record(handle, *barriers.at_end)
                result = fn.vkEndCommandBuffer(handle)
            if result or device.validation:
                device.check(result, f"recording {self.name}")
        except BaseException:
            self._reset()
            raise
        self.state = _EXECUTABLE
        return True

    def _reopen(self, pending: int) -> Recording:
        """Returns a begun recording for ``record_dispatch``: the last recording if no queue runs it any more.

        ``pending`` is the number of pending submissions that are known not to use it.
        """
        device = self.device
        with device.lock:  # submissions check the generation and note the number under this lock
            self.generation += 1
            recording = self._recording
            is_idle = (
                recording is not None
                and recording.queue is not None
                and recording.number <= recording.queue.completed
                and len(device.pending) <= pending
                and self.state is _EXECUTABLE
                and device.lost is None
            )
        if recording is None or not is_idle:
            self.begin()
            self.context.recording.pop(id(self), None)
            recording = self._recording
            assert recording is not None
            return recording
        if recording.pinned:
            recording.unpin()
        result = device.fn.vkBeginCommandBuffer(recording.native.handle, self.context.begin_again)
        if result:
            device.check(result, f"beginning {self.name}")
        return recording

    def prepare(self, bindings: Sequence[Resource] | None) -> Recording:
        """Checks that it can be submitted, and returns the native commands. Called by ``Queue``."""
        if self.state is not _EXECUTABLE:
            self.check_executable()
        if self.binding_capacity:
            recording = self._recording_for(bindings or ())
        else:
            if bindings:
                raise InvalidArgumentError(f"{self.name} has no binding slots, but a binding table was given")
            if (known := self._recording) is None:  # closed by another thread
                raise ClosedError(f"command buffer {self.name} was closed")
            recording = known
            if self._checked_epoch != self.device.close_epoch:
                self._check_open(recording.resources)
        if self.one_shot:
            self._note_submitted()
        elif not self.binding_capacity:
            self.ready_epoch = self._checked_epoch
        return recording

    def find_recording(self, bindings: Sequence[Resource] | None) -> Recording | None:
        """Performs ``prepare`` if nothing must be recorded, else returns ``None``.

        Called by ``Queue``, under the device's lock.
        """
        if not self.binding_capacity:
            return self.prepare(bindings)
        if self.one_shot or self.state is not _EXECUTABLE:
            return None
        assert self._recordings is not None
        return self._recordings.use(self._key_of(bindings or ()))

    def _note_submitted(self) -> None:
        """Marks a one-shot buffer as submitted; if two threads submit it, the second gets an error."""
        is_noted = False
        try:
            with self.device.lock:
                if self.state is not _EXECUTABLE:
                    self.check_executable()
                self.state = _SUBMITTED
                is_noted = True
        except BaseException:
            if is_noted:  # Ctrl-C: the caller does not know that it was noted
                self.state = _EXECUTABLE
            raise

    def unprepare(self, recording: Recording) -> None:
        """Undoes the ``prepare`` that gave ``recording``, after a submission that failed."""
        # Not if it was recorded anew, or the recording was evicted.
        if self.state is _SUBMITTED and (
            recording is self._recording or (self._recordings is not None and self._recordings.holds(recording))
        ):
            self.state = _EXECUTABLE

    def _recording_for(self, table: Sequence[Resource]) -> Recording:
        key = self._key_of(table)
        recordings = self._recordings
        assert recordings is not None
        return recordings.use(key) or recordings.keep(key, self._replay(table))

    def _key_of(self, table: Sequence[Resource]) -> bytes:
        if len(table) < self.binding_capacity:
            raise InvalidArgumentError(
                f"{self.name} has {self.binding_capacity} binding slot(s); the table given has {len(table)}"
            )
        if self._checked_epoch != self.device.close_epoch:
            self._check_open(self._static)
        for resource in table:
            self._own_resource(resource, "the binding table")
            if resource.is_closed:
                raise ClosedError(f"{self.name}: {noun_of(resource)} of the binding table was closed")
        return b"".join([resource.descriptor for resource in table])

    def _replay(self, table: Sequence[Resource], *, timing: bool = False, muted: bool = False) -> Recording:
        """Records the noted commands for a binding table, with timestamps or (``muted``) notes of its dispatches."""
        recorder = ActionRecorder(
            self.context, one_shot=self.one_shot, timing=timing or self._timing, name=self.name, family=self.family
        )
        recorder.state = _RECORDING
        recorder._open()
        recording = recorder._recording
        assert recording is not None
        if recording.timestamps is not None:
            recording.timestamps.is_muted = muted
        try:
            for command, arguments, offsets in self._commands:
                command(recorder, *(resolve_slots(argument, table) for argument in arguments), **offsets)
            recorder._finish()
        except BaseException:
            self.context.recycle(recording)  # no queue has seen it
            raise
        # The key has the table's ranges. Buffers are not kept: they would never be freed.
        recording.resources = self._static
        return recording

    def _check_open(self, resources: Sequence[Named]) -> None:
        epoch = self.device.close_epoch  # read first: the next checks detect resources closed during these
        for resource in resources:
            if resource.is_closed:
                if isinstance(resource, ComputePipeline):
                    subject = f"pipeline {resource.name}"
                else:
                    subject = "an image" if isinstance(resource, Image) else noun_of(resource)
                raise ClosedError(f"{self.name} cannot run: {subject} that it uses was closed; record it again")
        self._checked_epoch = epoch

    def _latest(self) -> Recording | None:
        return self._recording or (next(reversed(self._recordings.values()), None) if self._recordings else None)

    @property
    def timestamps(self) -> TimestampRecorder | None:
        """The timestamps of the latest recording, or ``None``."""
        recording = self._latest()
        return None if recording is None else recording.timestamps

    def timings(self) -> tuple[DispatchTiming, ...]:
        """Returns the device time of each dispatch of the last run, in recording order, once that run has finished.

        With ``timing="span"`` it returns one time, from the start of the first command to the end of the last.

        Raises:
            FailedPreconditionError: the command buffer was not created with ``timing=True``, or has not finished a run.
        """
        self.device.check_usable()
        recording = self._latest()
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

    def retired(self, recording: Recording) -> None:
        """Gives back the native commands of a one-shot buffer that has run. Called by ``Queue``."""
        # After another begin() or close() the recording no longer belongs to this buffer.
        if not self._timing and self._recording is recording:
            self._recording = None
            self.context.recycle(recording)

    def device_closed(self) -> None:
        """Ends recording, as the device is being closed. Called by ``CommandContext``."""
        self.state = _CLOSED

    def _reset(self) -> None:
        """Drops the recorded commands, after a failure."""
        self._drop()
        if self.state is not _CLOSED:
            self.state = _INITIAL

    def _drop(self) -> None:
        self.ready_epoch: int = -1
        self.context.recording.pop(id(self), None)
        if self._recording is not None:
            self.context.release(self._recording)
            self._recording = None
        if self._recordings is not None:
            self._recordings.drop()
        self._commands.clear()
        self._static = []  # recordings in use still refer to the list
        self._bound = None
        self._handle = NULL

    def close(self) -> None:
        """Gives everything back once no queue runs it any more; idempotent."""
        if self.state is not _CLOSED:
            self.state: CommandBufferState = (
                _CLOSED  # first: submissions prepared earlier keep the recording until they retire
            )
            self._drop()

    def __repr__(self) -> str:
        kind = "one-shot" if self.one_shot else "reusable"
        return f"<CommandBuffer {self.name}, {kind}, {self.state.value}>"
