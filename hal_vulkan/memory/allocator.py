"""Device memory: blocks, sub-allocations out of them, dedicated and imported allocations.

Each block is one VkDeviceMemory with **one VkBuffer over all of it** that carries every usage compute
needs, and is mapped once for good where the host can see it. A ``Buffer`` is then an offset and a size in a
block: making one costs no native call. ``docs/design/hal.md`` argues the choice.

Thread rule: an allocator may be used from any thread; it locks.
"""

from __future__ import annotations

import mmap
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...status import InvalidArgumentError, PumiceError, ResourceExhaustedError
from ..vulkan.functions import CData, chain, ffi, handle_value, new
from ..vulkan.live_objects import created, destroyed
from .memory_type import MemoryTypeFlags, rank_memory_types
from .suballocator import Suballocator, SuballocatorStatistics

if TYPE_CHECKING:
    from ..device import Device

__all__ = ["Allocation", "Allocator", "AllocatorStatistics", "Block", "BlockStatistics", "HeapBudget"]

_TRANSFER_SRC: Final = 0x1
_TRANSFER_DST: Final = 0x2
_UNIFORM: Final = 0x10
_STORAGE: Final = 0x20
_INDIRECT: Final = 0x100
_DEVICE_ADDRESS: Final = 0x20000

_PROPERTY_HOST_VISIBLE: Final = 0x2
_PROPERTY_HOST_COHERENT: Final = 0x4
_HANDLE_HOST_ALLOCATION: Final = 0x80
_ALLOCATE_DEVICE_ADDRESS: Final = 0x2
_SHARING_CONCURRENT: Final = 1
_FEATURE_DEDICATED_ONLY: Final = 0x1
_FEATURE_IMPORTABLE: Final = 0x4


@dataclass(frozen=True, slots=True)
class BlockStatistics:
    """One VkDeviceMemory."""

    kind: str
    memory_type_index: int
    use: SuballocatorStatistics


@dataclass(frozen=True, slots=True)
class HeapBudget:
    """One memory heap.

    Attributes:
        size: bytes of the heap.
        budget: bytes this process may use by the driver's estimate (VK_EXT_memory_budget); the size without it.
        usage: bytes this process uses; what pumice allocated, without the extension.
        device_local: whether the heap is the device's own memory.
        measured: whether budget and usage come from the driver.
    """

    size: int
    budget: int
    usage: int
    device_local: bool
    measured: bool


@dataclass(frozen=True, slots=True)
class AllocatorStatistics:
    """A snapshot of all device memory that pumice holds.

    Attributes:
        reserved: bytes of VkDeviceMemory held.
        allocated: bytes handed out of it.
        peak: the most bytes ever handed out at once.
        allocations: live allocations.
        blocks: one entry a VkDeviceMemory.
    """

    reserved: int
    allocated: int
    peak: int
    allocations: int
    blocks: tuple[BlockStatistics, ...]


class Block:
    """One VkDeviceMemory with one VkBuffer over it."""

    __slots__ = (
        "address",
        "buffer",
        "coherent",
        "device_address",
        "handle_value",
        "kind",
        "mapped",
        "memory",
        "owner",
        "serial",
        "size",
        "suballocator",
        "type_index",
    )

    def __init__(self, kind: str, size: int, type_index: int, serial: int) -> None:
        self.kind = kind  # "shared", "dedicated" or "imported"
        self.size = size
        self.type_index = type_index
        self.serial = serial
        self.buffer: CData = ffi.NULL
        self.handle_value = 0
        self.memory: CData = ffi.NULL
        self.mapped: CData | None = None  # char *, or None where the host cannot see it
        self.address = 0  # of mapped
        self.coherent = True
        self.device_address = 0
        self.suballocator = Suballocator(size)
        self.owner: object = None  # what keeps imported host memory alive


class Allocation:
    """A range of a block. ``exports`` counts host views that outlive the buffer they were made from."""

    __slots__ = ("block", "exports", "offset", "retired", "size")

    def __init__(self, block: Block, offset: int, size: int) -> None:
        self.block = block
        self.offset = offset
        self.size = size
        self.exports = 0
        self.retired = False


class Allocator:
    """All memory of one device.

    Calling sequence: ``allocate`` or ``import_host`` → use → ``free`` (once no queue uses the range any more;
    ``Buffer.close`` sees to that) → ``trim`` now and then → ``close``.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._lock = threading.RLock()
        self._blocks: dict[int, list[Block]] = {}
        self._serial = 0
        self._peak = 0
        self._allocated = 0
        self._allocations = 0
        self._heap_use = [0] * len(device.profile.memory_heaps)
        self._dropped: deque[Allocation] = deque()
        self._ranked: dict[MemoryTypeFlags, tuple[int, ...]] = {}
        usage = _TRANSFER_SRC | _TRANSFER_DST | _UNIFORM | _STORAGE | _INDIRECT
        self.device_addresses = "bufferDeviceAddress" in device.plan.features
        if self.device_addresses:
            usage |= _DEVICE_ADDRESS
        self._usage = usage
        plan = device.plan
        # Both families may use every buffer, without ownership transfers: buffers, unlike images, lose nothing by it.
        self._sharing: dict[str, object] = {}
        if plan.transfer_family is not None:
            self._sharing = {
                "sharingMode": _SHARING_CONCURRENT,
                "queueFamilyIndexCount": 2,
                "pQueueFamilyIndices": [plan.compute_family, plan.transfer_family],
            }
        self._type_bits = self._probe_type_bits()
        self._import_bits = self._probe_import_bits()
        self.on_block_freed: Callable[[Block], None] = lambda block: None

    # -- allocation ----------------------------------------------------------------------------------

    def allocate(self, size: int, flags: MemoryTypeFlags, alignment: int = 1) -> Allocation:
        """A range of ``size`` bytes in memory of the kind asked for.

        Args:
            size: bytes; 0 is allowed and takes the smallest range.
            flags: device-local, host-visible, … (memory_type.py).
            alignment: of the range's offset in its block, beyond the 256 bytes every range has.

        Raises:
            InvalidArgumentError: a negative size, or flags that no memory type of the device satisfies.
            ResourceExhaustedError: no heap has room; the message has the sizes. Nothing is made.
        """
        if size < 0:
            raise InvalidArgumentError(f"a buffer's size must not be negative, got {size}")
        with self._lock:
            if self._dropped:
                self._collect_dropped()
            order = self._ranked.get(flags)
            if order is None:
                profile = self._device.profile
                order = self._ranked[flags] = rank_memory_types(
                    profile.memory_types, profile.memory_heaps, self._type_bits, flags
                )
            dedicated = size >= self._device.plan.dedicated_threshold
            if not dedicated:
                for block in self._blocks.get(order[0], ()):
                    offset = block.suballocator.allocate(size, alignment)
                    if offset is not None:
                        return self._account(block, offset, size)
            return self._allocate_slowly(size, order, alignment, dedicated)

    def _allocate_slowly(self, size: int, order: tuple[int, ...], alignment: int, dedicated: bool) -> Allocation:
        limit = self._device.profile.limits
        most = min(limit.max_memory_allocation_size, limit.max_buffer_size)
        if size > most:
            raise ResourceExhaustedError(
                f"an allocation of {size:,} bytes is larger than this device allows ({most:,} bytes, its "
                f"maxMemoryAllocationSize/maxBufferSize); split it. {self._describe_heaps()}"
            )
        failure: PumiceError | None = None
        for attempt in range(2):
            for type_index in order:
                blocks = self._blocks.setdefault(type_index, [])
                if not dedicated:
                    for block in blocks:
                        offset = block.suballocator.allocate(size, alignment)
                        if offset is not None:
                            return self._account(block, offset, size)
                try:
                    block = self._make_block(size, type_index, dedicated)
                except ResourceExhaustedError as error:
                    failure = error
                    continue
                blocks.append(block)
                offset = block.suballocator.allocate(size, alignment)
                if offset is None:  # an alignment above the block's own start cannot fail: blocks start at 0
                    raise InvalidArgumentError(f"alignment {alignment} does not fit a block of {block.size} bytes")
                return self._account(block, offset, size)
            if attempt == 0 and not self.trim():
                break
        raise ResourceExhaustedError(
            f"no memory for {size:,} bytes on {self._device.profile.name}: {failure.message if failure else ''}. "
            f"{self._describe_heaps()} Close arrays that are no longer used, or call trim().",
            vk_result=failure.vk_result if failure else None,
        )

    def import_host(self, address: int, size: int, owner: object) -> Allocation | None:
        """Device access to host memory in place, or ``None`` where the device or the alignment does not allow it.

        Args:
            address: of the first byte.
            size: bytes; the pages it lies on are imported whole.
            owner: kept alive until the allocation is freed.
        """
        alignment = self._device.plan.host_import_alignment
        if not alignment or size <= 0 or not self._import_bits:
            return None
        start = address & ~(alignment - 1)
        end = -(-(address + size) // alignment) * alignment
        if (address - start) % self._device.profile.limits.min_storage_buffer_offset_alignment:
            return None
        pointer = ffi.cast("void *", start)
        fn = self._device.fn
        properties = new("VkMemoryHostPointerPropertiesEXT")
        if fn.vkGetMemoryHostPointerPropertiesEXT(self._device.handle, _HANDLE_HOST_ALLOCATION, pointer, properties):
            return None
        with self._lock:
            candidates = [
                index
                for index, kind in enumerate(self._device.profile.memory_types)
                if properties.memoryTypeBits & self._import_bits & 1 << index
                and kind.property_flags & _PROPERTY_HOST_COHERENT
            ]
            if not candidates:
                return None
            block = self._new_block("imported", end - start, candidates[0])
            external = new("VkExternalMemoryBufferCreateInfo", handleTypes=_HANDLE_HOST_ALLOCATION)
            imported = new("VkImportMemoryHostPointerInfoEXT", handleType=_HANDLE_HOST_ALLOCATION, pHostPointer=pointer)
            try:
                self._bind_block(block, buffer_next=external, memory_next=imported, persistent_map=False)
            except PumiceError:
                return None
            block.mapped = ffi.cast("char *", start)
            block.address = start
            block.owner = owner
            self._blocks.setdefault(candidates[0], []).append(block)
            if block.suballocator.allocate(end - start) is None:
                return None
            return self._account(block, address - start, size)

    def free(self, allocation: Allocation) -> None:
        """Gives the range back. Host views still alive keep it until the last one goes."""
        with self._lock:
            self._collect_dropped()
            allocation.retired = True
            if allocation.exports:
                return
            self._free_now(allocation)

    def _free_now(self, allocation: Allocation) -> None:
        block = allocation.block
        block.suballocator.free(0 if block.kind == "imported" else allocation.offset)
        self._allocated -= allocation.size
        self._allocations -= 1
        destroyed("allocation")
        if block.suballocator.is_empty() and (block.kind != "shared" or self._has_other_empty(block)):
            self._destroy_block(block)

    def _has_other_empty(self, block: Block) -> bool:
        return any(
            other is not block and other.kind == "shared" and other.suballocator.is_empty()
            for other in self._blocks[block.type_index]
        )

    # -- host views ----------------------------------------------------------------------------------

    def export(self, allocation: Allocation, offset: int, size: int) -> memoryview:
        """A writable view of mapped memory that keeps the allocation alive, whatever is closed meanwhile."""
        block = allocation.block
        if block.mapped is None:
            raise InvalidArgumentError("this memory is not host-visible: copy it, or allocate it HOST_VISIBLE")
        with self._lock:
            allocation.exports += 1
            self._device.retain_for_view()
        pointer = ffi.gc(block.mapped + allocation.offset + offset, lambda _: self._drop_export(allocation))
        return memoryview(ffi.buffer(pointer, size)).cast("B")

    def _drop_export(self, allocation: Allocation) -> None:
        """A host view died, perhaps in the garbage collector, and so in the middle of anything: it is only noted here."""
        self._dropped.append(allocation)
        self._device.release_for_view()

    def _collect_dropped(self) -> None:
        while self._dropped:
            allocation = self._dropped.popleft()
            allocation.exports -= 1
            if allocation.retired and not allocation.exports:
                self._free_now(allocation)

    # -- blocks --------------------------------------------------------------------------------------

    def _new_block(self, kind: str, size: int, type_index: int) -> Block:
        self._serial += 1
        return Block(kind, size, type_index, self._serial)

    def _make_block(self, size: int, type_index: int, dedicated: bool) -> Block:
        granularity = 256
        exact = -(-max(size, 1) // granularity) * granularity
        sizes = [exact]
        if not dedicated:
            # A heap that has no room for a whole block may have room for a smaller one.
            whole = max(self._device.plan.block_size, exact)
            sizes = [whole, max(whole // 4, exact), exact]
        limit = self._device.profile.limits.max_memory_allocation_size
        failure: ResourceExhaustedError | None = None
        for candidate in sizes:
            block = self._new_block("dedicated" if dedicated else "shared", min(candidate, limit), type_index)
            try:
                self._bind_block(block)
                return block
            except ResourceExhaustedError as error:
                failure = error
        assert failure is not None
        raise failure

    def _bind_block(
        self,
        block: Block,
        *,
        buffer_next: CData | None = None,
        memory_next: CData | None = None,
        persistent_map: bool = True,
    ) -> None:
        """Makes the native objects of a block; on failure destroys those made and raises."""
        device, fn = self._device, self._device.fn
        what = f"allocating {block.size:,} bytes of memory type {block.type_index} ({block.kind})"
        buffer = ffi.new("VkBuffer *")
        memory = ffi.new("VkDeviceMemory *")
        try:
            info = new("VkBufferCreateInfo", size=block.size, usage=self._usage, **self._sharing)
            device.check(fn.vkCreateBuffer(device.handle, chain(info, buffer_next), ffi.NULL, buffer), what)
            block.buffer = buffer[0]
            block.handle_value = handle_value(block.buffer)
            requirements = ffi.new("VkMemoryRequirements *")
            fn.vkGetBufferMemoryRequirements(device.handle, block.buffer, requirements)
            if block.kind == "imported" and requirements.size > block.size:
                raise ResourceExhaustedError(f"{what}: the import would need {requirements.size:,} bytes")
            flags = new("VkMemoryAllocateFlagsInfo", flags=_ALLOCATE_DEVICE_ADDRESS) if self.device_addresses else None
            only = new("VkMemoryDedicatedAllocateInfo", buffer=block.buffer) if block.kind == "dedicated" else None
            size = block.size if block.kind == "imported" else max(requirements.size, block.size)
            allocate = new("VkMemoryAllocateInfo", allocationSize=size, memoryTypeIndex=block.type_index)
            allocate = chain(allocate, flags, only, memory_next)
            device.check(fn.vkAllocateMemory(device.handle, allocate, ffi.NULL, memory), what)
            block.memory = memory[0]
            device.check(fn.vkBindBufferMemory(device.handle, block.buffer, block.memory, 0), what)
            properties = device.profile.memory_types[block.type_index].property_flags
            block.coherent = bool(properties & _PROPERTY_HOST_COHERENT)
            if persistent_map and properties & _PROPERTY_HOST_VISIBLE:
                pointer = ffi.new("void **")
                device.check(fn.vkMapMemory(device.handle, block.memory, 0, 0xFFFF_FFFF_FFFF_FFFF, 0, pointer), what)
                block.mapped = ffi.cast("char *", pointer[0])
                block.address = int(ffi.cast("uintptr_t", pointer[0]))
            if self.device_addresses:
                address_info = new("VkBufferDeviceAddressInfo", buffer=block.buffer)
                block.device_address = fn.vkGetBufferDeviceAddress(device.handle, address_info)
        except PumiceError:
            if block.buffer != ffi.NULL:
                fn.vkDestroyBuffer(device.handle, block.buffer, ffi.NULL)
            if block.memory != ffi.NULL:
                fn.vkFreeMemory(device.handle, block.memory, ffi.NULL)
            raise
        device.set_name("VK_OBJECT_TYPE_BUFFER", block.buffer, f"memory block {block.serial} ({block.kind})")
        created("memory block")
        self._heap_use[device.profile.memory_types[block.type_index].heap_index] += block.size

    def _destroy_block(self, block: Block) -> None:
        device, fn = self._device, self._device.fn
        self.on_block_freed(block)
        self._blocks[block.type_index].remove(block)
        fn.vkDestroyBuffer(device.handle, block.buffer, ffi.NULL)
        fn.vkFreeMemory(device.handle, block.memory, ffi.NULL)  # unmaps
        block.owner = None
        destroyed("memory block")
        self._heap_use[device.profile.memory_types[block.type_index].heap_index] -= block.size

    def _probe_import_bits(self) -> int:
        """Memory types that a buffer over imported host memory can live in; 0 where there is no importing."""
        device = self._device
        if not device.plan.host_import_alignment or device.plan.host_import_alignment > mmap.PAGESIZE:
            return 0  # rounding to more than a page could reach memory that is not there
        info = new("VkPhysicalDeviceExternalBufferInfo", usage=self._usage, handleType=_HANDLE_HOST_ALLOCATION)
        answer = new("VkExternalBufferProperties")
        device.driver.functions.vkGetPhysicalDeviceExternalBufferProperties(device.physical_device, info, answer)
        features = answer.externalMemoryProperties.externalMemoryFeatures
        if features & (_FEATURE_IMPORTABLE | _FEATURE_DEDICATED_ONLY) != _FEATURE_IMPORTABLE:
            return 0
        return self._probe_type_bits(new("VkExternalMemoryBufferCreateInfo", handleTypes=_HANDLE_HOST_ALLOCATION))

    def _probe_type_bits(self, buffer_next: CData | None = None) -> int:
        """Memory types that a buffer with our usage can live in: the same for every size (specification, 12.7)."""
        device, fn = self._device, self._device.fn
        buffer = ffi.new("VkBuffer *")
        info = chain(new("VkBufferCreateInfo", size=256, usage=self._usage, **self._sharing), buffer_next)
        device.check(fn.vkCreateBuffer(device.handle, info, ffi.NULL, buffer), "probing memory types")
        requirements = ffi.new("VkMemoryRequirements *")
        fn.vkGetBufferMemoryRequirements(device.handle, buffer[0], requirements)
        fn.vkDestroyBuffer(device.handle, buffer[0], ffi.NULL)
        return int(requirements.memoryTypeBits)

    # -- accounting ----------------------------------------------------------------------------------

    def _account(self, block: Block, offset: int, size: int) -> Allocation:
        self._allocated += size
        self._allocations += 1
        self._peak = max(self._peak, self._allocated)
        created("allocation")
        return Allocation(block, offset, size)

    def trim(self) -> int:
        """Frees blocks that nothing uses and returns their bytes."""
        with self._lock:
            self._collect_dropped()
            freed = 0
            for blocks in self._blocks.values():
                for block in [b for b in blocks if b.suballocator.is_empty()]:
                    freed += block.size
                    self._destroy_block(block)
            return freed

    def statistics(self) -> AllocatorStatistics:
        """A snapshot of memory held, handed out, and its fragmentation."""
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
                allocations=self._allocations,
                blocks=blocks,
            )

    def budgets(self) -> tuple[HeapBudget, ...]:
        """Size, budget and usage of every heap, from VK_EXT_memory_budget where the device has it."""
        device = self._device
        heaps = device.profile.memory_heaps
        local = [bool(heap.flags & 1) for heap in heaps]
        if not device.plan.memory_budget:
            return tuple(
                HeapBudget(heap.size, heap.size, used, is_local, False)
                for heap, used, is_local in zip(heaps, self._heap_use, local, strict=True)
            )
        budget = new("VkPhysicalDeviceMemoryBudgetPropertiesEXT")
        properties = chain(new("VkPhysicalDeviceMemoryProperties2"), budget)
        device.driver.functions.vkGetPhysicalDeviceMemoryProperties2(device.physical_device, properties)
        return tuple(
            HeapBudget(heap.size, budget.heapBudget[i], budget.heapUsage[i], local[i], True)
            for i, heap in enumerate(heaps)
        )

    def _describe_heaps(self) -> str:
        parts = [
            f"heap {index} ({'device-local' if heap.device_local else 'host'}): {heap.size:,} bytes, "
            f"{heap.usage:,} in use, budget {heap.budget:,}"
            for index, heap in enumerate(self.budgets())
        ]
        return f"Heaps: {'; '.join(parts)}."

    def abandon(self) -> None:
        """In a forked child: a lock that nobody holds. For ``Device.abandon``."""
        self._lock = threading.RLock()

    def close(self) -> None:
        """Frees every block, allocations still live included: the device is going away."""
        with self._lock:
            self._collect_dropped()
            for blocks in self._blocks.values():
                for block in list(blocks):
                    self._destroy_block(block)
            destroyed("allocation", self._allocations)
            self._allocations = 0
            self._allocated = 0
