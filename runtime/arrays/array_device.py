"""The base of devices, with all that arrays and kernels need: memory, ordered work, copies to and from the host.

Everything submitted runs in the order of submission. ``submit`` returns before the work is done, with a *payload*: the
value of the compute queue's timeline semaphore at which the work is done.

Thread rule: any thread.
"""

from __future__ import annotations

import math
import threading
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from ...base.closeable import Closeable
from ...base.weak_registry import WeakRegistry
from ...hal.buffer import Buffer
from ...hal.command_buffer import CommandBuffer
from ...hal.device import Device as HalDevice
from ...hal.memory import MemoryTypeFlags
from ...hal.timeouts import CLOSE_TIMEOUT_S
from ...status import InvalidArgumentError
from ...waits.wait_mode import WaitMode, waits
from .spec import raw_bytes
from .verdict import Verdicts

if TYPE_CHECKING:
    from ...hal.semaphore import Semaphore
    from ...hal_vulkan import Device as VulkanDevice

# Coherent, because views of it (DeviceArray.map, DLPack) offer no point for a flush or invalidation.
_MAPPED: Final = (
    MemoryTypeFlags.DEVICE_LOCAL
    | MemoryTypeFlags.HOST_VISIBLE
    | MemoryTypeFlags.HOST_COHERENT
    | MemoryTypeFlags.HOST_CACHED
)
UPLOAD: Final = MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE
"""Staging memory that the host writes."""
READBACK: Final = UPLOAD | MemoryTypeFlags.HOST_CACHED
"""Staging memory that the host reads."""


array_devices: Final[WeakRegistry[ArrayDevice]] = WeakRegistry()
"""The devices of this process, closed ones included."""


class ArrayDevice(Closeable):
    """The base of ``pumice.Device``, which adds the methods that create arrays and kernels.

    Attributes:
        hal, name, uri: the same as in ``pumice.Device``.
        staging: whether the memory of arrays is hidden from the host, so that copies go through staging memory.
        mark_lock: a lock that is held while arrays and images note payloads and fences.
        kept: the objects that other parts keep with the device, by class; closed with it.
        verdicts: the verdicts on work not yet known to be good; see verdict.py.
        stream: the semaphore of the compute queue, whose payloads mark the end of work.
    """

    def __init__(self, hal_device: HalDevice) -> None:
        self.hal = hal_device
        self.name: str = hal_device.name
        self.uri: str = hal_device.uri
        self.staging: bool = hal_device.staging
        self.mark_lock: threading.Lock = threading.Lock()
        self.kept: dict[type, Closeable] = {}
        self.verdicts: Verdicts = Verdicts(hal_device)
        self.stream: Semaphore = hal_device.compute_queue.stream
        self._memory = MemoryTypeFlags.DEVICE_LOCAL if self.staging else _MAPPED
        array_devices.add(self)

    @property
    @abstractmethod
    def vulkan(self) -> VulkanDevice:
        """See ``pumice.Device``."""

    # -- order ---------------------------------------------------------------------------------------

    def submit(self, commands: Sequence[CommandBuffer]) -> int:
        """Submits command buffers to the compute queue; returns the payload that marks their end. For the runtime."""
        if self.hal.dropped:
            self.hal.close_dropped()
        return self.hal.compute_queue.submit(commands)

    def wait(self, payload: int | None = None, timeout: float | None = None, *, wait: WaitMode | None = None) -> None:
        """Waits until everything submitted so far (or up to ``payload``) is done.

        Args:
            payload: the payload from ``submit``; ``None`` means everything.
            timeout: the longest wait in seconds; ``None`` waits forever.
            wait: the wait mode: ``"adaptive"``, ``"block"`` or ``"spin"``, see ``open_device``; ``None`` means the
                device's mode.

        Raises:
            InvalidArgumentError: an argument is not a payload, timeout or wait mode.
            DeadlineExceededError: the time passed first.
            DeviceLostError: the device was lost.
            DataLossError: the driver cut a kernel's loops, and this was not raised before (docs/trusting-results.md).
        """
        check_timeout(timeout)
        if payload is None:
            payload = self.submitted
        elif isinstance(payload, bool) or not isinstance(payload, int) or not 0 <= payload <= self.stream.scheduled:
            raise InvalidArgumentError(
                f"payload is what submit() returned, an int of at most {self.stream.scheduled}; got {payload!r}"
            )
        with waits(wait):
            self.stream.wait(payload, timeout)
        self.hal.collect_reports()
        self.verdicts.check_all(payload)

    def finish(self, payload: int, timeout: float | None = None) -> None:
        """Blocks until work up to ``payload`` is done, and raises the failures that its shaders report. For the
        runtime.
        """
        self.stream.wait(payload, timeout)
        if self.verdicts:
            self.verdicts.check(payload)

    def reach(self, payload: int) -> None:
        """Blocks until work up to ``payload`` is done, and ignores reports of shaders. For the runtime."""
        self.stream.wait(payload)

    @property
    def submitted(self) -> int:
        """The payload of the last submission. For the runtime."""
        return self.stream.scheduled

    def has_reached(self, payload: int) -> bool:
        """Whether work up to ``payload`` is done. For the runtime."""
        return self.stream.has_reached(payload)

    # -- memory --------------------------------------------------------------------------------------

    def create_buffer(self, nbytes: int) -> Buffer:
        """Allocates memory for an array. For the runtime."""
        return self.hal.create_buffer(nbytes, memory_type=self._memory)

    def copies(self, pairs: Iterable[tuple[Buffer, Buffer]], name: str, *, one_shot: bool = True) -> CommandBuffer:
        """Returns commands that copy the first buffer of each pair to the second. For the runtime."""
        commands = self.hal.create_command_buffer(one_shot=one_shot, name=name).begin()
        try:
            for source, target in pairs:
                commands.copy(source, target)
            return commands.end()
        except BaseException:
            commands.close()
            raise

    def copy(self, source: Buffer, target: Buffer, name: str = "copy") -> int:
        """Copies a buffer on the device; returns the payload. For the runtime."""
        commands = self.copies(((source, target),), name)
        try:
            return self.submit((commands,))
        except BaseException:
            commands.close()
            raise

    def upload(self, data: np.ndarray, target: Buffer) -> int:
        """Copies a C-contiguous array to a buffer; returns the payload, 0 if the host wrote it directly. For the
        runtime.
        """
        if not data.nbytes:
            return 0
        raw = raw_bytes(data)
        if target.host_visible:
            target.write(raw)
            return 0
        with self.hal.create_buffer(data.nbytes, memory_type=UPLOAD) as staged:
            staged.write(raw)
            return self.copy(staged, target, "upload")

    def download(self, source: Buffer, out: np.ndarray) -> None:
        """Copies a buffer to a C-contiguous array of its size, after all work submitted so far. For the runtime."""
        if not out.nbytes:
            return
        raw = raw_bytes(out)
        if source.host_visible:
            source.read_into(raw)
            return
        with self.hal.create_buffer(out.nbytes, memory_type=READBACK) as staged:
            self.reach(self.copy(source, staged, "download"))
            staged.read_into(raw)

    # -- end -----------------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        return self.hal.is_closed

    def close(self, timeout: float | None = CLOSE_TIMEOUT_S) -> None:
        """Waits for work in flight and frees everything, including arrays and kernels; idempotent.

        Calls in other threads end first, and later ones raise ClosedError. After Ctrl-C or an error the device refuses
        every use, and another ``close`` continues.

        Args:
            timeout: the seconds for work in flight and for other threads; ``None`` waits forever.

        Raises:
            DeadlineExceededError: work or threads did not end in time. Nothing is freed; the message lists the objects
                left behind.
        """
        if not (self.hal.is_closed or self.hal.abandoned):
            for cache in self.hal.caches:  # their views of memory would keep the device alive
                cache.trim()
            for kept in self.kept.values():
                kept.close()
        self.hal.close(timeout)

    def __repr__(self) -> str:
        state = ", closed" if self.is_closed else ""
        return f"<pumice.Device {self.name!r} ({self.hal.kind}{state})>"


def check_timeout(timeout: object) -> None:
    """Raises InvalidArgumentError unless it is ``None`` or a number of seconds."""
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, (int, float, np.number)) or math.isnan(timeout)
    ):
        raise InvalidArgumentError(f"timeout is a number of seconds or None, got {timeout!r}")
