"""The reference device: compiled programs in NumPy, one operation at a time, on any machine.

Calling sequence: ``Device()`` → ``create_buffer``/``create_command_buffer``/``create_semaphore`` →
``compute_queue.submit`` → ``close``. Thread rule: any thread.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Container

import numpy as np

from ..base.locks import RLock
from ..base.weak_registry import WeakRegistry
from ..hal.buffer import Buffer as AnyBuffer
from ..hal.clock import ClockCalibration
from ..hal.device import Device as AnyDevice
from ..hal.logical_device import LogicalDevice as AnyLogicalDevice
from ..hal.memory import BufferUsage, MemoryAccess, MemoryTypeFlags, contiguous
from ..hal.program import ProgramAllocator as AnyAllocator
from ..hal.queue import TimedQueue
from ..hal.semaphore import Semaphore as AnySemaphore
from ..hal.timeouts import CLOSE_TIMEOUT_S, deadline_after
from ..status import CancelledError, DeadlineExceededError, FailedPreconditionError, NotFoundError, UnimplementedError
from .buffer import HOST, USAGE, Buffer
from .command_buffer import CommandBuffer
from .executable import Executable
from .logical_device import LogicalDevice
from .program_format import FORMAT
from .queue import Queue
from .semaphore import Semaphore


class ProgramAllocator(AnyAllocator):
    """The memory of one VM context: NumPy's, freed with its last view."""

    def __init__(self, device: Device, timeline: AnySemaphore) -> None:
        self.device: Device = device
        self.timeline = timeline
        self.last_signal: tuple[int, int] = 0, 0
        self.is_closed = False

    def allocate(self, memory_type: int, usage: int, size: int) -> Buffer:
        """Returns a buffer with undefined contents; ``memory_type`` and ``usage`` are bits as in modules."""
        types = MemoryTypeFlags(memory_type) | HOST
        share = self.limit.share(max(size, 0)) if self.limit is not None else None
        buffer = self.device.create_buffer(size, memory_type=types, usage=BufferUsage(usage))
        if share is not None:
            weakref.finalize(buffer.memory, share.resize, 0)
        return self.adopt(buffer)

    def adopt(self, buffer: AnyBuffer) -> Buffer:
        assert isinstance(buffer, Buffer)
        buffer.owners = 1
        return buffer

    def trim(self) -> None:
        """Does nothing, as no memory is kept."""

    def close(self) -> None:
        """Only notes that it is closed, as no memory is kept."""
        self.is_closed: bool = True


class Device(LogicalDevice, AnyDevice):
    """A device in host memory."""

    compute_queue: Queue

    def __init__(self) -> None:
        super().__init__()
        self.compute_queue = Queue(self)
        self.on_change: Callable[[], None] = self.compute_queue.release
        _devices.add(self)

    def trim(self) -> int:
        """Frees nothing, as no memory is kept."""
        self.check_usable()
        for cache in self.caches:
            cache.trim()
        self.close_dropped()
        return 0

    def wait_idle(self, timeout: float | None = None) -> None:
        self.check_usable()
        deadline = deadline_after(timeout)
        with self.lock:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self.changed.wait_for(lambda: self.compute_queue.is_idle, left):
                raise DeadlineExceededError(f"the reference device was not idle within {timeout} s")

    # -- for users -----------------------------------------------------------------------------------

    def create_buffer(
        self,
        size: int,
        *,
        memory_type: MemoryTypeFlags = HOST,
        usage: BufferUsage = USAGE,
        access: MemoryAccess = MemoryAccess.ALL,
    ) -> Buffer:
        return Buffer.create(self, size, memory_type, usage, access)

    def import_buffer(self, data: memoryview | bytearray | bytes, *, copy: bool = True) -> Buffer:
        """Returns a buffer over host memory in place."""
        self.check_usable()
        view = contiguous(data)
        access = MemoryAccess.READ if view.readonly else MemoryAccess.ALL
        return Buffer(self, np.frombuffer(view, np.uint8), HOST, USAGE, access, imported=True)

    def create_semaphore(self, initial_value: int = 0, name: str | None = None) -> Semaphore:
        return Semaphore(self, initial_value, name)

    def create_command_buffer(
        self, *, one_shot: bool = False, binding_capacity: int = 0, name: str = "commands"
    ) -> CommandBuffer:
        return CommandBuffer(self, one_shot=one_shot, binding_capacity=binding_capacity, name=name)

    # -- for programs --------------------------------------------------------------------------------

    def query(self, category: str, key: str) -> int | None:
        match category, key:
            case "hal.device.id", _:
                return int(key == self.name)
            case "hal.executable.format", _:
                return int(key == FORMAT)
            case "hal.device" | "hal.dispatch", "concurrency":
                return 1
        return None

    def program_executable(self, format: str, data: memoryview, constants: bytes) -> Executable:
        self.check_usable()
        if format != FORMAT:
            raise NotFoundError(
                f"the reference device does not run executables of format {format!r}; it runs {FORMAT}. Compile for it "
                "(pumice compile --target reference)"
            )
        return Executable(self, data)

    def program_allocator(self, timeline: AnySemaphore) -> ProgramAllocator:
        return ProgramAllocator(self, timeline)

    def program_semaphore(self, name: str) -> Semaphore:
        return Semaphore(self, 0, name)

    def program_commands(
        self,
        *,
        one_shot: bool = False,
        binding_capacity: int = 0,
        name: str = "commands",
        peers: Container[AnyLogicalDevice] = (),
        timed: TimedQueue | None = None,
    ) -> CommandBuffer:
        return CommandBuffer(self, one_shot=one_shot, binding_capacity=binding_capacity, name=name, peers=peers)

    def read_clock(self) -> ClockCalibration:
        """Raises: the device has no clock."""
        raise UnimplementedError("the reference device has no timestamps; profile the program on a Vulkan device")

    def timed_queue(self, most_slowdown: float | None) -> TimedQueue:
        """Raises: the device has no clock."""
        raise UnimplementedError("the reference device has no timestamps; profile the program on a Vulkan device")

    def close(self, timeout: float | None = CLOSE_TIMEOUT_S) -> None:
        """Stops current work at the next operation and fails work not yet begun with CANCELLED; idempotent.

        It waits for nothing, whatever the ``timeout``.
        """
        error = CancelledError("the device was closed")
        self.is_closed = True
        self.compute_queue.drop(error)
        with self.lock:
            self.changed.notify_all()
        for semaphore in self.semaphores:
            semaphore.fail(error)

    def __repr__(self) -> str:
        return f"<{'closed ' if self.is_closed else ''}Device reference>"


_devices: WeakRegistry[Device] = WeakRegistry()


def _after_fork_in_child() -> None:
    """Abandons the devices: a child has no queue threads, but perhaps locks that they held."""
    error = FailedPreconditionError("this device was opened before the process was forked; open a device in the child")
    for device in _devices:
        device.lost = error
        device.abandoned = True
        device.lock = RLock()
        device.changed = threading.Condition(device.lock)
    _devices.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
