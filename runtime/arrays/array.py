"""Arrays on a device, with NumPy's shape and dtype.

A ``DeviceArray`` is a typed view of a buffer. Work that writes it may still be in flight: reading it (``numpy()``,
``np.asarray``, DLPack, ``repr``) waits. Passing it to another kernel does not wait, since a device runs its work in
order.

The memory is freed when the array is garbage-collected, or earlier by ``close`` or a ``with`` block.

Thread rule: an array may be used from any thread; the caller orders concurrent writes to one array.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...base.closeable import Closeable
from ...formats.element_type import ElementType
from ...hal.buffer import Buffer
from ...hal.buffer_view import BufferView
from ...status import ClosedError, InvalidArgumentError, UnimplementedError
from ...waits.awaitable import await_source
from ...waits.wait_mode import WaitMode, waits
from .array_device import ArrayDevice, check_timeout
from .preview import Previewed
from .recorder import CopyStep, open_recorders, recorder_of
from .spec import Index, check_dtype, check_out, contiguous_part, reshaped
from .uses import Uses
from .verdict import NO_VERDICTS

if TYPE_CHECKING:
    from ...waits.source import WaitSource

ArrayLike: TypeAlias = "npt.ArrayLike | DeviceArray"
"""Values that arrays are made from: device arrays, NumPy arrays, and values that NumPy converts to arrays."""


class DeviceArray(Previewed, Closeable):
    """A C-contiguous array in device memory. Made by ``Device.asarray``, ``Device.empty`` and kernels.

    Attributes:
        device: the array's device.
        buffer: the HAL buffer behind it, ``nbytes`` long.
        shape: the lengths of its axes.
        dtype: the NumPy dtype of the elements.
        nbytes: the number of bytes of its elements.
        token: a unique object, for keys that do not keep the array alive.
        uses: the work that uses its memory; shared with its views. For the runtime.
    """

    __slots__ = (
        "_base",
        "_program_view",
        "_shared",
        "buffer",
        "device",
        "dtype",
        "nbytes",
        "shape",
        "token",
        "uses",
    )

    def __init__(
        self,
        device: ArrayDevice,
        buffer: Buffer,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        nbytes: int,
        base: DeviceArray | None = None,
        shared: Buffer | None = None,
    ) -> None:
        self.device: ArrayDevice = device
        self.buffer: Buffer = buffer
        self.shape: tuple[int, ...] = shape
        self.dtype: np.dtype[np.generic] = dtype
        self.nbytes: int = nbytes
        self.token: object = object()  # unlike a counter, it needs no lock
        self.uses: Uses = Uses(device.mark_lock) if base is None else base.uses
        self._base = base
        self._shared = shared  # frees the memory in place of this array
        self._program_view: BufferView | None = None

    # -- shape ---------------------------------------------------------------------------------------

    @property
    def device_address(self) -> int:
        """The address of the first element on the device, for kernels that take pointers (``bufferDeviceAddress``).

        An address keeps no memory alive. A call with the array itself as a pointer, ``k(x_ptr=array)``, passes the
        address and keeps the array alive; a call with the number needs ``uses=[array]``.

        Raises:
            ClosedError: the array was closed.
            UnimplementedError: the device has no addresses.
        """
        self._check_open()
        address = self.buffer.device_address
        if not address:
            raise UnimplementedError(
                f"{self.device.name} has no device addresses (feature bufferDeviceAddress): use a kernel that "
                "takes its arrays in bindings"
            )
        return address

    def __iter__(self) -> Iterator[DeviceArray]:
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape: int) -> DeviceArray:
        """Returns a view with another shape and the same element count; one length may be -1.

        Raises:
            InvalidArgumentError: the element counts differ.
        """
        return self._view(0, reshaped(self.shape, shape), self.dtype)

    def view(self, dtype: npt.DTypeLike) -> DeviceArray:
        """Returns a view of the same bytes as elements of another dtype of the same size."""
        other = check_dtype(dtype)
        if other.itemsize != self.dtype.itemsize:
            raise InvalidArgumentError(
                f"view: {self.dtype} elements have {self.itemsize} bytes, {other} {other.itemsize}"
            )
        return self._view(0, self.shape, other)

    def __getitem__(self, index: Index) -> DeviceArray:
        """Returns a view of a contiguous part, selected by integers and slices of step 1.

        Raises:
            InvalidArgumentError: the part is not contiguous; ``x.numpy()[…]`` selects on the host.
            IndexError: an index is outside the axis.
        """
        start, shape = contiguous_part(index, self.shape)
        return self._view(start * self.itemsize, shape, self.dtype)

    def _view(self, offset: int, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> DeviceArray:
        nbytes = math.prod(shape) * dtype.itemsize
        root = self if self._base is None else self._base
        return DeviceArray(self.device, self.buffer.subspan(offset, nbytes), shape, dtype, nbytes, base=root)

    # -- programs ------------------------------------------------------------------------------------

    def buffer_view(self, element_type: ElementType) -> BufferView:
        """Returns a program's view of this array, once work that writes it is done. For the runtime."""
        ready = self.uses.ready
        if ready:
            self.device.finish(ready)
            self.uses.forget_write(ready)
        view = self._program_view
        if view is None or view.element_type is not element_type:
            self._check_open()
            buffer = self.shared()
            view = self._program_view = BufferView(buffer, self.shape, element_type)
        elif self.buffer._closed:
            self._check_open()
        return view

    def shared(self) -> Buffer:
        """Returns the buffer for programs, which may keep the memory longer than the array lives. For the runtime."""
        root = self if self._base is None else self._base
        owner = root._shared
        if owner is None:
            with self.device.mark_lock:  # a second shared buffer would free the memory
                owner = root._shared = root._shared or root.buffer.shared()
        return owner if root is self else owner.subspan(self.buffer.offset - owner.offset, self.nbytes)

    # -- order ---------------------------------------------------------------------------------------

    @property
    def is_view(self) -> bool:
        """Whether its memory belongs to another array. For the runtime."""
        return self._base is not None

    @property
    def ready(self) -> int:
        """The payload at which the last write is done; 0 if it is known to be done. For the runtime."""
        return self.uses.ready

    def mark(self, payload: int, *, written: bool) -> None:
        """Notes a use by submitted work. For the runtime."""
        self.uses.note(payload, written=written)

    def mark_pending(self, fence: WaitSource | None) -> None:
        """Notes the fence of a program that writes all of it; ``None`` when the program is done. For the runtime."""
        if self._base is None:
            self.uses.replace_fences(() if fence is None else (fence,))
        elif fence is not None:
            self.uses.add_fence(fence)

    @property
    def is_pending(self) -> bool:
        """Whether a program that writes it may be in flight. For the runtime."""
        return bool(self.uses.fences)

    def wait(self, timeout: float | None = None, *, wait: WaitMode | None = None) -> DeviceArray:
        """Waits until work that writes it is done; returns itself.

        Args:
            timeout: the longest wait in seconds; ``None`` waits forever.
            wait: the wait mode: ``"adaptive"``, ``"block"`` or ``"spin"``, see ``open_device``; ``None`` means the
                device's mode.

        Raises:
            InvalidArgumentError: an argument is not a timeout or not a wait mode.
            DeadlineExceededError: the time passed first; a later wait may succeed.
            PumiceError: the work failed.
        """
        if timeout is not None:
            check_timeout(timeout)
        if wait is not None:
            with waits(wait):
                return self.wait(timeout)
        uses = self.uses
        if open_recorders:
            self._check_read()
        if uses.fences:
            timeout = uses.wait_for_fences(timeout)
        ready = uses.ready
        if ready:  # as ArrayDevice.finish, without the call (benchmarks/submit_wait.py)
            device = self.device
            device.stream.wait(ready, timeout)
            if device.verdicts:
                device.verdicts.check(ready)
        return self

    def __await__(self) -> Generator[Any, Any, DeviceArray]:
        """Suspends a coroutine until work that writes it is done; returns itself. Errors are those of ``wait``."""
        if open_recorders:
            self._check_read()
        for fence in self.uses.fences:
            yield from await_source(fence)
        ready = self.uses.ready
        if ready:
            yield from await_source(self.device.stream.at(ready))
        return self.wait()

    def _check_read(self) -> None:
        recorder = recorder_of(self.device)
        if recorder is not None:
            recorder.check_read(self.uses, f"this array of shape {self.shape}")

    def _wait_unused(self) -> None:
        if self.uses.last:
            self.device.reach(self.uses.last)
        if (self if self._base is None else self._base)._shared is not None:
            # Programs do not mark the arrays that they use, and a call without results may return before its work is
            # done.
            self.device.hal.wait_idle()

    # -- the host ------------------------------------------------------------------------------------

    def numpy(self, out: np.ndarray | None = None) -> np.ndarray:
        """Returns a copy of the contents as a NumPy array, once work that writes it is done.

        Args:
            out: a C-contiguous array of the same shape and dtype to copy into, which is returned.
        """
        self._check_open()
        if out is None:
            out = np.empty(self.shape, self.dtype)
        else:
            check_out(out, self.shape, self.dtype, "out")
        self.wait()
        self.device.download(self.buffer, out)
        return out

    def map(self) -> np.ndarray:
        """Returns the device memory as a writable NumPy array, if the host sees it; waits for uses in flight.

        The view stays valid after ``close``. Do not write it while a kernel uses the array.

        Raises:
            FailedPreconditionError: the memory is not visible to the host (a discrete GPU); use ``numpy`` and
                ``copy_from``.
        """
        self._check_open()
        self.wait()
        self._wait_unused()
        view = self.buffer.map()
        return np.frombuffer(view, np.uint8).view(self.dtype).reshape(self.shape)

    def copy_from(self, source: ArrayLike) -> DeviceArray:
        """Overwrites the contents with those of an array of the same shape and dtype; returns itself.

        Args:
            source: a NumPy array, or a DeviceArray of the same device (copied on the device) or another (through the
                host).

        Raises:
            InvalidArgumentError: the array has another shape or dtype.
        """
        self._check_open()
        if self.is_pending:
            self.uses.settle_fences()
        if open_recorders:
            recorder = recorder_of(self.device)
            if recorder is not None:
                own = source if isinstance(source, DeviceArray) and source.device is self.device else None
                if own is None:
                    own = uploaded(self.device, np.ascontiguousarray(source))
                self._check_same(own.shape, own.dtype)
                own._check_open()
                if self.nbytes:
                    recorder.add(CopyStep(own, self))
                return self
        if isinstance(source, DeviceArray):
            self._check_same(source.shape, source.dtype)
            source._check_open()
            if source.is_pending:
                source.wait()
            if source.device is self.device:
                if self.nbytes:
                    payload = self.device.copy(source.buffer, self.buffer)
                    self._hold(payload, (source.ready,))
                    source.mark(payload, written=False)
                    self.mark(payload, written=True)
                return self
            source = source.numpy()
        data = np.ascontiguousarray(source)
        self._check_same(np.shape(source), data.dtype)
        self._wait_unused()
        payload = self.device.upload(data, self.buffer)
        if payload:
            self._hold(payload)
            self.mark(payload, written=True)
        elif self._base is None:
            self.uses.forget_write(self.ready)  # all of it is overwritten, and no work writes it
        return self

    def _hold(self, payload: int, sources: tuple[int, ...] = ()) -> None:
        """Judges a copy to this array by the verdicts on its source, whose last write has the payload in ``sources``.

        A copy to a view keeps the rest of the array, and so also inherits the verdicts on that.
        """
        if self.device.verdicts:
            self.device.verdicts.hold(payload, NO_VERDICTS, (*sources, self.ready) if self.is_view else sources)

    def _check_same(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
        if shape != self.shape or dtype != self.dtype:
            raise InvalidArgumentError(f"expected shape {self.shape} and dtype {self.dtype}, got {shape} {dtype}")

    def copy(self) -> DeviceArray:
        """Returns a new array with the same contents, copied on the device."""
        self._check_open()
        return new_array(self.device, self.shape, self.dtype).copy_from(self)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, object]) -> DeviceArray:
        return self.copy()

    def astype(self, dtype: npt.DTypeLike) -> DeviceArray:
        """Returns a new array with the elements converted, on the host."""
        return array_of(self.device, self.numpy(), dtype)

    def __setitem__(self, index: Index, value: npt.ArrayLike | DeviceArray) -> None:
        """Overwrites a contiguous part with an array, or with a value that is broadcast as in NumPy."""
        part = self[index]
        if not isinstance(value, DeviceArray):
            try:
                value = np.broadcast_to(np.asarray(value, self.dtype), part.shape)
            except (ValueError, TypeError, OverflowError) as error:
                raise InvalidArgumentError(f"[{index}] of shape {part.shape} and {self.dtype}: {error}") from None
        part.copy_from(value)

    # -- end -----------------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether the array, or the array of which it is a view, was closed."""
        return self.buffer.is_closed

    def _check_open(self) -> None:
        if self.buffer.is_closed:
            raise ClosedError(self.buffer.moved_text or f"this array of shape {self.shape} was closed")

    def close(self) -> None:
        """Frees the memory, once work in flight is done; idempotent. Views of it are closed with it."""
        (self._shared or self.buffer).close()

    def close_for(self, by: str) -> None:
        """Closes the array; later uses raise an error with the text ``by``. For the runtime."""
        owner = self._shared or self.buffer
        owner.moved_by = self.buffer.moved_by = by
        owner.close()

    def __del__(self) -> None:
        # For convenience only: closing the device frees what is left. The garbage collector may run under any lock, so
        # the device's next call closes the buffer.
        if getattr(self, "_base", self) is None and self._shared is None and not self.buffer.is_closed:
            self.device.hal.dropped.append(self.buffer)

    def __repr__(self) -> str:
        if self.is_closed or self.size > 1000:
            return self.head()
        return f"{self.head()}\n{self.numpy()!r}"


def new_array(device: ArrayDevice, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> DeviceArray:
    """Creates an array of undefined contents; the caller checks shape and dtype."""
    nbytes = dtype.itemsize
    for length in shape:
        nbytes *= length
    return DeviceArray(device, device.create_buffer(nbytes), shape, dtype, nbytes)


def array_of(device: ArrayDevice, value: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> DeviceArray:
    """Creates an array from a value that NumPy converts to an array, first converted to ``dtype``."""
    try:
        data = np.asarray(value, None if dtype is None else check_dtype(dtype))
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(error, InvalidArgumentError):
            raise
        raise InvalidArgumentError(f"asarray: {type(value).__name__} cannot become an array: {error}") from None
    data = np.ascontiguousarray(data).reshape(data.shape)
    array = uploaded(device, data)
    recorder = recorder_of(device)
    if recorder is not None and array.nbytes:  # each run makes it anew, as each call would
        source, array = array, new_array(device, data.shape, data.dtype)
        recorder.add(CopyStep(source, array))
    return array


def uploaded(device: ArrayDevice, data: np.ndarray) -> DeviceArray:
    """Creates an array with the contents of a C-contiguous one now, whether or not calls are recorded."""
    array = new_array(device, data.shape, check_dtype(data.dtype))
    array.mark(device.upload(data, array.buffer), written=True)
    return array
