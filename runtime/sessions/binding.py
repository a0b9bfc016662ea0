"""Converters between callers' values and the VM's, made once for each argument and result of a function.

A tensor argument accepts arrays of exactly the declared dtype (a float64 array for a declared f32 is an error, never
converted). It also accepts Python numbers, nested or single; these have no dtype, and take the declared dtype if they
lose only precision. For signless integers (``i8``) both signednesses are accepted; results are signed. Scalars are in
scalar_binding.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from typing import Any, Final

import numpy as np

from ...formats.element_type import ElementType, EncodingType
from ...hal.buffer import Buffer
from ...hal.buffer_view import BufferView
from ...status import ClosedError, InvalidArgumentError
from ...vm.bytecode.declaration import DeclaredValue, ValueKind
from ...vm.types.ref_types import ref_type_class
from ..arrays.array import DeviceArray
from ..device import Device
from .scalar_binding import scalar_binder, scalar_unbinder
from .signature import Argument, Result, element_type_of, shape_text

_SCALARS: Final = (np.generic, list, tuple, int, float, complex)
_DENSE: Final = EncodingType.DENSE_ROW_MAJOR
_VIEW: Final = "!hal.buffer_view"
_BUFFER: Final = "!hal.buffer"


def argument_binder(
    argument: Argument, function: str, first: Callable[[], Device], devices: Container[Device] | None = None
) -> Callable[[Any], Any]:
    """Returns a converter of a caller's value to the VM's; it raises InvalidArgumentError for values of other types.

    ``first`` opens the device when a host value comes. ``devices`` are the allowed devices of arrays; ``None`` allows
    any.
    """
    if argument.letter != "r":
        return scalar_binder(argument, function)
    checked = _Reference(argument, function, first, devices).bind
    element_type, shape = argument.element_type, argument.shape
    if element_type is None or element_type.is_sub_byte or shape is None or None in shape or devices is None:
        return checked
    is_bare = argument.type_text == _BUFFER
    dtype = argument.dtypes[0] if argument.dtypes else None

    def bind(value: Any) -> Any:
        # The fast path: an array that needs no conversion.
        if type(value) is DeviceArray and value.dtype is dtype and value.shape == shape:
            buffer = value.buffer
            if buffer.bindable and not buffer._closed and value.device in devices:
                view = value.buffer_view(element_type)
                return view.buffer if is_bare else view
        return checked(value)

    return bind


class _Reference:
    """Converts an argument that is a reference in the VM: a tensor or another object."""

    def __init__(
        self, argument: Argument, function: str, first: Callable[[], Device], devices: Container[Device] | None
    ) -> None:
        declared = argument.declared
        self._argument = argument
        self._is_tensor = argument.is_tensor
        self._function = function
        self._first = first
        self._devices = devices
        self._type = declared.type_text if declared is not None and declared.kind is ValueKind.REF else None
        self._classes = None if self._type is None else ref_type_class(self._type)

    def bind(self, value: Any) -> Any:
        """Returns the VM's value for a caller's."""
        if isinstance(value, DeviceArray):
            return self._array(value)
        if isinstance(value, BufferView):
            return self._view(value)
        if self._type == _BUFFER and isinstance(value, Buffer):
            return value
        if self._is_tensor:
            return self._array(self._elements(value))
        if isinstance(value, np.ndarray) and self._type in (None, _VIEW, _BUFFER):
            return self._array(value)
        if value is not None and self._classes is not None and not isinstance(value, self._classes):
            raise self._error(value, f"expected a {self._type}")
        return value

    def _error(self, value: object, detail: str) -> InvalidArgumentError:
        return self._argument.error(self._function, value, detail)

    # -- host values --

    def _elements(self, value: Any) -> np.ndarray:
        """Returns a tensor's elements as an array."""
        if isinstance(value, np.ndarray):
            return value
        if isinstance(value, _SCALARS):
            return np.asarray(value) if isinstance(value, np.generic) else self._numbers(value)
        if isinstance(value, (str, bytes, bytearray, Buffer)):
            raise self._error(value, "expected an array")
        try:
            if hasattr(value, "__array__"):
                return np.asarray(value)
            if hasattr(value, "__dlpack__"):
                return np.from_dlpack(value)
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            raise self._error(value, f"it does not become an array: {error}") from None
        raise self._error(value, "expected an array")

    def _numbers(self, value: object) -> np.ndarray:
        """Converts Python numbers to the declared dtype."""
        try:
            natural = np.asarray(value)
            if not self._argument.dtypes:
                return natural
            dtype = self._argument.dtypes[0]
            wanted = _generality(dtype)
            if natural.dtype.kind in "fO" and wanted == 1:
                # NumPy converts integers to floats if they need an unsigned 64-bit type or are larger.
                exact = np.asarray(value, object)
                if exact.size and all(isinstance(number, (int, np.integer)) for number in exact.flat):
                    return self._integers(exact)
            if natural.dtype.kind not in "biufc" and natural.dtype not in self._argument.dtypes:
                raise TypeError("expected numbers")
            if natural.size and _generality(natural.dtype) > wanted:
                raise TypeError(f"numbers of dtype {natural.dtype} do not convert to {dtype} without loss")
            if wanted == 1:
                return self._integers(natural)
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                converted = natural.astype(dtype)
            if wanted > 1 and not np.array_equal(np.isfinite(natural), np.isfinite(converted)):
                raise OverflowError(f"a number is too large for {dtype}")
            return converted
        except (TypeError, ValueError, OverflowError) as error:
            raise self._error(value, str(error)) from None

    def _integers(self, natural: np.ndarray) -> np.ndarray:
        for dtype in self._argument.dtypes:
            bits = self._argument.element_type.bits if self._argument.element_type is not None else 8 * dtype.itemsize
            signed = not dtype.name.startswith("u")
            low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
            if not natural.size or (low <= int(natural.min()) and int(natural.max()) <= high):
                return natural.astype(dtype)
        names = " or ".join(str(dtype) for dtype in self._argument.dtypes)
        raise OverflowError(f"a number from {natural.min()} to {natural.max()} does not fit {names}")

    # -- arrays --

    def _array(self, value: np.ndarray | DeviceArray) -> object:
        """Returns the array's view, or its buffer if that is declared."""
        self._check_dtype(value)
        self._check_shape(value, value.shape)
        try:
            view = self._placed(value)
        except (ClosedError, InvalidArgumentError) as error:
            raise type(error)(
                f"{self._function}: argument {self._argument.position} ({self._argument}): {error.message}"
            ) from None
        return view.buffer if self._type == _BUFFER else view

    def _placed(self, value: np.ndarray | DeviceArray) -> BufferView:
        element_type = self._argument.element_type or ElementType.from_dtype(value.dtype)
        if isinstance(value, DeviceArray):
            if value.is_closed:
                value.numpy()  # raises
            self._check_device(value)
        if element_type.is_sub_byte:
            # Device arrays have a byte for each of these elements; programs take them packed.
            host = value.numpy() if isinstance(value, DeviceArray) else value
            packed = np.frombuffer(ElementType.from_dtype(host.dtype).pack(host), np.uint8)
            whole = self._first().asarray(packed).buffer_view(ElementType.UINT_8)
            return BufferView(whole.buffer, value.shape, element_type)
        if not isinstance(value, DeviceArray):
            value = self._first().asarray(value)
        elif self._argument.storage is None and _is_misaligned(value):
            value = value.copy()  # the device cannot bind this offset
        return value.buffer_view(element_type)

    def _check_device(self, value: DeviceArray) -> None:
        if self._devices is not None and value.device not in self._devices:
            first = self._first()  # may open the devices now
            if value.device not in self._devices:
                raise InvalidArgumentError(
                    f"the array is on another device object, {value.device.name} ({value.device.uri}), than the "
                    f"session, {first.name} ({first.uri}): make both with one pumice.Instance or pumice.Device, or "
                    "copy it with session.device.asarray(x.numpy())"
                )

    def _check_dtype(self, value: np.ndarray | DeviceArray) -> None:
        dtype = value.dtype
        if dtype in self._argument.dtypes or not self._is_tensor:
            return
        declared = self._argument.declared
        if not self._argument.dtypes:
            kind = declared.element_type if declared is not None else None
            raise self._error(value, f"NumPy has no dtype for {kind}; give a buffer view of that element type")
        wanted = " or ".join(str(kind_of) for kind_of in self._argument.dtypes)
        hint = ""
        if dtype == np.float64 and self._argument.dtypes[0] == np.float32:
            hint = (
                " (that is NumPy's default, and of programs in f64 iree-compile makes f32 unless "
                "--iree-input-demote-f64-to-f32=false)"
            )
        raise self._error(value, f"expected dtype {wanted}{hint}; convert it with .astype(…)")

    def _check_shape(self, value: object, shape: Sequence[int]) -> None:
        wanted = self._argument.shape
        if wanted is None:
            return
        if len(wanted) != len(shape) or any(a is not None and a != b for a, b in zip(wanted, shape, strict=True)):
            raise self._error(value, f"expected shape {shape_text(wanted)}")

    # -- buffer views --

    def _view(self, view: BufferView) -> object:
        element_type = self._argument.element_type
        if self._is_tensor:
            self._check_shape(view, view.shape)
            if element_type is not None and view.element_type is not element_type:
                if view.element_type.dtype is None or view.element_type.dtype not in self._argument.dtypes:
                    raise self._error(view, f"expected elements of type {element_type.short_name}")
                view = BufferView(view.buffer, view.shape, element_type, view.encoding)
        if self._type == _BUFFER:
            return view.buffer
        if not self._is_tensor and self._classes is not None and not isinstance(view, self._classes):
            raise self._error(view, f"expected a {self._type}")
        return view


def _generality(dtype: np.dtype[np.generic]) -> int:
    """Returns 0 for booleans, 1 for integers, 2 for floats, 3 for complex numbers."""
    kind = dtype.kind
    if kind == "V":
        return 1 if dtype.name.lstrip("u").startswith("int") else 2
    return {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}.get(kind, 4)


def _is_misaligned(array: DeviceArray) -> bool:
    if array.buffer.bindable or not array.nbytes:
        return False
    return bool(array.buffer.offset % array.device.hal.bind_alignment)


# -- results -----------------------------------------------------------------------------------------


def declared_view(declared: DeclaredValue | None) -> Callable[[Any], Any]:
    """Returns a converter of a tensor's buffer to a view; it returns other values unchanged."""
    element_type = element_type_of(declared) if declared is not None and declared.is_tensor else None
    if declared is None or element_type is None or declared.shape is None:
        return lambda value: value
    shape = tuple([length or 0 for length in declared.shape])
    nbytes = element_type.storage_bytes(math.prod(shape))

    def view(value: Any) -> Any:
        if not isinstance(value, Buffer):
            return value
        memory = value if value.size == nbytes else value.subspan(0, nbytes)
        return BufferView.of_checked(memory, shape, element_type, _DENSE)

    return view


def result_unbinder(
    result: Result,
    wrap: Callable[[BufferView], object],
    wrap_known: Callable[[BufferView, np.dtype[np.generic]], object],
) -> Callable[[Any], Any]:
    """Returns a converter of the VM's value to the caller's: ``wrap`` for a view, ``wrap_known`` for a dense view."""
    if result.letter == "r":
        declared = result.declared
        element_type = element_type_of(declared) if declared is not None and declared.is_tensor else None
        dtype = None if element_type is None or element_type.is_sub_byte else element_type.dtype

        view = declared_view(declared)

        def unbind(value: Any) -> object:
            if type(value) is not BufferView:
                value = view(value)
                if type(value) is not BufferView:
                    return value
            if dtype is not None and value.element_type is element_type and value.encoding is _DENSE:
                return wrap_known(value, dtype)
            return wrap(value)

        return unbind
    return scalar_unbinder(result)
