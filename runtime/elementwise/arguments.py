"""The arguments of a call: their types, shapes and device."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, OutOfRangeError, UnimplementedError, shorten
from ..arrays.array import DeviceArray
from .parameters import Declared
from .types import ELEMENTS

if TYPE_CHECKING:
    from ..device import Device

Argument: TypeAlias = "np.ndarray | DeviceArray | np.generic | Sequence[object] | int | float | bool"
"""A value of a parameter: arrays, which broadcast, and numbers."""
Result: TypeAlias = "np.ndarray | DeviceArray"
"""A result: on the device if any argument is, else a NumPy array."""

_MAX_ELEMENTS: Final = (1 << 31) - 1
_lock = threading.Lock()
_shared: Device | None = None


@dataclass(slots=True)
class Value:
    """An argument: an array, or a number of a dtype.

    Attributes:
        array: the array, on the kernel's device; ``None`` for a number.
        host: the NumPy array that receives the result.
    """

    declared: Declared
    dtype: np.dtype[np.generic]
    array: DeviceArray | None = None
    number: int | float | bool = 0
    host: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return () if self.array is None else self.array.shape


class Arguments:
    """The arguments of a call, by the kernel's parameters.

    Attributes:
        device: the device that the kernel runs on.
        dtypes: the types of the letters.
        on_host: whether no argument is on a device, so that results go to the host.
    """

    def __init__(
        self,
        kernel: str,
        inputs: Sequence[Declared],
        outputs: Sequence[Declared],
        positional: Sequence[object],
        named: Mapping[str, object],
        out: object,
        device: Device | None,
    ) -> None:
        self.kernel = kernel
        places = _placed(kernel, inputs, outputs, positional, named, out)
        arrays = [value for value in places.values() if isinstance(value, DeviceArray)]
        self.on_host: bool = not arrays
        self.device: Device = _device_of(kernel, arrays, device)
        self.dtypes: dict[str, np.dtype[np.generic]] = {}
        declared = {parameter.name: parameter for parameter in (*inputs, *outputs)}
        # Arrays determine the types of letters; numbers follow.
        prepared = {name: _prepared(kernel, declared[name], value) for name, value in places.items()}
        for numbers in (False, True):
            for name, value in prepared.items():
                if isinstance(value, (int, float, bool)) == numbers:
                    self._infer(declared[name], value)
        self.inputs: list[Value] = [self._value(parameter, prepared[parameter.name]) for parameter in inputs]
        self.outputs: list[Value] = [
            self._value(parameter, prepared[parameter.name]) for parameter in outputs if parameter.name in prepared
        ]
        self.missing: list[Declared] = [parameter for parameter in outputs if parameter.name not in prepared]
        for parameter in self.missing:
            if parameter.dtype is None and parameter.generic not in self.dtypes:
                raise InvalidArgumentError(
                    f"{kernel}: no argument tells what {parameter.generic} is, the type of {parameter.name}: "
                    "pass out=, or declare a type by name"
                )

    def dtype_of(self, parameter: Declared) -> np.dtype[np.generic]:
        return parameter.dtype if parameter.dtype is not None else self.dtypes[parameter.generic]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the broadcast input arrays."""
        return [value.shape for value in self.inputs if value.array is not None and not value.declared.is_raw]

    def complete(self, outputs: Sequence[Declared], shape: tuple[int, ...]) -> list[Value]:
        """Returns an array of a shape for each output; creates the arrays that the call does not pass.

        Raises:
            InvalidArgumentError: an array has another shape, or a raw one is missing.
        """
        results = {value.declared.name: value for value in self.outputs}
        for value in self.outputs:
            if value.shape != shape and not value.declared.is_raw:
                raise InvalidArgumentError(
                    f"{self.kernel}: {value.declared.name} has shape {value.shape}, and the result {shape}"
                )
        for parameter in self.missing:
            if parameter.is_raw:
                raise InvalidArgumentError(f"{self.kernel}: {parameter.name} is raw: pass an array for it")
            dtype = self.dtype_of(parameter)
            check_element(self.kernel, parameter.name, dtype, self.device)
            check_size(self.kernel, shape)
            results[parameter.name] = Value(parameter, dtype, self.device.empty(shape, dtype))
        return [results[parameter.name] for parameter in outputs]

    def results(self, values: Sequence[Value]) -> Result | tuple[Result, ...] | None:
        """Returns the call's results: on the host if all arguments were on the host."""
        results: list[Result] = []
        for value in values:
            assert value.array is not None
            if value.host is not None:
                np.copyto(value.host, value.array.numpy())
                results.append(value.host)
            else:
                results.append(value.array.numpy() if self.on_host else value.array)
        return results[0] if len(results) == 1 else tuple(results) or None

    def _infer(self, parameter: Declared, value: object) -> None:
        dtype = value.dtype if isinstance(value, (np.ndarray, np.generic, DeviceArray)) else None
        if parameter.dtype is not None:
            if dtype is not None and dtype != parameter.dtype and not _is_number(value):
                raise InvalidArgumentError(
                    f"{self.kernel}: {parameter.name} got dtype {dtype}; it is declared as {parameter.type_name}. "
                    f"Convert with .astype(np.{parameter.dtype})"
                )
            return
        if dtype is None:
            # A Python number takes the type of the arrays; without arrays it gets 32 bits, in which devices compute.
            plain = np.bool_ if isinstance(value, bool) else np.int32 if isinstance(value, int) else np.float32
            dtype = np.dtype(plain)
            self.dtypes.setdefault(parameter.generic, dtype)
        elif self.dtypes.setdefault(parameter.generic, dtype) != dtype:
            raise InvalidArgumentError(
                f"{self.kernel}: {parameter.name} got dtype {dtype}, but {parameter.generic} is "
                f"{self.dtypes[parameter.generic]} by the arguments before. Convert with "
                f".astype(np.{self.dtypes[parameter.generic]})"
            )

    def _value(self, parameter: Declared, value: object) -> Value:
        dtype = self.dtype_of(parameter)
        check_element(self.kernel, parameter.name, dtype, self.device)
        if isinstance(value, DeviceArray):
            check_size(self.kernel, value.shape)
            return Value(parameter, dtype, value)
        if isinstance(value, np.ndarray):
            check_size(self.kernel, value.shape)
            return Value(parameter, dtype, self.device.asarray(value), host=value if value.flags.writeable else None)
        return Value(parameter, dtype, number=_number(self.kernel, parameter, dtype, value))


def check_size(kernel: str, shape: Sequence[int]) -> None:
    count = 1
    for length in shape:
        count *= length
    if count > _MAX_ELEMENTS:
        raise OutOfRangeError(
            f"{kernel}: an array of {count:,} elements; at most {_MAX_ELEMENTS:,} are counted: pass parts"
        )


def check_element(kernel: str, name: str, dtype: np.dtype[np.generic], device: Device) -> None:
    """Raises if the device does not support elements of this type."""
    element = ELEMENTS.get(dtype)
    if element is None:
        raise InvalidArgumentError(
            f"{kernel}: {name} got dtype {dtype}; expected one of {', '.join(map(str, ELEMENTS))}. "
            "Convert with .astype()"
        )
    if element.feature and element.feature not in device.profile.features:
        raise UnimplementedError(f"{kernel}: {name} is {dtype}, which needs {element.feature}; {device.name} lacks it")


def _placed(
    kernel: str,
    inputs: Sequence[Declared],
    outputs: Sequence[Declared],
    positional: Sequence[object],
    named: Mapping[str, object],
    out: object,
) -> dict[str, object]:
    """Assigns arguments to the names of parameters: inputs, then outputs, then named arguments."""
    every = [*inputs, *outputs]
    takes = f"it takes {', '.join(parameter.name for parameter in inputs) or 'nothing'}"
    if outputs:
        takes += f", and for results {', '.join(parameter.name for parameter in outputs)}"
    if len(positional) > len(every):
        raise InvalidArgumentError(f"{kernel}: {len(positional)} arguments; {takes}")
    places = dict(zip((parameter.name for parameter in every), positional, strict=False))
    for name, value in named.items():
        if name not in {parameter.name for parameter in every}:
            raise InvalidArgumentError(f"{kernel}: there is no parameter {name}; {takes}")
        if name in places:
            raise InvalidArgumentError(f"{kernel}: {name} is given twice, by position and by name")
        places[name] = value
    if out is not None:
        several = list(out) if isinstance(out, (tuple, list)) else [out]
        free = [parameter.name for parameter in outputs if parameter.name not in places]
        if len(several) != len(free):
            raise InvalidArgumentError(f"{kernel}: out= has {len(several)} array(s) for {len(free)} result(s)")
        places |= dict(zip(free, several, strict=True))
    missing = [parameter.name for parameter in inputs if parameter.name not in places]
    if missing:
        raise InvalidArgumentError(f"{kernel}: {', '.join(missing)} missing; {takes}")
    for parameter in outputs:
        value = places.get(parameter.name)
        written = isinstance(value, DeviceArray) or (isinstance(value, np.ndarray) and value.flags.writeable)
        if parameter.name in places and not written:
            kind = "an array that is read-only" if isinstance(value, np.ndarray) else type(value).__name__
            raise InvalidArgumentError(
                f"{kernel}: {parameter.name} is a result, for an array to write into; got {kind}"
            )
    return places


def _prepared(kernel: str, parameter: Declared, value: object) -> object:
    """Returns a Python or NumPy number, or an array on the host or a device."""
    if isinstance(value, (bool, int, float, np.ndarray, np.generic, DeviceArray)):
        prepared = value
    elif value is None or isinstance(value, (str, bytes)):
        raise InvalidArgumentError(f"{kernel}: {parameter.name} is an array or a number, got {type(value).__name__}")
    else:
        try:
            prepared = np.asarray(value, parameter.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArgumentError(
                f"{kernel}: {parameter.name} is not an array of {parameter.type_name}: {error}"
            ) from None
    if parameter.is_array and _is_number(prepared):
        raise InvalidArgumentError(
            f"{kernel}: {parameter.name} is an array of {parameter.type_name}, got the number {value!r}"
        )
    if isinstance(prepared, np.ndarray) and prepared.dtype.kind not in "biuf":
        raise InvalidArgumentError(f"{kernel}: {parameter.name} got dtype {prepared.dtype}; expected numbers")
    return prepared


def _is_number(value: object) -> bool:
    return isinstance(value, (bool, int, float, np.generic))


def _number(kernel: str, parameter: Declared, dtype: np.dtype[np.generic], value: object) -> int | float | bool:
    """Converts a number to a dtype; raises if that does more than round it."""
    assert isinstance(value, (bool, int, float, np.generic))
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, (bool, int, float)):
        raise InvalidArgumentError(f"{kernel}: {parameter.name} is a number of {dtype}, got {shorten(repr(value))}")
    if dtype.kind == "f":
        return float(plain)
    if isinstance(plain, float) or (dtype.kind == "b" and not isinstance(plain, bool)):
        raise InvalidArgumentError(f"{kernel}: {parameter.name} is {dtype}, got {plain!r}: convert it")
    if dtype.kind == "b":
        return plain
    limits = np.iinfo(dtype)  # type: ignore[type-var]
    if not limits.min <= plain <= limits.max:
        raise OutOfRangeError(f"{kernel}: {parameter.name} is {dtype}, from {limits.min} to {limits.max}; got {plain}")
    return int(plain)


def _device_of(kernel: str, arrays: Sequence[DeviceArray], device: Device | None) -> Device:
    from ..device import Device

    if device is not None and not isinstance(device, Device):
        raise InvalidArgumentError(f"{kernel}: device is an open pumice.Device, got {type(device).__name__}")
    for array in arrays:
        array._check_open()
        if device is None and isinstance(array.device, Device):
            device = array.device
        if array.device is not device:
            raise InvalidArgumentError(
                f"{kernel}: arrays of two devices, {array.device.name} and {device.name if device else 'none'}: copy "
                "with device.asarray(x)"
            )
    return device if device is not None else shared_device()


def shared_device() -> Device:
    """Returns the device for calls without a device; the first call opens it like ``pumice.open_device()``."""
    from ..opening import open_device

    global _shared
    with _lock:
        if _shared is None or _shared.is_closed:
            _shared = open_device()
        return _shared
