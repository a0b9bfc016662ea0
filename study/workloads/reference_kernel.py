"""The reference kernel: the same arithmetic throughout a run, whose time tells whether the device still runs as before.

A reading is the fastest of a few runs, which leaves out a disturbance of one of them. The device counts as throttled if
the median of the last readings differs from that of the first by more than a limit and by more than the first readings
differ among themselves.

It is one workgroup, so that its time does not depend on how many workgroups share the device or, on a CPU, its cores.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from typing import Final

from ... import shaders
from ...runtime.device import Device
from ...runtime.kernels.kernel import Kernel
from .timed_commands import TimedCommands

_RUNS: Final = 3
_FIRST: Final = 15
_LAST: Final = 5
_WANTED_NS: Final = 100_000
_MAX_ITERATIONS: Final = 1 << 16


class ReferenceKernel:
    """A kernel that takes about 100 microseconds; ``limit`` is the relative change that counts as throttling."""

    def __init__(self, device: Device, limit: float) -> None:
        self._device = device
        self._limit = limit
        self._kernel = Kernel(device, shaders.spirv("timing/fma"), name="reference")
        self._array = device.empty((64, 4), "float32")
        self._last: deque[float] = deque(maxlen=_LAST)
        iterations = 16
        self._commands = self._record(iterations)
        while (taken := self._fastest()) < _WANTED_NS and iterations < _MAX_ITERATIONS:
            iterations = min(_MAX_ITERATIONS, max(2 * iterations, int(iterations * _WANTED_NS / max(taken, 1.0))))
            self._commands.close()
            self._commands = self._record(iterations)
        self._first = [self._fastest() for _ in range(_FIRST)]

    def _record(self, iterations: int) -> TimedCommands:
        dispatch = self._kernel.prepare(self._array, groups=1, iterations=iterations, factor=1.0)
        return TimedCommands.dispatch(self._device, "reference", dispatch)

    def _fastest(self) -> float:
        return min(self._commands.run() for _ in range(_RUNS))

    def read(self) -> tuple[int, float, bool]:
        """A reading: the host's time, how many nanoseconds the kernel took, and whether the device is throttled."""
        started = time.monotonic_ns()
        taken = self._fastest()
        self._last.append(taken)
        first, median, third = statistics.quantiles(self._first, n=4)
        return started, taken, abs(self.change) > max(self._limit, (third - first) / median)

    @property
    def change(self) -> float:
        """Relative change of the last readings against the first: 0.1 is ten percent slower."""
        if not self._last:
            return 0.0
        return statistics.median(self._last) / statistics.median(self._first) - 1

    def close(self) -> None:
        self._commands.close()
        self._kernel.close()
        self._array.close()
