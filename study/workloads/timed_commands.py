"""Command buffers that run repeatedly and are timed, on the device or, without timestamps, on the host; and the sweep
of caches between samples, a kernel that reads and rewrites more memory than caches hold. Also waiting for a submission
through another thread, as event loops and notifiers do.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns
from typing import Final

from ... import shaders
from ...base.closeable import Closeable
from ...hal_vulkan import CommandBuffer, DeviceType
from ...hal_vulkan.submit.prepared_submission import PreparedSubmission
from ...runtime.device import Device
from ...runtime.kernels.kernel import Kernel, PreparedDispatch
from ...status import DeadlineExceededError


class ThreadWait:
    """A thread that waits in vkWaitSemaphores on behalf of another thread, one at a time, and wakes it."""

    def __init__(self) -> None:
        self._wanted: deque[tuple[PreparedSubmission, int, float]] = deque()
        self._asked = threading.Semaphore(0)
        self._answered = threading.Semaphore(0)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="pumice study wait", daemon=True)
        self._thread.start()

    def wait(self, submission: PreparedSubmission, number: int, timeout: float) -> int:
        """Sleeps until the thread has seen the submission complete; returns the host's time right after."""
        self._wanted.append((submission, number, timeout))
        self._asked.release()
        done = self._answered.acquire(timeout=timeout + 10)
        awake = monotonic_ns()
        if not done:
            raise DeadlineExceededError(f"the waiting thread did not answer within {timeout + 10:g} s")
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return awake

    def _run(self) -> None:
        while True:
            self._asked.acquire()
            if not self._wanted:
                return
            submission, number, timeout = self._wanted.popleft()
            try:
                submission.wait(number, timeout)
            except BaseException as error:
                self._error = error
            self._answered.release()

    def close(self) -> None:
        self._asked.release()
        self._thread.join(5)


_MIN_BYTES: Final = 64 << 20


class TimedCommands(Closeable):
    """Commands that ``record`` records once. One thread at a time."""

    def __init__(self, device: Device, name: str, record: Callable[[CommandBuffer], object]) -> None:
        hal = device.vulkan
        self._on_device = hal.plan.timestamp_bits > 0
        self._commands = hal.create_command_buffer(timing="span" if self._on_device else False, name=name).begin()
        try:
            record(self._commands)
            submitted = (self._commands.end(),)
            self._submission = PreparedSubmission(hal.compute_queue, submitted)
        except BaseException:
            self._commands.close()
            raise

    @classmethod
    def dispatch(cls, device: Device, name: str, dispatch: PreparedDispatch) -> TimedCommands:
        return cls(device, name, lambda commands: commands.dispatch(*dispatch))

    def run(self) -> float:
        """Runs them and waits; returns the nanoseconds that they took."""
        number, called, _ = self._submission.submit()
        awake = self._submission.wait(number)
        return self._commands.timings()[0].duration_ns if self._on_device else float(awake - called)

    def close(self) -> None:
        self._commands.close()


def sweep_bytes(device: Device) -> int:
    """Returns the bytes of a sweep: 64 MiB, or four times a CPU's largest cache if that is more; at most the size of
    one binding.
    """
    most = device.profile.limits.max_storage_buffer_range // 256 * 256
    on_host = device.profile.device_type is DeviceType.CPU
    return min(max(_MIN_BYTES, 4 * _host_cache() if on_host else 0), most)


def _host_cache() -> int:
    """Returns the bytes of the host's largest cache; 0 if unknown (Linux has it in sysfs)."""
    largest = 0
    for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        try:
            text = file.read_text().strip()
            largest = max(largest, int(text.rstrip("KM")) << {"K": 10, "M": 20}.get(text[-1:], 0))
        except (OSError, ValueError):
            continue
    return largest


class CacheSweep:
    """Sweeps the caches of a device on request, by ``nbytes``; ``None`` for ``sweep_bytes``."""

    def __init__(self, device: Device, nbytes: int | None = None) -> None:
        self._array = device.zeros(-(-(nbytes or sweep_bytes(device)) // 16) * 4, "uint32")
        self._kernel = Kernel(device, shaders.spirv("timing/sweep"), name="sweep")
        count = min(65535, device.vulkan.groups_max[0], -(-self._array.nbytes // (16 * 64)))
        dispatch = self._kernel.prepare(self._array, groups=count)
        self._commands = TimedCommands.dispatch(device, "sweep", dispatch)

    def run(self) -> None:
        self._commands.run()

    def close(self) -> None:
        self._commands.close()
        self._kernel.close()
        self._array.close()
