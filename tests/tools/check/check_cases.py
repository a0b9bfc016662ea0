"""Cases that end in every way, for the tests of ``pumice check``."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

import numpy as np

import pumice
from pumice.testing import assert_close
from pumice.tools.check.case import Case, Figures, SkipCase


def right(device: pumice.Device) -> Figures:
    print("drivers write on stdout, too")
    with device.asarray(np.arange(4)) as array:
        assert_close(array, np.arange(4))
    return {"elements": 4.0, "how": "<quickly>"}


def wrong(device: pumice.Device) -> None:
    with device.asarray(np.arange(4)) as array:
        assert_close(array, np.arange(4) + 1)


def fails(device: pumice.Device) -> None:
    raise pumice.UnavailableError("no more of it")


def lacks(device: pumice.Device) -> None:
    raise SkipCase("the device has no shaderFloat256")


def hangs(device: pumice.Device) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(2, b"about to hang\n")
    time.sleep(600)


def dies(device: pumice.Device) -> None:
    os.write(2, b"about to die\n")
    os.kill(os.getpid(), signal.SIGSEGV)


def leaves(device: pumice.Device) -> None:
    os._exit(0)


def loses(device: pumice.Device) -> None:
    device.hal.lose(pumice.DeviceLostError("by the test"))
    device.asarray(np.arange(4)).numpy()


def cases() -> Sequence[Case]:
    """A case that is right follows each of the others."""
    ends = [wrong, fails, lacks, hangs, dies, leaves, loses]
    areas = ["types", "functions", "kernels", "waits", "memory", "images", "sorts"]
    found = []
    for area, end in zip(areas, ends, strict=True):
        found += [Case(area, end.__name__, end), Case("device", f"right after {end.__name__}", right)]
    return found
