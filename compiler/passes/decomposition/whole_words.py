"""Conversion of elements of fewer than 32 bits to whole words, which invocations can write one by one, and back."""

from __future__ import annotations

from ...dialects.builder import Builder
from ...ir.operation import Value, tensor_of
from ...ir.types import F32, ScalarType


def widened(builder: Builder, value: Value) -> Value:
    """Converts elements of fewer than 32 bits to integers of 32 that hold their bits."""
    element = tensor_of(value).scalar
    if element.bits >= 32:
        return value
    if element.kind == "float":
        if element.bits < 8:
            return builder.convert(value, F32)
        value = builder.bitcast(value, ScalarType(f"ui{element.bits}"))
    return builder.convert(value, ScalarType("i32" if element.kind == "int" else "ui32"))


def narrowed(builder: Builder, value: Value, element: ScalarType) -> Value:
    """Reverses ``widened``."""
    if element.kind != "float" or not 8 <= element.bits < 32:
        return builder.convert(value, element)
    return builder.bitcast(builder.convert(value, ScalarType(f"ui{element.bits}")), element)
