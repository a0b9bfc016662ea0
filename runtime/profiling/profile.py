"""Profiles: the device time of the dispatches of a session's calls, and the host's time by what it was spent on.

>>> with session.profile() as profile:
...     session.call("module.predict", image)
>>> print(profile)
>>> profile.write_json("profile.json")
>>> profile.write_perfetto("profile.pftrace")

Calling sequence: ``session.profile()`` begins one → calls of any kind, from any thread → ``stop``, or the end of a
``with`` block → its figures, which are computed at the first access. A session has one profile at a time. Calls that
fail are part of it.

Thread rule: ``stop`` as the session; figures from any thread. The design is in docs/design/session.md.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import Final

from ...files import write_whole
from ...status import PumiceError, UnimplementedError
from ...vm.execution.context import Context, Function
from ...vm.execution.module_state import ModuleState
from ..modules.hal.device_context import DeviceContext
from ..modules.hal.module import HalState
from .call import CallRecord, SynchronousCall, now
from .figures import ProfiledDevice, ProfileFigures
from .report import profile_dict, profile_table
from .trace import perfetto_trace

_STOP_SECONDS: Final = 10.0


class Profile(ProfileFigures):
    """What a session did between ``Session.profile()`` and ``stop``.

    All times are nanoseconds of ``time.monotonic_ns()``; ``clocks`` relates the device's times to it.
    """

    def __init__(self, context: Context, most_slowdown: float | None, on_stop: Callable[[], None]) -> None:
        """Begins to time the modules of ``context``; ``on_stop`` is called once, at the end."""
        super().__init__(most_slowdown, concurrent=context.concurrent)
        self._context = context
        self._on_stop = on_stop
        self._seen: set[object] = set()  # module states and device contexts
        self._stopping = threading.Lock()
        self.begin_ns = now()
        try:
            self.modules_changed()
        except BaseException:
            self._detach(0.0)
            raise

    # -- while it runs: called by the session ------------------------------------------------------------

    @property
    def phase(self) -> int:
        """Even while native functions are timed, odd while they are not."""
        return self._sampling.phase

    def modules_changed(self) -> None:
        """Begins to time modules and devices that it has not seen yet."""
        for module in self._context.modules:
            state = self._context.module_state(module.name)
            if isinstance(state, HalState):
                for device_context in state.device_contexts:
                    if device_context not in self._seen:
                        self._seen.add(device_context)
                        self._time(device_context)
            elif isinstance(state, ModuleState) and state not in self._seen:
                self._seen.add(state)
                self._sampling.add_module(state, concurrent=self._context.concurrent)

    def _time(self, device_context: DeviceContext) -> None:
        try:
            found = ProfiledDevice(device_context, self.most_slowdown)
        except UnimplementedError as error:
            self.notes.append(f"host only: {error.message}")
        else:
            self._devices.append(found)
            self._sampling.add_queue(found.timed)

    def new_call(self, function: Function, *, is_async: bool) -> CallRecord:
        record = CallRecord(function, self._sampling.phase, is_async=is_async, on_end=self._sampling.call_ended)
        self._records.append(record)
        return record

    def call_ended(self, call: SynchronousCall) -> None:
        self._synchronous.append((call, self._sampling.call_ended(call[3], call[6], call[1])))

    # -- the end -----------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether it was not stopped yet."""
        return not self.end_ns

    def stop(self, timeout: float = _STOP_SECONDS) -> None:
        """Ends the profile; idempotent.

        Calls under way continue. Asynchronous ones are in the profile up to here; of synchronous ones in other threads
        only the dispatches are.

        Args:
            timeout: seconds to wait for submitted work on each device; work that is not done then has no times.
        """
        with self._stopping:
            if not self.end_ns:
                self._detach(timeout)

    def _detach(self, timeout: float) -> None:
        self._sampling.stop()
        self.end_ns = now()
        for one in self._devices:
            one.device_context.end_profile(timeout)
            try:
                one.read()
            except PumiceError as error:
                self.notes.append(f"the clock of {one.name} was not read at the end: {error.message}")
            for failed in one.timed.errors:
                self.notes.append(f"{one.name}: {failed.message}")
            if not one.readings[0].calibrated:
                self.notes.append(
                    f"{one.name} has no calibrated timestamps: its times in host time are certain within "
                    f"{max(reading.max_deviation_ns for reading in one.readings)} ns, half the width of the "
                    "submissions that bracket them"
                )
        self._on_stop()

    def __enter__(self) -> Profile:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- forms -------------------------------------------------------------------------------------------

    def as_dict(self) -> dict[str, object]:
        """All figures as a dictionary that ``json`` can write."""
        return profile_dict(self)

    def to_json(self) -> str:
        """All figures as JSON text."""
        return json.dumps(self.as_dict(), indent=1)

    def write_json(self, path: str | os.PathLike[str]) -> None:
        """``to_json`` into a file; a PumiceError says why it cannot be written."""
        data = self.to_json().encode()
        write_whole(path, lambda file: file.write(data))

    def table(self) -> str:
        """The exports, the host's shares and the native functions as text."""
        return profile_table(self)

    def to_perfetto(self) -> bytes:
        """A trace for ui.perfetto.dev: a track for the calls, native functions and waits of each thread, and one for
        each device's queue.

        Raises:
            UnavailableError: the ``perfetto`` package is not installed.
        """
        return perfetto_trace(self)

    def write_perfetto(self, path: str | os.PathLike[str]) -> None:
        """``to_perfetto`` into a file; a PumiceError says why it cannot be written."""
        data = self.to_perfetto()
        write_whole(path, lambda file: file.write(data))

    def __str__(self) -> str:
        return self.table() if self.end_ns else repr(self)

    def __repr__(self) -> str:
        state = f"{(self.end_ns - self.begin_ns) / 1e6:.3f} ms" if self.end_ns else "running"
        return f"<Profile, {state}, {len(self._records) + len(self._synchronous)} call(s)>"
