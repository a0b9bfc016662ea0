"""Copies of memory: by copy commands on the device, or by the host into and out of mapped memory."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic_ns
from typing import Any, Final

import numpy as np

from ...hal_vulkan import Buffer, CommandBuffer, DeviceType, MemoryTypeFlags
from ...hal_vulkan.submit.prepared_submission import PreparedSubmission
from ...status import InvalidArgumentError
from .clock import RawSample
from .workload import Load, Workload, WorkloadContext

MEMORY: Final[Mapping[str, MemoryTypeFlags]] = {
    "device_local": MemoryTypeFlags.DEVICE_LOCAL,
    "mapped": MemoryTypeFlags.DEVICE_LOCAL | MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.HOST_COHERENT,
    "host_local": MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE,
    "host_cached": MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE | MemoryTypeFlags.HOST_CACHED,
}
"""Memory by name; ``host_local`` may be write-combined."""


class CopyWorkload(Workload):
    """One copy; ``settings`` are those of kind ``copy`` in ``target_settings``."""

    def __init__(self, settings: Mapping[str, Any], context: WorkloadContext) -> None:
        super().__init__(context)
        self._direction: str = settings["direction"]
        self._commands: CommandBuffer | None = None
        self._buffers: list[Buffer] = []
        nbytes, offset, batch = settings["bytes"], settings["offset"], settings["batch"]
        memory = settings["memory"] or "host_local"
        if memory not in MEMORY:
            raise InvalidArgumentError(f"memory is one of {', '.join(MEMORY)}; got {memory!r}")
        other = MEMORY[memory]
        self._offset: int = offset
        self._data = bytearray(np.arange(nbytes, dtype=np.uint32).astype(np.uint8).tobytes())
        self._batch: int = batch
        hal = self.device.vulkan
        try:
            if self._direction in ("host_write", "host_read"):
                if not other & MemoryTypeFlags.HOST_VISIBLE and other is MEMORY["device_local"]:
                    raise InvalidArgumentError(
                        f"direction {self._direction!r} needs memory that the host sees: "
                        '"mapped", "host_local" or "host_cached"'
                    )
                self._buffers = [hal.create_buffer(nbytes + offset, memory_type=other)]
                self._buffers[0].write(self._data, offset)
                return
            device = MEMORY["device_local"]
            kinds = {
                "host_to_device": (other, device),
                "device_to_host": (device, other),
                "device_to_device": (device, device if settings["memory"] is None else other),
            }[self._direction]
            self._buffers = [hal.create_buffer(nbytes + offset, memory_type=kind) for kind in kinds]
            source, target = self._buffers
            hal.compute_queue.fill(source, b"\x5a", 0, nbytes + offset // 4 * 4)
            hal.compute_queue.wait_idle()
            self._timed = hal.plan.timestamp_bits > 0
            commands = self._commands = hal.create_command_buffer(
                timing="span" if self._timed else False, name="copy"
            ).begin()
            for index in range(batch):
                if index:
                    commands.execution_barrier()
                commands.copy(source, target, nbytes, source_offset=offset, target_offset=offset)
            self._submission = PreparedSubmission(hal.compute_queue, (commands.end(),))
        except BaseException:
            self.close()
            raise

    @property
    def load(self) -> Load:
        """The load: software devices copy in one thread, others in many, a workgroup for each 16 KiB."""
        total = sum(buffer.size for buffer in self._buffers) * self._batch
        groups = 1 if self.device.profile.device_type is DeviceType.CPU else -(-total // (16 << 10))
        return Load(groups, 64, total, timed=self._commands is not None and self._timed)

    def sample(self) -> RawSample:
        before = self._context.usage()
        if self._commands is None:
            raw = self._host_copy()
        else:
            number, called, returned = self._submission.submit()
            awake = self._submission.wait(number, self._context.timeout)
            raw = RawSample(
                called,
                called=called,
                returned=returned,
                awake=awake,
                dispatches=self._batch,
                barrier="single" if self._batch == 1 else "between",
            )
            if self._timed:
                timing = self._commands.timings()[0]
                raw = raw._replace(device_begin=timing.begin_ticks, device_end=timing.end_ticks, stage=timing.stage)
        preemptions, cpu = self._context.usage_since(before)
        return raw._replace(preemptions=preemptions, cpu=cpu)

    def _host_copy(self) -> RawSample:
        buffer, offset, data = self._buffers[0], self._offset, self._data
        view = memoryview(data)
        begin = monotonic_ns()
        if self._direction == "host_write":
            for _ in range(self._batch):
                buffer.write(view, offset)
            return RawSample(begin, updated=monotonic_ns(), dispatches=self._batch, barrier="between")
        for _ in range(self._batch):
            buffer.read_into(view, offset)
        return RawSample(begin, done=monotonic_ns(), dispatches=self._batch, barrier="between")

    def close(self) -> None:
        if self._commands is not None:
            self._commands.close()
        for buffer in self._buffers:
            buffer.close()
