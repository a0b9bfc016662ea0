"""Exports of the ``hal`` module about devices and their allocators, and about collectives, which it rejects."""

from __future__ import annotations

from ....hal.buffer import Buffer
from ....hal.device import Device
from ....hal.program import ProgramAllocator
from ....hal.programs.checks import Ref, require
from ....hal.programs.device_context import DeviceTable
from ....hal.programs.file import import_memory
from ....status import InvalidArgumentError, UnimplementedError
from ....vm.native.module import export
from .reference import memory_of, text_of


class Channel:
    """A collective channel; no channel can be made."""


class Event:
    """An event within a command buffer; no module makes events."""


class DeviceExports(DeviceTable):
    """``hal.devices.*``, ``hal.device.query``, ``hal.allocator.*`` and ``hal.channel.*``."""

    @export("devices.count", "0v_i")
    def devices_count(self) -> int:
        """Returns the number of devices."""
        return len(self._devices)

    @export("devices.get", "0i_r")
    def devices_get(self, index: int) -> Device | None:
        """Returns a device by number; null beyond the last."""
        return self._devices[index] if 0 <= index < len(self._devices) else None

    @export("device.allocator", "0r_r")
    def device_allocator(self, device: Ref) -> ProgramAllocator:
        """Returns the device's allocator."""
        try:
            return self.contexts[device].allocator
        except (KeyError, TypeError):
            return self.device_context(device).allocator

    @export("device.query.i64", "0rrr_iI")
    def device_query_i64(self, device: Ref, category: Ref, key: Ref) -> tuple[int, int]:
        """Returns (1, value), or (0, 0) for an unknown query."""
        value = self.device_context(device).device.query(text_of(category, "category"), text_of(key, "key"))
        return (0, 0) if value is None else (1, value)

    @export("allocator.select", "0iiICrID_rI")
    def allocator_select(
        self, memory_types: int, usage: int, flags: int, pairs: tuple[tuple[Ref, int], ...]
    ) -> tuple[Device, int]:
        """Returns the first device, as there is no policy that prefers another."""
        if not pairs:
            raise InvalidArgumentError("allocator.select needs at least one device")
        device, affinity = pairs[0]
        return self.device_context(device).device, affinity

    @export("allocator.allocate", "0rIiiI_r")
    def allocator_allocate(self, allocator: Ref, affinity: int, memory_types: int, usage: int, size: int) -> Buffer:
        """Returns a buffer with undefined contents."""
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
        """Returns a buffer over host memory in place; null if that is not possible and ``attempt`` is set."""
        checked = require(allocator, ProgramAllocator, "allocator")
        device = self.device_context(checked.device).device
        data = memory_of(source, "source")
        return import_memory(device, checked, data, offset, size, memory_types, usage, attempt=bool(attempt))

    @export("channel.create", "0rIIrrii_r", "0rIirrii_r")
    @export("channel.split", "0riiI_r", "0riii_r")
    @export("channel.rank_and_count", "0r_ii")
    @export("command_buffer.collective", "0rriiiirrIIIII_v")
    def collective(self, *arguments: Ref) -> Ref:
        """Raises: collectives are not implemented."""
        raise UnimplementedError(
            "collectives between devices (hal.channel, hal.command_buffer.collective) are not implemented; compile the "
            "program for one device a context"
        )
