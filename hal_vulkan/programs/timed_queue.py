"""A queue that times submissions, between a context and a device's queue while a profile runs.

Each dispatch gets two timestamps. Command buffers with binding slots have further recordings, with timestamps, for each
range of memory. Such a recording serves one submission at a time; it is free again when that submission has retired and
its timestamps were read. Overlapping calls use several recordings. So nothing waits for timestamps, and a profiled
program records as rarely as an unprofiled one. Earlier recorded commands without slots cannot be timed from inside: two
marks are submitted around them.

Timestamps are read by one native call when the device's queue retires the submission, and stay bytes until they are
requested.

Thread rule: the same as for a queue.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from ...base.weak_registry import WeakRegistry
from ...hal.queue import TimedSubmission
from ...status import PumiceError
from ..commands.command_buffer import CommandBuffer
from ..commands.context import CommandContext
from ..commands.recording import Recording
from ..commands.timestamps import TimestampRecorder
from ..instance.logical_device import LogicalDevice
from ..submit.batch import Points
from ..submit.queue import Queue
from ..sync.timeline import wait_timeline
from .command_buffer import ProgramCommandBuffer
from .timed_recordings import TimedRecordings

_SECONDS_A_READING: Final = 1.0
_MOST_READING_S: Final = 1.0
_RECENT: Final = 256  # submissions that may retire in another thread at a time
_FREE_NS: Final = 10e6  # of slowdown allowed besides the share
_MARKS_COST: Final = 3  # the cost of a span's two marks, in dispatches
_COST_DISPATCHES: Final = 8
_COST_RUNS: Final = 5
_COST_MARGIN: Final = 1.5  # a program's caches are colder than those of a measuring loop
_now = time.monotonic_ns

# Name, thread, time of submission; the recorder of the dispatches, source locations.
_Counted: TypeAlias = "tuple[str, int, int, TimestampRecorder | None, tuple[Mapping[str, str], ...]]"

_costs: Final[weakref.WeakKeyDictionary[LogicalDevice, float]] = weakref.WeakKeyDictionary()


def timestamps_cost_ns(queue: Queue) -> float:
    """Returns the time that two timestamps add to a dispatch: under one to tens of µs, measured once per device."""
    cost = _costs.get(queue.device)
    if cost is not None:
        return cost
    times: dict[bool, list[int]] = {False: [], True: []}
    context = queue.command_context
    pipeline = context.builtins.empty()
    with CommandBuffer(context, name="cost") as plain, CommandBuffer(context, timing=True, name="cost") as timed:
        for commands in (plain, timed):
            commands.begin()
            for _ in range(_COST_DISPATCHES):
                commands.dispatch(pipeline, (), (1, 1, 1))
                commands.execution_barrier()
            commands.end()
        for _ in range(_COST_RUNS):
            for is_timed, commands in ((False, plain), (True, timed)):
                begin = _now()
                queue.submit((commands,))
                queue.wait_idle()
                if is_timed:
                    commands.timings()
                times[is_timed].append(_now() - begin)
    difference = float(np.median(times[True]) - np.median(times[False]))
    cost = _costs[queue.device] = max(_COST_MARGIN * difference / _COST_DISPATCHES, 100.0)
    return cost


class _Stand:
    """A stand-in for a command buffer at the device's queue: prepared once, and notified of its retirement.

    Subclasses have ``binding_capacity``, ``prepare``, ``unprepare`` and ``retired``.
    """

    one_shot = True  # so that the queue reports its retirement
    ready_epoch = -1
    generation = 0

    def __init__(self, owner: TimedQueue, submission: TimedSubmission, name: str) -> None:
        self.owner = owner
        self.submission = submission
        self.device = owner.device
        self.family = owner.family
        self.name = name

    def find_recording(self, bindings: Sequence[Any] | None) -> None:
        """Returns ``None``: the commands have to be prepared."""


class _TimedCommands(_Stand):
    """A command buffer whose dispatches are timed."""

    def __init__(self, owner: TimedQueue, commands: ProgramCommandBuffer, submission: TimedSubmission) -> None:
        super().__init__(owner, submission, commands.name)
        self.commands: ProgramCommandBuffer | None = commands
        self.binding_capacity = commands.binding_capacity
        self.key = b""
        self.timed: TimedRecordings | None = None

    def prepare(self, bindings: Sequence[Any] | None) -> Recording:
        commands = self.commands
        assert commands is not None
        if commands.timed is None or commands.timed.is_dropped:
            self.owner.timed_commands.add(commands)
            commands.timed = TimedRecordings(self.owner.queue.command_context, commands.locations)
        timed = self.timed = commands.timed
        recording = commands.prepare_timed(bindings, timed)
        timed.timestamps = recording.timestamps
        self.key = timed.key
        recording.queue = None  # until the submission, its timestamps are from the last run
        self.submission.failed = False
        return recording

    def unprepare(self, recording: Recording) -> None:
        commands = self.commands  # reports stay: they are prepared again
        self.submission.failed = True
        if commands is not None and not commands.unprepare_timed(recording):
            self._give_back(commands, recording)

    def retired(self, recording: Recording) -> None:
        """Reads its timestamps."""
        commands, self.commands = self.commands, None
        timed = self.timed
        if commands is None or timed is None or recording.timestamps is None:
            return
        submission, timestamps = self.submission, recording.timestamps
        submission.dispatches, submission.barriers = timestamps.dispatches, timestamps.barriers
        submission.locations = timed.locations
        if timestamps.is_muted:
            submission.untimed = True
        else:
            self.owner.charge(len(timestamps.dispatches))
            self.owner.read(submission, timestamps.read_raw)
        self._give_back(commands, recording)

    def _give_back(self, commands: ProgramCommandBuffer, recording: Recording) -> None:
        if commands.binding_capacity and not commands.one_shot and self.timed is not None:
            self.timed.give_back(self.key, recording)
        else:
            self.owner.queue.command_context.recycle(recording)


class _Mark(_Stand):
    """One end of a span: a timestamp in a command buffer of its own."""

    binding_capacity = 0

    def __init__(
        self, owner: TimedQueue, submission: TimedSubmission, marks: tuple[_MarkCommands, _MarkCommands], *, last: bool
    ) -> None:
        super().__init__(owner, submission, "profile mark")
        self.marks = marks
        self.is_last = last

    def prepare(self, bindings: Sequence[Any] | None) -> Recording:
        return self.marks[self.is_last].prepare(bindings)

    def unprepare(self, recording: Recording) -> None:
        self.submission.failed = True
        if self.is_last:
            self.owner.give_back_marks(self.marks)

    def retired(self, recording: Recording) -> None:
        """Reads both timestamps, if it is the last one."""
        if self.is_last:
            self.owner.read(self.submission, self._read)
            self.owner.give_back_marks(self.marks)

    def _read(self) -> bytes:
        first, last = (mark.recorder() for mark in self.marks)
        return first.read_raw()[8:] + last.read_raw()[:8]


class _MarkCommands(CommandBuffer):
    """A command buffer that writes two timestamps in a row."""

    def __init__(self, context: CommandContext) -> None:
        super().__init__(context, timing=True, name="profile mark")
        self.begin()
        timestamps = self.recorder()
        timestamps.begin("mark", None)
        timestamps.end()
        self.end()

    def recorder(self) -> TimestampRecorder:
        """Writes and reads the timestamps."""
        assert self._recording is not None and self._recording.timestamps is not None
        return self._recording.timestamps


class TimedQueue:
    """Submits to a device's queue in its place, and times the submissions.

    Args:
        most_slowdown: the share of the time that timestamps may cost, such as 0.05; submissions beyond it are only
            counted. ``None`` times every submission. The first milliseconds are timed in full.

    Attributes:
        submissions: the timed submissions, in order.
        took_ns: the calls' total time so far, set by the profile.
        timed_commands: the command buffers that have recordings with timestamps.
        on_reading: a function that is called about once a second when timestamps are read, to relate the clocks.
        errors: the errors raised while timestamps were read.
    """

    def __init__(self, queue: Queue, most_slowdown: float | None = None) -> None:
        self.device: LogicalDevice = queue.device
        self.queue = queue
        self.family: int = queue.family
        self.submissions: list[TimedSubmission] = []
        self.timed_commands: WeakRegistry[ProgramCommandBuffer] = WeakRegistry()
        self.on_reading: Callable[[], None] | None = None
        self.errors: list[PumiceError] = []
        self._marks: list[tuple[_MarkCommands, _MarkCommands]] = []
        self._lock = threading.Lock()
        self._stopped = False
        self._counted: list[_Counted] = []
        self._last = 0  # the number of the last submission
        self._most_slowdown = most_slowdown
        self._cost_ns = 0.0 if most_slowdown is None else timestamps_cost_ns(queue)
        self.took_ns = 0
        self._spent_ns = 0.0
        self._next_reading = time.monotonic() + _SECONDS_A_READING

    def submit(
        self,
        command_buffers: Sequence[CommandBuffer] = (),
        *,
        waits: Points = (),
        signals: Points = (),
        bindings: Sequence[Any] | None = None,
    ) -> int:
        if self._stopped:
            return self.queue.submit(command_buffers, waits=waits, signals=signals, bindings=bindings)
        thread = threading.get_ident()
        counted: list[_Counted] = []
        stands: list[Any] = []
        for commands in command_buffers:
            submit_ns = _now()
            of_program = commands if type(commands) is ProgramCommandBuffer else None
            if not self.may_time():
                noted = (None, ()) if of_program is None else of_program.noted()
                if noted is not None:
                    counted.append((commands.name, thread, submit_ns, *noted))
                    stands.append(commands)
                    continue
            submission = TimedSubmission(commands.name, thread, submit_ns)
            self.submissions.append(submission)
            # Timestamps for each dispatch: it is not recorded yet, or was recorded with them.
            if of_program is not None and (of_program.binding_capacity or of_program._timing is True):
                stands.append(_TimedCommands(self, of_program, submission))
                continue
            submission.is_span = True
            self.charge(_MARKS_COST)
            marks = self._take_marks()
            stands += (_Mark(self, submission, marks, last=False), commands, _Mark(self, submission, marks, last=True))
        try:
            number = self.queue.submit(stands, waits=waits, signals=signals, bindings=bindings)
        except BaseException:
            for stand in stands:
                if isinstance(stand, _Stand):
                    stand.submission.failed = True
            raise
        self._counted += counted
        if number and len(counted) < len(stands):
            self._last = number
            for stand in stands:
                if isinstance(stand, _Stand):
                    stand.submission.is_submitted = True
        return number

    def resubmit(self, commands: CommandBuffer, generation: int, bindings: Sequence[Any] | None = None) -> int:
        """Submits the commands with ``submit``, which times them."""
        return 0

    def take_submissions(self) -> list[TimedSubmission]:
        """Returns all submissions, in order."""
        for name, thread, submit_ns, timestamps, locations in self._counted:
            submission = TimedSubmission(name, thread, submit_ns, locations=locations, untimed=True)
            if timestamps is None:
                submission.is_span = True
            else:
                submission.dispatches, submission.barriers = timestamps.dispatches, timestamps.barriers
            self.submissions.append(submission)
        self._counted.clear()
        self.submissions.sort(key=lambda record: record.submit_ns)
        return self.submissions

    def may_time(self) -> bool:
        """Whether timestamps have cost less than their share of the calls' time."""
        return self._most_slowdown is None or self._spent_ns < _FREE_NS + self._most_slowdown * self.took_ns

    def charge(self, dispatches: int) -> None:
        self._spent_ns += dispatches * self._cost_ns

    def read(self, submission: TimedSubmission, read: Callable[[], bytes]) -> None:
        """Reads the timestamps of a submission that has retired."""
        try:
            submission.ticks = read()
        except PumiceError as error:  # a lost device: its users get this error
            self.errors.append(error)
            return
        if self.on_reading is not None and time.monotonic() >= self._next_reading:
            self._next_reading = time.monotonic() + _SECONDS_A_READING
            self.on_reading()

    def _take_marks(self) -> tuple[_MarkCommands, _MarkCommands]:
        with self._lock:
            if self._marks:
                return self._marks.pop()
        context = self.queue.command_context
        return _MarkCommands(context), _MarkCommands(context)

    def give_back_marks(self, marks: tuple[_MarkCommands, _MarkCommands]) -> None:
        """Takes back marks that no submission uses."""
        with self._lock:
            if not self._stopped:
                self._marks.append(marks)
                return
        for mark in marks:
            mark.close()

    def _await_readings(self) -> None:
        """Waits until other threads have read the times of finished work."""
        until = time.monotonic() + _MOST_READING_S
        recent = self.submissions[-_RECENT:]
        while not self.errors and time.monotonic() < until and any(submission.is_unread for submission in recent):
            time.sleep(0.0001)

    def stop(self, timeout: float) -> None:
        """Ends timing. Waits at most ``timeout`` seconds for timed work, and releases everything.

        Work that is unfinished or held back after that has no times, and releases its resources when it ends.
        """
        try:
            if self._last and self.device.lost is None and not self.device.is_closed:
                wait_timeline(self.device, self.queue.timeline, self._last, timeout, "what was profiled to end")
                self.queue.retire()
                self._await_readings()
        except PumiceError as error:
            self.errors.append(error)
        finally:
            self.on_reading = None
            with self._lock:
                self._stopped = True
                marks, self._marks = self._marks, []
            if not self.device.is_closed:
                self.queue.close_to_submissions()  # a submission in preparation uses the recordings below
                for commands in self.timed_commands:
                    commands.drop_timed()
                for pair in marks:
                    for mark in pair:
                        mark.close()
