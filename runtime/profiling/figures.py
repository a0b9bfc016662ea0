"""What a profile measured: dispatches, calls, native functions and waits, computed at the first access."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from ...hal_vulkan import ClockCalibration
from ...hal_vulkan.submit.calibration import calibrate_monotonic
from ...status import FailedPreconditionError
from ..modules.hal.device_context import DeviceContext
from .call import CallRecord, SynchronousCall
from .clock import ClockRelation
from .device import busy_ns, dispatches_of, exports_of
from .entry import ProfiledCall, ProfiledDispatch, ProfiledExport, ProfiledNative, ProfiledWait
from .native import NativeSampling
from .shares import Attribution, attribute


class ProfiledDevice:
    """A device context that is being timed, and the readings of its clock."""

    def __init__(self, device_context: DeviceContext, most_slowdown: float | None) -> None:
        self.device_context = device_context
        self.name = device_context.device.profile.name
        self.readings: list[ClockCalibration] = [calibrate_monotonic(device_context.device.compute_queue)]
        self.timed = device_context.begin_profile(None if most_slowdown is None else most_slowdown / 2)
        # A reading that is bracketed by a submission waits for the device.
        if self.readings[0].calibrated:
            self.timed.on_reading = self.read

    def read(self) -> None:
        """Reads the clock once more."""
        self.readings.append(calibrate_monotonic(self.device_context.device.compute_queue))


class ProfileFigures:
    """The base of ``Profile``, which fills it while it runs.

    Attributes:
        most_slowdown: as it was asked for. Half of it is for native functions, half for timestamps.
        begin_ns, end_ns: of the profile; the latter 0 until it is stopped.
        notes: devices without timestamps, clocks that are only bracketed, work that had not ended.
    """

    def __init__(self, most_slowdown: float | None, *, concurrent: bool) -> None:
        """Figures of a context in which several invocations run at a time (``concurrent``), or one."""
        self.most_slowdown = most_slowdown
        self.notes: list[str] = []
        self.begin_ns = self.end_ns = 0
        self._concurrent = concurrent
        self._records: list[CallRecord] = []
        self._synchronous: list[tuple[SynchronousCall, bool]] = []  # and whether native functions were timed
        self._sampling = NativeSampling(most_slowdown)
        self._devices: list[ProfiledDevice] = []

    def _check_stopped(self) -> None:
        if not self.end_ns:
            raise FailedPreconditionError("this profile is still running; stop() it, or leave its with block, first")

    @cached_property
    def _attribution(self) -> Attribution:
        self._check_stopped()
        submissions = [one for device in self._devices for one in device.timed.take_submissions()]
        return attribute(self._all_calls, self._sampling.natives, submissions, concurrent=self._concurrent)

    @cached_property
    def _all_calls(self) -> list[CallRecord]:
        made = [CallRecord.of_synchronous(call, is_detailed=detailed) for call, detailed in self._synchronous]
        return sorted([*self._records, *made], key=lambda record: record.begin)

    @property
    def clocks(self) -> tuple[ClockRelation, ...]:
        """The relation of each device's clock to the host's: deviation and drift."""
        self._check_stopped()
        return tuple(ClockRelation(one.name, tuple(one.readings)) for one in self._devices)

    @cached_property
    def dispatches(self) -> tuple[ProfiledDispatch, ...]:
        """Every dispatch in the order of submission, device by device."""
        submitters = self._attribution.submitters
        found: list[ProfiledDispatch] = []
        for relation, one in zip(self.clocks, self._devices, strict=True):
            found += dispatches_of(relation, one.timed.submissions, submitters)
        return tuple(found)

    @cached_property
    def exports(self) -> tuple[ProfiledExport, ...]:
        """The dispatches by name; those that kept the device busy longest come first."""
        return exports_of(self.dispatches)

    @cached_property
    def calls(self) -> tuple[ProfiledCall, ...]:
        """Every call, in order of begin."""
        by_call: dict[int | None, list[ProfiledDispatch]] = defaultdict(list)
        for one in self.dispatches:
            if one.begin_ns is not None or one.is_untimed:
                by_call[one.call].append(one)
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
            device_ns=busy_ns(ran) if all(one.begin_ns is not None for one in ran) else None,
            dispatches=sum(one.kind == "dispatch" for one in ran),
            error=record.error,
            is_finished=bool(record.end),
        )

    @cached_property
    def natives(self) -> tuple[ProfiledNative, ...]:
        """The native functions that programs called; those that took longest come first."""
        self._check_stopped()
        called: dict[str, list[int]] = defaultdict(list)
        waited: dict[str, list[int]] = defaultdict(list)
        for name, _, begin, end in self._attribution.natives:
            called[name].append(end - begin)
        for name, _, begin, end in self._attribution.waits:
            waited[name].append(end - begin)
        found = [
            ProfiledNative(name, len(times), sum(times), max(times), len(waited[name]), sum(waited[name]))
            for name, times in called.items()
        ]
        return tuple(sorted(found, key=lambda one: (-one.total_ns, one.name)))

    @cached_property
    def waits(self) -> tuple[ProfiledWait, ...]:
        """Every wait of a program."""
        return tuple(ProfiledWait(*one) for one in self._attribution.waits)

    @property
    def native_calls(self) -> tuple[tuple[str, int | None, int, int], ...]:
        """Every call of a native function: name, number of the session's call or ``None``, begin and end."""
        return tuple(self._attribution.natives)
