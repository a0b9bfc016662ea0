"""Command buffers that run repeatedly and are timed, on the device or, without timestamps, on the host; and the sweep
of caches between samples: a kernel that reads and rewrites more memory than caches hold.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from ... import shaders
from ...base.closeable import Closeable
from ...hal_vulkan import CommandBuffer, DeviceType
from ...hal_vulkan.submit.prepared_submission import PreparedSubmission
from ...runtime.device import Device
from ...runtime.kernels.kernel import Kernel, PreparedDispatch

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
        """Runs them and waits; the nanoseconds that they took."""
        number, called, _ = self._submission.submit()
        awake = self._submission.wait(number)
        return self._commands.timings()[0].duration_ns if self._on_device else float(awake - called)

    def close(self) -> None:
        self._commands.close()


def sweep_bytes(device: Device) -> int:
    """Returns the bytes of a sweep: 64 MiB, or four times a CPU's largest cache if that is more; at most what one
    binding holds.
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
