"""Blocks: a VkDeviceMemory each, with **one VkBuffer over all of it** that has every usage compute needs.

A host-visible block is mapped once for its lifetime. A ``Buffer`` is then an offset and a size in a block: making one
costs no native call. ``docs/design/hal.md`` argues the choice.

Images have blocks of their own, without a buffer and not mapped: a device may want ``bufferImageGranularity`` bytes
between an image and a buffer, and a buffer over the whole block would overlap every image in it.
"""

from __future__ import annotations

import mmap
from typing import Final

from ...status import PumiceError, ResourceExhaustedError
from ..instance.logical_device import LogicalDevice
from ..instance.profile import MemoryProperty
from ..vulkan.functions import WHOLE_SIZE, CData, NativeFunction, chain, ffi, handle_value, new
from ..vulkan.live_objects import live
from ..vulkan.results import VK_SUCCESS
from .suballocator import Suballocator

# Transfer source and target, uniform and storage texels, uniform, storage, indirect.
_USAGE: Final = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | 0x100
_USAGE_DEVICE_ADDRESS: Final = 0x20000
_HANDLE_HOST_ALLOCATION: Final = 0x80
_ALLOCATE_DEVICE_ADDRESS: Final = 0x2
_SHARING_CONCURRENT: Final = 1
_FEATURE_DEDICATED_ONLY: Final = 0x1
_FEATURE_IMPORTABLE: Final = 0x4


class Block:
    """One VkDeviceMemory with one VkBuffer over it; without a buffer for images.

    Attributes:
        pool: the key of interchangeable blocks: the memory type, or its complement for images.
    """

    def __init__(self, kind: str, size: int, type_index: int, serial: int, *, for_images: bool = False) -> None:
        self.kind = kind  # "shared", "dedicated" or "imported"
        self.size = size
        self.type_index = type_index
        self.pool: int = ~type_index if for_images else type_index
        self.serial = serial
        self.buffer: CData = ffi.NULL
        self.handle_value = 0
        self.memory: CData = ffi.NULL
        self.mapped: CData | None = None  # char *, or None where the host cannot see it
        self.address = 0  # address of mapped
        self.coherent = True
        self.device_address = 0
        self.suballocator: Suballocator = Suballocator(size)
        self.owner: object = None  # keeps imported host memory alive


class BlockFactory:
    """Makes and destroys blocks, in memory types of ``type_bits``. The caller must have exclusive access.

    Attributes:
        made: the live blocks, by serial.
    """

    def __init__(self, device: LogicalDevice) -> None:
        self._device = device
        self._serial = 0
        self.made: dict[int, Block] = {}
        self._device_addresses = device.device_addresses
        self._usage = _USAGE | (_USAGE_DEVICE_ADDRESS if self._device_addresses else 0)
        plan = device.plan
        # Both families share every buffer without ownership transfers, which costs buffers, unlike images, nothing.
        self._sharing: dict[str, object] = {}
        if plan.transfer_family is not None:
            self._sharing = {
                "sharingMode": _SHARING_CONCURRENT,
                "queueFamilyIndexCount": 2,
                "pQueueFamilyIndices": [plan.compute_family, plan.transfer_family],
            }
        self.type_bits: int = self._probe_type_bits()
        self._import_bits = self._probe_import_bits()

    def import_host(self, start: int, size: int, owner: object) -> Block | None:
        """Returns a block over whole pages of host memory in place, or ``None`` if the device does not allow it."""
        device = self._device
        if not self._import_bits:
            return None
        pointer = ffi.cast("void *", start)
        properties = new("VkMemoryHostPointerPropertiesEXT")
        query = device.fn.vkGetMemoryHostPointerPropertiesEXT
        if query(device.handle, _HANDLE_HOST_ALLOCATION, pointer, properties):
            return None
        bits = properties.memoryTypeBits & self._import_bits
        for index, kind in enumerate(device.profile.memory_types):
            if bits >> index & 1 and kind.property_flags & MemoryProperty.HOST_COHERENT:
                break
        else:
            return None
        external = new("VkExternalMemoryBufferCreateInfo", handleTypes=_HANDLE_HOST_ALLOCATION)
        imported = new("VkImportMemoryHostPointerInfoEXT", handleType=_HANDLE_HOST_ALLOCATION, pHostPointer=pointer)
        try:
            block = self.make("imported", size, index, buffer_next=external, memory_next=imported)
        except PumiceError:
            return None
        block.mapped = ffi.cast("char *", start)
        block.address = start
        block.owner = owner
        return block

    def destroy(self, block: Block) -> None:
        """Frees the memory; nothing may use it any more. Idempotent."""
        device, fn = self._device, self._device.fn
        destroy, free = fn.vkDestroyBuffer, fn.vkFreeMemory
        # An interrupt is raised only at the end of a call, so each handle is destroyed once.
        buffer, block.buffer = block.buffer, ffi.NULL
        try:
            destroy(device.handle, buffer, ffi.NULL)  # does nothing for NULL
        finally:
            memory, block.memory = block.memory, ffi.NULL
            try:
                free(device.handle, memory, ffi.NULL)  # unmaps
            finally:
                block.owner = None
                counted = "memory block", device.number, block.serial
                if counted in live:  # no calls, where an interrupt could occur
                    del live[counted]
                    del self.made[block.serial]

    def _make(self, create: NativeFunction, info: CData, handle: CData, purpose: str) -> None:
        result = VK_SUCCESS
        try:
            result = create(self._device.handle, info, ffi.NULL, handle)
        finally:
            if result < 0:
                handle[0] = ffi.NULL  # a failed call may leave garbage there
        self._device.check(result, purpose)

    def _own(self, block: Block) -> None:
        counted = "memory block", self._device.number, block.serial
        live[counted] = None
        self.made[block.serial] = block

    def new_serial(self) -> int:
        """Returns a serial that no other block or bound object has."""
        self._serial += 1
        return self._serial

    def make_for_images(self, size: int, type_index: int, only: CData | None) -> Block:
        """Returns a block for images, or for the image ``only``; ResourceExhaustedError if the heap has no room."""
        device = self._device
        kind = "shared" if only is None else "dedicated"
        block = Block(kind, size, type_index, self.new_serial(), for_images=True)
        memory = ffi.new("VkDeviceMemory *")
        dedicated = None if only is None else new("VkMemoryDedicatedAllocateInfo", image=only)
        allocate = chain(new("VkMemoryAllocateInfo", allocationSize=size, memoryTypeIndex=type_index), dedicated)
        action = f"allocating {size:,} bytes of memory type {type_index} for images ({kind})"
        try:
            self._make(device.fn.vkAllocateMemory, allocate, memory, action)
            block.memory = memory[0]
            self._own(block)
        except BaseException:
            block.memory = memory[0]
            self.destroy(block)
            raise
        return block

    def make(
        self,
        kind: str,
        size: int,
        type_index: int,
        *,
        buffer_next: CData | None = None,
        memory_next: CData | None = None,
    ) -> Block:
        """Returns a block, ``"shared"``, ``"dedicated"`` or ``"imported"``; ResourceExhaustedError if the heap has no
        room.
        """
        block = Block(kind, size, type_index, self.new_serial())
        device, fn = self._device, self._device.fn
        action = f"allocating {block.size:,} bytes of memory type {block.type_index} ({block.kind})"
        buffer = ffi.new("VkBuffer *")
        memory = ffi.new("VkDeviceMemory *")
        try:
            info = new("VkBufferCreateInfo", size=block.size, usage=self._usage, **self._sharing)
            self._make(fn.vkCreateBuffer, chain(info, buffer_next), buffer, action)
            block.buffer = buffer[0]
            block.handle_value = handle_value(block.buffer)
            requirements = ffi.new("VkMemoryRequirements *")
            fn.vkGetBufferMemoryRequirements(device.handle, block.buffer, requirements)
            imported = block.kind == "imported"
            if imported and requirements.size > block.size:
                raise ResourceExhaustedError(f"{action}: the import would need {requirements.size:,} bytes")
            flags = new("VkMemoryAllocateFlagsInfo", flags=_ALLOCATE_DEVICE_ADDRESS) if self._device_addresses else None
            only = new("VkMemoryDedicatedAllocateInfo", buffer=block.buffer) if block.kind == "dedicated" else None
            size = block.size if imported else max(requirements.size, block.size)
            allocate = new("VkMemoryAllocateInfo", allocationSize=size, memoryTypeIndex=block.type_index)
            allocate = chain(allocate, flags, only, memory_next)
            self._make(fn.vkAllocateMemory, allocate, memory, action)
            block.memory = memory[0]
            device.check(fn.vkBindBufferMemory(device.handle, block.buffer, block.memory, 0), action)
            properties = device.profile.memory_types[block.type_index].property_flags
            block.coherent = bool(properties & MemoryProperty.HOST_COHERENT)
            if not imported and properties & MemoryProperty.HOST_VISIBLE:
                pointer = ffi.new("void **")
                device.check(fn.vkMapMemory(device.handle, block.memory, 0, WHOLE_SIZE, 0, pointer), action)
                block.mapped = ffi.cast("char *", pointer[0])
                block.address = int(ffi.cast("uintptr_t", pointer[0]))
            if self._device_addresses:
                address_info = new("VkBufferDeviceAddressInfo", buffer=block.buffer)
                block.device_address = fn.vkGetBufferDeviceAddress(device.handle, address_info)
            device.set_name("VK_OBJECT_TYPE_BUFFER", block.buffer, f"memory block {block.serial} ({block.kind})")
            self._own(block)
        except BaseException:  # Ctrl-C during a call is raised after it has returned and made the object
            block.buffer, block.memory = buffer[0], memory[0]
            self.destroy(block)
            raise
        return block

    def _probe_import_bits(self) -> int:
        """Returns the memory types that a buffer over imported host memory can use; 0 if nothing can be imported."""
        device = self._device
        if not device.plan.host_import_alignment or device.plan.host_import_alignment > mmap.PAGESIZE:
            return 0  # rounding to more than a page could reach unmapped memory
        info = new("VkPhysicalDeviceExternalBufferInfo", usage=self._usage, handleType=_HANDLE_HOST_ALLOCATION)
        answer = new("VkExternalBufferProperties")
        device.driver.functions.vkGetPhysicalDeviceExternalBufferProperties(device.physical_device, info, answer)
        features = answer.externalMemoryProperties.externalMemoryFeatures
        if features & (_FEATURE_IMPORTABLE | _FEATURE_DEDICATED_ONLY) != _FEATURE_IMPORTABLE:
            return 0
        return self._probe_type_bits(new("VkExternalMemoryBufferCreateInfo", handleTypes=_HANDLE_HOST_ALLOCATION))

    def _probe_type_bits(self, buffer_next: CData | None = None) -> int:
        """Returns the memory types that a buffer with our usage can use: the same for every size
        (specification, 12.7).
        """
        device, fn = self._device, self._device.fn
        buffer = ffi.new("VkBuffer *")
        info = chain(new("VkBufferCreateInfo", size=256, usage=self._usage, **self._sharing), buffer_next)
        requirements = ffi.new("VkMemoryRequirements *")
        destroy = fn.vkDestroyBuffer
        try:
            self._make(fn.vkCreateBuffer, info, buffer, "probing memory types")
            fn.vkGetBufferMemoryRequirements(device.handle, buffer[0], requirements)
        finally:
            destroy(device.handle, buffer[0], ffi.NULL)  # does nothing for NULL
        return int(requirements.memoryTypeBits)
