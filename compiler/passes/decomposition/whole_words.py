"""Elements of fewer than 32 bits as whole words, which invocations write one by one, and back."""

from __future__ import annotations

from ...dialects.builder import Builder
from ...ir.operation import Value, tensor_of
from ...ir.types import F32, ScalarType


def widened(builder: Builder, value: Value) -> Value:
    """A tensor with elements of at least 32 bits: integers of the same bits, where they have fewer."""
    element = tensor_of(value).scalar
    if element.bits >= 32:
        return value
    if element.kind == "float":
        if element.bits < 8:
            return builder.convert(value, F32)
        value = builder.bitcast(value, ScalarType(f"ui{element.bits}"))
    return builder.convert(value, ScalarType("i32" if element.kind == "int" else "ui32"))


def narrowed(builder: Builder, value: Value, element: ScalarType) -> Value:
    """What ``widened`` made of elements of a type."""
    if element.kind != "float" or not 8 <= element.bits < 32:
        return builder.convert(value, element)
    return builder.bitcast(builder.convert(value, ScalarType(f"ui{element.bits}")), element)
