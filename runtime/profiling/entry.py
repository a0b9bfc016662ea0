"""What a profile consists of: dispatches, exports, calls, native functions. All times are nanoseconds of ``time.monotonic_ns``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["ProfiledCall", "ProfiledDispatch", "ProfiledExport", "ProfiledNative", "ProfiledWait"]


@dataclass(frozen=True, slots=True)
class ProfiledDispatch:
    """One dispatch that ran.

    Attributes:
        name: of the export that was dispatched; for a span that of the command buffer.
        kind: ``"dispatch"``, or ``"span"`` for commands that could only be timed as a whole, as they were recorded before the profile began or
            are no program's dispatches.
        call: number of the call that submitted it, ``None`` for none that is in the profile (a module's initializer).
        device: name of the device.
        submission: number of the submission on the device.
        workgroups: counts; ``None`` for an indirect dispatch and for a span.
        submit_ns: when the host submitted it.
        begin_ns, end_ns: when it ran on the device, within the ``deviation_ns`` of the device's clock; ``None`` where it has not run.
        duration_ns: by the device's clock alone.
        stage: pipeline stage at which both timestamps were written.
        barrier: whether an execution barrier stood before it; the first of a command buffer has one by the queue.
        overlapping: whether it may have run at the same time as dispatches beside it, no barrier being between them. Its duration is then the time by
            which it moved the end of all that runs, not how long it ran.
        location: where in the compiled program it is from, as ``file:line``; ``None`` where the module does not say.
        is_untimed: whether it was only counted, to slow the program no more than was allowed.
    """

    name: str
    kind: Literal["dispatch", "span"]
    call: int | None
    device: str
    submission: int
    workgroups: tuple[int, int, int] | None
    submit_ns: int
    begin_ns: float | None
    end_ns: float | None
    duration_ns: float | None
    stage: str
    barrier: bool
    overlapping: bool
    location: str | None
    is_untimed: bool


@dataclass(frozen=True, slots=True)
class ProfiledExport:
    """The dispatches of one export.

    Attributes:
        name, kind, location: as its dispatches have them.
        count: how often it ran, was submitted and is not known to have run left out.
        workgroups: the counts that it was dispatched with, each once; ``None`` for an indirect one.
        timed: how many of them were timed; all, unless ``most_slowdown`` was given.
        busy_ns: device time in which at least one of the timed ones ran; nothing is counted twice.
        total_ns: the same of all, estimated from the timed ones where those are not all; ``None`` where there are none.
        min_ns, median_ns, mean_ns, max_ns: of the durations of those that overlapped no other; ``None`` where there are none.
        overlapping: how many of them may have run at the same time as others.
        span_ns: time from begin to end of each group of overlapping dispatches with one of these in it: the most that they can have taken
            together.
    """

    name: str
    kind: Literal["dispatch", "span"]
    location: str | None
    count: int
    workgroups: tuple[tuple[int, int, int] | None, ...]
    timed: int
    busy_ns: float
    total_ns: float | None
    min_ns: float | None
    median_ns: float | None
    mean_ns: float | None
    max_ns: float | None
    overlapping: int
    span_ns: float


@dataclass(frozen=True, slots=True)
class ProfiledCall:
    """One call of the session. ``arguments_ns`` to ``results_ns`` are the host's shares: they add up to ``total_ns``.

    Where a profile was allowed ``most_slowdown`` only, native functions are timed in some calls: the shares from ``vm_ns`` to ``waits_ns`` of the others are
    ``None``.

    Attributes:
        number: in the order in which they began.
        name: the function's full name.
        thread: identifier of the thread that called.
        begin_ns, end_ns: of the call.
        total_ns: between them.
        arguments_ns: converting arguments.
        vm_ns: in the program's own code, and what runs it.
        hal_ns: in functions of the ``hal`` module.
        native_ns: in other native functions; calls of the session that they make in turn are part of it, and calls of their own too.
        waits_ns: waiting: for fences, for a turn, for a loop.
        results_ns: converting results.
        device_ns: device time in which at least one of its dispatches ran, beside the host's shares and not part of them;
            ``None`` where one was not timed.
        dispatches: how many of its dispatches ran.
        error: class of the exception that it ended in; ``""`` for none.
        is_finished: whether it had ended when the profile did; otherwise ``end_ns`` is the profile's.
    """

    number: int
    name: str
    thread: int
    begin_ns: int
    end_ns: int
    total_ns: int
    arguments_ns: int
    vm_ns: int | None
    hal_ns: int | None
    native_ns: int | None
    waits_ns: int | None
    results_ns: int
    device_ns: float | None
    dispatches: int
    error: str
    is_finished: bool


@dataclass(frozen=True, slots=True)
class ProfiledNative:
    """A native function that programs called.

    Attributes:
        name: as it is imported, such as ``hal.command_buffer.dispatch``.
        count: calls, one more for each time that it went on behind a wait.
        total_ns, max_ns: time in it, waits left out.
        waits, waited_ns: how often it had the program wait, and how long.
    """

    name: str
    count: int
    total_ns: int
    max_ns: int
    waits: int
    waited_ns: int


@dataclass(frozen=True, slots=True)
class ProfiledWait:
    """A wait of a program.

    Attributes:
        name: of the native function that asked for it.
        call: number of the call; ``None`` for none that is in the profile.
        begin_ns, end_ns: until the program went on.
    """

    name: str
    call: int | None
    begin_ns: int
    end_ns: int
