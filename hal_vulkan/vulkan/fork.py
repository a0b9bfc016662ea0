"""What a fork leaves of Vulkan in the child: nothing that may be used.

A forked child has the parent's handles but none of its threads: a call on them waits for ever or corrupts the driver.
So in the child every device of the parent refuses work with an error that says so, waits fail at once, closing lets go
without a native call, and a new driver and devices can be opened.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

from ...status import FailedPreconditionError
from ..instance.driver import reset_after_fork as reset_drivers
from .live_objects import reset_after_fork as reset_counts

if TYPE_CHECKING:
    from ..device import Device

__all__ = ["watch"]

_devices: weakref.WeakSet[Device] = weakref.WeakSet()


def watch(device: Device) -> None:
    """Has a device abandoned in children forked from now on."""
    _devices.add(device)


def _in_child() -> None:
    error = FailedPreconditionError(
        "this device was opened before the process was forked, and Vulkan does not survive a fork. Open a device in the "
        "child, or start processes with multiprocessing's 'spawn' method"
    )
    # Threads that held these locks do not exist here.
    reset_counts()
    reset_drivers()
    for device in list(_devices):
        device.abandon(error)
    _devices.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
