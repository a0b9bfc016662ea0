"""Fences of compiled modules, which are made before a submission and bound at it.

A ``HalFence`` starts *unbound*, as a plain object without a semaphore. It is bound once,

- to the payload that a submission signals on the queue's stream or on its context's timeline,
- to the payloads of another fence, by operations that wait for one fence, need no device and signal the other,
- to nothing, when it is signalled from the host or by an operation without waits, or
- to a semaphore of its own, when its timepoints are needed earlier (it is *materialised*); then the operation that
  signals it signals that semaphore.

Thread rule: every function and method may be called from any thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ...status import FailedPreconditionError, InternalError, PumiceError, StatusCode, error_for
from ...waits.notification import Callback, Cancellable, JointNotification, Notification
from ...waits.source import Source
from ...waits.wait_mode import Look, WaitMode
from ..device import Device
from ..fence import Fence
from ..semaphore import Semaphore
from .checks import Ref, require

Points: TypeAlias = tuple[tuple[Semaphore, int], ...]
AnyFence: TypeAlias = "HalFence | Fence"
OptionalFence: TypeAlias = "HalFence | Fence | None"

# Held for a few assignments, so that only one thread binds a fence.
_transition: Final = threading.Lock()
_DEFERRED: Final = int(StatusCode.DEFERRED)


class HalFence(Source):
    """A fence of the VM.

    Attributes:
        device: the device that makes the fence's semaphore, if it ever needs one.
        bound: the fence's timepoints, or ``None`` while it is unbound. Read it, never write it.
        failure: the fence's own failure, apart from those of its semaphores; or ``None``.
    """

    quick_query = True
    __slots__ = ("__weakref__", "bound", "device", "failure")

    def __init__(self, device: Device) -> None:
        self.device: Device = device
        self.bound: Points | None = None
        self.failure: PumiceError | None = None

    # -- binding -------------------------------------------------------------------------------------

    def bind(self, points: Points) -> bool:
        """Binds it to timepoints; ``False`` if it was already bound, perhaps by a waiting thread."""
        with _transition:
            if self.bound is None:
                self.bound = points
                return True
        return False

    def points(self) -> Points:
        """Returns its timepoints; an unbound fence is materialised, a failed fence keeps its earlier timepoints."""
        points = self.bound
        if points is None:
            # Not under the lock: the second of two threads drops its semaphore.
            own = self.device.program_semaphore("fence")
            if not self.bind(((own, 1),)):
                own.close()
            points = self.bound
            assert points is not None
        return points

    def signal(self) -> None:
        """Signals it from the host; raises if it has failed, or if submitted work will signal it."""
        if self.failure is not None:
            raise self.failure.again()
        if self.bind(()):
            return
        for semaphore, value in self.points():
            if not semaphore.has_reached(value):
                if semaphore.scheduled >= value:
                    raise FailedPreconditionError(
                        "this fence is signalled by work already submitted; signal each fence once"
                    )
                semaphore.signal(value)

    def fail(self, error: PumiceError) -> None:
        """Fails it for good; a second failure is ignored. Work that was submitted to signal it is not recalled."""
        with _transition:
            if self.failure is not None:
                return
            self.failure = error
            if self.bound is None:
                self.bound = ()
        for semaphore, value in self.bound:
            # A semaphore that submitted work signals may be the timeline that other fences wait on.
            if semaphore.scheduled < value:
                semaphore.fail(error)

    # -- waiting -------------------------------------------------------------------------------------

    def query(self) -> bool:
        """Whether it is reached; raises its failure."""
        if self.failure is not None:
            raise self.failure.again()
        points = self.bound
        if points is None:
            return False
        ready = True
        for semaphore, value in points:
            ready = semaphore.has_reached(value) and ready
        if ready and points:
            self.bound = ()  # releases the semaphores
        return ready

    def look(self, mode: WaitMode | None = None) -> Look | None:
        """Returns the look with which a loop polls before arming a callback, for one payload; ``None`` for several."""
        points = self.bound
        return points[0][0].look(points[0][1], mode) if points is not None and len(points) == 1 else None

    def wait_until(self, deadline: float | None = None) -> None:
        """Blocks until reached or until ``time.monotonic()`` passes ``deadline``; raises its failure."""
        if self.failure is not None:
            raise self.failure.again()
        points = self.bound
        for semaphore, value in self.points() if points is None else points:
            semaphore.wait(value, None if deadline is None else max(0.0, deadline - time.monotonic()))
        if self.failure is not None:
            raise self.failure.again()

    def notify(self, callback: Callback) -> Cancellable:
        """Calls back once when reached or failed, perhaps at once; see ``Semaphore.notify``."""
        if self.failure is not None:
            failed = Notification(callback)
            failed.call(self.failure)
            return failed

        def call(error: PumiceError | None) -> None:
            callback(error if error is not None else self.failure)

        points = self.points()
        if len(points) == 1:
            return points[0][0].notify(points[0][1], call)
        return Fence(points).notify(call)

    def __repr__(self) -> str:
        if self.failure is not None:
            return f"<failed HalFence: {self.failure}>"
        points = self.bound
        if points is None:
            return "<unbound HalFence>"
        return f"<HalFence {', '.join(f'{s.name} >= {v}' for s, v in points) or 'reached'}>"


class _JoinedFence(HalFence):
    """Ready when all its parts are ready, of which some were unbound when it was made."""

    __slots__ = ("_parts",)

    def __init__(self, device: Device, parts: Sequence[AnyFence]) -> None:
        self.device = device
        self.bound = None
        self.failure = None
        self._parts = tuple(parts)

    def bind(self, points: Points) -> bool:
        return False

    def points(self) -> Points:
        merged: dict[Semaphore, int] = {}
        for part in self._parts:
            for semaphore, value in points_of(part):
                if merged.get(semaphore, 0) < value:
                    merged[semaphore] = value
        return tuple(merged.items())

    def signal(self) -> None:
        for part in self._parts:
            part.signal()

    def fail(self, error: PumiceError) -> None:
        for part in self._parts:
            part.fail(error)

    def query(self) -> bool:
        # All of them: a failure counts even after an unreached part.
        reached = [part.query() for part in self._parts]
        return all(reached)

    def wait_until(self, deadline: float | None = None) -> None:
        for part in self._parts:
            part.wait_until(deadline)

    def notify(self, callback: Callback) -> Cancellable:
        joined = JointNotification(callback, len(self._parts))
        joined.arm(self._parts)
        return joined


def check_fence(fence: Ref) -> AnyFence:
    """Returns the fence itself; InvalidArgumentError for other values."""
    return fence if isinstance(fence, (HalFence, Fence)) else require(fence, HalFence, "fence")


def optional_fence(fence: Ref) -> OptionalFence:
    """Returns the fence, or ``None`` for null; InvalidArgumentError for other values."""
    return None if fence is None else check_fence(fence)


def points_of(fence: AnyFence) -> Points:
    """Returns all timepoints of a fence of either kind, materialised."""
    return fence.points() if isinstance(fence, HalFence) else fence.points


def failure_of(fence: OptionalFence) -> PumiceError | None:
    """Returns the known failure of a fence, without a query of the device."""
    if fence is None:
        return None
    if isinstance(fence, _JoinedFence):
        return next((error for error in map(failure_of, fence._parts) if error is not None), None)
    if isinstance(fence, HalFence):
        if fence.failure is not None:
            return fence.failure
        points = fence.bound or ()
    else:
        points = fence.points
    return next((semaphore.failure for semaphore, _ in points if semaphore.failure is not None), None)


def signal(fence: OptionalFence) -> None:
    """Signals a fence from the host; does nothing for ``None``."""
    if fence is not None:
        fence.signal()


def fail(fence: OptionalFence, error: PumiceError) -> None:
    """Fails a fence; does nothing for ``None``."""
    if fence is not None:
        fence.fail(error)


def join(fences: Sequence[OptionalFence]) -> HalFence:
    """Returns a fence that is ready when all of ``fences`` are; ``None`` entries count as ready.

    The fences may belong to several devices.
    """
    for fence in fences:
        if type(fence) is not HalFence or fence.bound != () or fence.failure is not None:
            break
    else:
        if fences:  # the usual case: memory was allocated
            joined = HalFence(fences[0].device)  # type: ignore[union-attr]  # they are fences
            joined.bound = ()
            return joined
    parts = [check_fence(fence) for fence in fences if fence is not None]
    if len(parts) == 1 and isinstance(parts[0], HalFence):
        return parts[0]
    devices = [part.device for part in parts if isinstance(part, HalFence)]
    owners = [s.device for part in parts if isinstance(part, Fence) for s, _ in part.points]
    devices += [owner for owner in owners if isinstance(owner, Device)]
    joined = HalFence.__new__(HalFence)
    joined.bound, joined.failure = (), None
    if not devices:
        return joined
    joined.device = devices[0]
    merged: dict[Semaphore, int] = {}
    for part in parts:
        if isinstance(part, HalFence) and (part.bound is None or isinstance(part, _JoinedFence)):
            return _JoinedFence(joined.device, parts)
        if isinstance(part, HalFence) and joined.failure is None:
            joined.failure = part.failure
        for semaphore, value in (part.bound or ()) if isinstance(part, HalFence) else part.points:
            if merged.get(semaphore, 0) < value:
                merged[semaphore] = value
    joined.bound = tuple(merged.items())
    return joined


def alias(wait: OptionalFence, target: OptionalFence) -> None:
    """Makes ``target`` ready when ``wait`` is, for immediate operations."""
    if target is None:
        return
    if type(wait) is HalFence and type(target) is HalFence and wait.failure is None:
        # The usual case: it is reached, or is the signal of one submission.
        bound = wait.bound
        is_simple = bound is not None and (not bound or (len(bound) == 1 and bound[0][0].failure is None))
        if is_simple and target.bind(bound or ()):
            return
    failure = failure_of(wait)
    if failure is not None:
        target.fail(failure)
        return
    points = () if wait is None else tuple((s, v) for s, v in points_of(wait) if s.reached < v)
    if isinstance(target, HalFence) and target.bind(points):
        return
    if not points:
        target.signal()
    else:
        signal_after(wait, target)


def signal_after(wait: OptionalFence, target: OptionalFence, action: Callable[[], None] | None = None) -> None:
    """Does the same as ``run_after``, and then signals ``target``."""

    def run() -> None:
        if action is not None:
            action()
        signal(target)

    run_after(wait, target, run)


def run_after(wait: OptionalFence, target: OptionalFence, action: Callable[[], None]) -> None:
    """Runs ``action`` on the host once ``wait`` is reached.

    Never blocks: if ``wait`` is pending, the action runs on a poll thread, where it must not block. ``target`` fails if
    ``wait`` does, or with an error that the action raises.
    """

    def run(error: PumiceError | None) -> None:
        if error is None:
            try:
                action()
                return
            except PumiceError as raised:
                error = raised
            except Exception as raised:  # a bug in an action must not leave a fence pending
                error = InternalError(f"an operation between two fences raised {type(raised).__name__}: {raised}")
                error.__cause__ = raised
        fail(target, error)

    failure = failure_of(wait)
    if failure is not None:
        run(failure)
    elif wait is None or wait.query():
        run(None)
    else:
        wait.notify(run)


def status_of(fence: AnyFence) -> int:
    """Returns a status code: 0 if reached, DEFERRED if not, else that of its failure."""
    try:
        return 0 if fence.query() else _DEFERRED
    except PumiceError as error:
        return int(error.code)


def fail_with(fence: AnyFence, code: int) -> None:
    try:
        status = StatusCode(code & 0x1F)
    except ValueError:
        status = StatusCode.UNKNOWN
    fence.fail(
        error_for(
            StatusCode.UNKNOWN if status is StatusCode.OK else status, "the program failed this fence (hal.fence.fail)"
        )
    )
