"""Descriptor set layouts, and descriptor sets cached by the ranges they bind.

A kernel called again with the same buffers finds its set by one dictionary look-up; nothing is allocated or written.
Sets that a recorded command buffer names are pinned and not rewritten. When a memory block is freed, the sets that name
it return to the free list.

Thread rule: the cache locks; a ``DescriptorSet`` is immutable while pinned.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Sequence
from typing import Final, TypeAlias

from ..instance.logical_device import LogicalDevice, guarded
from ..vulkan.functions import NULL, CData, chain, ffi, new
from .resources import ABSENT, KINDS, Resource

COMPUTE_STAGE: Final = 0x20
_PUSH_DESCRIPTOR_BIT: Final = 0x1
_PARTIALLY_BOUND: Final = 0x4
BIND_POINT_COMPUTE: Final = 1
_INFO_SIZE: Final = 32  # of a resource's descriptor
_POOL_DESCRIPTORS: Final = 8192

_WRITES: Final = {
    "VkDescriptorBufferInfo": "pBufferInfo",
    "VkDescriptorImageInfo": "pImageInfo",
    "VkBufferView": "pTexelBufferView",
}

# (binding, VkDescriptorType, count)
LayoutKey: TypeAlias = tuple[tuple[int, int, int], ...]
SetPins: TypeAlias = "tuple[tuple[DescriptorSetLayout, DescriptorSet], ...]"
"""Pinned sets, each with the layout that owns it."""


class DescriptorSet:
    """A VkDescriptorSet and the ranges written into it. ``pins`` counts recorded command buffers that name it."""

    __slots__ = ("array", "dropped", "handle", "pins")

    def __init__(self, handle: CData) -> None:
        self.handle: CData = handle
        self.array: CData = ffi.new("VkDescriptorSet[1]", [handle])
        self.pins: int = 0
        self.dropped: bool = False


class DescriptorSetLayout:
    """A VkDescriptorSetLayout with the cache of its sets; layouts for ``push`` descriptors have none.

    ``partial`` lists the bindings whose elements may be absent.
    """

    def __init__(
        self, device: LogicalDevice, bindings: LayoutKey, *, push: bool, partial: frozenset[int] = frozenset()
    ) -> None:
        self.device = device
        self.bindings = bindings
        self.push = push
        self.descriptor_count: int = sum(count for _, _, count in bindings)
        self._lock = threading.Lock()
        self._sets: dict[bytes, DescriptorSet] = {}
        self._free: list[DescriptorSet] = []
        self._partial = bool(partial)
        # There are few sets with large arrays.
        self._pool_sets = min(
            device.plan.descriptor_pool_size, max(1, _POOL_DESCRIPTORS // max(1, self.descriptor_count))
        )
        self._capacity = self._pool_sets * 4
        native = [
            new(
                "VkDescriptorSetLayoutBinding",
                binding=binding,
                descriptorType=kind,
                descriptorCount=count,
                stageFlags=COMPUTE_STAGE,
            )
            for binding, kind, count in bindings
        ]
        info = new(
            "VkDescriptorSetLayoutCreateInfo",
            flags=_PUSH_DESCRIPTOR_BIT if push else 0,
            bindingCount=len(native),
            pBindings=native or None,
        )
        flags = None
        if partial:
            flags = new(
                "VkDescriptorSetLayoutBindingFlagsCreateInfo",
                bindingCount=len(native),
                pBindingFlags=[_PARTIALLY_BOUND if binding in partial else 0 for binding, _, _ in bindings],
            )
        self.handle: CData = device.create("descriptor set layout", chain(info, flags))
        self._template: CData = self.make_template() if bindings and not push else NULL

    def make_template(self, pipeline_layout: CData = NULL) -> CData:
        """Returns a VkDescriptorUpdateTemplate for sets, or for push descriptors if given a pipeline layout."""
        entries, index = [], 0
        for binding, kind, count in self.bindings:
            entries.append(
                new(
                    "VkDescriptorUpdateTemplateEntry",
                    dstBinding=binding,
                    descriptorCount=count,
                    descriptorType=kind,
                    offset=index * _INFO_SIZE,
                    stride=_INFO_SIZE,
                )
            )
            index += count
        info = new(
            "VkDescriptorUpdateTemplateCreateInfo",
            descriptorUpdateEntryCount=len(entries),
            pDescriptorUpdateEntries=entries,
            templateType=0 if pipeline_layout == NULL else 1,
            descriptorSetLayout=self.handle,
            pipelineBindPoint=BIND_POINT_COMPUTE,
            pipelineLayout=pipeline_layout,
        )
        return self.device.create("descriptor update template", info)

    @guarded
    def get(self, resources: Sequence[Resource | None], key: bytes | None = None) -> DescriptorSet:
        """Returns the pinned set that binds these resources, one per descriptor in binding order; unpin it when done.

        The caller checks the resources, and may pass the ``key``: their ``descriptor`` values, ``ABSENT`` for absent
        elements.
        """
        if key is None:
            key = b"".join([ABSENT if resource is None else resource.descriptor for resource in resources])
        with self._lock:
            descriptor_set = self._sets.get(key)
            if descriptor_set is None:
                descriptor_set = self._take()
                if self._partial:
                    self._write_present(descriptor_set.handle, key)
                elif key:
                    self.device.fn.vkUpdateDescriptorSetWithTemplate(
                        self.device.handle, descriptor_set.handle, self._template, ffi.from_buffer(key)
                    )
                self._sets[key] = descriptor_set
            descriptor_set.pins += 1
            return descriptor_set

    def _write_present(self, handle: CData, key: bytes) -> None:
        """Writes only the present elements; update templates write all."""
        writes, kept, start = [], [], 0
        for binding, kind, count in self.bindings:
            parts = [key[at : at + _INFO_SIZE] for at in range(start, start + _INFO_SIZE * count, _INFO_SIZE)]
            start += _INFO_SIZE * count
            native = KINDS[kind].native
            element = 0
            for is_absent, run in itertools.groupby(parts, ABSENT.__eq__):
                infos = list(run)
                if not is_absent:
                    array = ffi.new(f"{native}[]", len(infos))
                    info_bytes = ffi.sizeof(native)
                    ffi.memmove(array, b"".join([info[:info_bytes] for info in infos]), info_bytes * len(infos))
                    kept.append(array)
                    write = new(
                        "VkWriteDescriptorSet",
                        dstSet=handle,
                        dstBinding=binding,
                        dstArrayElement=element,
                        descriptorCount=len(infos),
                        descriptorType=kind,
                    )
                    setattr(write, _WRITES[native], array)
                    writes.append(write[0])
                element += len(infos)
        if writes:
            device = self.device
            native_writes = ffi.new("VkWriteDescriptorSet[]", writes)
            device.fn.vkUpdateDescriptorSets(device.handle, len(writes), native_writes, 0, NULL)

    def pin(self, descriptor_set: DescriptorSet) -> None:
        """Adds a use of a pinned set."""
        with self._lock:
            descriptor_set.pins += 1

    def unpin(self, descriptor_set: DescriptorSet) -> None:
        """Ends a use; the set stays cached until it is reused for other ranges."""
        with self._lock:
            descriptor_set.pins -= 1
            if descriptor_set.dropped and not descriptor_set.pins:
                descriptor_set.dropped = False
                self._free.append(descriptor_set)

    def _take(self) -> DescriptorSet:
        if not self._free and len(self._sets) >= self._capacity:
            # Dictionaries keep insertion order: the first unpinned entry is the oldest.
            for key, candidate in self._sets.items():
                if candidate.pins == 0:
                    del self._sets[key]
                    return candidate
        if not self._free:
            self._grow()
        return self._free.pop()

    def _grow(self) -> None:
        device, count = self.device, self._pool_sets
        by_kind: dict[int, int] = {}
        for _, kind, descriptors in self.bindings:
            by_kind[kind] = by_kind.get(kind, 0) + descriptors * count
        sizes = [new("VkDescriptorPoolSize", type=kind, descriptorCount=n) for kind, n in by_kind.items()]
        # A pool for a layout without bindings needs a size entry to be valid, too.
        sizes = sizes or [new("VkDescriptorPoolSize", type=7, descriptorCount=1)]
        info = new("VkDescriptorPoolCreateInfo", maxSets=count, poolSizeCount=len(sizes), pPoolSizes=sizes)
        pool = device.create("descriptor pool", info, f"a pool of {count} descriptor sets")
        layouts = ffi.new("VkDescriptorSetLayout[]", [self.handle] * count)
        allocate = new(
            "VkDescriptorSetAllocateInfo", descriptorPool=pool, descriptorSetCount=count, pSetLayouts=layouts
        )
        handles = ffi.new("VkDescriptorSet[]", count)
        device.check(
            device.fn.vkAllocateDescriptorSets(device.handle, allocate, handles), f"allocating {count} descriptor sets"
        )
        self._free.extend(DescriptorSet(handles[i]) for i in range(count))

    def drop_block(self, serial: int) -> None:
        """Drops the cached sets that use a destroyed object (a memory block, a view, a sampler), by its serial."""
        with self._lock:
            # A search for the serial's bytes leaves few keys to compare word by word.
            number = serial.to_bytes(8, sys.byteorder)
            found_in = [key for key in self._sets if number in key]
            for key in [key for key in found_in if serial in memoryview(key).cast("Q").tolist()[3::4]]:
                dropped = self._sets.pop(key)
                if dropped.pins:
                    dropped.dropped = True
                else:
                    self._free.append(dropped)
