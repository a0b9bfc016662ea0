"""Moves a kernel call's arguments to the device and its results back, in one submission with the kernel.

Three ways, by device and size. Where the host sees device memory, arguments are written into it. Large NumPy arrays
are *imported*: the kernel works in the arrays' own memory and nothing is copied. On discrete GPUs copies through
staging memory are recorded before and after the kernel.

Calling sequence: ``bring`` each argument → ``run`` → ``finish`` → ``close``, which gives the temporaries back. One
thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Final

import numpy as np

from ...hal_vulkan import Buffer, CommandBuffer
from .array import DeviceArray, new_array
from .array_device import READBACK, UPLOAD, ArrayDevice
from .spec import ArraySpec, raw_bytes

__all__ = ["Transfer"]

# Below this a copy costs less than making the native objects of an import.
_IMPORT_BYTES: Final = 256 << 10


class Transfer:
    """The moves of one kernel call."""

    def __init__(self, device: ArrayDevice, alignment: int) -> None:
        """A call whose pipeline binds at multiples of ``alignment`` bytes."""
        self._device = device
        self._alignment = alignment
        self._before: list[tuple[Buffer, Buffer]] = []
        self._after: list[tuple[Buffer, Buffer]] = []
        self._reads: list[tuple[Buffer, np.ndarray]] = []
        self._temporaries: list[Buffer | DeviceArray] = []
        self._imported = False

    def bring(
        self,
        value: np.ndarray | DeviceArray | ArraySpec,
        *,
        written: bool,
        to_host: bool,
        into: np.ndarray | None,
    ) -> tuple[DeviceArray, np.ndarray | DeviceArray | None]:
        """An argument on the device, and what the call returns for it if the kernel writes it.

        Args:
            value: the argument.
            written: whether the kernel writes it.
            to_host: whether its result goes back to the host, and so is waited for.
            into: the array that takes the result; ``None`` makes one.
        """
        if isinstance(value, DeviceArray):
            return self._align(value, written=written), value
        shape, dtype = value.shape, value.dtype
        if not to_host:
            array = new_array(self._device, shape, dtype)
            if isinstance(value, np.ndarray):
                self._upload(value, array)
            if not written:
                self._temporaries.append(array)
            return array, array
        result = None
        if written:
            result = into if into is not None else np.empty(shape, dtype)
        if value.nbytes >= _IMPORT_BYTES:
            imported = self._import(value, result)
            if imported is not None:
                return imported, result
        array = new_array(self._device, shape, dtype)
        self._temporaries.append(array)
        if isinstance(value, np.ndarray):
            self._upload(value, array)
        if result is not None:
            self._download(array, result)
        return array, result

    def _align(self, array: DeviceArray, *, written: bool) -> DeviceArray:
        """A view that starts where the device cannot bind takes a detour through an array of its own."""
        if not array.buffer.offset % self._alignment or not array.nbytes:
            return array
        aligned = new_array(self._device, array.shape, array.dtype)
        self._temporaries.append(aligned)
        self._before.append((array.buffer, aligned.buffer))
        if written:
            self._after.append((aligned.buffer, array.buffer))
        return aligned

    def _import(self, value: np.ndarray | ArraySpec, result: np.ndarray | None) -> DeviceArray | None:
        """The device's view of the NumPy array itself: of the result if there is one, else of the input."""
        if self._device.staging:
            return None
        memory = result if result is not None else value
        assert isinstance(memory, np.ndarray)
        buffer = self._device.hal.import_buffer(raw_bytes(memory), copy=False)
        if buffer is None:
            return None
        if buffer.offset % self._alignment:
            buffer.close()
            return None
        if result is not None and isinstance(value, np.ndarray) and result is not value:
            np.copyto(result, value)
        array = DeviceArray(self._device, buffer, value.shape, value.dtype, value.nbytes)
        self._temporaries.append(array)
        self._imported = True
        return array

    def _upload(self, value: np.ndarray, array: DeviceArray) -> None:
        raw = raw_bytes(value)
        if array.buffer.host_visible:
            array.buffer.write(raw)
        else:
            staged = self._device.hal.create_buffer(value.nbytes, memory_type=UPLOAD)
            self._temporaries.append(staged)
            staged.write(raw)
            self._before.append((staged, array.buffer))

    def _download(self, array: DeviceArray, result: np.ndarray) -> None:
        if array.buffer.host_visible:
            self._reads.append((array.buffer, result))
        else:
            staged = self._device.hal.create_buffer(array.nbytes, memory_type=READBACK)
            self._temporaries.append(staged)
            self._after.append((array.buffer, staged))
            self._reads.append((staged, result))

    def run(self, commands: CommandBuffer) -> int:
        """Submits the copies and the kernel together; returns the payload that marks their end."""
        batch = [commands]
        try:
            if self._before:
                batch.insert(0, self._copies("uploads", self._before))
            if self._after:
                batch.append(self._copies("downloads", self._after))
            return self._device.submit(batch)
        except BaseException:
            for copies in batch:
                if copies is not commands:
                    copies.close()
            raise

    def _copies(self, name: str, copies: Sequence[tuple[Buffer, Buffer]]) -> CommandBuffer:
        commands = self._device.hal.create_command_buffer(one_shot=True, name=name).begin()
        try:
            for source, target in copies:
                commands.copy(source, target)
            return commands.end()
        except BaseException:
            commands.close()
            raise

    def finish(self, payload: int) -> None:
        """Waits where something goes back to the host, and reads it."""
        if self._reads or self._imported:
            self._device.wait(payload)
        for buffer, result in self._reads:
            buffer.read_into(raw_bytes(result))

    def close(self) -> None:
        """Gives the temporaries back; idempotent."""
        for temporary in self._temporaries:
            temporary.close()
        self._temporaries.clear()

    def __enter__(self) -> Transfer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
