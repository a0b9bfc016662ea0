"""Cold caches: between samples a kernel reads and rewrites more memory than the caches hold."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ... import shaders
from ...hal_vulkan import DeviceType
from ...hal_vulkan.submit.prepared_submission import PreparedSubmission
from ...runtime.device import Device
from ...runtime.kernels.kernel import Kernel

__all__ = ["CacheSweep", "sweep_bytes"]

_LEAST: Final = 64 << 20


def sweep_bytes(device: Device) -> int:
    """How much a sweep touches where nobody says: at least 64 MiB, and on a CPU four times its largest cache, of what can be bound at once."""
    most = device.profile.limits.max_storage_buffer_range // 256 * 256
    wanted = _LEAST
    if device.profile.device_type is DeviceType.CPU:
        wanted = max(wanted, 4 * _host_cache())
    return min(wanted, most)


def _host_cache() -> int:
    """Bytes of the host's largest cache; 0 where the system does not tell (Linux does, in sysfs)."""
    largest = 0
    for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        try:
            text = file.read_text().strip()
            largest = max(largest, int(text.rstrip("KM")) << {"K": 10, "M": 20}.get(text[-1:], 0))
        except (OSError, ValueError):
            continue
    return largest


class CacheSweep:
    """Sweeps the caches of a device each time it is asked to; it waits until that is done."""

    def __init__(self, device: Device, nbytes: int | None = None) -> None:
        """Args: ``nbytes`` is how much is touched; ``None`` takes ``sweep_bytes``."""
        self._array = device.zeros(-(-(nbytes or sweep_bytes(device)) // 16) * 4, "uint32")
        self._kernel = Kernel(device, shaders.spirv("timing/sweep"), name="sweep")
        count = min(65535, device.hal.groups_max[0], -(-self._array.nbytes // (16 * 64)))
        pipeline, buffers, groups, push = self._kernel.prepare(self._array, groups=count)
        self._commands = device.hal.create_command_buffer(name="sweep").begin()
        self._commands.dispatch(pipeline, buffers, groups, push)
        self._submission = PreparedSubmission(device.hal.compute_queue, (self._commands.end(),))

    def run(self) -> None:
        """Sweeps, and waits for it."""
        number, _, _ = self._submission.submit()
        self._submission.wait(number)

    def close(self) -> None:
        """Gives the memory back; idempotent."""
        self._commands.close()
        self._kernel.close()
        self._array.close()
