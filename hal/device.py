"""Devices and their queues."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Container

from .buffer import Buffer
from .clock import ClockCalibration
from .command_buffer import CommandBuffer
from .logical_device import LogicalDevice
from .memory import BufferUsage, MemoryAccess, MemoryTypeFlags
from .program import Executable, ProgramAllocator, ProgramCommandBuffer
from .queue import Queue, TimedQueue
from .semaphore import Semaphore
from .timeouts import CLOSE_TIMEOUT_S


class Device(LogicalDevice):
    """A device: the owner of everything made from it.

    Attributes:
        compute_queue: the queue for all work of programs.
    """

    compute_queue: Queue

    @abstractmethod
    def trim(self) -> int:
        """Frees unused memory, and returns its bytes. It may wait for work."""

    @abstractmethod
    def close(self, timeout: float | None = CLOSE_TIMEOUT_S) -> None:
        """Ends work and destroys everything made from the device; idempotent.

        Args:
            timeout: the seconds for current work and for other threads; ``None`` waits forever.

        Raises:
            DeadlineExceededError: the work or threads did not end in time; another ``close`` continues.
        """

    @abstractmethod
    def wait_idle(self, timeout: float | None = None) -> None:
        """Blocks until every queue is idle; DeadlineExceededError if the time (in seconds) passes first."""

    # -- for users -----------------------------------------------------------------------------------

    @abstractmethod
    def create_buffer(
        self,
        size: int,
        *,
        memory_type: MemoryTypeFlags = MemoryTypeFlags.DEVICE_LOCAL,
        usage: BufferUsage = BufferUsage.DEFAULT
        | BufferUsage.DISPATCH_UNIFORM_READ
        | BufferUsage.DISPATCH_INDIRECT_PARAMETERS,
        access: MemoryAccess = MemoryAccess.ALL,
    ) -> Buffer:
        """Returns a buffer of ``size`` bytes; its contents are undefined.

        Raises:
            InvalidArgumentError: the size is negative, or the device does not have the memory type.
            ResourceExhaustedError: there is no memory.
        """

    @abstractmethod
    def import_buffer(self, data: memoryview | bytearray | bytes, *, copy: bool = True) -> Buffer | None:
        """Returns a buffer over host memory in place, if the device and the alignment allow it.

        Args:
            data: the memory, C-contiguous; kept alive by the buffer. Read-only memory is imported with read access
                only.
            copy: whether to make a host-visible copy if it cannot be imported, instead of returning ``None``.
        """

    @abstractmethod
    def create_semaphore(self, initial_value: int = 0, name: str | None = None) -> Semaphore:
        """Returns a timeline semaphore with an initial payload."""

    @abstractmethod
    def create_command_buffer(
        self, *, one_shot: bool = False, binding_capacity: int = 0, name: str = "commands"
    ) -> CommandBuffer:
        """Returns a command buffer for the compute queue."""

    # -- for programs --------------------------------------------------------------------------------

    @abstractmethod
    def query(self, category: str, key: str) -> int | None:
        """Answers a program's query (``hal.device.query``); ``None`` for an unknown one."""

    @abstractmethod
    def program_executable(self, format: str, data: memoryview, constants: bytes) -> Executable:
        """Returns the executable of a blob.

        Args:
            format: the blob's format.
            data: the blob.
            constants: the values of the executable's constants 0, 1, …, as u32.

        Raises:
            NotFoundError: the device does not run the format; the message lists the formats that it runs.
            InvalidArgumentError: the blob is damaged.
        """

    @abstractmethod
    def program_allocator(self, timeline: Semaphore) -> ProgramAllocator:
        """Returns the memory of a VM context whose submissions signal a timeline."""

    @abstractmethod
    def program_semaphore(self, name: str) -> Semaphore:
        """Returns a semaphore at 0 that is closed with its last reference."""

    @abstractmethod
    def program_commands(
        self,
        *,
        one_shot: bool = False,
        binding_capacity: int = 0,
        name: str = "commands",
        peers: Container[LogicalDevice] = (),
        timed: TimedQueue | None = None,
    ) -> ProgramCommandBuffer:
        """Returns a command buffer for programs.

        ``peers`` are the other devices whose buffers it accepts, ``timed`` is the queue that times it.
        """

    @abstractmethod
    def read_clock(self) -> ClockCalibration:
        """Relates the device's clock to ``time.monotonic_ns``; UnimplementedError if it has no timestamps."""

    @abstractmethod
    def timed_queue(self, most_slowdown: float | None) -> TimedQueue:
        """Returns a queue that times submissions, at a cost of at most the share ``most_slowdown`` of the time;
        ``None`` sets no limit.

        Raises:
            UnimplementedError: the device has no timestamps.
        """
