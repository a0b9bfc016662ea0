"""The complaints that fail a test: validation messages, native objects left, lost devices, shaders' reports.

Calling sequence for each test: `begin` before its fixtures → `fixture` around the set-up of those that outlive it →
`body` around its function → `end_body` → `count` after its own fixtures → `end` after all fixtures that end with it.
`end_body` and `end` return the complaints.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Final

from ..hal_vulkan.vulkan.results import take_validation_errors
from ..runtime.arrays.array_device import ArrayDevice, array_devices
from ..status import DeadlineExceededError, DeviceLostError, PumiceError
from .live import NOTHING, LiveLimit, left_text, settled_counts

_ADVICE: Final = (
    "close what the test opens (a with block, or the fixtures pumice_kernel and pumice_session), or mark it with "
    'limit_live("…") where caches fill'
)


class Watch:
    """Watches the tests of one process.

    Attributes:
        killers: for each lost device, the test that lost it.
        last_good: the last test without complaints.
        is_set_up: whether the set-up of the test has succeeded.
        is_broken: whether the test's function has failed: its traceback keeps its objects.
    """

    def __init__(self) -> None:
        self.killers: weakref.WeakKeyDictionary[ArrayDevice, str] = weakref.WeakKeyDictionary()
        # Devices that were lost before the run are blamed on no test.
        self._lost_before = weakref.WeakSet(device for device in array_devices if device.hal.lost)
        self.last_good: str = ""
        self.is_broken: bool
        self.is_set_up: bool
        self.is_set_up = self.is_broken = False
        self._before: dict[str, int] = {}
        self._after: dict[str, int] | None = None
        self._limit = NOTHING
        self._depth = 0
        self._has_begun = self._is_counting = False

    def begin(self, limit: LiveLimit | None, *, counting: bool = True) -> list[str]:
        """Counts the live objects; returns the messages since the last test, for which no test is to blame.

        Args:
            limit: the objects that the test may leave.
            counting: whether the limit applies.
        """
        if self.is_broken:
            for name in (
                "last_exc",
                "last_type",
                "last_value",
                "last_traceback",
            ):  # of the previous test, by pytest
                vars(sys).pop(name, None)
            gc.collect()
        self._limit, self._is_counting, self.is_broken = limit or NOTHING, counting, False
        self._has_begun, self.is_set_up, self._after = True, False, None
        self._before = settled_counts(self._before)
        return [error.message for error in take_validation_errors()]

    @contextlib.contextmanager
    def fixture(self) -> Iterator[None]:
        """Surrounds the set-up of a fixture that outlives the test, and leaves its objects out of the test's count."""
        if self._depth:  # a fixture that another one requests
            yield
            return
        before = settled_counts(self._before)
        self._depth = 1
        try:
            yield
        finally:
            self._depth = 0
            after = settled_counts(before)
            for kind in after.keys() | before.keys():
                self._before[kind] = self._before.get(kind, 0) + after.get(kind, 0) - before.get(kind, 0)

    @contextlib.contextmanager
    def body(self, timeout: float | None) -> Iterator[None]:
        """Surrounds the test's function; abandons a device that works longer than ``timeout`` seconds."""
        if timeout is None:
            yield
            return
        done = threading.Event()
        watchdog = threading.Thread(
            target=_watch_devices, args=(timeout, done), name="pumice timeout_device", daemon=True
        )
        watchdog.start()
        try:
            yield
        finally:
            for device in _usable():  # work that the body did not wait for also counts
                with contextlib.suppress(PumiceError):
                    device.reach(device.submitted)
            done.set()
            watchdog.join()

    def end_body(self, test: str) -> list[str]:
        """Waits for the work that the test has submitted, and returns the complaints."""
        complaints: list[str] = []
        for device in _usable():
            try:
                device.wait()
            except DeviceLostError:
                pass  # below
            except PumiceError as error:
                complaints.append(f"nobody read this result: {error}")
        return [*_messages(), *self._lost(test), *complaints]

    def count(self) -> bool:
        """Counts the objects left, before wider fixtures free them; returns whether there are too many."""
        if not self._is_counting or self.is_broken:
            return False
        self._after = settled_counts(self._before)
        return bool(self._limit.exceeded(self._before, self._after))

    def end(self, test: str) -> list[str]:
        """Returns the complaints after the body and about objects left, even for a skipped test."""
        complaints = [*_messages(), *self._lost(test)]
        has_begun, self._has_begun = self._has_begun, False
        self.is_set_up = False
        if not has_begun:  # the test was skipped
            return complaints
        if self._is_counting and not self.is_broken:
            after = settled_counts(self._before) if self._after is None else self._after
            left = self._limit.exceeded(self._before, after)
            self._before = after
            if left:
                complaints.append(f"native objects left behind: {left_text(left)}; {_ADVICE}")
        if not (complaints or self.is_broken):
            self.last_good = test
        return complaints

    def _lost(self, test: str) -> list[str]:
        """Returns the devices lost since the last test ended."""
        complaints = []
        for device in array_devices:
            error = device.hal.lost
            known = device in self.killers or device in self._lost_before
            if isinstance(error, DeviceLostError) and not known:
                self.killers[device] = test
                self.is_broken = True  # work in flight is not freed before the device is closed
                before = f" Last test that left it well: {self.last_good}." if self.last_good else ""
                complaints.append(f"this test lost the device. {error.message}.{before} Later tests get a fresh one.")
        return complaints


def _usable() -> list[ArrayDevice]:
    return [device for device in array_devices if not (device.is_closed or device.hal.abandoned or device.hal.lost)]


def _messages() -> list[str]:
    return [error.message for error in take_validation_errors()]


def _watch_devices(timeout: float, done: threading.Event) -> None:
    """Marks a device as lost once its work is ``timeout`` seconds old and unfinished."""
    seen: dict[ArrayDevice, tuple[int, float]] = {}
    while not done.wait(min(timeout / 20, 0.1)):
        now = time.monotonic()
        for device in _usable():
            payload, since = seen.get(device, (0, now))
            if device.has_reached(payload):
                seen[device] = device.submitted, now
            elif now - since > timeout:
                device.vulkan.lose(
                    DeadlineExceededError(f"it took more than {timeout:g} s, the limit of timeout_device")
                )
