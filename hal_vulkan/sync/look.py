"""How long a wait looks at a counter before it blocks.

To be woken costs more than many a dispatch takes, so a wait first looks whether its work is about to be done. A look in
vain costs processor time and nothing else: it gives its core to any other thread that wants it. Three things bound it.

- Looks take no longer than some tens of microseconds, fewer on few cores: a driver that runs on the processor needs
  them. With one core there are none.
- They take twice as long as waits of this kind, which are those for one semaphore, took recently.
- Looks in vain may take two percent of the time at most; one that was not in vain earns as much as it took. Work that
  always takes longer, or that never comes, is soon waited for by blocking alone.

Thread rule: any thread; what two threads note at the same moment may be lost.
"""

from __future__ import annotations

import math
import os
from typing import Final

LONGEST_S: Final = 100e-6
"""The longest look."""
_FEW_CORES_S: Final = 75e-6  # with two or three cores
_MARGIN_S: Final = 5e-6
_CREDIT_S: Final = 2e-3  # the most that looks in vain may take at a stretch
_SHARE: Final = 0.02  # of the time
_CORES_FOR: Final = 64  # waits, for which the number of cores is believed


class LookBudget:
    """What the looks of a device may cost.

    Attributes:
        longest: seconds that a look may take on the cores there are; 0 for not at all.
        left: waits until the cores are counted again; whoever waits counts down.
        credit: seconds that looks in vain may still take.
    """

    __slots__ = ("_noted", "credit", "left", "longest")

    def __init__(self) -> None:
        self.credit = _CREDIT_S
        self._noted = 0.0
        self.left = 0
        self.longest = 0.0
        self.count_cores()

    def count_cores(self) -> None:
        """Counts the cores that there are to look on: the process may be pinned to one at any time."""
        self.left = _CORES_FOR
        self.longest = longest_look(core_count())

    def accrue(self, now: float) -> float:
        """The longest look now, or 0 if none can be afforded; ``now`` is ``time.monotonic()``."""
        self.credit = min(_CREDIT_S, self.credit + _SHARE * (now - self._noted))
        self._noted = now
        self.left -= 1
        if self.left <= 0:
            self.count_cores()
        return self.longest if self.credit > 0 else 0.0


class AdaptiveLook:
    """Looks at the payloads of one semaphore, from a device's budget; see ``waiting.Look``."""

    __slots__ = ("_budget", "_usual")

    def __init__(self, budget: LookBudget) -> None:
        self._budget = budget
        self._usual = LONGEST_S  # seconds that looks take which are not in vain

    def length(self, now: float) -> float:
        return min(self._budget.accrue(now), 2 * self._usual + _MARGIN_S)

    def found(self, seconds: float) -> None:
        self._usual += (seconds - self._usual) / 8
        self._budget.credit += seconds

    def missed(self, seconds: float) -> None:
        self._usual = min(LONGEST_S, 2 * self._usual + _MARGIN_S)
        self._budget.credit -= min(seconds, LONGEST_S)  # what it took longer was other threads' time


class EndlessLook:
    """Looks of the mode ``"spin"``; see ``waiting.Look``."""

    __slots__ = ()

    def length(self, now: float) -> float:
        return math.inf

    def found(self, seconds: float) -> None:
        """Learns nothing."""

    def missed(self, seconds: float) -> None:
        """Learns nothing."""


ENDLESS: Final = EndlessLook()


def longest_look(cores: int) -> float:
    """Seconds that a look may take on so many cores."""
    return 0.0 if cores < 2 else _FEW_CORES_S if cores < 4 else LONGEST_S


def core_count() -> int:
    """How many cores the calling thread may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not on this platform
        return os.cpu_count() or 1
