"""Profiles: what the dispatches of a session's calls took on the device, and where the host's time went beside them.

>>> with session.profile() as profile:
...     session.call("module.predict", image)
>>> print(profile)
>>> profile.write_json("profile.json")
>>> profile.write_perfetto("profile.pftrace")

Calling sequence: ``session.profile()`` begins one → calls of any kind, from any thread → ``stop``, or the end of a ``with`` block → its figures, which
are worked out when they are first asked for. A session has one profile at a time; it keeps what was measured when calls fail.

Thread rule: ``stop`` as the session; figures from any thread. The design is in docs/design/session.md.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from ...hal_vulkan import ClockCalibration
from ...hal_vulkan.commands.timestamps import calibrate_monotonic
from ...status import FailedPreconditionError, PumiceError, UnavailableError, UnimplementedError
from ...vm.execution.bytecode_module import ModuleState
from ..modules.hal.module import HalState
from ..modules.hal.queue import DeviceLane
from ..modules.hal.timed_recordings import TimedSubmission
from .call import CallRecord, SynchronousCall, now, profiled_async_call
from .clock import ClockRelation
from .device import busy_ns, dispatches_of, exports_of
from .entry import ProfiledCall, ProfiledDispatch, ProfiledExport, ProfiledNative, ProfiledWait
from .native import NativeTimes
from .shares import Attribution, attribute

if TYPE_CHECKING:
    from ...hal_vulkan import Fence
    from ..modules.hal.fence import HalFence
    from ..sessions.session import Session
    from ..sessions.session_function import SessionFunction

__all__ = ["Profile"]

_STOP_SECONDS: Final = 10.0
_BURST: Final = 16  # calls, at least, that native functions are timed in before they are not
_CREDIT_NS: Final = 5e6  # of slowdown before the limit is looked at
_NATIVE_NS: Final = (
    700.0  # what timing a native function costs in a program, whose caches are cold: benchmarks/profile_overhead.py
)
_SWITCH_NS: Final = 2000.0


class _ProfiledLane:
    """A way to a device that is being timed, and the readings of its clock."""

    def __init__(self, lane: DeviceLane, most_slowdown: float | None) -> None:
        self.lane = lane
        self.name = lane.device.profile.name
        self.readings: list[ClockCalibration] = [calibrate_monotonic(lane.device)]
        self.timed = lane.begin_profile(most_slowdown)
        # What is bracketed by a submission would wait for the device.
        if self.readings[0].calibrated:
            self.timed.on_reading = self.read

    def read(self) -> None:
        """One reading more."""
        self.readings.append(calibrate_monotonic(self.lane.device))


class Profile:
    """What a session did from ``Session.profile()``, which makes it, to ``stop``.

    All times are nanoseconds of ``time.monotonic_ns()``; the device's are related to it by ``clocks``.

    Attributes:
        most_slowdown: as it was asked for. Half of it is for native functions, half for timestamps.
        phase: even while native functions are timed, odd while they are not.
        begin_ns, end_ns: of the profile; the latter 0 until it is stopped.
        notes: what a reader has to know: devices without timestamps, clocks that are only bracketed, work that had not ended.
    """

    def __init__(self, session: Session, most_slowdown: float | None) -> None:
        self.most_slowdown = most_slowdown
        self._session = session
        self._context = session.context
        self._records: list[CallRecord] = []
        self._natives: list[NativeTimes] = []
        self._states: set[ModuleState] = set()
        self._lanes: list[_ProfiledLane] = []
        self._seen: set[DeviceLane] = set()
        self._stopping = threading.Lock()
        self._switching = threading.Lock()
        self._synchronous: list[SynchronousCall] = []
        self.phase = 0
        self._burst = self._noted = self._earned_to = self._took = 0
        self._credit_ns = _CREDIT_NS
        self.notes: list[str] = []
        self.end_ns = 0
        self.begin_ns = now()
        try:
            self.attach()
        except BaseException:
            self._detach(0.0)
            raise

    # -- while it runs (for the session) -----------------------------------------------------------------

    def attach(self) -> None:
        """Takes in the modules that were not there yet. For the session."""
        for module in self._context.modules:
            state = self._context.module_state(module.name)
            if isinstance(state, HalState):
                for lane in state.lanes:
                    if lane not in self._seen:
                        self._seen.add(lane)
                        self._time(lane)
            elif isinstance(state, ModuleState) and state not in self._states:
                self._states.add(state)
                self._natives += NativeTimes.of(state)

    def _time(self, lane: DeviceLane) -> None:
        try:
            self._lanes.append(_ProfiledLane(lane, None if self.most_slowdown is None else self.most_slowdown / 2))
        except UnimplementedError as error:
            self.notes.append(f"host only: {error.message}")

    def new_call(self, function: SessionFunction, *, is_async: bool = False) -> CallRecord:
        """Begins a call. For the session's functions."""
        record = CallRecord(function.name, self, is_native=function.function.native is not None, is_async=is_async)
        self._records.append(record)
        return record

    def call_ended(self, begin_ns: int, end_ns: int, phase: int) -> bool:
        """A call has ended, and with it earned what timing those to come costs. For ``CallRecord``.

        Returns:
            whether native functions were timed during all of it.
        """
        detailed = phase == self.phase and not phase & 1
        if self.most_slowdown is not None:
            # Several at once are counted once.
            self._took += end_ns - (begin_ns if begin_ns > self._earned_to else self._earned_to)
            self._earned_to = end_ns
            self._burst += 1
            if self._burst >= _BURST:
                self._settle()
        return detailed

    def _settle(self) -> None:
        """Credits what calls took, and has native functions timed, or not for as long as that has to last."""
        if self.most_slowdown is None or not self._switching.acquire(False):
            return
        try:
            took, self._took, self._burst = self._took, 0, 0
            for one in self._lanes:
                one.timed.earn(took)
            self._credit_ns += self.most_slowdown / 2 * took
            if self.end_ns:
                return
            if not self.phase & 1:
                count = sum(native.count for native in self._natives)
                self._credit_ns -= (count - self._noted) * _NATIVE_NS + 2 * len(self._natives) * _SWITCH_NS
                self._noted = count
                if self._credit_ns < 0:
                    for native in self._natives:
                        native.restore()
                    self.phase += 1
            elif self._credit_ns > 0:
                for native in self._natives:
                    native.insert()
                self.phase += 1
        finally:
            self._switching.release()

    def call(
        self,
        function: SessionFunction,
        arguments: tuple[object, ...],
        named: Mapping[str, object],
        timeout: float | None,
        wait: Fence | HalFence | None,
        signal: Fence | HalFence | None,
    ) -> Any:
        """``SessionFunction.__call__``. For that."""
        if function.signature.is_async:
            return profiled_async_call(
                self.new_call(function, is_async=False), function, arguments, named, timeout, wait, signal
            )
        phase, bound, invoked, error = self.phase, 0, 0, ""
        begin = now()
        try:
            if named or len(arguments) != function._count:
                arguments = function.signature.place(arguments, dict(named))
            values = tuple([bind(value) for bind, value in zip(function._binders, arguments)])  # noqa: B905  # counted above
            if wait is not None or signal is not None:
                function._check_fences(wait, signal)
            bound = now()
            try:
                result = self._context.invoke(function._function, values, timeout=timeout)
            finally:
                invoked = now()
            return function._results(result)
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            end = now()
            detailed = self.call_ended(begin, end, phase)
            self._synchronous.append((function, threading.get_ident(), begin, bound, invoked, end, error, detailed))

    def call_direct(self, function: SessionFunction, values: tuple[Any, ...], timeout: float | None) -> Any:
        """``SessionFunction.call_direct``. For that."""
        phase, error = self.phase, ""
        begin = now()
        try:
            return self._context.invoke(function._function, values, timeout=timeout)
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            end = now()
            detailed = self.call_ended(begin, end, phase)
            self._synchronous.append((function, threading.get_ident(), begin, begin, end, end, error, detailed))

    # -- the end -----------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether it was not stopped yet."""
        return not self.end_ns

    def stop(self, timeout: float = _STOP_SECONDS) -> None:
        """Ends the profile; idempotent. Calls that are under way go on. Asynchronous ones are in it up to here, those that other threads are
        waiting for are not, but for their dispatches.

        Args:
            timeout: seconds to wait for what was submitted on each device; what is not done then has no times.
        """
        with self._stopping:
            if not self.end_ns:
                self._detach(timeout)

    def _detach(self, timeout: float) -> None:
        with self._switching:
            if self.phase % 2 == 0:
                for native in reversed(self._natives):
                    native.restore()
            self.end_ns = now()
        for one in self._lanes:
            one.lane.end_profile(timeout)
            try:
                one.read()
            except PumiceError as error:
                self.notes.append(f"the clock of {one.name} was not read at the end: {error.message}")
            for failed in one.timed.errors:
                self.notes.append(f"{one.name}: {failed.message}")
            if not one.readings[0].calibrated:
                self.notes.append(
                    f"{one.name} has no calibrated timestamps: its times in host time are certain within "
                    f"{max(reading.max_deviation_ns for reading in one.readings)} ns, half the width of the submissions that bracket them"
                )
        if self._session._profile is self:
            self._session._profile = None

    def __enter__(self) -> Profile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    # -- figures -----------------------------------------------------------------------------------------

    def _check_stopped(self) -> None:
        if not self.end_ns:
            raise FailedPreconditionError("this profile is still running; stop() it, or leave its with block, first")

    @cached_property
    def _attribution(self) -> Attribution:
        self._check_stopped()
        submissions: list[TimedSubmission] = [one for lane in self._lanes for one in lane.timed.take_submissions()]
        return attribute(self._all_calls, self._natives, submissions, concurrent=self._context.concurrent)

    @cached_property
    def _all_calls(self) -> list[CallRecord]:
        made = [CallRecord.of_synchronous(call) for call in self._synchronous]
        return sorted([*self._records, *made], key=lambda record: record.begin)

    @property
    def clocks(self) -> tuple[ClockRelation, ...]:
        """How each device's clock relates to the host's: deviation and drift."""
        self._check_stopped()
        return tuple(ClockRelation.of(one.name, one.readings) for one in self._lanes)

    @cached_property
    def dispatches(self) -> tuple[ProfiledDispatch, ...]:
        """Every dispatch, in the order of submission, those of one device after those of another."""
        submitters = self._attribution.submitters
        found: list[ProfiledDispatch] = []
        for relation, one in zip(self.clocks, self._lanes, strict=True):
            found += dispatches_of(relation, one.timed.submissions, submitters)
        return tuple(found)

    @cached_property
    def exports(self) -> tuple[ProfiledExport, ...]:
        """The dispatches by name, those first that kept the device busy longest."""
        return exports_of(self.dispatches)

    @cached_property
    def calls(self) -> tuple[ProfiledCall, ...]:
        """Every call, in the order in which they began."""
        by_call: dict[int | None, list[ProfiledDispatch]] = {}
        for one in self.dispatches:
            if one.begin_ns is not None or one.is_untimed:
                by_call.setdefault(one.call, []).append(one)
        return tuple(
            self._finished(number, record, by_call.get(number, [])) for number, record in enumerate(self._all_calls)
        )

    def _finished(self, number: int, record: CallRecord, ran: list[ProfiledDispatch]) -> ProfiledCall:
        shares = self._attribution.shares[number]
        end = record.end or max(self.end_ns, record.begin)
        total = end - record.begin
        arguments = record.bind_end - record.bind_begin if record.bind_end else 0 if record.steps else total
        waits, results = shares.waits, 0
        if record.is_async:
            if not record.bind_end:
                arguments = 0
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
            name=record.name,
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
            device_ns=busy_ns(ran) if all(one.begin_ns is not None for one in ran) else None,
            dispatches=sum(one.kind == "dispatch" for one in ran),
            error=record.error,
            is_finished=bool(record.end),
        )

    @cached_property
    def natives(self) -> tuple[ProfiledNative, ...]:
        """The native functions that programs called, those first that took longest."""
        self._check_stopped()
        by_name: dict[str, list[int]] = {}
        waited: dict[str, list[int]] = {}
        for name, _, begin, end in self._attribution.natives:
            by_name.setdefault(name, []).append(end - begin)
        for name, _, begin, end in self._attribution.waits:
            waited.setdefault(name, []).append(end - begin)
        found = [
            ProfiledNative(
                name, len(times), sum(times), max(times), len(waited.get(name, ())), sum(waited.get(name, ()))
            )
            for name, times in by_name.items()
        ]
        return tuple(sorted(found, key=lambda one: (-one.total_ns, one.name)))

    @cached_property
    def waits(self) -> tuple[ProfiledWait, ...]:
        """Every wait of a program."""
        return tuple(ProfiledWait(*one) for one in self._attribution.waits)

    @property
    def native_calls(self) -> tuple[tuple[str, int | None, int, int], ...]:
        """Every call of a native function: its name, the number of the session's call or ``None``, begin and end."""
        return tuple(self._attribution.natives)

    # -- forms -------------------------------------------------------------------------------------------

    def as_dict(self) -> dict[str, object]:
        """All figures as ``json`` takes them."""
        from .report import profile_dict

        return profile_dict(self)

    def to_json(self) -> str:
        """All figures as JSON text."""
        return json.dumps(self.as_dict(), indent=1)

    def write_json(self, path: str | os.PathLike[str]) -> None:
        """``to_json`` into a file.

        Raises:
            UnavailableError: it cannot be written.
        """
        _write(path, self.to_json().encode())

    def table(self) -> str:
        """The exports, the host's shares and the native functions as text for people."""
        from .report import profile_table

        return profile_table(self)

    def to_perfetto(self) -> bytes:
        """A trace for ui.perfetto.dev: a track for each thread's calls, native functions and waits, and one for each device's queue.

        Raises:
            UnavailableError: the ``perfetto`` package is not installed.
        """
        from .trace import perfetto_trace

        return perfetto_trace(self)

    def write_perfetto(self, path: str | os.PathLike[str]) -> None:
        """``to_perfetto`` into a file.

        Raises:
            UnavailableError: it cannot be written, or the ``perfetto`` package is not installed.
        """
        _write(path, self.to_perfetto())

    def __str__(self) -> str:
        return self.table() if self.end_ns else repr(self)

    def __repr__(self) -> str:
        state = f"{(self.end_ns - self.begin_ns) / 1e6:.3f} ms" if self.end_ns else "running"
        return f"<Profile, {state}, {len(self._records) + len(self._synchronous)} call(s)>"


def _write(path: str | os.PathLike[str], data: bytes) -> None:
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise UnavailableError(f"cannot write {os.fspath(path)}: {error.strerror or error}") from error
