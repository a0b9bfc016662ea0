"""Buffers: ranges of device memory, and their operations on the host."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

from ..base.closeable import Closeable
from ..status import ClosedError, OutOfRangeError, PermissionDeniedError
from .logical_device import LogicalDevice
from .memory import BufferUsage, MemoryAccess, MemoryTypeFlags

_MAX_PAIRS: Final = 64
"""The most pairs of buffers for which comparing all pairs is the fastest way to find an overlap."""


class Buffer(Closeable):
    """``size`` bytes of device memory.

    Attributes:
        device: the owner of the memory.
        offset: the offset in bytes within the memory.
        memory_type: the memory flags requested at creation.
        usage: the allowed uses by queues.
        access: the access of host and kernels: read, write, or both.
        parent: the buffer of which this is a subspan, or ``None``.
        bindable: whether dispatches can bind it directly.
        descriptor: the number of the memory range on its device, which is never reused: a key for caches.
        owners: the program's count of owners of the buffer's memory; ``None`` for other buffers.
        imported: whether the memory is the host's own (``Device.import_buffer``).
        moved_by: the name of the call that took over its memory (``moved``), for messages; else empty.
        is_claimed: whether a call in flight will take over its memory.
    """

    device: LogicalDevice
    offset: int
    size: int
    memory_type: MemoryTypeFlags
    usage: BufferUsage
    access: MemoryAccess
    parent: Buffer | None
    bindable: bool
    descriptor: bytes
    owners: int | None = None
    imported: bool = False
    moved_by: str = ""
    is_claimed: bool = False
    _closed: bool

    @property
    def is_closed(self) -> bool:
        """Whether this buffer, its parent, or the device was closed."""
        if self._closed or self.device.is_closed:
            return True
        parent = self.parent
        while parent is not None:
            if parent._closed:
                return True
            parent = parent.parent
        return False

    @property
    def device_address(self) -> int:
        """The address of the first byte on the device; 0 on devices without addresses."""
        return 0

    @property
    def moved_text(self) -> str:
        """``moved_by`` of the parent, or its own."""
        buffer: Buffer | None = self
        while buffer is not None and not buffer.moved_by:
            buffer = buffer.parent
        return "" if buffer is None else buffer.moved_by

    def overlaps(self, other: Buffer) -> bool:
        """Whether the two share bytes of memory."""
        return (
            0 < other.offset + other.size - self.offset < self.size + other.size
            and self.descriptor[24:] == other.descriptor[24:]
            and self.device is other.device
            and bool(self.size and other.size)
        )

    @property
    @abstractmethod
    def host_visible(self) -> bool:
        """Whether ``map``, ``read`` and ``write`` work without a copy on a queue."""

    @abstractmethod
    def subspan(self, offset: int, size: int | None = None) -> Buffer:
        """Returns a buffer over bytes ``[offset, offset + size)`` of this one; ``None`` means up to its end.

        It shares this buffer's memory and keeps it alive; closing it leaves this buffer open.

        Raises:
            OutOfRangeError: the range goes past this buffer's end.
        """

    @abstractmethod
    def shared(self) -> Buffer:
        """Returns this buffer for programs, which may keep it longer than its user.

        The memory is freed with the last reference to the result, not with this buffer; closing it closes both.
        """

    @abstractmethod
    def moved(self, by: str) -> Buffer:
        """Moves the memory to a new buffer, which frees it; this buffer, which must not be a subspan, is closed.

        The buffer that it was shared from is also closed, as are their subspans. Work in flight continues. ``by`` is
        the call that took the memory, for messages.

        Raises:
            ClosedError: the buffer was closed.
        """

    @abstractmethod
    def map(self, offset: int = 0, size: int | None = None) -> memoryview:
        """Returns a writable view of the bytes, in place, for host-visible memory; it keeps the memory alive.

        Raises:
            OutOfRangeError: the range goes past the end.
            FailedPreconditionError: the memory is not host-visible.
            PermissionDeniedError: the buffer's access bits allow no writing.
        """

    @abstractmethod
    def write(self, data: bytes | bytearray | memoryview, offset: int = 0) -> None:
        """Copies the bytes of a C-contiguous buffer from the host to this buffer; errors as for ``map``."""

    @abstractmethod
    def read(self, offset: int = 0, size: int | None = None) -> bytes:
        """Copies bytes out to the host; errors as for ``map``."""

    @abstractmethod
    def read_into(self, target: memoryview, offset: int = 0) -> None:
        """Copies ``target.nbytes`` bytes out to the host, into writable C-contiguous memory."""

    @abstractmethod
    def flush(self, offset: int = 0, size: int | None = None) -> None:
        """Makes host writes visible to the device; does nothing on coherent memory."""

    @abstractmethod
    def invalidate(self, offset: int = 0, size: int | None = None) -> None:
        """Makes device writes visible to the host; does nothing on coherent memory."""

    def check_range(self, offset: int, size: int | None, subject: str) -> int:
        """Returns the size of ``subspan(offset, size)``; raises for a closed buffer, or bytes outside it."""
        if self.is_closed:
            text = self.moved_text or f"the {'device of the ' if self.device.is_closed else ''}buffer was closed"
            raise ClosedError(f"{subject}: {text}")
        if self.device.abandoned:
            self.device.check_usable()
        if size is None:
            size = self.size - offset
        if offset < 0 or size < 0 or offset + size > self.size:
            raise OutOfRangeError(
                f"{subject}: bytes [{offset}, {offset + size}) do not lie within the buffer of {self.size} bytes"
            )
        return size

    def check_usage(self, needed: BufferUsage, subject: str) -> None:
        """Raises PermissionDeniedError if the buffer was created without a usage."""
        if not self.usage & needed:
            raise PermissionDeniedError(f"{subject}: the buffer was created without usage {needed.name}")

    def check_target(self, subject: str) -> None:
        """Raises PermissionDeniedError unless commands may write the buffer."""
        self.check_usage(BufferUsage.TRANSFER_TARGET, subject)
        if not self.access & MemoryAccess.WRITE:
            raise PermissionDeniedError(f"{subject}: the buffer may only be read: its access bits have no WRITE")

    def _check_writable(self) -> None:
        # The usual access first, as operations of enumerations are slow.
        if self.access is not MemoryAccess.ALL and not self.access & MemoryAccess.WRITE:
            raise PermissionDeniedError("this buffer may not be written by the host: its access bits have no WRITE")


def first_overlap(buffers: Sequence[Buffer | None], others: Sequence[Buffer | None] = ()) -> tuple[int, int] | None:
    """Returns the indices of two overlapping buffers, of which one is in ``buffers``, or ``None``.

    The indices of ``others`` follow those of ``buffers``; the lower one comes first. Its cost is that of sorting.
    """
    count, every = len(buffers), [*buffers, *others]
    if count * len(every) <= _MAX_PAIRS:
        for first, buffer in enumerate(buffers):
            for two in range(first + 1, len(every)):
                other = every[two]
                if buffer is not None and other is not None and buffer.overlaps(other):
                    return first, two
        return None
    memories: dict[tuple[LogicalDevice, bytes], list[tuple[int, int, int]]] = {}
    for number, buffer in enumerate(every):
        if buffer is not None and buffer.size:
            spans = memories.setdefault((buffer.device, buffer.descriptor[24:]), [])
            spans.append((buffer.offset, buffer.offset + buffer.size, number))
    for spans in memories.values():
        # The farthest-reaching span of each kind among those that begin no later.
        reach, last = [0, 0], [0, 0]
        for begin, end, number in sorted(spans) if len(spans) > 1 else ():
            is_other = number >= count
            for kind in (0,) if is_other else (0, 1):
                if reach[kind] > begin:
                    first, two = sorted((number, last[kind]))
                    return first, two
            if end > reach[is_other]:
                reach[is_other], last[is_other] = end, number
    return None
