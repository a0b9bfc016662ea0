"""Ranking of the Vulkan memory types that satisfy a buffer's requirements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...hal.memory import MemoryTypeFlags
from ...status import InvalidArgumentError
from ..instance.profile import HeapFlag, MemoryHeap, MemoryProperty, MemoryType

_SMALL_BAR_BYTES: Final = 256 << 20  # host-visible video memory of a GPU without resizable BAR, by PCI convention


_HOST_LOCAL_BIT: Final = 0x40
_DEVICE_LOCAL_BIT: Final = 0x20
_KNOWN_FLAGS: Final = 0x7F
# Lazily allocated and protected memory cannot back a storage buffer that the host fills; coherent/uncached AMD memory
# and RDMA memory are legal only with a feature of their own enabled, and slow.
_REFUSED: Final = (
    MemoryProperty.LAZILY_ALLOCATED
    | MemoryProperty.PROTECTED
    | MemoryProperty.DEVICE_COHERENT_AMD
    | MemoryProperty.DEVICE_UNCACHED_AMD
    | MemoryProperty.RDMA_CAPABLE_NV
)
_KNOWN_PROPERTIES: Final = 0x1FF


def rank_memory_types(
    types: Sequence[MemoryType], heaps: Sequence[MemoryHeap], type_bits: int, flags: MemoryTypeFlags
) -> tuple[int, ...]:
    """Returns indices of the Vulkan memory types that can hold a buffer, best first.

    The caller tries the next type if the driver returns ``VK_ERROR_OUT_OF_DEVICE_MEMORY``. ``HOST_VISIBLE`` and
    ``HOST_COHERENT`` are required. ``HOST_CACHED`` requires host visibility and prefers caching, as ``HOST_LOCAL``
    does. Device or host locality is a preference, so that another heap can replace an exhausted one. The order; the
    first difference decides:

    1. locality: device-local types if the device works on the data, others if the host does. The small host-visible
       heap of a discrete GPU comes last, after system memory, unless device-local *and* host-visible memory is
       requested: it is scarce, and such requests have no alternative;
    2. cached, if requested;
    3. coherent, if the host accesses it;
    4. the fewest properties that were not requested;
    5. the larger heap, then the driver's order (its own preference; specification section "Device Memory").

    On unified memory every type is device-local, so visibility decides. ``type_bits`` is
    ``VkMemoryRequirements::memoryTypeBits``.

    Raises:
        InvalidArgumentError: a flag is unknown, or no type that ``type_bits`` selects meets the requirements.
    """
    asked = int(flags)
    if asked < 0 or asked & ~_KNOWN_FLAGS:
        raise InvalidArgumentError(f"memory type flags: expected bits within 0x{_KNOWN_FLAGS:x}, got {asked:#x}")
    cached = bool(asked & MemoryTypeFlags.HOST_CACHED)
    coherent = bool(asked & MemoryTypeFlags.HOST_COHERENT)
    visible = bool(asked & MemoryTypeFlags.HOST_VISIBLE) or coherent or cached
    for_device = bool(asked & _DEVICE_LOCAL_BIT) or not visible
    prefers_cached = cached or bool(asked & _HOST_LOCAL_BIT)
    required = (MemoryProperty.HOST_VISIBLE if visible else 0) | (MemoryProperty.HOST_COHERENT if coherent else 0)
    windows = _small_bar_heaps(types, heaps)

    def cost(index: int) -> tuple[int, int, int, int, int, int]:
        memory_type = types[index]
        props = memory_type.property_flags
        device_local = bool(props & MemoryProperty.DEVICE_LOCAL)
        in_window = memory_type.heap_index in windows and not (for_device and visible)
        extra = props & (MemoryProperty.HOST_CACHED if not prefers_cached else 0)
        if not visible:
            extra |= props & (MemoryProperty.HOST_VISIBLE | MemoryProperty.HOST_COHERENT)
        return (
            2 if in_window else int(device_local != for_device),
            int(prefers_cached and not props & MemoryProperty.HOST_CACHED),
            int(visible and not props & MemoryProperty.HOST_COHERENT),
            extra.bit_count(),
            -heaps[memory_type.heap_index].size,
            index,
        )

    refusals = [_refusal(kind, type_bits >> index & 1, required) for index, kind in enumerate(types)]
    fitting = [index for index, refusal in enumerate(refusals) if not refusal]
    if not fitting:
        reasons = "; ".join(
            f"type {index} ({_describe(kind, heaps)}) {refusals[index]}" for index, kind in enumerate(types)
        )
        raise InvalidArgumentError(
            f"no memory type satisfies {MemoryTypeFlags(asked).name} within memory type bits {type_bits:#x}: "
            f"{reasons or 'the device has none'}; ask for less"
        )
    return tuple(sorted(fitting, key=cost))


def _describe(memory_type: MemoryType, heaps: Sequence[MemoryHeap]) -> str:
    """Describes a memory type: ``"DEVICE_LOCAL|HOST_VISIBLE, heap 0 of 7.7 GiB"``."""
    names = _names(memory_type.property_flags & _KNOWN_PROPERTIES) or "no properties"
    return f"{names}, heap {memory_type.heap_index} of {heaps[memory_type.heap_index].size / (1 << 30):.1f} GiB"


def _names(properties: int) -> str:
    return "|".join(bit.name or "" for bit in MemoryProperty(properties))


def _small_bar_heaps(types: Sequence[MemoryType], heaps: Sequence[MemoryHeap]) -> frozenset[int]:
    """Returns the device-local heaps that are only a host-visible part of another, larger device-local heap."""
    local = [i for i, heap in enumerate(heaps) if heap.flags & HeapFlag.DEVICE_LOCAL]
    largest = max((heaps[i].size for i in local), default=0)
    return frozenset(
        i
        for i in local
        if heaps[i].size <= _SMALL_BAR_BYTES
        and heaps[i].size < largest
        and all(t.property_flags & MemoryProperty.HOST_VISIBLE for t in types if t.heap_index == i)
    )


def _refusal(memory_type: MemoryType, selected: int, required: int) -> str:
    """Returns the reason why a buffer cannot use memory of this type; empty if it can."""
    if not selected:
        return "is not among the type bits"
    if refused := memory_type.property_flags & _REFUSED:
        return f"is for special use ({_names(refused)})"
    if missing := required & ~memory_type.property_flags:
        return f"lacks {_names(missing)}"
    return ""
