"""Values to text, for the results of command lines; ``parse`` reads it back.

Printing matches IREE's tools (``runtime/src/iree/tooling/function_io.c``, ``runtime/src/iree/hal/string_util.c``) byte
for byte, except for 4-bit integers, which they cannot print.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ...formats.element_type import ElementType, format_shape_and_type
from ...status import InvalidArgumentError

DEFAULT_MAX_ELEMENTS: Final = 1024
"""The most elements to print, as in iree-run-module by default; the rest is elided."""

Array: TypeAlias = npt.NDArray[np.generic]


def format_value(
    value: Array | np.generic | int | float | None,
    *,
    max_elements: int | None = DEFAULT_MAX_ELEMENTS,
    element_type: ElementType | None = None,
) -> str:
    """Returns the text of a value, in iree-run-module's format.

    Args:
        value: an array of any shape (``"2x2xf32=[1 2][3 4]"``, shape ``()`` as ``"f32=INF"``), a NumPy scalar or
            Python number (a VM value: ``"f32=inf"``), or ``None`` (``"(null)"``). A Python ``int`` is an i32 if it
            fits, else an i64; a ``float`` an f32 if that is exact, else an f64.
        max_elements: the largest number of elements to print before ``...``; ``None`` prints all.
        element_type: the elements' type if the dtype is ambiguous (``SINT_32``).
    """
    if value is None:
        return "(null)"
    if isinstance(value, np.generic):
        return format_scalar(value.item(), ElementType.from_dtype(value.dtype))
    if isinstance(value, int):
        return format_scalar(value, ElementType.INT_32 if -(2**31) <= value < 2**31 else ElementType.INT_64)
    if isinstance(value, float):
        with np.errstate(over="ignore", under="ignore"):
            fits = math.isnan(value) or float(np.float32(value)) == value
        return format_scalar(value, ElementType.FLOAT_32 if fits else ElementType.FLOAT_64)
    if max_elements is not None and max_elements < 0:
        raise InvalidArgumentError(f"expected max_elements of 0 or more, got {max_elements}")
    chosen = ElementType.from_dtype(value.dtype) if element_type is None else element_type
    if value.dtype != chosen.dtype:
        raise InvalidArgumentError(f"expected dtype {chosen.dtype} for {chosen.short_name}, got {value.dtype}")
    shape = value.shape
    row_size = shape[-1] if shape else 1
    row_count = math.prod(shape[:-1])
    shown = value.size if max_elements is None else min(max_elements, value.size)
    elements = _format_elements(value.reshape(-1)[:shown], chosen)
    texts: list[str] = []
    for row in range(row_count):
        start = row * row_size
        row_text = " ".join(elements[start : start + row_size])
        texts.append(row_text if start + row_size <= shown else row_text + "...")
    # From the innermost dimension outwards, each group of rows becomes one text.
    for axis in reversed(range(len(shape) - 1)):
        size = shape[axis]
        groups = math.prod(shape[:axis])
        texts = ["".join(f"[{text}]" for text in texts[i * size : (i + 1) * size]) for i in range(groups)]
    return f"{format_shape_and_type(shape, chosen)}={''.join(texts)}"


def format_scalar(value: int | float, element_type: ElementType) -> str:
    """Returns the text of a VM value of an integer or float type, such as ``"i32=5"`` or ``"f32=2.5"``."""
    if element_type.is_integer:
        return f"{element_type.short_name}={int(value)}"
    if element_type.is_float:
        return f"{element_type.short_name}={_general(float(value)).lower()}"
    raise InvalidArgumentError(f"expected an integer or float type for a bare number, got {element_type.name}")


def _general(value: float) -> str:
    """Formats like C's ``%G``, which unlike Python's writes the sign of a NaN."""
    text = f"{value:G}"
    return "-NAN" if text == "NAN" and math.copysign(1, value) < 0 else text


def _format_elements(values: Array, element_type: ElementType) -> list[str]:
    if element_type.is_integer:
        return [str(int(value)) for value in values]
    if element_type.is_float:
        with np.errstate(invalid="ignore"):
            wide = values.astype(np.float64)
        if element_type.bits < 32:
            # The narrow floats' conversions in IREE drop the sign of a NaN.
            wide = np.where(np.isnan(wide), np.nan, wide)
        return [_general(value) for value in wide.tolist()]
    size = element_type.byte_count
    digits = values.tobytes().hex().upper()
    return [digits[i : i + 2 * size] for i in range(0, len(digits), 2 * size)]
