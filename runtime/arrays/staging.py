"""Device memory for the host arguments of kernel calls, kept from call to call.

Allocating memory for each call is slow, and so is freeing it, as after the close of a buffer the next submission checks
all its resources again. So a call takes the memory of an earlier call of the same shapes.

Thread rule: a pool may be used from any thread; a ``Staging`` belongs to the call that took it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from ...hal.buffer import Buffer
from ...hal.command_buffer import CommandBuffer
from .array import DeviceArray, new_array
from .array_device import READBACK, UPLOAD, ArrayDevice

_MAX_KEPT: Final = 64  # calls that the host may be ahead of the device without new memory
_MAX_KEPT_BYTES: Final = 16 << 20

Place: TypeAlias = tuple[tuple[int, ...], np.dtype[np.generic], bool, bool]
"""The memory that an argument needs: shape and dtype, and whether the host writes and reads it."""


class Staging:
    """The memory of one call.

    If the device's memory is not visible to the host, the host uses staging buffers, and commands copy.

    Attributes:
        arrays: the arrays that the kernel binds, one for each of ``places``.
        before, after: the commands to submit before and after the kernel's.
        nbytes: the bytes of device memory; staging buffers take at most twice as much in addition.
        payload: the payload at which the last use is done; 0 if it is known to be done.
    """

    __slots__ = ("_inputs", "_outputs", "after", "arrays", "before", "nbytes", "payload", "places")

    def __init__(self, device: ArrayDevice, places: Sequence[Place]) -> None:
        self.places: Sequence[Place] = places
        self.arrays: list[DeviceArray] = []
        self.before: list[CommandBuffer] = []
        self.after: list[CommandBuffer] = []
        self.payload: int = 0
        # The host's views by place, and their staging buffers, if any.
        self._inputs: dict[int, tuple[np.ndarray, Buffer | None]] = {}
        self._outputs: dict[int, tuple[np.ndarray, Buffer | None]] = {}
        try:
            self._make(device)
        except BaseException:
            self.close()
            raise
        self.nbytes: int = sum(array.nbytes for array in self.arrays)

    def _make(self, device: ArrayDevice) -> None:
        uploads: list[tuple[Buffer, Buffer]] = []
        downloads: list[tuple[Buffer, Buffer]] = []
        for index, (shape, dtype, written, read) in enumerate(self.places):
            array = new_array(device, shape, dtype)
            self.arrays.append(array)
            if not array.nbytes:
                continue
            if array.buffer.host_visible:
                self._inputs[index] = self._outputs[index] = _view(array.buffer, array), None
                continue
            if written:
                staged = device.hal.create_buffer(array.nbytes, memory_type=UPLOAD)
                self._inputs[index] = _view(staged, array), staged
                uploads.append((staged, array.buffer))
            if read:
                staged = device.hal.create_buffer(array.nbytes, memory_type=READBACK)
                self._outputs[index] = _view(staged, array), staged
                downloads.append((array.buffer, staged))
        if uploads:
            self.before.append(device.copies(uploads, "uploads", one_shot=False))
        if downloads:
            self.after.append(device.copies(downloads, "downloads", one_shot=False))

    def write(self, index: int, value: np.ndarray) -> None:
        """Copies an array in; a submission of ``before`` copies it to the device."""
        view, staged = self._inputs[index]
        np.copyto(view, value)
        if staged is not None:
            staged.flush()

    def read(self, index: int, out: np.ndarray) -> None:
        """Copies an array out, once the work of ``after`` is done."""
        view, staged = self._outputs[index]
        if staged is not None:
            staged.invalidate()
        np.copyto(out, view)

    def close(self) -> None:
        """Frees everything, once work in flight is done; idempotent."""
        staged = [buffer for _, buffer in (*self._inputs.values(), *self._outputs.values()) if buffer is not None]
        self._inputs.clear()  # views keep memory alive
        self._outputs.clear()
        for commands in (*self.before, *self.after):
            commands.close()
        for buffer in staged:
            buffer.close()
        for array in self.arrays:
            array.close()


def _view(buffer: Buffer, array: DeviceArray) -> np.ndarray:
    """Returns the host's view of a buffer that holds the array's elements."""
    return np.frombuffer(buffer.map(), np.uint8).view(array.dtype).reshape(array.shape)


class StagingPool:
    """Free memory of one kernel's calls, for at most 64 calls, and 16 MiB of device memory."""

    def __init__(self, device: ArrayDevice) -> None:
        self._device = device
        self._lock = threading.Lock()
        # By the places, which were last used first; the memory of each in order of return.
        self._free: OrderedDict[tuple[Place, ...], deque[Staging]] = OrderedDict()
        self._recent: tuple[Sequence[Place], deque[Staging]] = ((), deque())  # to compare costs less than to hash
        self._count = 0
        self._nbytes = 0
        self._closed = False
        device.hal.caches.add(self)

    def take(self, places: Sequence[Place]) -> Staging:
        """Returns memory for these places, exclusively for the caller until ``give_back`` or ``close``."""
        with self._lock:
            recent, free = self._recent
            if recent != places:
                free = self._of(places)
            # The following ones were used later than the first.
            if free and (not free[0].payload or self._device.has_reached(free[0].payload)):
                self._count -= 1
                self._nbytes -= free[0].nbytes
                return free.popleft()
        return Staging(self._device, places)

    def give_back(self, staging: Staging) -> None:
        """Keeps the memory of a call, and frees the oldest above the limits."""
        surplus = [staging]
        if staging.nbytes <= _MAX_KEPT_BYTES:
            with self._lock:
                if not self._closed:
                    recent, free = self._recent
                    (free if recent == staging.places else self._of(staging.places)).append(staging)
                    self._count += 1
                    self._nbytes += staging.nbytes
                    surplus.clear()
                while self._count > _MAX_KEPT or self._nbytes > _MAX_KEPT_BYTES:
                    surplus += self._take_oldest()
        for freed in surplus:
            freed.close()

    def _of(self, places: Sequence[Place]) -> deque[Staging]:
        """Returns the memory for these places, and makes them the last used."""
        key = tuple(places)
        free = self._free.setdefault(key, deque())
        self._free.move_to_end(key)
        self._recent = places, free
        return free

    def _take_oldest(self) -> list[Staging]:
        """Takes the oldest memory of the least recently used places, if there is any."""
        places, free = next(iter(self._free.items()))
        if not free:
            del self._free[places]
            self._recent = (), deque()
            return []
        self._count -= 1
        self._nbytes -= free[0].nbytes
        return [free.popleft()]

    def trim(self) -> None:
        """Frees the kept memory."""
        with self._lock:
            free, self._free = self._free, OrderedDict()
            self._recent = (), deque()
            self._count = self._nbytes = 0
        for staged in free.values():
            for staging in staged:
                staging.close()

    def close(self) -> None:
        """Frees the memory, and from now on the memory that running calls return; idempotent."""
        self._closed = True
        self.trim()
