"""Profiles: the device time of the dispatches of sessions' calls, and the host's time by activity.

>>> with session.profile() as profile:
...     session.call("module.predict", image)
>>> print(profile)
>>> profile.write_json("profile.json")
>>> profile.write_perfetto("profile.pftrace")

Calling sequence: ``session.profile()`` → calls of any kind, from any thread → ``stop``, or the end of a ``with`` block
→ the figures, which are computed at the first access. A session has one profile at a time. Calls that fail are part of
it.

Thread rule: ``stop`` as for the session; figures from any thread. The design is in docs/design/session.md.
"""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from typing import Final

from ...base.files import write_whole
from ...hal.programs.device_context import DeviceContext
from ...status import FailedPreconditionError, InvalidArgumentError, PumiceError, UnimplementedError
from ...vm.execution.context import Context, Function
from ...vm.execution.module_state import ModuleState
from ..modules.hal.module import HalState
from .call import CallRecord, now
from .clock import ClockRelation
from .device import ProfiledDevice, busy_ns, dispatches_of, exports_of
from .entry import ProfiledCall, ProfiledDispatch, ProfiledExport, ProfiledNative, ProfiledWait
from .native import NativeSampling
from .report import profile_html, profile_table
from .shares import Attribution, attribute
from .trace import add_profile
from .trace_writer import TraceWriter

FORMAT_VERSION: Final = 1
_STOP_SECONDS: Final = 10.0


class Profile:
    """The calls of a session between ``Session.profile()`` and ``stop``, and of the sessions that joined it.

    All times are nanoseconds of ``time.monotonic_ns()``; ``clocks`` relates the device's times to it.

    Attributes:
        most_slowdown: the slowdown as requested. Half of it is for native functions, half for timestamps.
        begin_ns, end_ns: the times of the profile; ``end_ns`` is 0 until it is stopped.
        notes: the caveats: devices without timestamps, clocks that are only bracketed, unfinished work.
    """

    def __init__(self, most_slowdown: float | None, *, concurrent: bool) -> None:
        """Creates a profile; ``concurrent``: whether calls may overlap in different threads."""
        if most_slowdown is not None and (
            isinstance(most_slowdown, bool)
            or not isinstance(most_slowdown, (int, float))
            or not 0 <= most_slowdown <= 1
        ):
            raise InvalidArgumentError(f"most_slowdown is a number from 0 to 1 or None, got {most_slowdown!r}")
        self.most_slowdown = most_slowdown
        self.notes: list[str] = []
        self.end_ns: int
        self.begin_ns: int
        self.begin_ns = self.end_ns = 0
        self._records: list[CallRecord] = []
        self._sampling = NativeSampling(most_slowdown)
        self._devices: list[ProfiledDevice] = []
        self._contexts: dict[Context, Callable[[], None]] = {}  # and what follows its removal
        self._is_concurrent = concurrent
        self._seen: set[object] = set()  # module states and device contexts
        self._stopping = threading.Lock()
        self.begin_ns = now()

    # -- while it runs: called by sessions ---------------------------------------------------------------

    def add(self, context: Context, on_leave: Callable[[], None]) -> None:
        """Begins to time a session's context; ``on_leave`` is called when it no longer does."""
        with self._stopping:
            if self.end_ns:
                raise FailedPreconditionError("this profile was stopped; begin another one")
            self._contexts[context] = on_leave
            try:
                self.modules_changed()
            except BaseException:
                self._leave(context, 0.0)
                raise

    def remove(self, context: Context) -> None:
        """Stops timing a context that is about to be closed; its calls stay in the figures.

        The profile ends with its last context.
        """
        with self._stopping:
            if self._contexts.keys() == {context}:
                self._detach(_STOP_SECONDS)
            elif context in self._contexts:
                for module in context.modules:
                    self._sampling.remove_module(context.module_state(module.name))
                self._leave(context, _STOP_SECONDS)

    def modules_changed(self) -> None:
        """Begins to time new modules and devices."""
        for context in self._contexts:
            for module in context.modules:
                state = context.module_state(module.name)
                if isinstance(state, HalState):
                    for device_context in state.contexts.values():
                        if device_context not in self._seen:
                            self._seen.add(device_context)
                            self._time(context, device_context)
                elif isinstance(state, ModuleState) and state not in self._seen:
                    self._seen.add(state)
                    self._sampling.add_module(state, concurrent=self._is_concurrent)

    def _time(self, context: Context, device_context: DeviceContext) -> None:
        try:
            device = ProfiledDevice(context, device_context, self.most_slowdown)
        except UnimplementedError as error:
            note = f"host only: {error.message}"
            if note not in self.notes:
                self.notes.append(note)
        else:
            self._devices.append(device)
            self._sampling.queues.append(device.timed)

    def new_call(self, function: Function, *, is_async: bool) -> CallRecord:
        """Returns the record of a call that begins now."""
        record = CallRecord(function, self._sampling.phase, self._sampling.call_ended, is_async=is_async)
        self._records.append(record)
        return record

    # -- the end -----------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether it was not stopped yet."""
        return not self.end_ns

    def stop(self, timeout: float = _STOP_SECONDS) -> None:
        """Ends the profile; idempotent.

        Running calls continue. The profile has asynchronous calls up to this point; of synchronous calls in other
        threads it has only the dispatches.

        Args:
            timeout: the seconds to wait for submitted work on each device; unfinished work has no times.
        """
        with self._stopping:
            if not self.end_ns:
                self._detach(timeout)

    def _detach(self, timeout: float) -> None:
        self._sampling.stop()
        self.end_ns = now()
        for context in list(self._contexts):
            self._leave(context, timeout)

    def _leave(self, context: Context, timeout: float) -> None:
        for device in self._devices:
            if device.context is not context:
                continue
            device.device_context.end_profile(timeout)
            try:
                device.read()
            except PumiceError as error:
                self.notes.append(f"the clock of {device.name} was not read at the end: {error.message}")
            for failed in device.timed.errors:
                self.notes.append(f"{device.name}: {failed.message}")
            if not device.readings[0].calibrated:
                self.notes.append(
                    f"{device.name} has no calibrated timestamps: its times in host time are certain within "
                    f"{max(reading.max_deviation_ns for reading in device.readings)} ns, half the width of the "
                    "submissions that bracket them"
                )
        self._contexts.pop(context)()

    def __enter__(self) -> Profile:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- figures -----------------------------------------------------------------------------------------

    def _check_stopped(self) -> None:
        if not self.end_ns:
            raise FailedPreconditionError("this profile is still running; stop() it, or leave its with block, first")

    @cached_property
    def _attribution(self) -> Attribution:
        self._check_stopped()
        submissions = [submission for device in self._devices for submission in device.timed.take_submissions()]
        return attribute(self._all_calls, self._sampling.natives, submissions, concurrent=self._is_concurrent)

    @cached_property
    def _all_calls(self) -> list[CallRecord]:
        return sorted(self._records, key=lambda record: record.begin)

    @property
    def clocks(self) -> tuple[ClockRelation, ...]:
        """The relation of each device's clock to the host's: deviation and drift."""
        self._check_stopped()
        return tuple(ClockRelation(device.name, tuple(device.readings)) for device in self._devices)

    @cached_property
    def dispatches(self) -> tuple[ProfiledDispatch, ...]:
        """Every dispatch in the order of submission, device by device."""
        submitters = self._attribution.submitters
        dispatches: list[ProfiledDispatch] = []
        for relation, device in zip(self.clocks, self._devices, strict=True):
            dispatches += dispatches_of(relation, device.timed.submissions, submitters)
        return tuple(dispatches)

    @cached_property
    def exports(self) -> tuple[ProfiledExport, ...]:
        """The dispatches by name, in descending order of the device's busy time."""
        return exports_of(self.dispatches)

    @cached_property
    def calls(self) -> tuple[ProfiledCall, ...]:
        """Every call, in order of beginning."""
        by_call: dict[int | None, list[ProfiledDispatch]] = defaultdict(list)
        for dispatch in self.dispatches:
            if dispatch.begin_ns is not None or dispatch.is_untimed:
                by_call[dispatch.call].append(dispatch)
        return tuple(self._finished(number, record, by_call[number]) for number, record in enumerate(self._all_calls))

    def _finished(self, number: int, record: CallRecord, ran: list[ProfiledDispatch]) -> ProfiledCall:
        shares = self._attribution.shares[number]
        end = record.end or max(self.end_ns, record.begin)
        total = end - record.begin
        arguments = record.bind_end - record.bind_begin if record.bind_end else 0
        waits, results = shares.waits, 0
        if record.is_async:
            results = end - record.convert_begin if record.convert_begin else 0
            waits = total - arguments - shares.steps - results
        elif record.steps:
            last = record.steps[-1][2]
            if record.settled:
                waits += record.settled - last
                last = record.settled
            results = end - last
        else:
            arguments = total
        return ProfiledCall(
            number=number,
            name=record.function.full_name,
            thread=record.thread,
            begin_ns=record.begin,
            end_ns=end,
            total_ns=total,
            arguments_ns=arguments,
            vm_ns=shares.vm if record.is_detailed else None,
            hal_ns=shares.hal if record.is_detailed else None,
            native_ns=shares.native if record.is_detailed else None,
            waits_ns=waits if record.is_detailed else None,
            results_ns=results,
            device_ns=busy_ns(ran) if all(dispatch.begin_ns is not None for dispatch in ran) else None,
            dispatches=sum(dispatch.kind == "dispatch" for dispatch in ran),
            error=record.error,
            is_finished=bool(record.end),
        )

    @cached_property
    def natives(self) -> tuple[ProfiledNative, ...]:
        """The native functions that programs called, in descending order of time."""
        self._check_stopped()
        called: dict[str, list[int]] = defaultdict(list)
        waited: dict[str, list[int]] = defaultdict(list)
        for name, _, begin, end in self._attribution.natives:
            called[name].append(end - begin)
        for name, _, begin, end in self._attribution.waits:
            waited[name].append(end - begin)
        natives = [
            ProfiledNative(name, len(times), sum(times), max(times), len(waited[name]), sum(waited[name]))
            for name, times in called.items()
        ]
        return tuple(sorted(natives, key=lambda native: (-native.total_ns, native.name)))

    @cached_property
    def waits(self) -> tuple[ProfiledWait, ...]:
        """Every wait of a program."""
        return tuple(ProfiledWait(*wait) for wait in self._attribution.waits)

    @property
    def native_calls(self) -> tuple[tuple[str, int | None, int, int], ...]:
        """Every call of a native function: name, number of the session's call or ``None``, begin and end."""
        return tuple(self._attribution.natives)

    # -- forms -------------------------------------------------------------------------------------------

    def as_dict(self) -> dict[str, object]:
        """Returns all figures as a dictionary that ``json`` can write."""
        figures = ("exports", "calls", "natives", "waits", "dispatches")
        return {
            "format_version": FORMAT_VERSION,
            "begin_ns": self.begin_ns,
            "end_ns": self.end_ns,
            "most_slowdown": self.most_slowdown,
            "notes": list(self.notes),
            "clocks": [clock.as_dict() for clock in self.clocks],
            **{name: [dataclasses.asdict(entry) for entry in getattr(self, name)] for name in figures},
        }

    def to_json(self) -> str:
        """Returns all figures as JSON text."""
        return json.dumps(self.as_dict(), indent=1)

    def write_json(self, path: str | os.PathLike[str]) -> None:
        """Writes ``to_json`` to a file; a PumiceError says why it cannot be written."""
        data = self.to_json().encode()
        write_whole(path, lambda file: file.write(data))

    def table(self) -> str:
        """Returns the exports, the host's shares and the native functions as text."""
        return profile_table(self.exports, self.calls, self.natives, self.clocks, self.notes)

    def to_perfetto(self) -> bytes:
        """Returns a trace for ui.perfetto.dev: a track for the calls, native functions and waits of each thread, and
        one for each device's queue.

        Raises:
            UnavailableError: the ``perfetto`` package is not installed.
        """
        trace = TraceWriter()
        self.add_to(trace, trace.track("pumice"))
        return trace.serialize()

    def add_to(self, trace: TraceWriter, process: int) -> None:
        """Adds the tracks of ``to_perfetto`` to a trace, below the track of a process."""
        add_profile(trace, process, self.calls, self.native_calls, self.waits, self.clocks, self.dispatches)

    def write_perfetto(self, path: str | os.PathLike[str]) -> None:
        """Writes ``to_perfetto`` to a file; a PumiceError says why it cannot be written."""
        data = self.to_perfetto()
        write_whole(path, lambda file: file.write(data))

    def __str__(self) -> str:
        return self.table() if self.end_ns else repr(self)

    def _repr_html_(self) -> str | None:
        """Returns the tables for notebooks; ``None`` (plain text) while it runs."""
        figures = (self.exports, self.calls, self.natives, self.clocks, self.notes) if self.end_ns else None
        return None if figures is None else profile_html(*figures)

    def __repr__(self) -> str:
        state = f"{(self.end_ns - self.begin_ns) / 1e6:.3f} ms" if self.end_ns else "running"
        return f"<Profile, {state}, {len(self._records)} call(s)>"
