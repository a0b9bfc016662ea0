"""Submission: prepare, claim, native call, note.

A batch is submitted in these steps:

1. It becomes pending: resources that other threads close from now on are kept for it.
2. Its command buffers are prepared, which may record them.
3. Under the device's lock it claims the payloads that it signals, is noted, and goes to the driver.
4. Work that waited for its signals is released, and the poll thread is woken.

Even after an interrupt (Ctrl-C or an error), the submission is either noted and made, or neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...status import ClosedError, FailedPreconditionError, InvalidArgumentError
from ..commands.command_buffer import CommandBuffer
from ..commands.context import CommandContext
from ..commands.recording import Recording
from ..memory.buffer import Buffer
from ..sync.context import SemaphoreContext
from ..sync.semaphore import TimelineSemaphore
from ..vulkan.functions import NULL, CData, NativeFunction
from .batch import Batch, NativeBatch, Points, SubmitStructures, Used
from .held_submission import HeldSubmission
from .retirement import RetiringQueue

_INITIAL_CAPACITY: Final = 8
_RETIRE_EVERY: Final = 16
_MIN_DIFFERENCE: Final = (1 << 31) - 1  # the least maxTimelineSemaphoreValueDifference that Vulkan allows


class SubmissionQueue(RetiringQueue):
    """A VkQueue that accepts submissions."""

    def __init__(
        self, commands: CommandContext, semaphores: SemaphoreContext, family: int, index: int, name: str
    ) -> None:
        super().__init__(semaphores, family, index, name)
        self.command_context = commands
        self.semaphore_context = semaphores
        self._native = SubmitStructures(_INITIAL_CAPACITY)
        # For repeated submissions, which signal the stream, and optionally a semaphore before it.
        self._repeated = (SubmitStructures(1, (1, 0, 1)), SubmitStructures(2, (1, 0, 2)))
        for native in self._repeated:
            native.signal_handles[native.capacity - 1] = self.timeline

    def submit(
        self,
        command_buffers: Sequence[CommandBuffer] = (),
        *,
        waits: Points = (),
        signals: Points = (),
        bindings: Sequence[Buffer] | None = None,
    ) -> int:
        """Hands work to the queue; returns immediately (a CPU driver may run the work meanwhile).

        Args:
            command_buffers: the command buffers, recorded and ended; they run in order.
            waits: the (semaphore, payload) pairs to wait for. Unscheduled payloads hold the submission back on the
                host, which blocks no other submission.
            signals: the pairs to signal when all commands are done; payloads only increase.
            bindings: the table that fills the slots of command buffers with ``binding_capacity``.

        Returns:
            The submission's number, which is the payload of ``stream`` when it is done; 0 if it is held back.

        Raises:
            FailedPreconditionError: a command buffer is not ready, or a payload would not increase.
            ClosedError: a command buffer, a semaphore or a buffer was closed.
            DeviceLostError: the device is lost.
        """
        if len(command_buffers) == 1 and not waits and len(signals) < 2:
            commands = command_buffers[0]
            number = self.resubmit(commands, commands.generation, bindings, signals)
            if number:
                return number
        return self._submit(Batch(command_buffers, waits, signals), bindings)

    def resubmit(
        self,
        commands: CommandBuffer,
        generation: int,
        bindings: Sequence[Any] | None = None,
        signals: Points = (),
        epoch: int | None = None,
    ) -> int:
        """Submits one command buffer that waits for nothing and signals at most one semaphore.

        Args:
            commands: the command buffer, as for ``submit``.
            generation: the generation of ``commands`` when the caller checked them; any number with ``bindings``.
            bindings, signals: the same as for ``submit``.
            epoch: the device's ``close_epoch`` from before the caller checked that what they use is open.

        Returns:
            The submission's number; 0, without any effect, if they have been recorded since, if something was closed
            since ``epoch``, if their shaders report, or if a signal is refused: ``submit`` has the messages.
        """
        # The only path that is written out, measured in benchmarks/submit_wait.py and call_latency.py: after a wait the
        # caches are cold, and each Python operation costs several times its usual time.
        device, stream = self.device, self.stream
        noted = 0
        try:
            with device.lock:
                recording: Recording | None = None
                if bindings is None:
                    if commands.generation != generation or (epoch is not None and epoch != device.close_epoch):
                        return 0
                    if commands.ready_epoch == device.close_epoch:
                        recording = commands._recording
                if recording is None or recording.queue is not self:
                    if device.lost is not None or device.is_closed:
                        return 0
                    if commands.device is not device or commands.family != self.family:
                        return 0
                    recording = commands.find_recording(bindings)
                if recording is not None:
                    number = self.submitted + 1
                    used: Used = ((commands, recording),)
                    previous: tuple[int, ...] = ()
                    try:
                        native = self._repeated[len(signals)]
                        if recording.reports:
                            return 0
                        if signals:
                            semaphore, value = signals[0]
                            if value <= semaphore.scheduled or semaphore.failure is not None:
                                return 0
                            if value - semaphore.reached > _MIN_DIFFERENCE:
                                return 0
                            if semaphore is not native.last_signal:
                                if semaphore.device is not device:
                                    return 0
                                native.signal_handles[0] = semaphore.handle
                                native.last_signal = semaphore
                            native.signal_values[0] = value
                            previous = (semaphore.scheduled,)
                        if recording is not native.last_recording:
                            native.command_handles[0] = recording.native.handle
                            native.last_recording = recording
                        native.signal_values[native.capacity - 1] = number
                        inflight = self._inflight
                        inflight.append((number, used, signals, commands.one_shot))
                        # CPython raises an interrupt (Ctrl-C) after a call, never between plain assignments: from here
                        # to the end of the native call either all or nothing is noted.
                        recording.queue = self
                        recording.number = number
                        if signals:
                            semaphore.scheduled = value
                        self.submitted = stream.scheduled = noted = number
                        result = device.fn.vkQueueSubmit(self.handle, 1, native.info, NULL)
                    finally:
                        if not noted:
                            self._take_back(number, signals, previous)
                            commands.unprepare(recording)
                    if result < 0:
                        self._take_back(number, signals, previous)
                        noted = 0
                        commands.unprepare(recording)
            if recording is None:
                return self._submit(Batch((commands,), (), signals), bindings, may_report=False)
            if result or device.validation:
                device.check(result, f"submitting {commands.name}")
            if stream.notifications or stream.held or (signals and (semaphore.notifications or semaphore.held)):
                self._after_submission(signals)
        except BaseException:
            if noted:  # after Ctrl-C, too: other threads wait for it
                self._after_submission(signals)
            raise
        if len(inflight) >= _RETIRE_EVERY or self._deferred:
            self.retire()
        return number

    def submit_native(self, commands: CData, wait: CData, signal: CData) -> int:
        """Submits a VkCommandBuffer between two binary semaphores, for presentation; returns its number.

        Resources that are closed from now on are kept until it is done, as for any submission. The caller keeps the
        commands and the semaphores that long.
        """
        return self._submit(NativeBatch(commands, wait, signal), None)

    def call_native(self, function: NativeFunction, *arguments: object) -> int:
        """Calls a Vulkan function that needs exclusive use of the queue; returns its result."""
        device = self.device
        with device.guard.lock, device.lock:
            device.check_not_ended()
            return int(function(self.handle, *arguments))

    def _submit(self, batch: Batch, bindings: Sequence[Buffer] | None, *, may_report: bool = True) -> int:
        """Submits a batch, or holds it back; returns its number, or 0.

        Without ``may_report``, 0 also means that its shaders report and that nothing was submitted.
        """
        device = self.device
        held = None if batch.is_scheduled else HeldSubmission(self, batch)
        try:
            if batch.command_buffers or held is not None:
                with self._lock:
                    if held is not None:
                        self._check_claims(batch)
                    with device.lock:
                        device.check_usable()
                        batch.serial = device.begin_pending()
                    for commands in batch.command_buffers:
                        self.check_commands(commands)
                    batch.prepare(bindings)
            if held is not None:
                held.hold()
            else:
                if may_report or not batch.reports:
                    self.commit(batch)
                self.settle(batch)
        except BaseException:
            if held is None or held.claim():
                self.settle(batch)
            raise
        if len(self._inflight) >= _RETIRE_EVERY or self._deferred:
            self.retire()
        return batch.number

    def commit(self, batch: Batch) -> None:
        """Claims the payloads of a prepared batch, notes it and hands it to the driver; raises on failure.

        ``settle`` follows.

        Also called by ``PreparedSubmission`` and held submissions.
        """
        device, stream = self.device, self.stream
        used, waits, signals = batch.used, batch.waits, batch.signals
        for semaphore, value in signals:
            if value - semaphore.reached > _MIN_DIFFERENCE:
                semaphore.check_difference(value)
        with device.lock:
            if device.lost is not None or device.is_closed:
                device.check_usable()
            self._check_claims(batch)
            number = self.submitted + 1
            native = self._structures(batch)
            batch.write(native)
            last = native.shape[2] - 1
            native.signal_handles[last] = self.timeline
            native.signal_values[last] = number
            batch.previous = [semaphore.scheduled for semaphore, _ in signals]
            try:
                for semaphore, _ in waits:
                    if self not in semaphore.awaited_by:
                        semaphore.awaited_by += (self,)
                for _, recording in used:
                    recording.queue = self
                    recording.number = number
                    if recording.reports:
                        for semaphore, value in signals:
                            semaphore.judge_at(value, [report.verdict for report in recording.reports])
                if waits:
                    self._waits[number] = waits
                self._inflight.append((number, used, signals, True))
                for semaphore, value in signals:
                    semaphore.scheduled = value
                submit, handle, info, clock = device.fn.vkQueueSubmit, self.handle, native.info, batch.clock
                before = clock() if clock is not None else 0
                # To the end of the native call: see ``resubmit`` on Ctrl-C.
                self.submitted = stream.scheduled = batch.number = number
                result = submit(handle, 1, info, NULL)
                if clock is not None:
                    batch.times = before, clock()
            finally:
                if not batch.number:
                    self._take_back(number, signals, batch.previous)
            if result < 0:
                self._take_back(number, signals, batch.previous)
                batch.number = 0
        if result or device.validation:
            names = ", ".join(commands.name for commands, _ in used)
            device.check(result, f"submitting {names or 'a barrier'}")

    def settle(self, batch: Batch) -> None:
        """Ends the pending state of a batch, whether submitted or not. May be repeated after an interrupt."""
        if batch.number:
            self._after_submission(batch.signals)
        else:
            batch.unprepare()
        if batch.serial:
            self.device.end_pending(batch.serial)
            batch.serial = 0

    def _after_submission(self, signals: Points) -> None:
        """Releases held submissions and wakes the poll thread. May be repeated after an interrupt."""
        for semaphore in (*[signalled for signalled, _ in signals], self.stream):
            if semaphore.held:
                semaphore.after_schedule()
            if semaphore.notifications:
                self.semaphore_context.notifier.thread.wake()

    def _take_back(self, number: int, signals: Points, previous: Sequence[int]) -> None:
        """Undoes the notes of a failed submission, after an interrupt or an error.

        ``previous`` are the payloads that were scheduled before; the caller holds the device's lock.
        """
        inflight = self._inflight
        while inflight and inflight[-1][0] >= number:
            inflight.pop()
        self._waits.pop(number, None)
        self.submitted = self.stream.scheduled = number - 1
        for (semaphore, _), scheduled in zip(signals, previous, strict=False):
            semaphore.scheduled = scheduled

    def _structures(self, batch: Batch) -> SubmitStructures:
        if batch.native is not None:
            return batch.native
        needed = max(len(batch.used), len(batch.waits), len(batch.signals) + 1)
        if needed > self._native.capacity:
            self._native = SubmitStructures(2 * needed)
        return self._native

    def _check_claims(self, batch: Batch) -> None:
        signals = batch.signals
        for semaphore, _ in batch.waits:
            self._check_owner(semaphore)
        if len(signals) > 1 and len({semaphore for semaphore, _ in signals}) != len(signals):
            raise InvalidArgumentError("a submission signals each semaphore at most once; signal the largest payload")
        for semaphore, value in signals:
            self._check_owner(semaphore)
            if semaphore.failure is not None:
                raise semaphore.failure.again()
            if value <= semaphore.scheduled:
                raise FailedPreconditionError(
                    f"{semaphore.name}: a payload only increases: {semaphore.scheduled} is signalled or scheduled, "
                    f"got {value}"
                )

    def _check_owner(self, semaphore: TimelineSemaphore) -> None:
        if semaphore.is_closed:
            raise ClosedError(f"{semaphore.name} was closed")
        if semaphore.device is not self.device:
            raise InvalidArgumentError(
                f"{semaphore.name} belongs to another device; order work of several devices on the host"
            )

    def check_commands(self, commands: CommandBuffer) -> None:
        """Raises unless command buffers run on this queue."""
        if commands.device is not self.device:
            raise InvalidArgumentError(f"{commands.name} was recorded for another device; record it for this one")
        if commands.family != self.family:
            raise InvalidArgumentError(
                f"{commands.name} was recorded for queue family {commands.family}; {self.name} is of family "
                f"{self.family}"
            )
