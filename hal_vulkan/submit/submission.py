"""Submission: the checks, claims and notes around vkQueueSubmit.

Whatever interrupts a submission, Ctrl-C or another thread, all of it is noted or nothing. Its steps are in this order:

1. The submission counts as being made: what other threads close from now on is kept for it.
2. It claims the payloads that it is to signal: nobody else can signal them.
3. Its command buffers are prepared.
4. It is noted and submitted. Work that waited for its signals is released, and callbacks are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...status import ClosedError, FailedPreconditionError, InvalidArgumentError, PumiceError
from ..commands.command_buffer import CommandBuffer
from ..commands.context import CommandContext
from ..commands.recording import Recording
from ..memory.buffer import Buffer
from ..sync.context import SemaphoreContext
from ..sync.semaphore import TimelineSemaphore
from ..vulkan.functions import NULL, CData, NativeFunction
from .held_submission import HeldSubmission
from .retirement import Points, RetiringQueue, Used
from .submit_structures import SubmitStructures

_INITIAL_CAPACITY: Final = 8
_RETIRE_EVERY: Final = 16
_MIN_DIFFERENCE: Final = (1 << 31) - 1  # the least maxTimelineSemaphoreValueDifference that Vulkan allows
_ONE: Final = (1, 0, 2)  # command buffers, waits, signals of the usual submission, the queue's own signal included


class SubmissionQueue(RetiringQueue):
    """A VkQueue that takes submissions."""

    def __init__(
        self, commands: CommandContext, semaphores: SemaphoreContext, family: int, index: int, name: str
    ) -> None:
        super().__init__(semaphores, family, index, name)
        self.command_context = commands
        self.semaphore_context = semaphores
        self._native = SubmitStructures(_INITIAL_CAPACITY)
        self._plain = SubmitStructures(1)  # of submissions that signal nothing but the queue's stream
        self._plain.signal_handles[0] = self.timeline
        self._plain.set_shape((1, 0, 1))
        self._native_commands: SubmitStructures | None = None  # of submit_native

    def submit(
        self,
        command_buffers: Sequence[CommandBuffer] = (),
        *,
        waits: Points = (),
        signals: Points = (),
        bindings: Sequence[Buffer] | None = None,
    ) -> int:
        """Hands work to the queue; returns at once (a CPU driver may run it meanwhile).

        Args:
            command_buffers: recorded and ended; run in order.
            waits: (semaphore, payload) pairs to be reached first. Payloads that nobody has scheduled hold the
                submission back on the host; nothing else waits for it.
            signals: pairs to be signalled when all commands are done; payloads only go up.
            bindings: the table that fills the slots of command buffers with ``binding_capacity``.

        Returns:
            The submission's number, which is the payload of ``stream`` when it is done; 0 for one that is held back.

        Raises:
            FailedPreconditionError: a command buffer is not ready, or a payload would not go up.
            ClosedError: something used was closed.
            DeviceLostError: the device is lost.
        """
        if len(command_buffers) == 1 and not waits:
            if not signals and bindings is None:
                number = self.resubmit(command_buffers[0], command_buffers[0].generation)
            elif len(signals) == 1:
                number = self._submit_one(command_buffers[0], signals, bindings)
            else:
                number = 0
            if number:
                return number
        for semaphore, value in waits:
            if value > semaphore.scheduled or semaphore.failure is not None:
                break
        else:
            return self._submit_now(command_buffers, waits, signals, bindings)
        self._hold(command_buffers, waits, signals, bindings)
        return 0

    def resubmit(self, commands: CommandBuffer, generation: int, bindings: Sequence[Any] | None = None) -> int:
        """``submit`` for calls of kernels and programs: one command buffer, no waits, no signals.

        Without ``bindings`` it was submitted here before. Returns 0, and has done nothing, if anything is unusual: it
        was recorded since it had this ``generation``, something was closed, or its shaders report. ``submit`` takes it
        then. Whoever records it need not be kept off: here it is noted as in use, and there its generation goes up,
        before anything else is done with it. (Measured in benchmarks/submit_wait.py and call_latency.py, as
        ``_submit_one``: after a wait the caches are cold and each Python operation costs several times its usual time;
        so these paths are written out.)
        """
        device, stream = self.device, self.stream
        used: Used = ()
        noted = False
        try:
            with self._lock:
                # First: what other threads close from now on is kept for this submission.
                self.preparing = number = self._submitted + 1
                try:
                    # No thread comes between plain statements: from the checks to the note of the number.
                    recording: Recording | None
                    if bindings is None:
                        if commands.ready_epoch != device.close_epoch or commands.generation != generation:
                            return 0
                        recording = commands._recording
                        if recording is None or recording.queue is not self or recording.reports:
                            return 0
                    else:
                        if device.lost is not None or device.is_closed:
                            return 0
                        if commands.one_shot and not commands.is_kept:
                            return 0
                        if commands.device is not device or commands.family != self.family:
                            return 0
                        recording = commands.prepare(bindings)
                        if recording.reports:
                            commands.unprepare(recording)
                            return 0
                        recording.queue = self
                    recording.number = number
                    native = self._plain
                    if recording is not native.last_recording:
                        native.command_handles[0] = recording.native.handle
                        native.last_recording = recording
                    native.signal_values[0] = number
                    used = ((commands, recording),)
                    inflight = self._inflight
                    inflight.append((number, used, (), False))
                    # To the end of the native call: see _submit_one.
                    self._submitted = stream.scheduled = number
                    noted = True
                    result = device.fn.vkQueueSubmit(self.handle, 1, native.info, NULL)
                except BaseException:
                    if used and not noted:
                        self._take_back(number, used, (), ())
                    raise
                finally:
                    self.preparing = 0
                if result or device.validation:
                    self._check_submitted(result, used, (), ())
            if stream.notifications or stream.held:
                self._after_submission(())
        except BaseException:
            if noted:  # after Ctrl-C, too: others wait for it
                self._after_submission(())
            raise
        if len(inflight) >= _RETIRE_EVERY or self._deferred:
            self.retire()
        return number

    def _submit_one(self, commands: CommandBuffer, signals: Points, bindings: Sequence[Buffer] | None) -> int:
        """``_submit_now`` for the most common case: one command buffer, no waits, one signal.

        Returns 0 if anything is wrong: the general path has the error messages.
        """
        device, stream = self.device, self.stream
        semaphore, value = signals[0]
        used: Used = ()
        claimed = noted = False
        try:
            with self._lock:
                # First: what other threads close from now on is kept for this submission.
                self.preparing = number = self._submitted + 1
                native = self._native
                try:
                    # Neither another thread nor Ctrl-C comes between plain statements: check and claim are one step.
                    if value <= semaphore.claimed or semaphore.is_signalling or semaphore.failure is not None:
                        return 0
                    if semaphore is not native.last_signal and semaphore.device is not device:
                        return 0
                    if value - semaphore.reached > _MIN_DIFFERENCE:
                        return 0
                    recording = None
                    if commands.ready_epoch == device.close_epoch and bindings is None:
                        recording = commands._recording
                        if recording is not None and recording.queue is not self:
                            recording = None
                    if recording is None:
                        if device.lost is not None or device.is_closed:
                            return 0
                        if commands.device is not device or commands.family != self.family:
                            return 0
                    before = semaphore.scheduled
                    semaphore.claimed = value
                    claimed = True
                    if recording is None:
                        recording = commands.prepare(bindings)
                        recording.queue = self
                    used = ((commands, recording),)
                    if recording is not native.last_recording:
                        native.command_handles[0] = recording.native.handle
                        native.last_recording = recording
                    if semaphore is not native.last_signal:
                        native.signal_handles[0] = semaphore.handle
                        native.signal_handles[1] = self.timeline
                        native.last_signal = semaphore
                    values = native.signal_values
                    values[0] = value
                    values[1] = number
                    if native.shape is not _ONE:
                        native.set_shape(_ONE)
                    if recording.reports:
                        semaphore.judge_at(value, [one.verdict for one in recording.reports])
                    inflight = self._inflight
                    recording.number = number
                    inflight.append((number, used, signals, commands.one_shot))
                    # An interrupt (Ctrl-C) is raised after a call, never between plain assignments: from here to the
                    # end of the native call all is noted, or nothing.
                    self._submitted = stream.scheduled = number
                    semaphore.scheduled = value
                    noted = True
                    result = device.fn.vkQueueSubmit(self.handle, 1, native.info, NULL)
                except BaseException:
                    if claimed and not noted:
                        self._take_back(number, used, signals, (before,))
                    raise
                finally:
                    self.preparing = 0
                if result or device.validation:
                    self._check_submitted(result, used, signals, (before,))
            if semaphore.notifications or semaphore.held or stream.notifications or stream.held:
                self._after_submission(signals)
        except BaseException:
            if noted:  # after Ctrl-C, too: others wait for it
                self._after_submission(signals)
            raise
        if len(inflight) >= _RETIRE_EVERY or self._deferred:
            self.retire()
        return number

    def submit_native(self, commands: CData, wait: CData, signal: CData) -> int:
        """Submits a VkCommandBuffer between two binary semaphores, as presentation has them; returns its number.

        It counts as any submission: what is closed from now on is kept until it is done. The caller keeps the commands
        and the semaphores until then.
        """
        device, stream = self.device, self.stream
        noted = False
        try:
            with self._lock:
                device.check_usable()
                native = self._native_commands
                if native is None:
                    native = self._native_commands = SubmitStructures(2)
                    native.set_shape((1, 1, 2))
                    native.signal_handles[1] = self.timeline
                native.command_handles[0], native.wait_handles[0], native.signal_handles[0] = commands, wait, signal
                self.preparing = number = self._submitted + 1
                try:
                    native.signal_values[1] = number
                    self._inflight.append((number, (), (), False))
                    # To the end of the native call: see _submit_one.
                    self._submitted = stream.scheduled = number
                    noted = True
                    result = device.fn.vkQueueSubmit(self.handle, 1, native.info, NULL)
                finally:
                    self.preparing = 0
                self._check_submitted(result, (), (), ())
        finally:
            if noted:
                self._after_submission(())
        if len(self._inflight) >= _RETIRE_EVERY or self._deferred:
            self.retire()
        return number

    def call_native(self, function: NativeFunction, *arguments: object) -> int:
        """Calls a function of Vulkan that no other thread may use the queue beside; returns its result."""
        with self._lock:
            return int(function(self.handle, *arguments))

    def _hold(
        self,
        command_buffers: Sequence[CommandBuffer],
        waits: Points,
        signals: Points,
        bindings: Sequence[Buffer] | None,
        *,
        transient: bool = False,
    ) -> None:
        self.device.check_usable()
        for semaphore, _ in (*waits, *signals):
            self._check_owner(semaphore)
        self._check_distinct(signals)
        for semaphore, value in signals:
            if value <= semaphore.claimed or semaphore.failure is not None:
                self._refuse_signal(semaphore, value)
        held = HeldSubmission(self.device, self._submit_held, command_buffers, waits, signals, transient=transient)

        def prepare() -> None:
            with self._lock:
                self._prepare_many(held.command_buffers, bindings, held.prepared)

        held.hold(prepare)

    def _submit_held(self, held: HeldSubmission) -> None:
        self._submit_now(held.command_buffers, held.waits, held.signals, None, held)

    def _submit_now(
        self,
        command_buffers: Sequence[CommandBuffer],
        waits: Points,
        signals: Points,
        bindings: Sequence[Buffer] | None,
        held: HeldSubmission | None = None,
    ) -> int:
        device = self.device
        used: Used = ()
        before: list[int] = []
        claimed, noted = 0, False
        try:
            with self._lock:
                if device.lost is not None or device.is_closed:
                    device.check_usable()
                command_count, wait_count, signal_count = len(command_buffers), len(waits), len(signals) + 1
                if signal_count > 2:
                    self._check_distinct(signals)
                if max(command_count, wait_count, signal_count) > self._native.capacity:
                    self._native = SubmitStructures(2 * max(command_count, wait_count, signal_count))
                native = self._native
                native.last_recording = native.last_signal = None
                self.preparing = number = self._submitted + 1  # first, see _submit_one
                try:
                    for index, (semaphore, value) in enumerate(waits):
                        if semaphore.is_closed or semaphore.device is not device:
                            self._check_owner(semaphore)
                        if self not in semaphore.awaited_by:
                            semaphore.awaited_by += (self,)
                        native.wait_handles[index] = semaphore.handle
                        native.wait_values[index] = value
                    for index, (semaphore, value) in enumerate(signals):
                        if value - semaphore.reached > _MIN_DIFFERENCE:
                            semaphore.check_difference(value)
                        before.append(semaphore.scheduled)
                        while semaphore.is_signalling:
                            with self.semaphore_context.signal_lock:
                                pass
                        # To the claim there are plain statements only, see _submit_one.
                        if (
                            value <= semaphore.claimed
                            or semaphore.failure is not None
                            or semaphore.device is not device
                        ):
                            self._refuse_signal(semaphore, value)
                        semaphore.claimed = value
                        claimed = index + 1
                        native.signal_handles[index] = semaphore.handle
                        native.signal_values[index] = value
                    # Last: drivers signal in this order, and once the queue's own has come, whoever sees it may destroy
                    # the others.
                    native.signal_handles[signal_count - 1] = self.timeline
                    native.signal_values[signal_count - 1] = number
                    shape = (command_count, wait_count, signal_count)
                    if shape != native.shape:
                        native.set_shape(shape)
                    if held is not None:
                        used = held.prepared
                        for index, (_, recording) in enumerate(used):
                            native.command_handles[index] = recording.native.handle
                    elif command_count == 1:
                        commands = command_buffers[0]
                        if commands.device is not device or commands.family != self.family:
                            self._check_commands(commands)
                        recording = commands.prepare(bindings)
                        used = ((commands, recording),)
                        native.command_handles[0] = recording.native.handle
                    else:
                        prepared: list[tuple[CommandBuffer, Recording]] = []
                        used = prepared
                        self._prepare_many(command_buffers, bindings, prepared)
                        for index, (_, recording) in enumerate(used):
                            native.command_handles[index] = recording.native.handle
                    for _, recording in used:
                        recording.queue = self
                        recording.number = number
                        if recording.reports:
                            for semaphore, value in signals:
                                semaphore.judge_at(value, [one.verdict for one in recording.reports])
                    if waits:
                        self._waits[number] = waits
                    self._inflight.append((number, used, signals, True))
                    for semaphore, value in signals:
                        semaphore.scheduled = value
                    # To the end of the native call: see _submit_one.
                    self._submitted = self.stream.scheduled = number
                    noted = True
                    if held is not None:
                        held.is_submitted = True
                    result = device.fn.vkQueueSubmit(self.handle, 1, native.info, NULL)
                except BaseException:
                    if not noted:
                        self._take_back(number, used if held is None else (), signals[:claimed], before)
                    raise
                finally:
                    self.preparing = 0
                if result or device.validation:
                    if held is not None:
                        held.is_submitted = result >= 0
                    self._check_submitted(result, used, signals, before)
            self._after_submission(signals)
        except BaseException:
            if noted:  # see _submit_one
                self._after_submission(signals)
            raise
        if len(self._inflight) >= _RETIRE_EVERY or self._deferred:
            self.retire()
        return number

    def _after_submission(self, signals: Points) -> None:
        """Releases held submissions and wakes the notifier. May be repeated after an interrupt."""
        for semaphore in (*[one for one, _ in signals], self.stream):
            if semaphore.held:
                semaphore.after_schedule()
            if semaphore.notifications:
                self.semaphore_context.notifier.wake()

    def _take_back(self, number: int, used: Used, claimed: Points, before: Sequence[int]) -> None:
        """Undoes the notes and claims of a submission that was not made, after an interrupt or an error.

        ``claimed`` are the signals whose payloads it has claimed, ``before`` the payloads that were scheduled before.
        """
        inflight = self._inflight
        while inflight and inflight[-1][0] >= number:
            inflight.pop()
        self._waits.pop(number, None)
        self.stream.scheduled = self._submitted
        for (semaphore, value), scheduled in zip(claimed, before, strict=False):
            if semaphore.scheduled == value:
                semaphore.scheduled = scheduled
            if semaphore.claimed == value:
                semaphore.claimed = semaphore.scheduled
        for commands, recording in used:
            commands.unprepare(recording)

    def _prepare_many(
        self,
        command_buffers: Sequence[CommandBuffer],
        bindings: Sequence[Buffer] | None,
        used: list[tuple[CommandBuffer, Recording]],
    ) -> None:
        """Adds to ``used`` one by one: after an error or an interrupt the caller takes them back."""
        for commands in command_buffers:
            self._check_commands(commands)
            used.append((commands, commands.prepare(bindings if commands.binding_capacity else None)))

    def _check_submitted(self, result: int, used: Used, signals: Points, before: Sequence[int]) -> None:
        try:
            self.device.check(result, f"submitting {', '.join(c.name for c, _ in used) or 'a barrier'}")
        except PumiceError:
            if result < 0:
                self._submitted -= 1
                self._take_back(self._submitted + 1, used, signals, before)
            raise

    def _refuse_signal(self, semaphore: TimelineSemaphore, value: int) -> None:
        self._check_owner(semaphore)
        if semaphore.failure is not None:
            raise semaphore.failure.again()
        raise FailedPreconditionError(
            f"{semaphore.name}: a payload only goes up: {semaphore.claimed} is signalled or scheduled, {value} was to "
            "be"
        )

    def _check_owner(self, semaphore: TimelineSemaphore) -> None:
        if semaphore.is_closed:
            raise ClosedError(f"{semaphore.name} was closed")
        if semaphore.device is not self.device:
            raise InvalidArgumentError(
                f"{semaphore.name} belongs to another device; order work of several devices on the host"
            )

    def _check_commands(self, commands: CommandBuffer) -> None:
        if commands.device is not self.device:
            raise InvalidArgumentError(f"{commands.name} was recorded for another device; record it for this one")
        if commands.family != self.family:
            raise InvalidArgumentError(
                f"{commands.name} was recorded for queue family {commands.family}; {self.name} is of family "
                f"{self.family}"
            )

    def _check_distinct(self, signals: Points) -> None:
        if len({semaphore for semaphore, _ in signals}) != len(signals):
            raise InvalidArgumentError("a submission signals each semaphore at most once; signal the largest payload")
