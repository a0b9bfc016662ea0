"""Recordings: calls of kernels and copies between arrays, as one submission that runs any number of times.

Calling sequence: ``with device.record() as step:`` and calls inside → ``run``, ``run_async``, ``time``, any number of
times → ``close``, or close the device.

Thread rule: record in one thread; run from any.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, cast

from ...base.files import write_whole
from ...hal.buffer import Buffer
from ...hal.command_buffer import CommandBuffer
from ...status import ClosedError, FailedPreconditionError, InvalidArgumentError, PumiceError
from ..arrays.array_device import ArrayDevice
from ..arrays.recorder import Recorder, Step, recorder_of, refuse_recording
from ..arrays.uses import Uses, note_all
from ..arrays.verdict import NO_VERDICTS
from ..kernels.recorded_call import RecordedCall
from .push_blocks import PushBlocks
from .values import Value, push_targets, with_values

if TYPE_CHECKING:
    from ...hal_vulkan import Buffer as VulkanBuffer
    from ...hal_vulkan import CommandBuffer as VulkanCommandBuffer
    from ...hal_vulkan import DispatchTiming

_CLOSED: Final = "was closed"
_NO_BLOCKS: Final[Mapping[int, Buffer]] = {}
_MOST_AT_ONCE: Final = 256  # runs in one submission, between which Ctrl-C is served


class Recording:
    """Calls that run together, in the order in which they were made.

    Each run does what the calls would do, with the arguments that they had: arrays of the device are read and written
    in place, values of the host were copied when the calls were recorded. Barriers stand between the calls, as between
    calls outside of a recording.

    Attributes:
        device: the device that runs it.
        name: the name in messages, profiles and debug labels.
    """

    def __init__(self, device: ArrayDevice, name: str = "recording") -> None:
        self.device = device
        self.name = name
        self._steps: tuple[Step, ...] = ()  # without the values that only the blocks have
        self._blocks: PushBlocks | None = None  # once a push constant has changed
        self._recorder: Recorder | None = None
        self._state = "was not recorded yet: record it in a with block"
        self._lock = threading.Lock()
        self._commands: CommandBuffer | None = None
        self._native: tuple[Step, ...] = ()  # the steps that the commands were recorded from
        self._used: list[Uses] = []
        self._written: list[Uses] = []
        self._read: list[Uses] = []  # whose contents from before it uses
        self._overwritten: list[Uses] = []
        self._has_reports = False

    @property
    def steps(self) -> tuple[Step, ...]:
        """The recorded calls, in order, with their present values. For tools."""
        if self._blocks is not None:
            steps = self._blocks.settled()
            if self._native is self._steps:
                self._native = steps  # the same commands
            self._steps = steps
        return self._steps

    # -- recording -----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Begins to record the calls of this thread on the device.

        Raises:
            FailedPreconditionError: it was recorded before, or the device's calls are being recorded already.
        """
        if self._recorder is not None:
            raise FailedPreconditionError(f"{self.name} was recorded before; make another with device.record()")
        self.device.hal.check_usable()
        recorder = Recorder(self.device)
        recorder.begin()
        self._recorder = recorder
        self._state = "is being recorded: run it after the with block"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        recorder = self._recorder
        assert recorder is not None
        recorder.end()
        self._state = "cannot run: its with block was left by an error; record it again"
        if kind is None:
            steps = tuple(recorder.steps)
            self._commands = self.device.hal.create_command_buffer(name=self.name)
            try:
                self._record(steps)
            except BaseException:
                self._commands.close()
                raise
            self._steps = steps
            self._state = ""

    def _record(self, steps: tuple[Step, ...]) -> None:
        """Records the native commands of steps."""
        commands = self._commands
        assert commands is not None
        self._native = ()
        if self._blocks is not None:
            self._blocks.take(steps)
        record_steps(commands, steps, {} if self._blocks is None else self._blocks.parts)
        marks: dict[Uses, tuple[bool, bool]] = {}  # whether it is read before it is written; whether it is written
        for step in steps:
            for uses, read, written in step.marks:
                first_read, was_written = marks.get(uses, (read, False))
                marks[uses] = first_read, was_written or written
        self._used = list(marks)
        self._written = [uses for uses, (_, written) in marks.items() if written]
        self._read = [uses for uses, (read, _) in marks.items() if read]
        self._overwritten = [uses for uses, (read, _) in marks.items() if not read]
        self._has_reports = any(isinstance(step, RecordedCall) and step.pipeline.report for step in steps)
        self._native = steps

    # -- values --------------------------------------------------------------------------------------

    def update(self, values: Mapping[str, Value] | None = None, /, **named: Value) -> None:
        """Changes values for all later runs.

        Args:
            values, named: the push constants and arguments by name, as in calls. A push constant is changed in every
                call that has one of the name; an array takes the place of another in the whole recording. A name that
                stands for different values is qualified by the kernel, ``{"advect.dt": 0.1}``, and by the number of its
                call, ``{"advect[1].dt": 0.1}``.

        Raises:
            NotFoundError: there is no such name; the message lists those that exist.
            InvalidArgumentError: a name stands for different values, or no call takes the value.
            ClosedError: the recording or an array was closed.
        """
        with self._lock:
            self._check_ready()
            merged = {**(values or {}), **named}
            data = self._changed(merged)
            if data is not None and self._blocks is not None:
                self._blocks.data = data
            else:
                self._steps = with_values(self.steps, merged)

    def save(self, path: str | Path) -> None:
        """Writes the recording as a compiled program (``.vmfb``), which sessions, C and HAL code run.

        Its function ``run`` takes the arrays of the device that the recording uses, in the order of first use, works on
        them in place, and returns those that are written. Push constants are those of runs that change none.

        Raises:
            UnimplementedError: a call uses what programs have not: images, arrays by address, values of the host.
        """
        from .module import module_of

        with self._lock:
            self._check_ready()
            data = module_of(self.steps, self.name)
        write_whole(path, lambda file: file.write(data))

    # -- running -------------------------------------------------------------------------------------

    def run(self, values: Mapping[str, Value] | None = None, /, *, times: int = 1, **named: Value) -> None:
        """Submits the recorded calls; returns at once, as calls do.

        Inside another recording of the device, the calls are added to that one.

        Args:
            values, named: the values for this call of ``run`` alone, as for ``update``.
            times: the number of runs, one after the other.

        Raises:
            ClosedError: the recording, the device, or an array or a kernel that it uses was closed.
            FailedPreconditionError: it is being recorded, or recording it failed.
        """
        self._run(times, {**values, **named} if values else named)

    async def run_async(self, values: Mapping[str, Value] | None = None, /, *, times: int = 1, **named: Value) -> None:
        """Performs ``run`` and waits for the work; blocks nothing meanwhile.

        Raises:
            FailedPreconditionError: the device's calls are being recorded; other errors as for ``run``.
            PumiceError: the work failed.
        """
        refuse_recording(self.device, "run_async()", "use run() to add one recording to another")
        payload = self._run(times, {**(values or {}), **named})
        device = self.device
        await device.stream.at(payload)
        device.finish(payload)

    def time(self, values: Mapping[str, Value] | None = None, /, **named: Value) -> tuple[DispatchTiming, ...]:
        """Runs the recorded calls once, waits for them, and measures each dispatch with the device's clock.

        Raises:
            UnimplementedError: the device writes no timestamps.
            FailedPreconditionError: the device's calls are being recorded; other errors as for ``run``.
        """
        refuse_recording(self.device, "time()", "it waits for the device. Use run() to add one recording to another")
        with self._lock:
            self._check_ready()
            steps = with_values(self.steps, {**(values or {}), **named})
            commands: VulkanCommandBuffer = self.device.vulkan.create_command_buffer(name=self.name, timing=True)
            with contextlib.closing(commands):
                record_steps(commands, steps)
                if self._native is not steps:
                    self._record(steps)  # for the memory that it uses
                self.device.finish(self._submit([commands]))
                return commands.timings()

    def _run(self, times: int, values: Mapping[str, Value] | None) -> int:
        """Submits; returns the payload at the end, 0 if there was nothing to submit."""
        if times != 1 and (not isinstance(times, int) or times < 0):
            raise InvalidArgumentError(f"{self.name}: times is the number of runs, an int, got {times!r}")
        recorder = recorder_of(self.device)
        with self._lock:
            if self._state:
                self._check_ready()
            if recorder is not None:
                steps = with_values(self.steps, values or {})
                for step in steps * times:
                    recorder.add(step)
                return 0
            data = self._changed(values) if values else None
            steps = with_values(self.steps, values) if values and data is None else self._steps
            payload = 0
            try:
                if self._native is not steps:
                    self._record(steps)
                assert self._commands is not None
                while times > 0:
                    payload = self._submit([self._commands] * min(times, _MOST_AT_ONCE), data)
                    times -= _MOST_AT_ONCE
            except ClosedError:
                self._check_open(steps)
                raise
            return payload

    def _changed(self, values: Mapping[str, Value]) -> bytes | None:
        """Returns the blocks of push constants with other values; ``None`` if the steps have to be changed for them."""
        if self._blocks is None:
            if not all(push_targets(self._steps, name) for name in values):
                return None
            blocks = PushBlocks(self.device, self._steps)
            if blocks.changed(values) is None:
                blocks.close()
                return None
            self._blocks, self._native = blocks, ()
        return self._blocks.changed(values)

    def _submit(self, commands: Sequence[CommandBuffer], data: bytes | None = None) -> int:
        """Submits commands of the native steps, and notes the work in what they use; returns the payload.

        ``data`` has the push constants of this run, if other than those of the steps.
        """
        device, blocks = self.device, self._blocks
        copies: tuple[CommandBuffer, ...] = ()
        if blocks is not None:
            data = blocks.data if data is None else data
            copies = blocks.copy_of(data)
            commands = (*copies, *commands)
        judged = self._has_reports or device.verdicts
        payload = self._submit_judged(commands) if judged else device.submit(commands)
        if blocks is not None and data is not None and copies:
            blocks.noted(data, payload)
        note_all(device.mark_lock, self._used, self._written, payload)
        return payload

    def _submit_judged(self, commands: Sequence[CommandBuffer]) -> int:
        """Does so where shaders report: the results inherit the verdicts on the kernels and on what they read."""
        calls = {step.pipeline: step for step in self._native if isinstance(step, RecordedCall)}
        with contextlib.ExitStack() as stack:
            for call in sorted(calls.values(), key=lambda call: id(call.lock)):  # in one order: no deadlock
                stack.enter_context(call.lock)
            verdicts = [pipeline.report.next_verdict() for pipeline in calls if pipeline.report is not None]
            read, overwritten = ([uses.ready for uses in some] for some in (self._read, self._overwritten))
            payload = self.device.submit(commands)
            for verdict in verdicts:
                verdict.payload = payload
        own = frozenset(verdicts) if verdicts else NO_VERDICTS
        self.device.verdicts.hold(payload, own, read, overwritten)
        return payload

    def _check_open(self, steps: Sequence[Step]) -> None:
        """Raises for an argument that was closed, with its name."""
        for step in steps:
            for label, argument in step.labelled:
                if getattr(argument, "is_closed", False):
                    raise ClosedError(
                        f"{self.name} cannot run: {label} was closed; give another with update(), or record again"
                    )

    def _check_ready(self) -> None:
        if self._state:
            error = ClosedError if self._state == _CLOSED else FailedPreconditionError
            raise error(f"{self.name} {self._state}")
        self.device.hal.check_usable()

    # -- end -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Frees the commands once current runs have finished, and forgets the arrays; idempotent."""
        with self._lock:
            self._state = _CLOSED
            self._steps = self._native = ()
            self._used = self._written = self._read = self._overwritten = []
            if self._commands is not None:
                self._commands.close()
            if self._blocks is not None:
                self._blocks.close()
                self._blocks = None

    def __del__(self) -> None:
        # The garbage collector may run under any lock, so the device's next call closes the commands.
        commands = getattr(self, "_commands", None)
        if commands is not None and self._state != _CLOSED:
            self.device.hal.dropped.append(commands)
            if self._blocks is not None:
                self.device.hal.dropped.append(self._blocks)

    def __repr__(self) -> str:
        return f"<Recording {self.name}: {self._state or ', '.join(step.name for step in self.steps) or 'no calls'}>"


def record_steps(commands: CommandBuffer, steps: Sequence[Step], blocks: Mapping[int, Buffer] = _NO_BLOCKS) -> None:
    """Records steps anew, with a barrier between one and the next.

    ``blocks`` is the memory with the push constants of a call, by the step's index.
    """
    commands.begin()
    try:
        for index, step in enumerate(steps):
            if index:
                commands.execution_barrier()
            if isinstance(step, RecordedCall) and index in blocks:
                step.record(commands, cast("VulkanBuffer", blocks[index]))
            else:
                step.record(commands)
    except BaseException:
        with contextlib.suppress(PumiceError):
            commands.end()  # so that they can be recorded again
        raise
    commands.end()
