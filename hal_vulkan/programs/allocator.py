"""Buffers that free their memory with their last reference, and the allocator that reuses it.

A compiled function allocates its results and transients at each call, in the same sizes. A ``ProgramAllocator`` keeps
the memory of closed buffers and uses it for the next buffer of the same kind once the device is past its last use. That
saves the native allocation and, since addresses repeat, the recording of commands (command_buffer.py).

Thread rule: an allocator may be used from any thread. Finalizers only append to a list.
"""

from __future__ import annotations

import contextlib
import threading
from bisect import insort
from collections import deque
from typing import Final, TypeAlias

from ...base.memory_budget import MemoryBudget, Share
from ...hal.buffer import Buffer as AnyBuffer
from ...hal.memory import BufferUsage, MemoryAccess, MemoryTypeFlags
from ...hal.program import ProgramAllocator as AnyAllocator
from ...hal.semaphore import Semaphore
from ...status import InvalidArgumentError, ResourceExhaustedError
from ..instance.logical_device import LogicalDevice
from ..memory.allocator import Allocation, Allocator
from ..memory.buffer import Buffer
from ..submit.queue import Queue

Kind: TypeAlias = tuple[int, int, int]  # bytes, memory type and usage as modules request them
Ready: TypeAlias = "tuple[int, ProgramBuffer]"  # address and buffer
Used: TypeAlias = "tuple[int, int, ProgramBuffer]"  # number and payload of the last submission that may use the buffer

_NEVER: Final = 1 << 64
_MIN_BUDGET: Final = 64 << 20
_HEAP_SHARE: Final = 16
_MAX_POOLS: Final = 256
_DEVICE_LOCAL: Final = 0x20
# Makes results readable in place if the host sees device memory, as for arrays.
_MAPPED: Final = MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.HOST_COHERENT | MemoryTypeFlags.HOST_CACHED


class ProgramBuffer(Buffer):
    """A buffer that closes with its last reference.

    Attributes:
        allocator: the allocator that takes the memory back.
        kind: the kind of buffers that may reuse the memory; ``None`` for memory that is not reused.
        owners: the number of the allocation's owners (``buffer.allocation.preserve``).
    """

    __slots__ = ("allocator", "kind", "owners")

    def __init__(
        self,
        allocator: ProgramAllocator,
        allocation: Allocation,
        size: int,
        memory_type: MemoryTypeFlags,
        usage: BufferUsage,
        access: MemoryAccess = MemoryAccess.ALL,
        kind: Kind | None = None,
    ) -> None:
        self.allocator: ProgramAllocator = allocator
        self.kind: Kind | None = kind
        self.owners: int = 1
        super().__init__(allocator.device, allocation, allocation.offset, size, memory_type, usage, access)

    def successor(self) -> ProgramBuffer:
        """Returns a new buffer over the memory of this buffer, which is closed.

        Copies attribute by attribute: a copy of ``__dict__`` takes twice as long, and slows each use of the new buffer.
        """
        new = ProgramBuffer.__new__(ProgramBuffer)
        new.device = self.device
        new._allocation = self._allocation
        new._closed = False
        new._pointer = self._pointer
        new.handle = self.handle
        new.block_serial = self.block_serial
        new.offset = self.offset
        new.size = self.size
        new.descriptor = self.descriptor
        new.bindable = self.bindable
        new.imported = self.imported
        new.memory_type = self.memory_type
        new.usage = self.usage
        new.access = self.access
        new.parent = None
        new.allocator = self.allocator
        new.kind = self.kind
        new.owners = 1
        return new

    def moved(self, by: str) -> ProgramBuffer:
        self.check_range(0, self.size, "moved")
        self._give_up(by)
        return self.successor()

    def close(self) -> None:
        """Gives the memory back, for reuse when queues no longer use it; idempotent."""
        if not self._closed:
            self._closed = True
            self.device.note_closed()
            self.allocator.returned.append(self)
            self.allocator.collect()

    def __del__(self) -> None:
        if not self._closed:
            allocator = self.allocator
            if self.kind is None or allocator.is_closed or self.size > allocator.budget:
                self.device.dropped.append(self)
            else:
                allocator.returned.append(self)


class ProgramAllocator(AnyAllocator):
    """The memory of one VM context; see the base class.

    Attributes:
        budget, kept: the largest number of bytes to keep, and the number kept now.
        returned: the closed buffers that ``collect`` has not processed yet.
    """

    device: LogicalDevice

    def __init__(self, memory: Allocator, queue: Queue, timeline: Semaphore) -> None:
        device = self.device = memory.device
        self._memory = memory
        self.timeline = timeline
        self.last_signal: tuple[int, int] = 0, 0
        self.returned: deque[ProgramBuffer] = deque()
        self.is_closed = False
        self._queue = queue
        self._stream = queue.stream
        self._lock = threading.Lock()
        # By kind: buffers that the device no longer uses, by address; those that it may still use, in submission order.
        self._pools: dict[Kind, tuple[list[Ready], deque[Used]]] = {}
        self.kept: int = 0
        local = max((heap.size for heap in device.profile.memory_heaps if heap.flags & 1), default=0)
        self.budget: int = max(_MIN_BUDGET, local // _HEAP_SHARE)
        device.caches.add(self)

    def allocate(self, memory_type: int, usage: int, size: int) -> ProgramBuffer:
        self.device.allocation_count += 1
        if self.returned:
            self.collect()
        kind = (size, memory_type, usage)
        if kind in self._pools:
            kept = self._take(kind)
            if kept is None:
                self._queue.retire()
                if self.returned:  # by one-shot commands that have retired
                    self.collect()
                kept = self._take(kind)
            if kept is not None:
                return kept.successor()
        if size < 0:
            raise InvalidArgumentError(f"a buffer's size must not be negative, got {size}")
        flags = MemoryTypeFlags(memory_type)
        if memory_type & _DEVICE_LOCAL and not self.device.staging:
            flags |= _MAPPED
        share = self._share(size, self.limit) if self.limit is not None else None
        allocation = self._memory.allocate(size, flags)
        allocation.share = share
        return ProgramBuffer(self, allocation, size, flags, BufferUsage(usage), kind=kind)

    def _share(self, size: int, limit: MemoryBudget) -> Share:
        """Takes memory from the program's budget; memory kept for reuse is freed before a request is refused."""
        try:
            return limit.share(size)
        except ResourceExhaustedError:
            self.trim()
            return limit.share(size)

    def _take(self, kind: Kind) -> ProgramBuffer | None:
        """Takes the kept buffer with the lowest address that the device no longer uses.

        So consecutive calls get the same memory, and overlapping calls get few combinations, for which commands are
        already recorded.
        """
        with self._lock:
            pool = self._pools.get(kind)
            if pool is None:
                return None
            ready, used = pool
            while used and (self._stream.reached >= used[0][0] or self.timeline.reached >= used[0][1]):
                buffer = used.popleft()[2]
                if not (ready or used):  # the usual case: there is no other buffer
                    self.kept -= buffer.size
                    return buffer
                insort(ready, (buffer.block_serial << 48 | buffer.offset, buffer))
            if not ready:
                return None
            self.kept -= kind[0]
            return ready.pop(0)[1]

    def adopt(self, buffer: AnyBuffer) -> ProgramBuffer:
        assert isinstance(buffer, Buffer)
        return ProgramBuffer(self, buffer._allocation, buffer.size, buffer.memory_type, buffer.usage, buffer.access)

    def collect(self) -> None:
        """Keeps or frees the memory of closed buffers. The caller holds no lock."""
        device, queue = self.device, self._queue
        returned, pools = self.returned, self._pools
        buffers: deque[ProgramBuffer] = deque()
        unwanted: list[ProgramBuffer] = []
        try:
            while returned:
                try:
                    buffers.append(returned.popleft())
                except IndexError:  # another thread took the last
                    break
            # Read after the buffers were taken: work that uses them was submitted, or held back, before they were
            # dropped.
            if (
                self.is_closed
                or device.pending
                or device.lost is not None
                or device.is_closed
                or (len(device.queues) > 1 and not all(q is queue or q.is_idle for q in device.queues))
            ):
                while buffers:
                    self._release(buffers.popleft())
                return
            number = queue.submitted
            signalled, payload = self.last_signal
            if number != signalled:
                payload = _NEVER
            with self._lock:
                while buffers:
                    buffer = buffers.popleft()
                    kind = buffer.kind
                    # Host views (NumPy arrays over the memory) may outlive the buffer.
                    if kind is None or buffer._allocation.exports or buffer.size > self.budget:
                        unwanted.append(buffer)
                        continue
                    self.kept += buffer.size
                    pool = pools.get(kind)
                    if pool is None:
                        pool = pools[kind] = ([], deque())
                    pool[1].append((number, payload, buffer))
        except BaseException:
            returned.extend(buffers)  # after Ctrl-C the next call handles them
            raise
        for buffer in unwanted:
            self._release(buffer)
        if self.kept > self.budget or len(pools) > _MAX_POOLS:
            self.trim(self.budget // 2)

    def _release(self, buffer: ProgramBuffer) -> None:
        if not self.device.abandoned:
            buffer._closed = True
            buffer._allocation.share = None
            self._memory.retire(buffer._allocation)

    def trim(self, keep: int = 0) -> None:
        """Frees kept memory down to ``keep`` bytes."""
        with contextlib.suppress(IndexError):  # another thread took the last
            while self.returned:
                self._release(self.returned.popleft())
        unwanted: list[ProgramBuffer] = []
        with self._lock:
            for kind, (ready, used) in list(self._pools.items()):
                while not keep or self.kept > keep or len(self._pools) > _MAX_POOLS:
                    if not ready and not used:
                        del self._pools[kind]
                        break
                    buffer = (ready or used).pop()[-1]
                    self.kept -= buffer.size
                    unwanted.append(buffer)
        for buffer in unwanted:
            self._release(buffer)

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed: bool = True
            self.trim()
