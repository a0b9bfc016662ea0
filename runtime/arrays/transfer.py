"""Moves a kernel call's arguments to the device and its results back, in one submission with the kernel.

Small NumPy arrays are copied into memory that is kept between calls, through staging memory where the host does not
see the device's. Large ones are *imported* where the device can: the kernel works in the NumPy array's own memory.
Arrays of the device are used in place; a view that starts where the device cannot bind is copied to a temporary array
and back.

Calling sequence: ``bring`` each argument → ``place`` → ``run`` → ``finish`` → ``close``. One thread.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ...closing import Closing
from ...hal.buffer import Buffer
from ...hal.command_buffer import CommandBuffer
from .array import DeviceArray, new_array
from .array_device import ArrayDevice
from .spec import ArraySpec, raw_bytes
from .staging import Place, Staging, StagingPool

# Below this a copy costs less than making the native objects of an import.
_IMPORT_BYTES: Final = 256 << 10


class Transfer(Closing):
    """The moves of one kernel call.

    Attributes:
        arrays: the arguments on the device, complete once ``place`` was called.
        results: what the call returns for each argument that the kernel writes.
    """

    def __init__(self, device: ArrayDevice, pool: StagingPool, alignment: int, *, to_host: bool) -> None:
        """Begins a call: the pipeline binds at multiples of ``alignment``; ``to_host``: the results are NumPy's."""
        self._device = device
        self._pool = pool
        self._alignment = alignment
        self._to_host = to_host
        self.arrays: list[DeviceArray | None] = []
        self.results: list[np.ndarray | DeviceArray | None] = []
        self._places: list[Place] = []
        self._staged: list[tuple[int, np.ndarray | ArraySpec]] = []  # index among the arguments, and what was given
        self._staging: Staging | None = None
        self._reads: list[tuple[int, np.ndarray]] = []
        self._before: list[tuple[Buffer, Buffer]] = []
        self._after: list[tuple[Buffer, Buffer]] = []
        self._temporaries: list[DeviceArray] = []
        self._payload = -1
        self._imported = False

    def bring(self, value: np.ndarray | DeviceArray | ArraySpec, *, written: bool, into: np.ndarray | None) -> None:
        """Adds the next argument, C-contiguous; ``into`` is the NumPy array that takes its result, if there is one."""
        array: DeviceArray | None = None
        result: np.ndarray | DeviceArray | None = None
        if isinstance(value, DeviceArray):
            array, result = self._aligned(value, written=written), value
        elif written and not (self._to_host or into is not None):
            array = result = new_array(self._device, value.shape, value.dtype)
            if isinstance(value, np.ndarray):
                array.mark(self._device.upload(value, array.buffer), written=True)
        else:
            host = None
            if written:
                result = host = into if into is not None else np.empty(value.shape, value.dtype)
            # Imported memory is in use until the kernel is done; only calls that wait for results import.
            if value.nbytes >= _IMPORT_BYTES and not self._device.staging and (self._to_host or host is not None):
                array = self._import(value, host)
            if array is None:
                if host is not None:
                    self._reads.append((len(self._places), host))
                self._staged.append((len(self.arrays), value))
                self._places.append((value.shape, value.dtype, type(value) is not ArraySpec, host is not None))
        self.arrays.append(array)
        self.results.append(result)

    def _aligned(self, array: DeviceArray, *, written: bool) -> DeviceArray:
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

    def place(self) -> list[DeviceArray]:
        """Copies the host's arguments into device memory; returns all arguments on the device."""
        if self._places:
            staging = self._staging = self._pool.take(self._places)
            for index, ((at, value), array) in enumerate(zip(self._staged, staging.arrays, strict=True)):
                self.arrays[at] = array
                if isinstance(value, np.ndarray) and value.nbytes:
                    staging.write(index, value)
        return [array for array in self.arrays if array is not None]

    def run(self, commands: CommandBuffer) -> int:
        """Submits the copies and the kernel together; returns the payload that marks their end."""
        staging = self._staging
        batch = [commands] if staging is None else [*staging.before, commands, *staging.after]
        once = []
        try:
            if self._before:
                once.append(self._device.copies(self._before, "uploads"))
                batch.insert(0, once[-1])
            if self._after:
                once.append(self._device.copies(self._after, "downloads"))
                batch.append(once[-1])
            self._payload = self._device.submit(batch)
        except BaseException:
            for copies in once:
                copies.close()
            raise
        return self._payload

    def finish(self) -> None:
        """Waits for the kernel if results go to the host, and copies them."""
        staging = self._staging
        if self._reads or self._imported:
            self._device.wait(self._payload)
            self._payload = 0
        if staging is not None:
            for index, result in self._reads:
                if result.nbytes:
                    staging.read(index, result)

    def close(self) -> None:
        """Gives memory back to the pool and frees temporary arrays; idempotent."""
        staging, self._staging = self._staging, None
        if staging is not None:
            if self._payload < 0:
                staging.close()  # it may have been submitted, with an unknown payload
            else:
                staging.payload = self._payload
                self._pool.give_back(staging)
        for temporary in self._temporaries:
            temporary.close()
        self._temporaries.clear()
