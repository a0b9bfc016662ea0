"""Looks: polls of a counter before a wait blocks, and their duration.

Waking a thread takes longer than many dispatches, so a wait first polls in case its work is about to finish. An
unsuccessful look only costs processor time, as it yields its core to any other thread. Three rules bound it.

- A look takes some tens of microseconds at most, fewer on few cores, which a software driver needs. With one core there
  are no looks.
- A look takes at most twice as long as recent successful looks for the same semaphore.
- Unsuccessful looks take at most two percent of the time; a successful look earns its own duration. Waits for work that
  always takes longer, or never comes, soon only block.

Thread rule: any thread. Of two notes made at the same moment, one may be lost.
"""

from __future__ import annotations

import math
import os
from typing import Final

LONGEST_S: Final = 100e-6
"""The longest look."""
_FEW_CORES_S: Final = 75e-6  # with two or three cores
_MARGIN_S: Final = 5e-6
_CREDIT_S: Final = 2e-3  # the most time for unsuccessful looks in a row
_SHARE: Final = 0.02  # share of the time for unsuccessful looks
_CORES_FOR: Final = 64  # waits until the cores are counted again


class LookBudget:
    """The time budget for a device's looks.

    Attributes:
        longest: the longest time for a look, in seconds, on this number of cores; 0 for none.
        left: the number of waits until the cores are counted again; each wait decreases it.
        credit: the seconds left for unsuccessful looks.
    """

    __slots__ = ("_noted", "credit", "left", "longest")

    def __init__(self) -> None:
        self.credit: float = _CREDIT_S
        self._noted = 0.0
        self.left: int = 0
        self.longest: float = 0.0
        self.count_cores()

    def count_cores(self) -> None:
        """Re-reads the number of usable cores, as the process may be pinned to other cores."""
        self.left = _CORES_FOR
        self.longest = longest_look(core_count())

    def accrue(self, now: float) -> float:
        """Returns the seconds for a look now, or 0 without credit; ``now`` is ``time.monotonic()``."""
        self.credit = min(_CREDIT_S, self.credit + _SHARE * (now - self._noted))
        self._noted = now
        self.left -= 1
        if self.left <= 0:
            self.count_cores()
        return self.longest if self.credit > 0 else 0.0


class AdaptiveLook:
    """Looks for the payloads of one semaphore, from a device's budget; see ``wait_mode.Look``."""

    __slots__ = ("_budget", "_usual")

    def __init__(self, budget: LookBudget) -> None:
        self._budget = budget
        self._usual = LONGEST_S  # seconds of a successful look, on average

    def length(self, now: float) -> float:
        return min(self._budget.accrue(now), 2 * self._usual + _MARGIN_S)

    def found(self, seconds: float) -> None:
        self._usual += (seconds - self._usual) / 8
        self._budget.credit += seconds

    def missed(self, seconds: float) -> None:
        self._usual = min(LONGEST_S, 2 * self._usual + _MARGIN_S)
        self._budget.credit -= min(seconds, LONGEST_S)  # the rest was other threads' time


class EndlessLook:
    """Looks of the mode ``"spin"``; see ``wait_mode.Look``."""

    __slots__ = ()

    def length(self, now: float) -> float:
        return math.inf

    def found(self, seconds: float) -> None:
        """Does nothing: the mode does not adapt."""

    def missed(self, seconds: float) -> None:
        """Does nothing: the mode does not adapt."""


ENDLESS: Final = EndlessLook()


def longest_look(cores: int) -> float:
    """Returns the longest time for a look with this number of cores, in seconds."""
    return 0.0 if cores < 2 else _FEW_CORES_S if cores < 4 else LONGEST_S


def core_count() -> int:
    """Returns the number of cores that the calling thread may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not on this platform
        return os.cpu_count() or 1
