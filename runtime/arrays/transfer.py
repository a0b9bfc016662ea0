"""The transfer of a kernel call: copies arguments to the device and results back, in one submission with the kernel.

Small NumPy arrays are copied into memory that is kept between calls, through staging memory if the device's is not
visible to the host. Large arrays are *imported* if the device can: the kernel works in the NumPy array's own memory.
Device arrays are used in place; a view at an offset that the device cannot bind is copied to a temporary array and
back.

Calling sequence: ``bring`` or ``carry`` each argument → ``place`` → ``run`` → ``finish`` → ``close``. One thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np

from ...base.closeable import Closeable
from ...hal.buffer import Buffer
from ...hal.command_buffer import CommandBuffer
from .array import DeviceArray, array_of, new_array, uploaded
from .array_device import ArrayDevice
from .spec import ArraySpec, raw_bytes
from .staging import Place, Staging, StagingPool

# Below this a copy costs less than making the native objects of an import.
_IMPORT_BYTES: Final = 256 << 10


class Placed(Protocol):
    """An argument on the device, such as an array or an image."""

    def mark(self, payload: int, *, written: bool) -> None:
        """Notes a use by submitted work."""


class Transfer(Closeable):
    """The copies of one kernel call.

    Attributes:
        device: the device that runs the call.
        to_host: whether results are NumPy arrays.
        recorded: whether the call is recorded, so that all arguments stay on the device.
        arguments: the arguments on the device, complete after ``place``.
        results: the call's result for each argument that the kernel writes.
        marks: the arguments that note the work, and whether the kernel writes them.
        before, after: the copies around the kernel between arrays of the device.
    """

    def __init__(
        self, device: ArrayDevice, pool: StagingPool, alignment: int, *, to_host: bool, recorded: bool = False
    ) -> None:
        """Begins a call. ``alignment`` applies to bound offsets; ``to_host``: whether results are NumPy arrays."""
        self.device = device
        self._pool = pool
        self._alignment = alignment
        self.to_host = to_host
        self.recorded = recorded
        self.arguments: list[Placed | None] = []
        self.results: list[object] = []
        self._places: list[Place] = []
        self._staged: list[
            tuple[int, np.ndarray | ArraySpec]
        ] = []  # indices among the arguments, and the host's values
        self._staging: Staging | None = None
        self._reads: list[tuple[int, np.ndarray]] = []
        self.before: list[tuple[Buffer, Buffer]] = []
        self.after: list[tuple[Buffer, Buffer]] = []
        self.marks: list[tuple[Placed, bool]] = []
        self._temporaries: list[Closeable] = []
        self._finishing: list[Callable[[], None]] = []
        self._payload = -1
        self._imported = False

    def bring(self, value: np.ndarray | DeviceArray | ArraySpec, *, written: bool, into: np.ndarray | None) -> None:
        """Adds the next argument, C-contiguous; ``into`` is the NumPy array that receives its result, if any."""
        array: DeviceArray | None = None
        result: np.ndarray | DeviceArray | None = None
        if isinstance(value, DeviceArray):
            array, result = self._aligned(value, written=written), value
            self.marks.append((value, written))
        elif written and not (self.to_host or into is not None):
            if isinstance(value, np.ndarray):
                array = result = array_of(self.device, value)
            else:
                array = result = new_array(self.device, value.shape, value.dtype)
            self.marks.append((array, True))
        elif self.recorded and isinstance(value, np.ndarray):
            array = uploaded(self.device, value)
            self.marks.append((array, False))
        else:
            host = None
            if written:
                result = host = into if into is not None else np.empty(value.shape, value.dtype)
            # Imported memory is in use until the kernel is done; only calls that wait for results import.
            if value.nbytes >= _IMPORT_BYTES and not self.device.staging and (self.to_host or host is not None):
                array = self._import(value, host)
            if array is None:
                if host is not None:
                    self._reads.append((len(self._places), host))
                self._staged.append((len(self.arguments), value))
                self._places.append((value.shape, value.dtype, type(value) is not ArraySpec, host is not None))
        self.arguments.append(array)
        self.results.append(result)

    def carry(
        self, value: Placed, result: object, *, owner: Closeable | None = None, finish: Callable[[], None] | None = None
    ) -> None:
        """Adds the next argument, already on the device.

        Args:
            value: the argument.
            result: the call's result for it, if the kernel writes it.
            owner: the owner to close with the call.
            finish: a function that is called after the submission, to wait for it and fill ``result``.
        """
        self.arguments.append(value)
        self.results.append(result)
        self.marks.append((value, result is not None))
        if owner is not None:
            self._temporaries.append(owner)
        if finish is not None:
            self._finishing.append(finish)

    def _aligned(self, array: DeviceArray, *, written: bool) -> DeviceArray:
        if not array.buffer.offset % self._alignment or not array.nbytes:
            return array
        aligned = new_array(self.device, array.shape, array.dtype)
        self._temporaries.append(aligned)
        self.before.append((array.buffer, aligned.buffer))
        if written:
            self.after.append((aligned.buffer, array.buffer))
        return aligned

    def _import(self, value: np.ndarray | ArraySpec, result: np.ndarray | None) -> DeviceArray | None:
        """Returns the device's view of a NumPy array's memory: the result's if there is one, else the input's."""
        memory = result if result is not None else value
        assert isinstance(memory, np.ndarray)
        buffer = self.device.hal.import_buffer(raw_bytes(memory), copy=False)
        if buffer is None:
            return None
        if buffer.offset % self._alignment:
            buffer.close()
            return None
        if result is not None and isinstance(value, np.ndarray) and result is not value:
            np.copyto(result, value)
        array = DeviceArray(self.device, buffer, value.shape, value.dtype, value.nbytes)
        self._temporaries.append(array)
        self._imported = True
        return array

    def place(self) -> list[Placed]:
        """Copies the host's arguments into device memory; returns all arguments on the device."""
        if self._places:
            staging = self._staging = self._pool.take(self._places)
            for index, ((at, value), array) in enumerate(zip(self._staged, staging.arrays, strict=True)):
                self.arguments[at] = array
                if isinstance(value, np.ndarray) and value.nbytes:
                    staging.write(index, value)
        return self.arguments  # type: ignore[return-value]  # none is None any more

    @property
    def copies(self) -> bool:
        """Whether ``run`` submits copies besides the kernel's commands."""
        staging = self._staging
        return bool(self.before or self.after or (staging is not None and (staging.before or staging.after)))

    @property
    def is_empty(self) -> bool:
        """Whether all arguments are used where they are, so that nothing has to be copied or freed."""
        return not (self._places or self.before or self._temporaries or self._finishing or self._imported)

    def run(self, commands: CommandBuffer) -> int:
        """Submits the copies and the kernel together, and notes the work; returns the payload that marks its end."""
        staging = self._staging
        batch = [commands] if staging is None else [*staging.before, commands, *staging.after]
        once = []
        try:
            if self.before:
                once.append(self.device.copies(self.before, "uploads"))
                batch.insert(0, once[-1])
            if self.after:
                once.append(self.device.copies(self.after, "downloads"))
                batch.append(once[-1])
            payload = self.device.hal.compute_queue.submit(batch)
        except BaseException:
            for copies in once:
                copies.close()
            raise
        self.note(payload)
        return payload

    def note(self, payload: int) -> None:
        """Notes the work of a submission, which ends at ``payload`` of the device's stream."""
        self._payload = payload
        for argument, written in self.marks:
            argument.mark(payload, written=written)

    @property
    def reaches_host(self) -> bool:
        """Whether a result goes to the host."""
        return self.to_host or bool(self._reads)

    def finish(self) -> None:
        """Waits for the kernel if results go to the host, and copies them."""
        staging = self._staging
        if self._reads or self._imported:
            self.device.reach(self._payload)
            self._payload = 0
        if staging is not None:
            for index, result in self._reads:
                if result.nbytes:
                    staging.read(index, result)
        for finish in self._finishing:
            finish()

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
