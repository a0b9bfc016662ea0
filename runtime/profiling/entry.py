"""The entries of a profile: dispatches, exports, calls, native functions, waits.

All times are nanoseconds of ``time.monotonic_ns``.
"""

from __future__ import annotations

from typing import Final, Literal

from ...base.lazy_dataclass import dataclass

HOST_SHARES: Final = ("arguments_ns", "vm_ns", "hal_ns", "native_ns", "waits_ns", "results_ns")


@dataclass(frozen=True, slots=True)
class ProfiledDispatch:
    """One dispatch that ran.

    Attributes:
        name: the name of the export; for a span, the command buffer's name.
        kind: ``"dispatch"``, or ``"span"`` for commands that were timed as a whole, because they were recorded before
            the profile began or are not a program's dispatches.
        call: the number of the call that submitted it, ``None`` if the call is not in the profile (a module's
            initializer).
        device: the device's name.
        submission: the number of the submission on the device.
        workgroups: the workgroup counts; ``None`` for an indirect dispatch and for a span.
        submit_ns: the time of the submission.
        begin_ns, end_ns: the times of its run on the device, within the ``deviation_ns`` of the device's clock;
            ``None`` if it has not run.
        duration_ns: the duration by the device's clock only.
        stage: the pipeline stage at which both timestamps were written.
        barrier: whether there was an execution barrier before it; the queue orders the first of a command buffer.
        overlapping: whether it may have run at the same time as a neighbour, with no barrier between them. In that case
            its duration is the delay that it adds to the end of the group, not its run time.
        location: the location in the compiled program's source, as ``file:line``; ``None`` if the module has none.
        is_untimed: whether it was only counted, to keep within ``most_slowdown``.
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
        name, kind, location: the name, kind and location of its dispatches.
        count: the number of its runs; submissions that are not known to have run are not counted.
        workgroups: the distinct counts that it was dispatched with; ``None`` for an indirect dispatch.
        timed: the number of timed runs; all, unless ``most_slowdown`` was set.
        busy_ns: the device time during which at least one timed run was in progress.
        total_ns: the device time for all runs, estimated from the timed runs; ``None`` if none was timed.
        min_ns, median_ns, mean_ns, max_ns: the durations of runs that overlapped no other; ``None`` if there are none.
        overlapping: the number of runs that may have overlapped others.
        span_ns: the total time of the groups of overlapping dispatches that contain one of these: an upper bound of
            their time.
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

    With ``most_slowdown`` native functions are timed only in some calls; in other calls the shares from ``vm_ns`` to
    ``waits_ns`` are ``None``.

    Attributes:
        number: the number by order of beginning.
        name: the function's full name.
        thread: the identifier of the caller's thread.
        begin_ns, end_ns: the times of the call.
        total_ns: the duration of the call.
        arguments_ns: the time spent converting arguments.
        vm_ns: the time in the program's own code and the virtual machine.
        hal_ns: the time in functions of the ``hal`` module.
        native_ns: the time in other native functions, including the session's calls that they make, which are also
            separate calls.
        waits_ns: the time spent waiting for fences, for a ticket, for a loop.
        results_ns: the time spent converting results.
        device_ns: the device time in which at least one of its dispatches ran, which is not part of the host's shares;
            ``None`` if one was not timed.
        dispatches: the number of its dispatches that ran.
        error: the class of the exception that ended it; ``""`` for none.
        is_finished: whether it ended before the profile; otherwise ``end_ns`` is the profile's.
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
        name: the imported name, such as ``hal.command_buffer.dispatch``.
        count: the number of calls; each continuation after a wait counts as one more.
        total_ns, max_ns: the time in it without waits.
        waits, waited_ns: the number and the time of waits that it requested.
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
        name: the name of the requesting native function.
        call: the number of the call; ``None`` if that is not in the profile.
        begin_ns, end_ns: the times from the request until the program continued.
    """

    name: str
    call: int | None
    begin_ns: int
    end_ns: int
