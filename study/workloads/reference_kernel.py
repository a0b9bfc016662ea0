"""Reference kernels: a constant load throughout a run, whose times show whether the machine has changed.

A load is a number of workgroups over a number of bytes, with a kind of wait. It is measured at two numbers of rounds of
arithmetic, neighbouring powers of two that take less and more than a wanted time, and without arithmetic. So two runs
of a study have a number in common even if the machine's state, or the point that the reference is like, differs by up
to a factor of two, and at least one in any case. Their readings can be compared, unlike those of freely calibrated
kernels.

The reference is reopened now and then, as two equal instances differ by their address in memory. A reading is the
median of a few runs: it varies like the times of samples. (The fastest run would exclude what slows samples down.)
"""

from __future__ import annotations

import math
import statistics
import time
from collections import defaultdict, deque
from typing import Final, NamedTuple

import numpy as np

from ... import shaders
from ...base.closeable import Closeable
from ...hal_vulkan import CommandBuffer
from ...hal_vulkan.submit.prepared_submission import PreparedSubmission
from ...runtime.arrays.array import DeviceArray
from ...runtime.device import Device
from ...runtime.kernels.kernel import Kernel
from .timed_commands import ThreadWait
from .workload import Load

_RUNS: Final = 3
_LAST: Final = 5
_MIN_READINGS: Final = 15
_KEPT: Final = 2000
# Readings per instance, as equal instances differ by their address in memory.
_INSTANCE: Final = 12
# Standard errors of a median of the last readings, a number that noise hardly reaches.
_CERTAIN: Final = 4.0
# The share of the wanted time that is enough.
_NEARLY: Final = 0.7
_MAX_ROUNDS: Final = 1 << 20
_MAX_BYTES: Final = 1 << 26
_ELEMENT: Final = 16


WITHOUT_ROUNDS: Final = "no arithmetic"
"""Part of the text of a load that every run has, whatever its speed."""


class Reading(NamedTuple):
    """One reading: its begin, on the clock of ``time.monotonic_ns``, its duration in nanoseconds, and its load, the
    same text in every run of the same load.
    """

    started_ns: int
    duration_ns: float
    load: str


class ReferenceKernel(Closeable):
    """A load that takes about ``wanted_ns``. One thread at a time.

    Args:
        device: the device that runs it.
        load: the load; its size is limited by the device's memory.
        wanted_ns: the wanted time; at least a minimum that depends on the load.
        execute: whether durations are the device's; otherwise they are from the submit call to the host awake.
    """

    def __init__(self, device: Device, load: Load, wanted_ns: float, *, execute: bool = True) -> None:
        self._device = device
        self._load = load
        limits = device.profile.limits
        most = min(limits.max_compute_work_group_invocations, limits.max_compute_work_group_size[0])
        self._local_size = min(load.local_size, most)
        self._groups = min(load.groups, 65535)
        elements = max(self._groups * self._local_size, load.nbytes // _ELEMENT)
        elements = min(elements, min(limits.max_storage_buffer_range, _MAX_BYTES) // _ELEMENT)
        self._execute = execute and load.timed and device.vulkan.plan.timestamp_bits > 0
        self._timed = load.timed and device.vulkan.plan.timestamp_bits > 0
        self._commands: dict[int, tuple[CommandBuffer, PreparedSubmission]] = {}
        self._readings: defaultdict[int, deque[float]] = defaultdict(lambda: deque(maxlen=_KEPT))
        self._changes: deque[float] = deque(maxlen=_KEPT)
        self._thread = ThreadWait() if load.wait == "thread" else None
        self._elements = elements
        self._array: DeviceArray | None = None
        self._kernel: Kernel | None = None
        self._turn = 0
        try:
            self._open()
            self._rounds = self._calibrate(wanted_ns)
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Opens a new instance in place of the current one, at another address in memory if the driver chooses one."""
        array = self._device.zeros((self._elements, 4), "float32")
        try:
            kernel = Kernel(
                self._device, shaders.spirv("timing/load"), name="reference", specialization={0: self._local_size}
            )
        except BaseException:
            array.close()
            raise
        self._release()
        self._array, self._kernel = array, kernel

    def _calibrate(self, wanted_ns: float) -> tuple[int, ...]:
        rounds = 0
        # Most of the time of many loads is not arithmetic: there only many rounds stand out from noise.
        while (taken := self._median(rounds)) < _NEARLY * wanted_ns and rounds < _MAX_ROUNDS:
            # The rest of the time does not grow, so this does not overshoot by much.
            rounds = max(1, rounds * 2 ** max(1, int(math.log2(wanted_ns / max(taken, 1.0)))))
        chosen = sorted({0, rounds // 2, rounds})
        for unused in self._commands.keys() - set(chosen):
            self._commands.pop(unused)[0].close()
        return tuple(chosen)

    def _record(self, rounds: int) -> tuple[CommandBuffer, PreparedSubmission]:
        assert self._kernel is not None and self._array is not None
        hal = self._device.vulkan
        dispatch = self._kernel.prepare(self._array, groups=self._groups, rounds=rounds)
        commands = hal.create_command_buffer(timing="span" if self._timed else False, name="reference")
        try:
            commands.begin().dispatch(*dispatch)
            made = commands, PreparedSubmission(hal.compute_queue, (commands.end(),))
        except BaseException:
            commands.close()
            raise
        self._commands[rounds] = made
        return made

    def _run(self, rounds: int) -> float:
        commands, submission = self._commands.get(rounds) or self._record(rounds)
        number, called, _ = submission.submit()
        if self._thread is not None:
            awake = self._thread.wait(submission, number, 60.0)
        elif self._load.wait == "poll":
            awake = submission.poll(number)
        elif self._load.wait == "look":
            awake = submission.look(number, self._load.look / 1e6)
        else:
            awake = submission.wait(number)
        taken = commands.timings()[0].duration_ns if self._execute else float(awake - called)
        self._device.vulkan.compute_queue.retire()
        return taken

    def _median(self, rounds: int) -> float:
        return statistics.median(self._run(rounds) for _ in range(_RUNS))

    def read(self) -> Reading:
        """Takes one reading; the numbers of rounds take turns."""
        if self._turn and self._turn % _INSTANCE == 0:
            self._open()
        self._turn += 1
        rounds = self._rounds[self._turn % len(self._rounds)]
        started = time.monotonic_ns()
        taken = self._median(rounds)
        earlier = self._readings[rounds]
        earlier.append(taken)
        self._changes.append(math.log(max(taken, 1.0) / max(statistics.median(earlier), 1.0)))
        return Reading(started, taken, self._described(rounds))

    def _described(self, rounds: int) -> str:
        measured = "execute" if self._execute else "total"
        how = self._load.wait + (f" {self._load.look:g}" if self._load.wait == "look" else "")
        size = f"{self._groups}x{self._local_size}, {_ELEMENT * self._elements} B"
        return (
            f"{size}, {rounds} rounds, {measured}, {how}" if rounds else f"{size}, {WITHOUT_ROUNDS}, {measured}, {how}"
        )

    def changed(self, limit: float) -> bool:
        """Whether the last readings differ from most of the run's by more than the fraction ``limit``, and by more than
        noise.
        """
        if len(self._changes) < _MIN_READINGS:
            return False
        changes = np.array(self._changes)
        noise = 1.4826 / math.sqrt(2) * float(np.median(np.abs(np.diff(changes))))
        error = 1.2533 * noise / math.sqrt(_LAST)
        return abs(float(np.median(changes[-_LAST:]))) > max(math.log1p(limit), _CERTAIN * error)

    def _release(self) -> None:
        for commands, _ in self._commands.values():
            commands.close()
        self._commands.clear()
        if self._kernel is not None:
            self._kernel.close()
        if self._array is not None:
            self._array.close()

    def close(self) -> None:
        if self._thread is not None:
            self._thread.close()
            self._thread = None
        self._release()
