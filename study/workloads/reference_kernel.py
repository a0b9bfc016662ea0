"""The reference kernel: the same arithmetic throughout a run, whose time says whether the device still runs as it did.

Each reading is the fastest of a few runs, so that a disturbance of one is none of the reading. What counts as throttled is judged by the
median of the last readings against that of the first ones; where those differ among themselves already, it takes a change beyond that.

It is one workgroup: how many of them share a device is no part of its speed, and on a device that is the CPU no part of the reading.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from typing import Final

from ... import shaders
from ...hal_vulkan.submit.prepared_submission import PreparedSubmission
from ...runtime.device import Device
from ...runtime.kernels.kernel import Kernel

__all__ = ["ReferenceKernel"]

_RUNS: Final = 3
_FIRST: Final = 15
_LAST: Final = 5
_WANTED_NS: Final = 100_000
_GROUPS: Final = 1
_MOST_ITERATIONS: Final = 1 << 16


class ReferenceKernel:
    """A kernel of multiply-adds that takes about 100 microseconds, and how it changes.

    Thread rule: one thread at a time.

    Args:
        device: where it runs.
        limit: relative change that counts as throttling.
    """

    def __init__(self, device: Device, limit: float) -> None:
        self._device = device
        self._limit = limit
        self._clock = time.monotonic_ns
        self._kernel = Kernel(device, shaders.spirv("timing/fma"), name="reference")
        self._array = device.empty((_GROUPS * 64, 4), "float32")
        family = device.profile.queue_families[device.hal.plan.compute_family]
        self._commands = device.hal.create_command_buffer(
            timing="span" if family.timestamp_valid_bits else False, name="reference"
        )
        self._first: list[float] = []
        self._last: deque[float] = deque(maxlen=_LAST)
        iterations = 16
        self._record(iterations)
        while (taken := min(self._run() for _ in range(_RUNS))) < _WANTED_NS and iterations < _MOST_ITERATIONS:
            iterations = min(_MOST_ITERATIONS, max(2 * iterations, int(iterations * _WANTED_NS / max(taken, 1.0))))
            self._record(iterations)
        for _ in range(_FIRST):
            self._first.append(min(self._run() for _ in range(_RUNS)))

    def _record(self, iterations: int) -> None:
        pipeline, buffers, groups, push = self._kernel.prepare(
            self._array, groups=_GROUPS, iterations=iterations, factor=1.0
        )
        self._commands.begin().dispatch(pipeline, buffers, groups, push)
        self._submission = PreparedSubmission(
            self._device.hal.compute_queue, (self._commands.end(),), clock=self._clock
        )

    def _run(self) -> float:
        number, called, _ = self._submission.submit()
        awake = self._submission.wait(number)
        timings = self._commands.timings() if self._commands.timestamps is not None else ()
        return timings[0].duration_ns if timings else float(awake - called)

    def read(self) -> tuple[int, float, bool]:
        """Runs it.

        Returns:
            the host's time, the nanoseconds that it took, and whether the device is throttled: now or lately it took more than
            ``limit`` longer, or shorter, than at the beginning.
        """
        started = self._clock()
        taken = min(self._run() for _ in range(_RUNS))
        self._last.append(taken)
        return started, taken, abs(self.change) > max(self._limit, self.spread)

    @property
    def spread(self) -> float:
        """Interquartile range of the first readings over their median: a change within it says nothing."""
        first, median, third = statistics.quantiles(self._first, n=4)
        return (third - first) / median

    @property
    def change(self) -> float:
        """Relative change of the last readings against the first: 0.1 is ten percent slower."""
        if not self._last:
            return 0.0
        return statistics.median(self._last) / statistics.median(self._first) - 1

    def close(self) -> None:
        """Gives everything back; idempotent."""
        self._commands.close()
        self._kernel.close()
        self._array.close()
