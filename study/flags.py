"""What disturbed a sample: bits that are kept with it."""

from __future__ import annotations

import enum

__all__ = ["SampleFlag"]


class SampleFlag(enum.IntFlag):
    """Disturbances of one sample. The numbers are kept in results and never change their meaning."""

    PREEMPTED = 1
    """The measuring thread was taken off its core during the sample."""

    THROTTLED = 2
    """The reference kernel ran at another speed around it: clocks, heat or another user of the device."""

    CLOCK_UNSURE = 4
    """Device times could not be related to the host's clock well enough: ``queue`` and ``wake`` are in doubt."""
