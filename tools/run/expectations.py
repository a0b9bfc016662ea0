"""Compares results with ``--expect`` and ``--expected_output``.

Integers, booleans and opaque values must be equal. Floats may differ by as much as iree-run-module's
``--expected_output`` allows by default (``runtime/src/iree/tooling/comparison.cc``, 3.13)::

    |got - expected| <= atol + rtol * |expected|

with ``atol`` by element type and ``rtol`` 1e-5. NaN equals NaN, and an infinity equals the same infinity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

import numpy as np
import numpy.typing as npt

from ...base.lazy_dataclass import dataclass
from ...formats.element_type import ElementType, format_shape_and_type
from .keys import Array, BufferArgument

DEFAULT_RTOL: Final = 1e-5
_ATOL: Final = {
    ElementType.FLOAT_16: 1e-3,
    ElementType.BFLOAT_16: 1e-2,
    ElementType.FLOAT_32: 1e-4,
    ElementType.FLOAT_64: 1e-4,
    ElementType.COMPLEX_FLOAT_64: 1e-4,
    ElementType.COMPLEX_FLOAT_128: 1e-4,
}
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Tolerances:
    """The tolerances with which floats are compared."""

    atol: float | None = None
    rtol: float | None = None
    atol_of: Mapping[ElementType, float] = field(default_factory=dict)
    exact: bool = False

    def of(self, element_type: ElementType) -> tuple[float, float]:
        """Returns absolute and relative tolerance for an element type."""
        absolute = self.atol_of.get(element_type, _ATOL.get(element_type, 0.0)) if self.atol is None else self.atol
        return absolute, DEFAULT_RTOL if self.rtol is None else self.rtol


def differing(got: Array, expected: Array, element_type: ElementType, tolerances: Tolerances) -> npt.NDArray[np.bool_]:
    """Returns a mask of the elements that differ from the expected elements."""
    if tolerances.exact:
        size = got.dtype.itemsize
        a, b = (np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(-1, size) for array in (got, expected))
        wrong: npt.NDArray[np.bool_] = np.any(a != b, axis=1).reshape(got.shape)
        return wrong
    if element_type.is_float or element_type.is_complex:
        return ~_close(got, expected, *tolerances.of(element_type))
    unequal: npt.NDArray[np.bool_] = np.asarray(got != expected)
    return unequal


def difference(label: str, got: Array, got_type: ElementType, expected: BufferArgument, tolerances: Tolerances) -> str:
    """Returns a text with the number of differing elements and the first few; ``""`` if all are equal."""
    data = expected.data
    assert data is not None
    if got.shape != expected.shape or not comparable(got_type, expected.element_type):
        return (
            f"{label}: expected {format_shape_and_type(expected.shape, expected.element_type)}, "
            f"got {format_shape_and_type(got.shape, got_type)}"
        )
    element_type = expected.element_type
    got = got.view(data.dtype)
    wrong = differing(got, data, element_type, tolerances)
    rule = ""
    if element_type.is_float or element_type.is_complex:
        absolute, relative = tolerances.of(element_type)
        rule = f" (by more than {absolute:g} + {relative:g} * |expected|)"
    count = int(np.count_nonzero(wrong))
    if not count:
        return ""
    lines = [f"{label}: {count} of {got.size} element(s) differ from what was expected{rule}"]
    for index in np.argwhere(wrong)[:_SHOWN]:
        position = tuple(int(i) for i in index)
        at = f"[{','.join(map(str, position))}]: " if position else ""
        lines.append(f"  {at}expected {_shown(data[position])}, got {_shown(got[position])}")
    if count > _SHOWN:
        lines.append(f"  and {count - _SHOWN} more")
    return "\n".join(lines)


def comparable(got: ElementType, expected: ElementType) -> bool:
    """Whether the types are comparable: equal, or integers of which one is signless."""
    if got == expected:
        return True
    both = got.is_integer and expected.is_integer and got.bits == expected.bits
    return both and not got.is_sub_byte and any(t.short_name.startswith("i") for t in (got, expected))


def _close(got: Array, expected: Array, atol: float, rtol: float) -> npt.NDArray[np.bool_]:
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        a, b = got.astype(wide), expected.astype(wide)
        near = np.abs(a - b) <= atol + rtol * np.abs(b)
        # An infinite expectation makes every bound infinite, but only equals itself.
        near &= np.isfinite(b)
        result: npt.NDArray[np.bool_] = near | (a == b) | (np.isnan(a) & np.isnan(b))
    return result


def _shown(value: object) -> str:
    """Returns the value with all its distinguishing digits; the text form of results has fewer."""
    return value.tobytes().hex().upper() if isinstance(value, np.void) else str(value)
