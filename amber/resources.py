"""The buffers of a script on a device."""

from __future__ import annotations

import numpy as np

from ..closing import Closing
from ..hal_vulkan.memory.buffer import Buffer as HalBuffer
from ..runtime.arrays.array import DeviceArray
from ..runtime.device import Device
from ..status import UnimplementedError
from .script import BUFFER_KINDS, WHOLE, Binding, Script
from .values import Bytes


class Resources(Closing):
    """What a script's pipelines bind, made on first use; ``close`` frees it.

    A buffer lives in device memory from its first use to the end of the script, whatever pipelines bind it.
    """

    def __init__(self, device: Device, script: Script) -> None:
        self._device = device
        self._script = script
        self._arrays: dict[str, DeviceArray] = {}

    def array(self, name: str) -> DeviceArray:
        """A buffer's memory, as bytes."""
        found = self._arrays.get(name)
        if found is None:
            data = np.frombuffer(self._script.buffers[name].data, np.uint8)
            found = self._arrays[name] = self._device.asarray(data)
        return found

    def read(self, name: str) -> Bytes:
        """A buffer's contents, once what was submitted is done."""
        return np.asarray(self.array(name).numpy(), np.uint8)

    def write(self, name: str, offset: int, data: bytes) -> None:
        """Writes bytes of a buffer."""
        self.array(name)[offset : offset + len(data)] = np.frombuffer(data, np.uint8)

    def copy(self, source: str, target: str) -> None:
        """Copies all of a buffer to another of its size."""
        self.array(target).copy_from(self.array(source))

    def bound(self, binding: Binding) -> list[HalBuffer]:
        """What a binding binds, in order of its descriptors."""
        if binding.kind not in BUFFER_KINDS:
            raise UnimplementedError(f"bindings of {binding.kind}")
        return [self._range(binding, index) for index in range(len(binding.resources))]

    def _range(self, binding: Binding, index: int) -> HalBuffer:
        """The bytes of a buffer that a descriptor sees. A dynamic offset is a part of the descriptor's own."""
        buffer = self.array(binding.resources[index]).buffer
        assert isinstance(buffer, HalBuffer)
        offset = sum(offsets[index] for offsets in (binding.offsets, binding.descriptor_offsets) if offsets)
        length = binding.ranges[index] if binding.ranges else WHOLE
        if not offset and length == WHOLE:
            return buffer
        return buffer.subspan(offset, None if length == WHOLE else length)

    def mark(self, binding: Binding, payload: int, *, written: bool) -> None:
        """Notes that submitted work uses what a binding binds."""
        for name in binding.resources:
            if name in self._arrays:
                self._arrays[name].mark(payload, written=written)

    def close(self) -> None:
        """Frees everything; idempotent."""
        for array in self._arrays.values():
            array.close()
        self._arrays.clear()
