"""Devices in a forked child: none may be used.

A forked child has the parent's handles but none of the driver's threads: a call blocks forever or corrupts the driver.
In the child every device of the parent therefore refuses work, waits fail at once, closing makes no native call, and a
new driver and devices can be opened.
"""

from __future__ import annotations

import os
import weakref

from ...status import FailedPreconditionError
from ..vulkan.live_objects import reset_after_fork as reset_counts
from .driver import reset_after_fork as reset_drivers
from .logical_device import LogicalDevice

_devices: weakref.WeakSet[LogicalDevice] = weakref.WeakSet()


def watch(device: LogicalDevice) -> None:
    """Has a device abandoned in children forked from now on."""
    _devices.add(device)


def _in_child() -> None:
    error = FailedPreconditionError(
        "this device was opened before the process was forked, and Vulkan does not survive a fork. Open a device in "
        "the child, or start processes with multiprocessing's 'spawn' method"
    )
    # The threads that held these locks do not exist here.
    reset_counts()
    reset_drivers()
    for device in list(_devices):
        device.abandon(error)
    _devices.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
