"""What disturbed a sample, as bits stored with it."""

from __future__ import annotations

import enum
from typing import Final

import numpy as np
import numpy.typing as npt


class SampleFlag(enum.IntFlag):
    """Disturbances of a sample. The numbers are stored in results and never change their meaning."""

    PREEMPTED = 1
    """The measuring thread was preempted during the sample."""

    THROTTLED = 2
    """The reference kernel ran at another speed: clocks, heat or another user of the device."""

    CLOCK_UNSURE = 4
    """Device times could not be related well to the host's clock: ``queue`` and ``wake`` are in doubt."""


DISTURBED: Final = SampleFlag.PREEMPTED | SampleFlag.THROTTLED
"""Excludes a sample from the statistics, as long as enough others remain."""


def kept(disturbed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which samples statistics use: the undisturbed ones if they are at least half of all, else all.

    If most are disturbed, disturbance is the machine's normal state, and undisturbed samples are a biased selection.
    """
    if 2 * int(np.count_nonzero(~disturbed)) >= disturbed.size:
        return ~disturbed
    return np.ones(disturbed.size, dtype=np.bool_)
