"""The part of the reference device that buffers, semaphores, command buffers and the queue use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from ..base.locks import RLock
from ..base.weak_registry import WeakRegistry
from ..hal.logical_device import LogicalDevice as AnyDevice
from ..status import CancelledError, PumiceError


class Fails(Protocol):
    """The methods of a semaphore that the device calls."""

    def fail(self, error: PumiceError) -> None: ...


class LogicalDevice(AnyDevice):
    """The state of a device, entirely on the host.

    Attributes:
        lock: the lock of payloads, failures and the queue. Unlike ``changed`` it is native, so an interrupt cannot
            leave it locked.
        changed: the condition that is notified of their changes.
        on_change: a function that is called after such a change without the lock, to run held work.
        semaphores: the live semaphores.
    """

    name = "reference"
    kind = "cpu"
    uri = "reference"
    staging = False
    bind_alignment = 1

    def __init__(self) -> None:
        super().__init__()
        self.lock: threading.RLock = RLock()
        self.changed: threading.Condition = threading.Condition(self.lock)
        self.on_change: Callable[[], None] = lambda: None
        self.semaphores: WeakRegistry[Fails] = WeakRegistry()

    def check_running(self) -> None:
        """Raises CancelledError if the device was closed. Called during evaluations."""
        if self.is_closed:
            raise CancelledError("the device was closed")

    def retire(self) -> None:
        self.close_dropped()
