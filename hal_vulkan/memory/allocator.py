"""Device memory: sub-allocations out of blocks, dedicated and imported allocations.

Thread rule: an allocator may be used from any thread; it locks.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ...base.lazy_dataclass import dataclass
from ...base.locks import RLock
from ...base.memory_budget import Share
from ...hal.memory import MemoryTypeFlags
from ...status import InvalidArgumentError, PumiceError, ResourceExhaustedError
from ..instance.logical_device import LogicalDevice, guarded
from ..instance.process import in_thread
from ..vulkan.functions import CData, chain, ffi, new
from ..vulkan.live_objects import live
from .address_table import TABLE_BYTES, AddressTable
from .block import Block, BlockFactory
from .memory_type import rank_memory_types
from .statistics import AllocatorStatistics, BlockStatistics, HeapBudget, describe_heaps, read_budgets
from .suballocator import GRANULARITY


class ImageMemory(NamedTuple):
    """An image's requirements on memory: a size multiple of ``alignment``, perhaps a block of its own."""

    image: CData
    alignment: int
    dedicated: bool


@dataclass(eq=False, slots=True)
class Allocation:
    """A range of a block; ``serial`` is unique among the allocations of its allocator.

    ``exports`` counts host views, which may outlive the buffer. ``views`` has the VkBufferView of each (offset, size,
    VkFormat), with its serial; they are destroyed with the range. ``share`` is its part of a program's memory limit, if
    there is one.
    """

    allocator: Allocator
    block: Block
    offset: int
    size: int
    serial: int
    exports: int = 0
    retired: bool = False
    views: dict[tuple[int, int, int], tuple[CData, int]] | None = None
    share: Share | None = None


class Allocator:
    """All memory of one device.

    Calling sequence: ``allocate`` or ``import_host`` → use → ``retire``, or ``free`` once no queue uses the range any
    more → ``trim`` → ``close``.
    """

    def __init__(self, device: LogicalDevice) -> None:
        self.device = device
        self._lock = RLock()
        self._factory = BlockFactory(device)
        self.on_block_freed: Callable[[int], None] | None = None  # called with the serial
        self._blocks: dict[int, list[Block]] = {}
        self._peak = 0
        self._allocated = 0
        self._heap_use = [0] * len(device.profile.memory_heaps)
        self._ranked: dict[MemoryTypeFlags, tuple[int, ...]] = {}
        self._live: dict[Allocation, None] = {}
        self._table: tuple[Allocation, AddressTable] | None = None
        self._table_users = 0
        self._dropped: deque[Allocation] = deque()
        self._view_lock = RLock()
        self._views = 0
        self._when_unviewed: Callable[[], None] | None = None

    def allocate(self, size: int, flags: MemoryTypeFlags) -> Allocation:
        """Returns a range of ``size`` bytes (the smallest range for 0) in memory of the requested kind.

        ``retire`` frees it.

        Raises:
            InvalidArgumentError: the size is negative, or no memory type of the device satisfies the flags.
            ResourceExhaustedError: no heap has room, even after emptying caches and waiting for work in flight; the
                message has the sizes.
        """
        device = self.device
        if device.lost is not None or device.is_closed:
            device.check_usable()
        if device.dropped or device.in_use:
            device.retire()
        try:
            return self._allocate(size, flags)
        except ResourceExhaustedError:
            self._make_room()
            return self._allocate(size, flags)

    def allocate_image(self, image: CData) -> Allocation:
        """Allocates memory for a VkImage and binds it; errors as for ``allocate``."""
        self.device.retire()
        try:
            return self._allocate_image(image)
        except ResourceExhaustedError:
            self._make_room()
            return self._allocate_image(image)

    @guarded
    def _allocate_image(self, image: CData) -> Allocation:
        device = self.device
        preferences = new("VkMemoryDedicatedRequirements")
        answer = chain(new("VkMemoryRequirements2"), preferences)
        device.fn.vkGetImageMemoryRequirements2(
            device.handle, new("VkImageMemoryRequirementsInfo2", image=image), answer
        )
        needed = answer.memoryRequirements
        profile, size = device.profile, needed.size
        order = rank_memory_types(
            profile.memory_types, profile.memory_heaps, needed.memoryTypeBits, MemoryTypeFlags.DEVICE_LOCAL
        )
        dedicated = bool(preferences.prefersDedicatedAllocation or size >= device.plan.dedicated_threshold)
        wanted = ImageMemory(image, needed.alignment, dedicated)
        with self._lock:
            allocation = self._allocate_slowly(size, order, dedicated, wanted)
        try:
            result = device.fn.vkBindImageMemory(device.handle, image, allocation.block.memory, allocation.offset)
            device.check(result, f"binding {size:,} bytes of memory to an image")
        except BaseException:
            self.free(allocation)
            raise
        return allocation

    def _make_room(self) -> None:
        for cache in self.device.caches:
            cache.trim()
        for queue in self.device.queues:  # memory that was closed while in use is freed
            queue.wait_idle()
        self.device.retire()

    @guarded
    def texel_view(self, allocation: Allocation, offset: int, size: int, vk_format: int) -> tuple[CData, int]:
        """Returns a VkBufferView of a range within an allocation, with its serial. It is kept with the allocation."""
        with self._lock:
            if allocation.views is None:
                allocation.views = {}
            view_and_serial = allocation.views.get((offset, size, vk_format))
            if view_and_serial is None:
                info = new(
                    "VkBufferViewCreateInfo",
                    buffer=allocation.block.buffer,
                    format=vk_format,
                    offset=offset,
                    range=size,
                )
                view = self.device.create("buffer view", info)
                view_and_serial = allocation.views[offset, size, vk_format] = view, self._factory.new_serial()
            return view_and_serial

    def new_serial(self) -> int:
        """Returns a serial for a bound object, never reused; descriptor sets are cached by it."""
        with self._lock:
            return self._factory.new_serial()

    def _allocate(self, size: int, flags: MemoryTypeFlags) -> Allocation:
        if size < 0:
            raise InvalidArgumentError(f"a buffer's size must not be negative, got {size}")
        with self.device.guard.lock, self._lock:
            if self.device.rundown.is_over:
                self.device.check_not_ended()
            if self._dropped:
                self._collect_dropped()
            order = self._ranked.get(flags)
            if order is None:
                profile = self.device.profile
                order = self._ranked[flags] = rank_memory_types(
                    profile.memory_types, profile.memory_heaps, self._factory.type_bits, flags
                )
            dedicated = size >= self.device.plan.dedicated_threshold
            allocation = None if dedicated else self._find(size, order[0])
            return allocation or self._allocate_slowly(size, order, dedicated)

    def _find(self, size: int, pool: int, alignment: int = GRANULARITY) -> Allocation | None:
        """Takes a range of an existing block, or returns ``None``."""
        for block in self._blocks.get(pool, ()):
            offset = block.suballocator.allocate(size, alignment)
            if offset is not None:
                return self._account(block, offset, size)
        return None

    def _allocate_slowly(
        self, size: int, order: tuple[int, ...], dedicated: bool, image: ImageMemory | None = None
    ) -> Allocation:
        limit = self.device.profile.limits
        largest = limit.max_memory_allocation_size
        if image is None:
            largest = min(largest, limit.max_buffer_size)
        if size > largest:
            raise ResourceExhaustedError(
                f"an allocation of {size:,} bytes is larger than this device allows ({largest:,} bytes, its "
                f"maxMemoryAllocationSize/maxBufferSize); split it. {self._describe_heaps()}"
            )
        failure: PumiceError | None = None
        for attempt in range(2):
            for type_index in order:
                if not dedicated:
                    pool, alignment = (type_index, GRANULARITY) if image is None else (~type_index, image.alignment)
                    allocation = self._find(size, pool, alignment)
                    if allocation is not None:
                        return allocation
                try:
                    block = self._make_block(size, type_index, dedicated, image)
                except ResourceExhaustedError as error:
                    failure = error
                    continue
                self._add(block)
                offset = block.suballocator.allocate(size)
                assert offset is not None
                return self._account(block, offset, size)
            if attempt == 0 and not self.trim():
                break
        raise ResourceExhaustedError(
            f"no memory for {size:,} bytes on {self.device.profile.name}: {failure.message if failure else ''}. "
            f"{self._describe_heaps()} Close arrays that are no longer used, or call trim().",
            vk_result=failure.vk_result if failure else None,
        )

    @guarded
    def import_host(self, address: int, size: int, owner: object) -> Allocation | None:
        """Gives the device access to host memory in place; ``None`` if the device or the alignment prevents it.

        Whole pages around it are imported; ``owner`` is kept alive until the allocation is freed.
        """
        alignment = self.device.plan.host_import_alignment
        if not alignment or size <= 0:
            return None
        start = address & ~(alignment - 1)
        end = -(-(address + size) // alignment) * alignment
        if (address - start) % self.device.profile.limits.min_storage_buffer_offset_alignment:
            return None
        with self._lock:
            block = self._factory.import_host(start, end - start, owner)
            if block is None:
                return None
            self._add(block)
            block.suballocator.allocate(end - start)
            return self._account(block, address - start, size)

    def retire(self, allocation: Allocation) -> None:
        """Frees a range once no queue uses it any more."""
        device = self.device
        device.note_closed()
        if not device.is_closed:
            device.defer(lambda: self.free(allocation))

    def free(self, allocation: Allocation) -> None:
        """Frees the range once the last host view is gone; closing the device also frees it."""
        with self.device.guard.lock, self._lock:
            if self.device.rundown.is_over:
                return
            self._collect_dropped()
            allocation.retired = True
            if not allocation.exports:
                self._free_now(allocation)

    def _free_now(self, allocation: Allocation) -> None:
        if allocation not in self._live:
            return
        block = allocation.block
        if allocation.views is not None:
            for view, serial in allocation.views.values():
                self.forget(serial)
                self.device.destroy("buffer view", view)
        counted = "allocation", self.device.number, allocation.serial
        # Only assignments, as in _account.
        del self._live[allocation]
        self._allocated -= allocation.size
        del live[counted]
        block.suballocator.free(0 if block.kind == "imported" else allocation.offset)
        if self._table is not None and block.device_address:
            self._table[1].remove(block.device_address + allocation.offset)
            self._table[1].publish()
        if block.suballocator.is_empty():
            others = (b for b in self._blocks[block.pool] if b is not block and b.kind == "shared")
            if block.kind != "shared" or any(b.suballocator.is_empty() for b in others):  # one empty block is kept
                self._destroy_block(block)

    @guarded
    def export(self, allocation: Allocation, offset: int, size: int) -> memoryview:
        """Returns a writable view of mapped memory, which keeps the allocation alive."""
        block = allocation.block
        if block.mapped is None:
            raise InvalidArgumentError("this memory is not host-visible: copy it, or allocate it HOST_VISIBLE")
        counted: list[None] = []

        def drop(_: object) -> None:
            if counted:
                counted.clear()
                self._drop_export(allocation)

        try:
            with self._lock, self._view_lock:
                allocation.exports += 1
                self._views += 1
                counted += (None,)
            pointer = ffi.gc(block.mapped + allocation.offset + offset, drop)
            return memoryview(ffi.buffer(pointer, size)).cast("B")
        except BaseException:
            drop(None)
            raise

    def _drop_export(self, allocation: Allocation) -> None:
        """Notes that a host view is gone. The garbage collector may call this at any point."""
        self._dropped.append(allocation)
        if self.device.abandoned:
            return
        with self._view_lock:
            self._views -= 1
            if not self._views and self._when_unviewed is not None:
                self._when_unviewed()

    def when_unviewed(self, action: Callable[[], None]) -> None:
        """Runs ``action`` when the last host view is gone: now, or later in a thread. Called by ``Device.close``."""
        with self._view_lock:
            if self._views:
                self._when_unviewed = in_thread(action)
                return
        action()

    @guarded
    def take_address_table(self) -> int:
        """Returns the device address of the table of live buffers, kept up to date until ``give_back_address_table``.

        0 on devices without ``bufferDeviceAddress``.
        """
        if not self.device.device_addresses:
            return 0
        with self._lock:
            if self._table is None:
                flags = MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.HOST_COHERENT | MemoryTypeFlags.DEVICE_VISIBLE
                allocation = self._allocate(TABLE_BYTES, flags)
                assert allocation.block.mapped is not None
                table = AddressTable(allocation.block.mapped + allocation.offset)
                for other in self._live:
                    if other.block.device_address:
                        table.add(other.block.device_address + other.offset, other.size)
                table.publish()
                self._table = allocation, table
            self._table_users += 1
            allocation = self._table[0]
            return allocation.block.device_address + allocation.offset

    def give_back_address_table(self) -> None:
        """Ends one use of the table."""
        with self.device.guard.lock, self._lock:
            if self.device.rundown.is_over:
                return
            self._table_users -= 1
            if not self._table_users and self._table is not None:
                allocation, self._table = self._table[0], None
                self._free_now(allocation)

    def _collect_dropped(self) -> None:
        while self._dropped:
            allocation = self._dropped.popleft()
            allocation.exports -= 1
            if allocation.retired and not allocation.exports:
                self._free_now(allocation)

    def _make_block(self, size: int, type_index: int, dedicated: bool, image: ImageMemory | None) -> Block:
        exact = -(-max(size, 1) // GRANULARITY) * GRANULARITY
        # A heap without room for a whole block may have room for a smaller one.
        whole = max(self.device.plan.block_size, exact)
        sizes = () if dedicated else (whole, max(whole // 4, exact))
        limit = self.device.profile.limits.max_memory_allocation_size
        kind = "dedicated" if dedicated else "shared"
        for candidate in sizes:
            with contextlib.suppress(ResourceExhaustedError):
                if image is not None:
                    return self._factory.make_for_images(min(candidate, limit), type_index, None)
                return self._factory.make(kind, min(candidate, limit), type_index)
        if image is not None:
            return self._factory.make_for_images(
                size if dedicated else exact, type_index, image.image if dedicated else None
            )
        return self._factory.make(kind, min(exact, limit), type_index)

    def _add(self, block: Block) -> None:
        self._blocks.setdefault(block.pool, []).append(block)
        self._heap_use[self.device.profile.memory_types[block.type_index].heap_index] += block.size

    def forget(self, serial: int) -> None:
        """Drops the cached sets that use the object with a serial, before it is destroyed."""
        if self.on_block_freed is not None:
            self.on_block_freed(serial)

    def _destroy_block(self, block: Block) -> None:
        self.forget(block.serial)
        self._blocks[block.pool].remove(block)
        self._factory.destroy(block)
        self._heap_use[self.device.profile.memory_types[block.type_index].heap_index] -= block.size

    def _account(self, block: Block, offset: int, size: int) -> Allocation:
        made = Allocation(self, block, offset, size, self._factory.new_serial())
        counted = "allocation", self.device.number, made.serial
        peak = max(self._peak, self._allocated + size)
        # Only assignments: all are made, or none.
        self._live[made] = None
        self._allocated += size
        self._peak = peak
        live[counted] = None
        if self._table is not None and block.device_address:
            self._table[1].add(block.device_address + offset, size)
            self._table[1].publish()
        return made

    def trim(self) -> int:
        """Frees unused blocks and returns their bytes."""
        with self.device.guard.lock, self._lock:
            if self.device.rundown.is_over:
                return 0
            self._collect_dropped()
            freed = 0
            for blocks in self._blocks.values():
                for block in [b for b in blocks if b.suballocator.is_empty()]:
                    freed += block.size
                    self._destroy_block(block)
            return freed

    def statistics(self) -> AllocatorStatistics:
        """Returns a snapshot of reserved and allocated memory, and its fragmentation."""
        with self._lock:
            self._collect_dropped()
            blocks = tuple(
                BlockStatistics(block.kind, block.type_index, block.suballocator.statistics())
                for blocks in self._blocks.values()
                for block in blocks
            )
            return AllocatorStatistics(
                reserved=sum(block.use.size for block in blocks),
                allocated=self._allocated,
                peak=self._peak,
                allocations=len(self._live),
                blocks=blocks,
            )

    def budgets(self) -> tuple[HeapBudget, ...]:
        """Returns the size, budget and usage of every heap, from VK_EXT_memory_budget where the device has it."""
        return read_budgets(self.device, self._heap_use)

    def _describe_heaps(self) -> str:
        return describe_heaps(self.budgets())

    def abandon(self) -> None:
        """Replaces the locks after a fork. Called by ``Device.abandon``."""
        self._lock = RLock()
        self._view_lock = RLock()

    def close(self) -> None:
        """Frees every block, with the allocations still alive; idempotent.

        ``Device.close`` calls it when no thread is inside the guard.
        """
        for block in list(self._factory.made.values()):
            self._factory.destroy(block)
        for allocation in list(self._live):
            live.pop(("allocation", self.device.number, allocation.serial), None)
        self._blocks.clear()
        self._table = None
        self._live.clear()
        self._allocated = 0
