"""Handling of open devices when the process forks or ends."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from ...base.weak_registry import WeakRegistry
from ...hal.timeouts import EXIT_TIMEOUT_S
from ...status import FailedPreconditionError, PumiceError
from ..vulkan.live_objects import forget_objects
from .driver import forget_drivers
from .profile import DeviceProfile, DeviceType


class OpenDevice(Protocol):
    """The part of a ``Device`` that this file uses; ``Device`` documents it."""

    profile: DeviceProfile
    is_closed: bool
    is_destroyed: bool
    abandoned: bool
    lost: PumiceError | None

    def wait_idle(self) -> None: ...

    def retire(self) -> None: ...

    def trim(self) -> int: ...

    def abandon(self, error: PumiceError) -> None: ...

    def finish_work(self, timeout: float | None) -> str: ...


open_devices: WeakRegistry[OpenDevice] = WeakRegistry()
"""The devices of this process."""


def _after_fork_in_child() -> None:
    """Abandons the devices.

    A child has the parent's handles but none of the driver's threads, so calls would block forever or corrupt the
    driver.

    Every device of the parent therefore refuses work in the child, its waits fail at once, and its closing makes no
    native call. A new driver and new devices can be opened.
    """
    error = FailedPreconditionError(
        "this device was opened before the process was forked, and Vulkan does not survive a fork. Open a device in "
        "the child, or start processes with multiprocessing's 'spawn' method"
    )
    # The threads that held these locks do not exist here.
    forget_objects()
    forget_drivers()
    for device in open_devices:
        device.abandon(error)
    open_devices.clear()


_log = logging.getLogger("pumice")
_tearing_down: Final[dict[object, None]] = {}


def in_thread(action: Callable[[], None]) -> Callable[[], None]:
    """Returns a function that has a thread run ``action``, for finalisers, which run at any point and under any lock.

    The thread starts now and waits, as a finaliser cannot start a thread.
    """
    asked: queue.SimpleQueue[None] = queue.SimpleQueue()  # put() is one call in C, which finalisers may make

    def run() -> None:
        asked.get()
        try:
            action()
        except Exception:
            _log.exception("what was left to a finaliser raised")
        finally:
            _tearing_down.pop(asked, None)

    def ask() -> None:
        _tearing_down[asked] = None
        asked.put(None)

    threading.Thread(target=run, name="pumice-teardown", daemon=True).start()
    return ask


def finish_teardowns(timeout: float = EXIT_TIMEOUT_S) -> None:
    """Waits until threads have run the actions of finalisers, for at most ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    while _tearing_down and time.monotonic() < deadline:
        time.sleep(0.0005)


@atexit.register
def _at_exit() -> None:
    """Finishes the devices' work.

    Software drivers compile and run shaders in threads of this process, which crash if its libraries are unloaded under
    them.

    Work that takes longer than ``EXIT_TIMEOUT_S`` is left behind, and the process ends without unloading anything.
    """
    finish_teardowns()
    for device in open_devices:
        if device.profile.device_type is DeviceType.CPU and not (device.is_destroyed or device.abandoned):
            running = device.finish_work(EXIT_TIMEOUT_S)
            if running:
                _log.error(
                    "the process ends, and after %g s %s still runs %s: the device and its memory are left to the "
                    "system. Wait for work, or end kernels that take longer than they should",
                    *(EXIT_TIMEOUT_S, device.profile.name, running),
                )
                _end_without_unloading()


def _end_without_unloading() -> None:
    """Makes the C library's exit() end the process, with its status, before it calls the destructors of libraries."""
    # Functions of on_exit get the status; the last registered is called first. Only glibc has it: on other C libraries
    # a software driver may crash in its destructors.
    import ctypes  # imported here so that programs start sooner

    with contextlib.suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        library.on_exit(ctypes.cast(library._exit, ctypes.c_void_p), None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
