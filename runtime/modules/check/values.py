"""Comparison of tensors on the host: the differing elements, and their description.

Large tensors are compared in parts, so that wide copies of their elements stay small.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ....base.lazy_dataclass import dataclass
from ....formats.element_type import EncodingType, format_shape_and_type
from ....hal.buffer_view import BufferView
from ...values.format import format_value
from .report import ElementDifference

Array: TypeAlias = npt.NDArray[np.generic]
Mask: TypeAlias = npt.NDArray[np.bool_]
Magnitude: TypeAlias = npt.NDArray[np.float64]

_CHUNK: Final = 1 << 20


class HostView:
    """A buffer view, and its bytes at the time it was read. Elements are known only if they are dense."""

    def __init__(self, view: BufferView, data: bytes) -> None:
        self.view = view
        self.data = data
        self.count: int = view.element_count
        self.is_dense: bool = view.encoding is EncodingType.DENSE_ROW_MAJOR

    @functools.cached_property
    def array(self) -> Array | None:
        """The elements; ``None`` if they are not dense or NumPy has no type for them."""
        if not self.is_dense or self.view.element_type.dtype is None:
            return None
        return self.view.element_type.unpack(self.data, self.view.shape)

    @functools.cached_property
    def flat(self) -> Array:
        """The elements as one row; requires ``array``."""
        assert self.array is not None
        return self.array.reshape(-1)

    @property
    def has_values(self) -> bool:
        """Whether elements have values, not only bytes."""
        return self.array is not None and not self.view.element_type.is_opaque

    @property
    def is_floating(self) -> bool:
        """Whether elements are floats or complex numbers."""
        return self.array is not None and (self.view.element_type.is_float or self.view.element_type.is_complex)

    @property
    def kind(self) -> str:
        """Shape and type, and the encoding if it is not dense."""
        text = format_shape_and_type(self.view.shape, self.view.element_type)
        return text if self.is_dense else f"{text} ({self.view.encoding.name.lower()} encoding)"

    def bits(self) -> npt.NDArray[np.uint8]:
        """Returns the elements' bytes, a row for each element; 4-bit elements have one byte each, without padding."""
        element_type = self.view.element_type
        data = self.data
        if element_type.is_sub_byte:
            assert self.array is not None
            data = self.array.tobytes()
        return np.frombuffer(data, np.uint8).reshape(self.count, element_type.byte_count)

    def index(self, position: int) -> tuple[int, ...]:
        """Returns the indices of an element."""
        return tuple(int(i) for i in np.unravel_index(position, self.view.shape)) if self.view.shape else ()

    def element(self, position: int) -> str:
        """Returns one element's value with all significant digits."""
        if self.has_values:
            return str(self.flat[position])
        size = self.view.element_type.byte_count
        return self.data[position * size : (position + 1) * size].hex().upper()

    def format(self, max_elements: int) -> str:
        """Returns the text form, shortened to about ``max_elements``."""
        if self.array is None:
            return f"{self.kind} of {len(self.data)} bytes"
        element_type, shape = self.view.element_type, self.view.shape
        if self.count <= max_elements:
            return format_value(self.array, max_elements=None, element_type=element_type)
        # Only a part of a large tensor is converted to text.
        corner = []
        room = max(max_elements, 1)
        for length in reversed(shape):
            corner.append(slice(min(length, room)))
            room = max(room // length, 1) if room >= length else 1
        text = format_value(self.array[tuple(reversed(corner))], max_elements=None, element_type=element_type)
        return f"{format_shape_and_type(shape, element_type)}={text.partition('=')[2].rstrip(']')}..."


@dataclass(slots=True)
class Differing:
    """The number of differing elements; the first of them by position in row-major order.

    And the element with the largest finite difference, if differences were computed.
    """

    count: int = 0
    first: tuple[int, ...] = ()
    largest: int | None = None


def zeros(value: HostView, shown: int) -> Differing:
    """Returns the elements that are zero: for floats 0.0 and -0.0, not NaN."""

    def differs(part: slice) -> tuple[Mask, None]:
        with np.errstate(all="ignore"):
            return ~value.flat[part].astype(np.bool_), None

    return _scan(value.count, differs, shown)


def differing_bits(left: HostView, right: HostView, shown: int) -> Differing:
    """Returns the elements whose bits differ. Both views are dense and of one type and shape."""
    a, b = left.bits(), right.bits()
    return _scan(left.count, lambda part: ((a[part] != b[part]).any(axis=1), None), shown)


def far_apart(left: HostView, right: HostView, atol: float, rtol: float, shown: int) -> Differing:
    """Returns the elements that do not satisfy ``|left - right| <= atol + rtol * |right|``; both views have one type
    and shape.

    NaN is close to NaN, an infinity only to itself. Computed in f64, with absolute values of complex numbers.
    """
    wide = np.complex128 if left.view.element_type.is_complex else np.float64

    def differs(part: slice) -> tuple[Mask, Magnitude]:
        with np.errstate(all="ignore"):
            a, b = left.flat[part].astype(wide), right.flat[part].astype(wide)
            distance: Magnitude = np.abs(a - b)
            # An infinite right side makes every bound infinite, but only equals itself.
            near = (distance <= atol + rtol * np.abs(b)) & np.isfinite(b)
            return ~(near | (a == b) | (np.isnan(a) & np.isnan(b))), distance

    return _scan(left.count, differs, shown)


def _scan(count: int, differs: Callable[[slice], tuple[Mask, Magnitude | None]], shown: int) -> Differing:
    """Compares in parts; ``differs`` returns the differing elements of a part, and their differences."""
    differing = Differing()
    largest = -1.0
    for start in range(0, count, _CHUNK):
        wrong, distance = differs(slice(start, min(start + _CHUNK, count)))
        positions = np.flatnonzero(wrong)
        if not positions.size:
            continue
        differing.count += positions.size
        if len(differing.first) < shown:
            differing.first += tuple(start + int(i) for i in positions[: shown - len(differing.first)])
        if distance is not None:
            sizes = distance[positions]
            # A number has no finite difference from NaN or an infinity.
            sizes = np.where(np.isfinite(sizes), sizes, -1.0)
            position = int(np.argmax(sizes))
            if sizes[position] > largest:
                largest = float(sizes[position])
                differing.largest = start + int(positions[position])
    return differing


def describe_difference(
    left: HostView, right: HostView, position: int, tolerances: tuple[float, float] | None
) -> ElementDifference:
    """Returns an element that differs in two views; ``tolerances`` are ``atol`` and ``rtol`` if they apply."""
    distance: float | None = None
    tolerance: float | None = None
    if left.view.element_type.is_integer and left.has_values:
        distance = float(abs(int(left.flat[position]) - int(right.flat[position])))
    elif left.is_floating:
        with np.errstate(all="ignore"):
            a = left.flat[position : position + 1].astype(np.complex128)
            b = right.flat[position : position + 1].astype(np.complex128)
            size = float(np.abs(a - b)[0])
            distance = None if math.isnan(size) else size
            if tolerances is not None and np.isfinite(b[0]):
                tolerance = tolerances[0] + tolerances[1] * float(np.abs(b)[0])
    return ElementDifference(left.index(position), left.element(position), right.element(position), distance, tolerance)
