"""What disturbed a sample: bits that are kept with it."""

from __future__ import annotations

import enum
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["DISTURBED", "SampleFlag", "kept"]


class SampleFlag(enum.IntFlag):
    """Disturbances of one sample. The numbers are kept in results and never change their meaning."""

    PREEMPTED = 1
    """The measuring thread was taken off its core during the sample."""

    THROTTLED = 2
    """The reference kernel ran at another speed around it: clocks, heat or another user of the device."""

    CLOCK_UNSURE = 4
    """Device times could not be related to the host's clock well enough: ``queue`` and ``wake`` are in doubt."""


DISTURBED: Final = SampleFlag.PREEMPTED | SampleFlag.THROTTLED
"""What leaves a sample out of the statistics, as long as enough others remain."""


def kept(disturbed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which samples statistics are of: the undisturbed ones where they are at least half of all, else all.

    Where most samples are disturbed, disturbance is how the machine is, and those that escaped it are no fair choice.
    """
    if 2 * int(np.count_nonzero(~disturbed)) >= disturbed.size:
        return ~disturbed
    return np.ones(disturbed.size, dtype=np.bool_)
