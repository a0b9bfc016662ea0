"""Decides in which calls native functions are timed, to keep within a profile's ``most_slowdown``.

Calls earn a share of their time as credit; timing a native function costs a known time. Native functions are timed in
even phases; odd phases last until there is credit again.
"""

from __future__ import annotations

import threading
from typing import Final

from ...vm.execution.module_state import ModuleState
from ..modules.hal.timed_queue import TimedQueue
from .native import NativeTimes

_BURST: Final = 16  # calls, at least, of a phase
_CREDIT_NS: Final = 5e6  # of slowdown before the limit is looked at
_NATIVE_NS: Final = 700.0  # what timing a native function costs in a program: benchmarks/profile_overhead.py
_SWITCH_NS: Final = 2000.0


class NativeSampling:
    """The native functions of a profile, timed or not.

    Attributes:
        phase: even while native functions are timed, odd while they are not.
        natives: the functions.
    """

    def __init__(self, most_slowdown: float | None) -> None:
        """Native functions get half of ``most_slowdown``, timestamps the other half; ``None`` times everything."""
        self.phase = 0
        self.natives: list[NativeTimes] = []
        self._most_slowdown = most_slowdown
        self._queues: list[TimedQueue] = []
        self._switching = threading.Lock()
        self._stopped = False
        self._burst = self._noted = self._earned_to = self._took = 0
        self._credit_ns = _CREDIT_NS

    def add_module(self, state: ModuleState, *, concurrent: bool) -> None:
        """Adds the native imports of a module."""
        added = NativeTimes.of(state, concurrent=concurrent)
        with self._switching:
            self.natives += added
            if not self.phase & 1:
                for native in added:
                    native.insert()

    def add_queue(self, queue: TimedQueue) -> None:
        """Adds a queue, whose timestamps calls earn too."""
        self._queues.append(queue)

    def call_ended(self, begin_ns: int, end_ns: int, phase: int) -> bool:
        """Earns credit for a call that began in ``phase``.

        Returns:
            whether native functions were timed during all of it.
        """
        detailed = phase == self.phase and not phase & 1
        if self._most_slowdown is not None:
            # Calls that overlap are counted once.
            self._took += end_ns - (begin_ns if begin_ns > self._earned_to else self._earned_to)
            self._earned_to = end_ns
            self._burst += 1
            if self._burst >= _BURST:
                self._settle(self._most_slowdown / 2)
        return detailed

    def _settle(self, share: float) -> None:
        """Adds the credit of calls, and switches the phase where it is used up or there again."""
        if not self._switching.acquire(False):
            return
        try:
            took, self._took, self._burst = self._took, 0, 0
            for queue in self._queues:
                queue.earn(took)
            self._credit_ns += share * took
            if self._stopped:
                return
            if not self.phase & 1:
                count = sum(native.count for native in self.natives)
                self._credit_ns -= (count - self._noted) * _NATIVE_NS + 2 * len(self.natives) * _SWITCH_NS
                self._noted = count
                if self._credit_ns < 0:
                    self._restore()
                    self.phase += 1
            elif self._credit_ns > 0:
                for native in self.natives:
                    native.insert()
                self.phase += 1
        finally:
            self._switching.release()

    def _restore(self) -> None:
        for native in self.natives:
            native.restore()

    def stop(self) -> None:
        """Has programs call their native functions directly."""
        with self._switching:
            self._stopped = True
            if not self.phase & 1:
                self._restore()
