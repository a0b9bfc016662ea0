"""Exports of the ``hal`` module about devices and their allocators, and about collectives, which it refuses."""

from __future__ import annotations

from typing import Final

from ....hal.buffer import Buffer
from ....hal.device import Device
from ....hal.memory import BufferUsage, MemoryAccess, MemoryTypeFlags
from ....hal.program import ProgramAllocator
from ....status import InvalidArgumentError, PermissionDeniedError, UnimplementedError
from ....vm.native.module import export
from .device_context import DeviceTable
from .reference import Ref, memory_of, require, text_of

_IMMUTABLE: Final = int(BufferUsage.SHARING_IMMUTABLE)
_MIN_IMPORT: Final = 64 << 10


class Channel:
    """A collective channel; none can be made."""


class Event:
    """An event within a command buffer; no module makes one."""


class DeviceExports(DeviceTable):
    """``hal.devices.*``, ``hal.device.query``, ``hal.allocator.*`` and ``hal.channel.*``."""

    @export("devices.count", "0v_i")
    def devices_count(self) -> int:
        """How many devices there are."""
        return len(self._devices)

    @export("devices.get", "0i_r")
    def devices_get(self, index: int) -> Device | None:
        """A device by number; null past the last."""
        return self._devices[index] if 0 <= index < len(self._devices) else None

    @export("device.allocator", "0r_r")
    def device_allocator(self, device: Ref) -> ProgramAllocator:
        """The device's allocator."""
        try:
            return self.contexts[device].allocator
        except (KeyError, TypeError):
            return self.device_context(device).allocator

    @export("device.query.i64", "0rrr_iI")
    def device_query_i64(self, device: Ref, category: Ref, key: Ref) -> tuple[int, int]:
        """(1, value), or (0, 0) for an unknown query."""
        value = self.device_context(device).device.query(text_of(category, "category"), text_of(key, "key"))
        return (0, 0) if value is None else (1, value)

    @export("allocator.select", "0iiICrID_rI")
    def allocator_select(
        self, memory_types: int, usage: int, flags: int, pairs: tuple[tuple[Ref, int], ...]
    ) -> tuple[Device, int]:
        """The first of the devices: there is no policy that prefers another."""
        if not pairs:
            raise InvalidArgumentError("allocator.select needs at least one device")
        device, affinity = pairs[0]
        return self.device_context(device).device, affinity

    @export("allocator.allocate", "0rIiiI_r")
    def allocator_allocate(self, allocator: Ref, affinity: int, memory_types: int, usage: int, size: int) -> Buffer:
        """A buffer with undefined contents."""
        return require(allocator, ProgramAllocator, "allocator").allocate(memory_types, usage, size)

    @export("allocator.import", "0riIiirII_r")
    def allocator_import(
        self,
        allocator: Ref,
        attempt: int,
        affinity: int,
        memory_types: int,
        usage: int,
        source: Ref,
        offset: int,
        size: int,
    ) -> Buffer | None:
        """A buffer over host memory in place; null if that is not possible and ``attempt`` is set."""
        found = require(allocator, ProgramAllocator, "allocator")
        view = memory_of(source, "source")
        if size == -1:
            size = view.nbytes
        if offset < 0 or size < 0 or offset + size > view.nbytes:
            raise InvalidArgumentError(
                f"allocator.import: bytes [{offset}, {offset + size}) do not lie within the {view.nbytes} bytes given"
            )
        if view.readonly and not usage & _IMMUTABLE:
            raise PermissionDeniedError("allocator.import: constant data can only be imported for constant use")
        device = self.device_context(found.device).device
        # On a device with its own memory kernels would read imported memory over the bus.
        if attempt and (device.staging or size < _MIN_IMPORT):
            return None
        buffer = device.import_buffer(view[offset : offset + size], copy=not attempt)
        if buffer is None:
            return None
        adopted = found.adopt(buffer)
        adopted.memory_type |= MemoryTypeFlags(memory_types)
        adopted.usage = BufferUsage(usage)
        if usage & _IMMUTABLE:
            adopted.access = MemoryAccess.READ
        return adopted

    @export("channel.create", "0rIIrrii_r", "0rIirrii_r")
    @export("channel.split", "0riiI_r", "0riii_r")
    @export("channel.rank_and_count", "0r_ii")
    @export("command_buffer.collective", "0rriiiirrIIIII_v")
    def collective(self, *arguments: Ref) -> Ref:
        """Not implemented."""
        raise UnimplementedError(
            "collectives between devices (hal.channel, hal.command_buffer.collective) are not implemented; compile the "
            "program for one device a context"
        )
