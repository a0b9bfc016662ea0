"""Constant tensors and element types of a GraphDef."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ....ir.attributes import Array
from ....ir.types import ScalarType
from .messages import ShapeMessage, TensorMessage

_NAMES: Final = {
    1: "f32",
    2: "f64",
    3: "i32",
    4: "ui8",
    5: "i16",
    6: "i8",
    8: "complex<f32>",
    9: "i64",
    10: "i1",
    14: "bf16",
    17: "ui16",
    18: "complex<f64>",
    19: "f16",
    22: "ui32",
    23: "ui64",
}
ELEMENTS: Final = frozenset(map(ScalarType, _NAMES.values()))
"""The element types that a GraphDef may have."""

_REFUSED: Final = {
    7: "strings",
    11: "quantized elements (DT_QINT8)",
    12: "quantized elements (DT_QUINT8)",
    13: "quantized elements (DT_QINT32)",
    15: "quantized elements (DT_QINT16)",
    16: "quantized elements (DT_QUINT16)",
    20: "resources",
    21: "variants",
}
# The fields with a type's values that are not named after the type.
_FIELDS: Final[Mapping[str, str]] = {
    "f32": "float_val",
    "f64": "double_val",
    "f16": "half_val",
    "bf16": "half_val",
    "i64": "int64_val",
    "ui32": "uint32_val",
    "ui64": "uint64_val",
    "i1": "bool_val",
    "complex<f32>": "scomplex_val",
    "complex<f64>": "dcomplex_val",
}
MAX_BYTES: Final = 1 << 32
"""Largest constant in bytes: half of the limit of a GraphDef."""


def element_of(number: int) -> ScalarType:
    """Returns the element type of a DataType; references are to elements of the same type.

    Raises:
        ValueError: the number is not supported.
    """
    number = number - 100 if number > 100 else number
    if number in _REFUSED:
        raise ValueError(f"{_REFUSED[number]} are no tensors of numbers")
    if number not in _NAMES:
        raise ValueError(f"there is no element type with the DataType {number}")
    return ScalarType(_NAMES[number])


def dims_of(shape: ShapeMessage) -> tuple[int | None, ...] | None:
    """Returns the lengths of a shape, None for an unknown length; None for an unknown rank.

    Raises:
        ValueError: a length is negative other than -1.
    """
    if shape.unknown_rank:
        return None
    lengths = [dim.size for dim in shape.dim]
    if any(length < -1 for length in lengths):
        raise ValueError(f"a shape has the lengths {lengths}")
    return tuple(None if length == -1 else length for length in lengths)


def array_of(tensor: TensorMessage) -> Array:
    """Returns the elements of a constant; a repeated value is a view with strides of 0.

    Raises:
        ValueError: values and shape do not fit together.
    """
    element = element_of(tensor.dtype)
    dims = dims_of(tensor.tensor_shape)
    if dims is None or None in dims:
        raise ValueError("the shape of a constant is not known")
    shape = tuple(length for length in dims if length is not None)
    count = math.prod(shape)
    dtype = element.dtype
    if math.prod(filter(None, shape)) * dtype.itemsize > MAX_BYTES:
        raise ValueError(f"a constant of shape {list(shape)} has {count} elements, which is more than fits")
    if tensor.tensor_content:
        content = tensor.tensor_content
        if len(content) != count * dtype.itemsize:
            raise ValueError(
                f"a constant of shape {list(shape)} and type {element} takes {count * dtype.itemsize} bytes, "
                f"got {len(content)}"
            )
        data = np.frombuffer(content, np.uint8)
        return ((data != 0) if dtype == np.bool_ else data.view(dtype)).reshape(shape)
    values = _values(getattr(tensor, _FIELDS.get(str(element), "int_val")), element)
    if values.size > count:
        raise ValueError(f"a constant of shape {list(shape)} has {count} elements, got {values.size} values")
    if values.size == count:
        return values.reshape(shape)
    if values.size <= 1:
        return np.broadcast_to(values[0] if values.size else np.zeros((), dtype), shape)
    # The last value is repeated.
    return np.concatenate([values, np.broadcast_to(values[-1], count - values.size)]).reshape(shape)


def _values(values: Sequence[float], element: ScalarType) -> Array:
    if element.kind == "complex":
        if len(values) % 2:
            raise ValueError("complex values come as pairs of numbers")
        return np.array(values, element.part.dtype).view(element.dtype)
    if str(element) in ("f16", "bf16"):
        return np.array(values, np.int64).astype(np.uint16).view(element.dtype)
    if element.kind in ("int", "uint"):
        wide = np.array(values, np.uint64 if str(element) == "ui64" else np.int64)
        return wide.astype(element.dtype)
    return np.array(values, element.dtype)
