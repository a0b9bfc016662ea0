"""The state that the timeline semaphores of one device share: the notifier, and the waiting threads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from ...base.weak_registry import WeakRegistry
from ...hal.timeouts import deadline_after
from ...status import PumiceError
from ...waits.wait_mode import WaitMode
from ..instance.logical_device import DeviceQueue, LogicalDevice
from ..vulkan.functions import CData, ffi
from .look import LookBudget
from .notifier import Notifier
from .timeline import WaitInfo


class _Semaphore(Protocol):
    """The part of a ``TimelineSemaphore`` that the context uses."""

    def fail(self, error: PumiceError) -> None: ...

    def drop_held(self, error: PumiceError) -> None: ...

    def abandon(self, error: PumiceError) -> None: ...


class SemaphoreContext:
    """The shared state of a device's timeline semaphores.

    Attributes:
        wait_infos: the structures of finished waits, for the next ones.
        waiting: the waits under way, each with its semaphore.
        mode: the wait mode, unless the call sets another.
        look_budget: the limit of the time spent polling.
        peeked: a counter, guarded by the device's lock.
    """

    def __init__(self, device: LogicalDevice, mode: WaitMode) -> None:
        self.device = device
        self.mode: WaitMode = mode
        self.look_budget: LookBudget = LookBudget()
        self.notifier: Notifier = Notifier(device)
        self.peeked: CData = ffi.new("uint64_t *")
        self.wait_infos: list[WaitInfo] = []
        self.waiting: dict[WaitInfo, _Semaphore] = {}
        self._semaphores: WeakRegistry[_Semaphore] = WeakRegistry()
        device.on_lost = self.fail_all

    def register(self, semaphore: _Semaphore) -> None:
        self._semaphores.add(semaphore)
        # A semaphore made while the device was being lost was not failed with the others.
        if self.device.lost is not None:
            semaphore.fail(self.device.lost)

    def unregister(self, semaphore: _Semaphore) -> None:
        self._semaphores.discard(semaphore)

    def drop_held(self, error: PumiceError) -> None:
        """Fails every held-back submission when the device closes."""
        for semaphore in self._semaphores:
            semaphore.drop_held(error)

    def fail_all(self, error: PumiceError) -> None:
        """Fails every semaphore when the device is lost or closed."""
        for semaphore in self._semaphores:
            semaphore.fail(error)

    def destroy(self, handle: CData, queues: Sequence[DeviceQueue]) -> None:
        """Destroys a semaphore once ``queues``, which have waited for it, have finished another submission.

        Mesa's queue thread uses the semaphores that a submission waited for until after it has signalled (22.3,
        lavapipe: a mutex in freed memory), so a signal does not say that they are out of use.
        """
        if queues:
            queues[0].after_next(lambda: self.destroy(handle, queues[1:]))
        else:
            self.device.destroy("semaphore", handle)

    def is_waited_for(self, semaphore: _Semaphore | None = None) -> bool:
        """Returns whether a thread blocks on the semaphore; for ``None``, on any semaphore."""
        waiting = list(self.waiting.copy().values())
        return bool(waiting) if semaphore is None else any(waited is semaphore for waited in waiting)

    def wait_for_waiters(self, timeout: float | None, semaphore: _Semaphore | None = None) -> bool:
        """Waits until no thread blocks on the (failed) semaphore, or on any of the device.

        Returns ``False`` after ``timeout`` seconds.
        """
        deadline = deadline_after(timeout)  # a waiter wakes at once or at the end of its slice
        while self.is_waited_for(semaphore):
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(0.0002)
        return True

    def abandon(self, error: PumiceError) -> None:
        """Makes every wait raise, in a forked child. Called by ``Device.abandon``."""
        self.notifier.abandon()
        for semaphore in self._semaphores:
            semaphore.abandon(error)
