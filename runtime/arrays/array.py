"""Arrays on a device, with NumPy's shape and dtype.

A ``DeviceArray`` is a typed view of a buffer. Work that writes it may still be under way: reading it (``numpy()``,
``np.asarray``, DLPack, ``repr``) waits; passing it to another kernel does not, since a device runs what it is given
in order.

The memory is given back when the array is garbage-collected, or earlier by ``close`` or a ``with`` block.

Thread rule: an array may be used from any thread; concurrent writes to one array are the caller's to order.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Final, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ...hal_vulkan import Buffer, BufferView, ElementType
from ...status import ClosedError, InvalidArgumentError, UnimplementedError

if TYPE_CHECKING:
    from ..device import Device

__all__ = ["ArrayLike", "ArraySpec", "DeviceArray", "SharedBuffer", "check_out", "check_timeout", "empty"]

_MOST_AXES: Final = 32  # of NumPy before 2.0

ArrayLike: TypeAlias = "npt.ArrayLike | DeviceArray"
Index: TypeAlias = "int | slice | EllipsisType | tuple[int | slice | EllipsisType, ...]"


class ArraySpec:
    """Shape and dtype of an array that a kernel is to make; see ``empty``."""

    __slots__ = ("dtype", "nbytes", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
        self.shape = shape
        self.dtype = dtype
        self.nbytes = math.prod(shape) * dtype.itemsize

    def __repr__(self) -> str:
        return f"pumice.empty({self.shape}, {self.dtype})"


def empty(shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> ArraySpec:
    """A place for a result: the kernel that gets it allocates an array of this shape and dtype on its own device.

    Args:
        shape: a length, or a length for each axis.
        dtype: anything that NumPy takes for a dtype, ml_dtypes' included.

    Raises:
        InvalidArgumentError: a negative length, or a dtype of Python objects.
    """
    return ArraySpec(check_shape(shape), check_dtype(dtype))


class SharedBuffer(Buffer):
    """The memory of an array as programs get it: it stays as long as the array or a program refers to it.

    An array that was passed to a program no longer gives its memory back by itself; the last reference to this does.
    """

    __slots__ = ("_origin",)

    def __init__(self, buffer: Buffer) -> None:
        super().__init__(
            buffer.device,
            buffer._allocation,
            buffer.offset,
            buffer.size,
            buffer.memory_type,
            buffer.usage,
            buffer.access,
        )
        self._origin = buffer

    def close(self) -> None:
        """Closes the array's buffer with it; idempotent."""
        self._closed = True
        self._origin.close()

    def __del__(self) -> None:
        # As for DeviceArray: only a note.
        if not self._closed and not self._origin.is_closed:
            self.device.dropped.append(self)


class DeviceArray:
    """A C-contiguous array in device memory. Made by ``Device.asarray``, ``Device.empty`` and kernels.

    Attributes:
        device: the device it lives on.
        buffer: the HAL buffer behind it, ``nbytes`` long.
        shape: lengths of its axes.
        dtype: NumPy dtype of its elements.
        nbytes: bytes of its elements.
    """

    __slots__ = (
        "_base",
        "_last_use",
        "_program_view",
        "_ready",
        "_shared",
        "buffer",
        "device",
        "dtype",
        "nbytes",
        "shape",
    )

    # NumPy's binary operators leave mixed expressions to us, where there are none: an error beats a silent copy.
    __array_ufunc__ = None

    def __init__(
        self,
        device: Device,
        buffer: Buffer,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        nbytes: int,
        base: DeviceArray | None = None,
        shared: Buffer | None = None,
    ) -> None:
        self.device = device
        self.buffer = buffer
        self.shape = shape
        self.dtype = dtype
        self.nbytes = nbytes
        self._base = base
        self._ready = 0  # payload of the device's stream at which the last write is done
        self._last_use = 0  # and the last use of any kind
        self._shared = shared  # who gives the memory back, if that is not this array
        self._program_view: BufferView | None = None

    # -- shape ---------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes an element."""
        return self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-dimensional array")
        return self.shape[0]

    def __iter__(self) -> Iterator[DeviceArray]:
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape: int) -> DeviceArray:
        """A view with another shape of as many elements; one length may be -1.

        Raises:
            InvalidArgumentError: the counts differ.
        """
        new_shape = check_shape(tuple(shape), allow_unknown=True)
        if -1 in new_shape:
            known = math.prod(n for n in new_shape if n != -1)
            if new_shape.count(-1) > 1 or not known or self.size % known:
                raise InvalidArgumentError(f"cannot reshape {self.shape} to {shape}")
            new_shape = tuple(self.size // known if n == -1 else n for n in new_shape)
        if math.prod(new_shape) != self.size:
            raise InvalidArgumentError(f"cannot reshape {self.size} elements of shape {self.shape} to {shape}")
        return self._view(0, new_shape, self.dtype)

    def view(self, dtype: npt.DTypeLike) -> DeviceArray:
        """The same bytes as elements of another dtype of the same size."""
        other = check_dtype(dtype)
        if other.itemsize != self.dtype.itemsize:
            raise InvalidArgumentError(
                f"view: {self.dtype} has {self.itemsize} bytes an element, {other} {other.itemsize}"
            )
        return self._view(0, self.shape, other)

    def __getitem__(self, index: Index) -> DeviceArray:
        """A view of a contiguous part: integers and slices of step 1, as long as the result is contiguous.

        Raises:
            InvalidArgumentError: the part is not contiguous; ``x.numpy()[…]`` selects on the host.
            IndexError: an index outside the axis.
        """
        parts = index if isinstance(index, tuple) else (index,)
        dots = [i for i, part in enumerate(parts) if part is Ellipsis]
        if len(dots) == 1:
            missing = len(self.shape) - len(parts) + 1
            parts = (*parts[: dots[0]], *[slice(None)] * missing, *parts[dots[0] + 1 :])
        if len(parts) > len(self.shape):
            raise InvalidArgumentError(f"{len(parts)} indices for an array of {len(self.shape)} axes")
        start, shape, extended = 0, [], False
        for axis, length in enumerate(self.shape):
            stride = math.prod(self.shape[axis + 1 :])
            part = parts[axis] if axis < len(parts) else slice(None)
            if isinstance(part, slice):
                first, stop, step = part.indices(length)
                count = len(range(first, stop, step))
                # Contiguous means: after the first axis that keeps several entries, every axis is whole.
                if (step != 1 and count > 1) or (extended and count != length):
                    raise InvalidArgumentError(f"[{index}] of shape {self.shape} is not contiguous; use x.numpy()[…]")
                extended = extended or count != 1
                shape.append(count)
                start += first * stride
            else:
                try:
                    at = operator.index(part)  # type: ignore[arg-type]  # what else may come is refused here
                except TypeError:
                    raise InvalidArgumentError(
                        f"an index is an int, a slice or an ellipsis, got {part!r}; x.numpy()[…] takes the others"
                    ) from None
                at += length if at < 0 else 0
                if not 0 <= at < length:
                    raise IndexError(f"index {part} is outside axis {axis} of length {length}")
                if extended and length != 1:
                    raise InvalidArgumentError(f"[{index}] of shape {self.shape} is not contiguous; use x.numpy()[…]")
                start += at * stride
        return self._view(start * self.itemsize, tuple(shape), self.dtype)

    def _view(self, offset: int, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> DeviceArray:
        nbytes = math.prod(shape) * dtype.itemsize
        root = self if self._base is None else self._base
        return DeviceArray(self.device, self.buffer.subspan(offset, nbytes), shape, dtype, nbytes, base=root)

    # -- programs ------------------------------------------------------------------------------------

    def buffer_view(self, element_type: ElementType) -> BufferView:
        """What a program gets for this array, once what writes it is done. For the runtime.

        Args:
            element_type: one whose dtype is the array's.
        """
        root = self if self._base is None else self._base
        if root._ready:
            self.device.wait(root._ready, None)
            root._ready = 0
        view = self._program_view
        if view is None or view.element_type is not element_type:
            self._check_open()
            owner = root._shared
            if owner is None:
                owner = root._shared = SharedBuffer(root.buffer)
            buffer = owner if root is self else owner.subspan(self.buffer.offset - owner.offset, self.nbytes)
            view = self._program_view = BufferView(buffer, self.shape, element_type)
        elif self.buffer._closed:
            self._check_open()
        return view

    # -- order ---------------------------------------------------------------------------------------

    def mark(self, payload: int, *, written: bool) -> None:
        """Notes a use by submitted work. For the runtime."""
        root = self if self._base is None else self._base
        with self.device.mark_lock:  # another thread may have noted a later one
            root._last_use = max(root._last_use, payload)
            if written:
                root._ready = max(root._ready, payload)

    def wait(self, timeout: float | None = None) -> DeviceArray:
        """Blocks until what writes it is done; returns itself.

        Args:
            timeout: seconds; ``None`` waits for ever.

        Raises:
            DeadlineExceededError: the time passed first; it can be waited for again.
            PumiceError: what went wrong on the device.
        """
        check_timeout(timeout)
        root = self if self._base is None else self._base
        if root._ready:
            self.device.wait(root._ready, timeout)
        return self

    def _wait_unused(self) -> None:
        root = self if self._base is None else self._base
        if root._last_use:
            self.device.wait(root._last_use, None)
        if root._shared is not None:
            # Programs say nothing of what they use, and a call that has no results may return before its work is done.
            self.device.hal.wait_idle()

    # -- the host ------------------------------------------------------------------------------------

    def numpy(self, out: np.ndarray | None = None) -> np.ndarray:
        """The contents as a NumPy array of its own: a copy, once what writes it is done.

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
        """The device memory itself as a writable NumPy array, where the host sees it; waits for uses under way.

        The view stays valid after ``close``. Writing it while a kernel uses the array is a race of yours.

        Raises:
            FailedPreconditionError: the memory is the device's alone (a discrete GPU); use ``numpy`` and ``copy_from``.
        """
        self._check_open()
        self._wait_unused()
        view = self.buffer.map()
        return np.frombuffer(view, np.uint8).view(self.dtype).reshape(self.shape)

    def copy_from(self, source: ArrayLike) -> DeviceArray:
        """Overwrites the contents with those of an array of the same shape and dtype; returns itself.

        Args:
            source: a NumPy array, or a DeviceArray of the same device (copied on the device) or another (through the
                host).

        Raises:
            InvalidArgumentError: another shape or dtype.
        """
        self._check_open()
        if isinstance(source, DeviceArray):
            self._check_same(source.shape, source.dtype)
            source._check_open()
            if source.device is self.device:
                self.device.copy(source, self)
                return self
            source = source.numpy()
        data = np.ascontiguousarray(source)
        self._check_same(np.shape(source), data.dtype)
        self._wait_unused()
        self.device.upload(data, self)
        return self

    def _check_same(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
        if shape != self.shape or dtype != self.dtype:
            raise InvalidArgumentError(f"expected shape {self.shape} and dtype {self.dtype}, got {shape} {dtype}")

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a DeviceArray cannot become a NumPy array without a copy; x.map() is the memory itself")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A DLPack capsule of host memory: the device's own where the host sees it and no copy is asked for.

        Raises:
            BufferError: another device type than the CPU is asked for, or a dtype that DLPack does not know.
        """
        if dl_device is not None and tuple(dl_device) != (1, 0):
            raise BufferError(f"a DeviceArray is exported as CPU memory (1, 0), not as DLPack device {dl_device}")
        if self.buffer.host_visible and not copy:
            array = self.map()
        elif copy is False:
            raise BufferError("this array's memory is not visible to the host; export it with copy=True")
        else:
            array = self.numpy()
        del stream
        if max_version is None:
            return array.__dlpack__()
        return (
            array.__dlpack__(max_version=max_version)
            if np.lib.NumpyVersion(np.__version__) >= "2.1.0"
            else array.__dlpack__()
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def copy(self) -> DeviceArray:
        """An array of its own with the same contents, copied on the device."""
        self._check_open()
        return self.device.allocate(self.shape, self.dtype).copy_from(self)

    def __copy__(self) -> DeviceArray:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, object]) -> DeviceArray:
        return self.copy()

    def astype(self, dtype: npt.DTypeLike) -> DeviceArray:
        """A new array with the elements converted, on the host."""
        return self.device.asarray(self.numpy(), dtype)

    def tolist(self) -> object:
        """The contents as nested lists of Python numbers."""
        return self.numpy().tolist()

    def __setitem__(self, index: Index, value: npt.ArrayLike | DeviceArray) -> None:
        """Overwrites a contiguous part with an array, or with a value that is repeated as NumPy does."""
        part = self[index]
        if not isinstance(value, DeviceArray):
            try:
                value = np.ascontiguousarray(np.broadcast_to(np.asarray(value, self.dtype), part.shape)).reshape(
                    part.shape
                )
            except (ValueError, TypeError, OverflowError) as error:
                raise InvalidArgumentError(f"[{index}] of shape {part.shape} and {self.dtype}: {error}") from None
        part.copy_from(value)

    def __eq__(self, other: object) -> bool:
        raise TypeError("arrays on a device are not compared: compare x.numpy(), or `x is y` for being the same array")

    __hash__ = object.__hash__

    def item(self) -> object:
        """The one element as a Python number."""
        return self.numpy().item()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                "the truth value of an array of several elements, or of none, is ambiguous; look at x.numpy()"
            )
        return bool(self.numpy().item())

    def __float__(self) -> float:
        return float(self.numpy().item())

    def __int__(self) -> int:
        return int(self.numpy().item())

    # -- end -----------------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether it, or the array it is a view of, was closed."""
        return self.buffer.is_closed

    def _check_open(self) -> None:
        if self.buffer.is_closed:
            raise ClosedError(f"this array of shape {self.shape} was closed")

    def close(self) -> None:
        """Gives the memory back, once work under way has finished; idempotent. Views of it are closed with it."""
        (self._shared or self.buffer).close()

    def __del__(self) -> None:
        # A convenience that nothing relies on: closing the device frees what is left.
        # The garbage collector may come at any point, under any lock: it only takes a note.
        if getattr(self, "_base", self) is None and self._shared is None and not self.buffer.is_closed:
            self.device.hal.dropped.append(self.buffer)

    def __enter__(self) -> DeviceArray:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        head = f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self.device.name!r}"
        if self.is_closed:
            return head + ", closed)"
        if self.size > 1000:
            return head + ")"
        return f"{head})\n{self.numpy()!r}"


@overload
def check_shape(shape: int | SupportsIndex, *, allow_unknown: bool = False) -> tuple[int, ...]: ...
@overload
def check_shape(shape: Sequence[int], *, allow_unknown: bool = False) -> tuple[int, ...]: ...
@overload
def check_shape(shape: int | Sequence[int], *, allow_unknown: bool = False) -> tuple[int, ...]: ...
def check_shape(shape: object, *, allow_unknown: bool = False) -> tuple[int, ...]:
    """A shape as a tuple of lengths, or InvalidArgumentError."""
    try:
        if isinstance(shape, np.ndarray):
            shape = tuple(shape.tolist()) if shape.ndim else shape.item()
        items = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        if len(items) == 1 and isinstance(items[0], (tuple, list)):
            items = tuple(items[0])
        lengths = tuple(operator.index(n) for n in items)
    except TypeError:
        raise InvalidArgumentError(f"a shape is an int or a sequence of ints, got {shape!r}") from None
    if any(n < (-1 if allow_unknown else 0) for n in lengths):
        raise InvalidArgumentError(f"a shape's lengths must not be negative, got {shape!r}")
    if len(lengths) > _MOST_AXES:
        raise InvalidArgumentError(f"an array has at most {_MOST_AXES} axes, got {len(lengths)}")
    if 0 in lengths and any(n >= 1 << 63 for n in lengths):
        raise InvalidArgumentError(f"a shape's lengths are below 2**63, got {shape!r}")
    return lengths


def check_dtype(dtype: npt.DTypeLike) -> np.dtype[np.generic]:
    """A dtype whose elements are plain bytes, or InvalidArgumentError."""
    try:
        found: np.dtype[np.generic] = np.dtype(dtype)
    except TypeError as error:
        raise InvalidArgumentError(f"not a dtype: {dtype!r} ({error})") from None
    if found.subdtype is not None:
        raise InvalidArgumentError(
            f"dtype {found} is an array itself; put its shape into the array's: {found.subdtype}"
        )
    if found.hasobject or found.itemsize == 0:
        raise InvalidArgumentError(f"dtype {found} has no fixed bytes an element; a device array holds plain numbers")
    if not found.isnative:
        raise UnimplementedError(f"dtype {found} is big-endian; convert it with .astype({found.newbyteorder('=')})")
    return found


def raw_bytes(array: np.ndarray) -> memoryview:
    """The bytes of a C-contiguous array, writable where it is; ml_dtypes' arrays offer no buffer of their own."""
    return array.reshape(-1).view(np.uint8).data


def check_timeout(timeout: object) -> None:
    """Raises InvalidArgumentError unless it is ``None`` or a number of seconds."""
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, (int, float, np.number)) or math.isnan(timeout)
    ):
        raise InvalidArgumentError(f"timeout is a number of seconds or None, got {timeout!r}")


def check_out(out: object, shape: tuple[int, ...], dtype: np.dtype[np.generic], what: str) -> None:
    """Raises InvalidArgumentError unless results of this shape and dtype can be copied into ``out`` in place."""
    expected = f"a writable C-contiguous array of shape {shape} and dtype {dtype}"
    if not isinstance(out, np.ndarray):
        raise InvalidArgumentError(f"{what} must be {expected}, got {type(out).__name__}")
    if out.shape != shape or out.dtype != dtype:
        raise InvalidArgumentError(f"{what} must be {expected}, got {out.shape} {out.dtype}")
    if not out.flags.c_contiguous or not out.flags.writeable:
        state = "read-only" if not out.flags.writeable else "not contiguous"
        raise InvalidArgumentError(f"{what} must be {expected}; it is {state}")
