"""Handling of open devices when the process forks or ends."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Protocol

from ...status import FailedPreconditionError, PumiceError
from ..vulkan.live_objects import forget_objects
from .driver import forget_drivers
from .profile import DeviceProfile, DeviceType


class OpenDevice(Protocol):
    """The part of a ``Device`` that this file uses; that documents it."""

    profile: DeviceProfile
    is_closed: bool
    abandoned: bool
    lost: PumiceError | None

    def wait_idle(self) -> None: ...

    def retire(self) -> None: ...

    def trim(self) -> int: ...

    def abandon(self, error: PumiceError) -> None: ...

    def finish_work(self) -> None: ...


open_devices: weakref.WeakSet[OpenDevice] = weakref.WeakSet()
"""The devices of this process."""


def _after_fork_in_child() -> None:
    """Abandons the devices: a child has the parent's handles but none of the driver's threads: a call blocks forever or
    corrupts the driver.

    Every device of the parent therefore refuses work there, waits fail at once, closing makes no native call, and a new
    driver and devices can be opened.
    """
    error = FailedPreconditionError(
        "this device was opened before the process was forked, and Vulkan does not survive a fork. Open a device in "
        "the child, or start processes with multiprocessing's 'spawn' method"
    )
    # The threads that held these locks do not exist here.
    forget_objects()
    forget_drivers()
    for device in list(open_devices):
        device.abandon(error)
    open_devices.clear()


@atexit.register
def _at_exit() -> None:
    """Finishes the devices' work. Software drivers compile and run shaders in threads of this process, which crash if
    its libraries are unloaded first.
    """
    for device in list(open_devices):
        if device.profile.device_type is DeviceType.CPU and not (device.is_closed or device.abandoned):
            device.finish_work()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
