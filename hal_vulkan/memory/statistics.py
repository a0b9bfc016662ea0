"""Statistics of device memory."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.lazy_dataclass import dataclass
from ..instance.logical_device import LogicalDevice
from ..vulkan.functions import chain, new
from .suballocator import SuballocatorStatistics


@dataclass(frozen=True, slots=True)
class BlockStatistics:
    """One VkDeviceMemory."""

    kind: str
    memory_type_index: int
    use: SuballocatorStatistics


@dataclass(frozen=True, slots=True)
class HeapBudget:
    """One memory heap, in bytes.

    If they are ``measured`` (VK_EXT_memory_budget), ``budget`` is the driver's estimate of the memory available to this
    process, and ``usage`` the memory that it uses; else the heap's size, and the memory that pumice allocated.
    """

    size: int
    budget: int
    usage: int
    device_local: bool
    measured: bool


@dataclass(frozen=True, slots=True)
class AllocatorStatistics:
    """All device memory that pumice holds: bytes reserved, allocated, the peak allocated, and the blocks."""

    reserved: int
    allocated: int
    peak: int
    allocations: int
    blocks: tuple[BlockStatistics, ...]


def read_budgets(device: LogicalDevice, used: Sequence[int]) -> tuple[HeapBudget, ...]:
    """Returns the budget of every heap; ``used`` lists the bytes that pumice allocated from each."""
    heaps = device.profile.memory_heaps
    local = [bool(heap.flags & 1) for heap in heaps]
    if not device.plan.memory_budget:
        return tuple(
            HeapBudget(heap.size, heap.size, bytes_used, is_local, False)
            for heap, bytes_used, is_local in zip(heaps, used, local, strict=True)
        )
    budget = new("VkPhysicalDeviceMemoryBudgetPropertiesEXT")
    properties = chain(new("VkPhysicalDeviceMemoryProperties2"), budget)
    device.driver.functions.vkGetPhysicalDeviceMemoryProperties2(device.physical_device, properties)
    return tuple(
        HeapBudget(heap.size, budget.heapBudget[i], budget.heapUsage[i], local[i], True) for i, heap in enumerate(heaps)
    )


def describe_heaps(budgets: Sequence[HeapBudget]) -> str:
    heaps = "; ".join(
        f"heap {index} ({'device-local' if heap.device_local else 'host'}): {heap.size:,} bytes, "
        f"{heap.usage:,} in use, budget {heap.budget:,}"
        for index, heap in enumerate(budgets)
    )
    return f"Heaps: {heaps}."
