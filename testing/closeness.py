"""``assert_close``: arrays compared by the precision of their dtype, and an error that shows where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ..runtime import DeviceArray, DeviceImage
from ..status import InvalidArgumentError, shown
from .pictures import difference_map, difference_picture

Comparable: TypeAlias = "npt.ArrayLike | DeviceArray | DeviceImage"

# Relative and absolute. Kernels sum in another order than NumPy, and Vulkan allows some units in the last place for
# functions such as exp, log and sin. float32 gets eleven units, shorter types one or two, and float64, whose references
# are seldom exact, the same tolerance as float32.
_TOLERANCES: Final[Mapping[str, tuple[float, float]]] = {
    "float64": (1e-7, 1e-7),
    "complex128": (1e-7, 1e-7),
    "float32": (1.3e-6, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float8_e4m3": (0.125, 2**-9),
    "float8_e4m3fn": (0.125, 2**-9),
    "float8_e4m3fnuz": (0.125, 2**-10),
    "float8_e4m3b11fnuz": (0.125, 2**-13),
    "float8_e5m2": (0.25, 2**-16),
    "float8_e5m2fnuz": (0.25, 2**-17),
}
_SHOWN: Final = 5


def tolerance(dtype: npt.DTypeLike) -> tuple[float, float]:
    """Returns the relative and absolute tolerance of ``assert_close`` for a dtype; 0 and 0 for integers and booleans.

    Raises:
        InvalidArgumentError: the dtype is not numeric.
    """
    type = np.dtype(dtype)
    if type.kind in "biu" or type.name in ("int2", "uint2", "int4", "uint4"):
        return 0.0, 0.0
    if type.name not in _TOLERANCES:
        raise InvalidArgumentError(
            f"assert_close compares arrays of integers, booleans, floats and complex numbers, got dtype {type}"
        )
    return _TOLERANCES[type.name]


class NotCloseError(AssertionError):
    """Arrays are not close.

    The text shows how many elements differ, the worst elements, and a picture of their positions.

    Attributes:
        got, expected: the arrays.
        wrong: the mask of elements that differ.
        rtol, atol: the tolerances.
    """

    def __init__(
        self,
        message: str,
        got: np.ndarray,
        expected: np.ndarray,
        wrong: npt.NDArray[np.bool_],
        rtol: float,
        atol: float,
    ) -> None:
        super().__init__(message)
        self.got: np.ndarray
        self.expected: np.ndarray
        self.wrong: npt.NDArray[np.bool_]
        self.got, self.expected, self.wrong = got, expected, wrong
        self.atol: float
        self.rtol: float
        self.rtol, self.atol = rtol, atol

    def save(self, folder: Path) -> list[str]:
        """Writes both arrays, and a picture if Pillow is installed; returns the names of the files."""
        from ..formats.picture import encode_picture
        from ..status import UnavailableError

        np.save(folder / "got.npy", _storable(self.got))
        np.save(folder / "expected.npy", _storable(self.expected))
        names = ["got.npy", "expected.npy"]
        if self.got.ndim:
            try:
                data = encode_picture(difference_picture(self.got, self.expected, self.wrong))
            except UnavailableError:
                return names
            (folder / "difference.png").write_bytes(data)
            names.append("difference.png")
        return names


def assert_close(
    got: Comparable,
    expected: Comparable,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    what: str = "",
) -> None:
    """Asserts that ``|got - expected| <= atol + rtol * |expected|`` for every element.

    Args:
        got: an array of a device or the host.
        expected: an array of its shape, or a number for all elements. Floats may have another precision: references in
            float64, and integers, suit all float types. Integers can only be compared with integers.
        rtol, atol: the tolerances; ``None`` uses those of the dtype of ``got``, see ``tolerance``.
        equal_nan: whether a NaN is equal to a NaN. An infinity is always equal to the same infinity.
        what: the beginning of the message.

    Raises:
        NotCloseError: the arrays differ; an AssertionError. Under the pytest plug-in both arrays and a picture are
            saved.
        InvalidArgumentError: the arrays cannot be compared: shapes differ, integers are compared with floats, or
            elements are no numbers.
    """
    __tracebackhide__ = True
    a, b = _host(got), _host(expected)
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not value >= 0:
            raise InvalidArgumentError(f"assert_close: {name} is a number of 0 or more, got {shown(value)}")
    exact = tolerance(a.dtype) == (0.0, 0.0)
    if tolerance(b.dtype) != (0.0, 0.0) and exact:
        raise InvalidArgumentError(
            f"assert_close: got {a.dtype}, expected {b.dtype}: of integers expect integers, or convert what came with "
            ".astype()"
        )
    if b.shape == ():
        b = np.broadcast_to(b, a.shape)
    if a.shape != b.shape:
        raise InvalidArgumentError(f"assert_close: got shape {a.shape}, expected {b.shape}")
    relative, absolute = tolerance(a.dtype)
    relative, absolute = relative if rtol is None else rtol, absolute if atol is None else atol
    difference, wrong = _differing(a, b, relative, absolute, equal_nan=equal_nan)
    if wrong.any():
        text = _message(a, b, difference, wrong, relative, absolute, what)
        raise NotCloseError(text, a, b, wrong, relative, absolute)


def _host(value: Comparable) -> np.ndarray:
    return np.asarray(value.numpy() if isinstance(value, (DeviceArray, DeviceImage)) else value)


def _storable(array: np.ndarray) -> np.ndarray:
    """Returns the array in a dtype that ``.npy`` files support."""
    return array if array.dtype.isbuiltin == 1 else array.astype(np.float64)


def _differing(
    got: np.ndarray, expected: np.ndarray, rtol: float, atol: float, *, equal_nan: bool
) -> tuple[np.ndarray, npt.NDArray[np.bool_]]:
    """Returns each element's distance, in a type that can hold it, and a mask of too large distances."""
    if rtol == atol == 0 and tolerance(got.dtype) == (0.0, 0.0):
        wrong: npt.NDArray[np.bool_] = np.asarray(got != expected)
        wide = got.astype(object) if got.dtype.itemsize == 8 else got.astype(np.int64)
        return np.abs(wide - expected.astype(wide.dtype)), wrong
    kind = np.complex128 if "c" in got.dtype.kind + expected.dtype.kind else np.float64
    with np.errstate(all="ignore"):
        a, b = got.astype(kind), expected.astype(kind)
        distance = np.abs(a - b)
        # An infinite expectation makes every bound infinite, but only equals itself.
        near = (distance <= atol + rtol * np.abs(b)) & np.isfinite(b) | (a == b)
        if equal_nan:
            near |= np.isnan(a) & np.isnan(b)
    return distance, ~near


def _message(
    got: np.ndarray,
    expected: np.ndarray,
    distance: np.ndarray,
    wrong: npt.NDArray[np.bool_],
    rtol: float,
    atol: float,
    what: str,
) -> str:
    count = int(np.count_nonzero(wrong))
    rule = f", by more than {atol:g} + {rtol:g} * |expected|" if rtol or atol else ""
    lines = [
        f"{what + ': ' if what else ''}{count} of {got.size} elements differ "
        f"({100 * count / got.size:.3g} %){rule}; {got.dtype}{list(got.shape)}"
    ]
    places = np.argwhere(wrong)
    sizes = np.where(wrong, distance, 0).astype(np.float64)
    worst = np.unravel_index(int(np.argmax(np.nan_to_num(sizes, nan=np.inf, posinf=np.inf))), wrong.shape)
    named = [("largest", tuple(int(i) for i in worst))] if count > 1 else []
    named += [("", tuple(int(i) for i in position)) for position in places[:_SHOWN]]
    for label, position in named:
        at = f"[{', '.join(map(str, position))}]" if position else "the value"
        lines.append(
            f"  {label + ' ' if label else ''}{at}: got {got[position]!s}, expected {expected[position]!s}, "
            f"difference {distance[position]:.6g}"
        )
    if count > _SHOWN:
        lines.append(f"  and {count - _SHOWN} more")
    return "\n".join([*lines, *difference_map(wrong)])
