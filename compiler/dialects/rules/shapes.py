"""Constraints and result types of operations that create or arrange elements by index only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...ir.attributes import DenseElements
from ...ir.operation import Operation
from ...ir.types import I32, TensorType, Type
from .requirements import (
    NUMBERS,
    Length,
    OperationError,
    Rule,
    axes,
    declared_result,
    expect_kind,
    integer,
    ints,
    operands,
    same_count,
    same_length,
    tensors,
)


def constant(operation: Operation) -> Sequence[Type]:
    """Returns the type of a constant's elements."""
    operands(operation, 0)
    value = operation.attributes.get("value")
    if not isinstance(value, DenseElements):
        raise OperationError("a value such as dense<0> : tensor<i32>")
    return [value.type]


def _iota(operation: Operation) -> Sequence[Type]:
    operands(operation, 0)
    result = declared_result(operation)
    expect_kind(result.scalar, NUMBERS)
    axes([integer(operation, "iota_dimension", -1)], result.rank, "iota_dimension")
    return [result]


def _reshape(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    result = declared_result(operation)
    if None not in (*value.shape, *result.shape):
        expected = f"as many elements in the result as in {value} ({value.count}), got {result.count}"
        same_count(value.count, result.count, expected, 0)
    return [TensorType(result.shape, value.element)]


def _broadcast_in_dim(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    result = declared_result(operation)
    dimensions = ints(operation, "broadcast_dimensions")
    if len(dimensions) != value.rank:
        raise OperationError(f"a number in dims for each of {value}'s {value.rank} dimensions, got {list(dimensions)}")
    axes(dimensions, result.rank, "dims")
    for axis, target in enumerate(dimensions):
        length, wanted = value.shape[axis], result.shape[target]
        if length != 1:
            expected = f"dimension {axis} of {value} to be 1 or {wanted}, which is dimension {target} of the result"
            same_length(length, wanted, expected, 0)
    return [TensorType(result.shape, value.element)]


def _broadcast(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    return [TensorType((*ints(operation, "broadcast_sizes"), *value.shape), value.element)]


def _transpose(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    order = ints(operation, "permutation")
    if sorted(order) != list(range(value.rank)):
        raise OperationError(f"dims to be an order of 0 to {value.rank - 1}, got {list(order)}")
    return [TensorType([value.shape[axis] for axis in order], value.element)]


def _reverse(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    axes(ints(operation, "dimensions"), value.rank, "dims")
    return [value]


def _concatenate(operation: Operation) -> Sequence[Type]:
    types = tensors(operation)
    if not types:
        raise OperationError("at least one operand")
    first = types[0]
    axis = integer(operation, "dimension", -1)
    axes([axis], first.rank, "dim")
    shape = list(first.shape)
    total: Length = shape[axis]
    for index, type in enumerate(types[1:], 1):
        if type.element is not first.element or type.rank != first.rank:
            raise OperationError(f"operands of one element type and rank, got {first} and {type}", index)
        for other, length in enumerate(type.shape):
            if other != axis:
                shape[other] = same_length(
                    shape[other], length, f"equal lengths but along {axis}, got {first} and {type}", index
                )
        length = type.shape[axis]
        total = None if total is None or length is None else total + length
    shape[axis] = total
    return [TensorType(shape, first.element)]


def _dimension_size(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    axes([integer(operation, "dimension", -1)], value.rank, "dim")
    return [TensorType((), I32)]


SHAPES: Final[Mapping[str, Rule]] = {
    "broadcast": _broadcast,
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": _concatenate,
    "constant": constant,
    "get_dimension_size": _dimension_size,
    "iota": _iota,
    "reshape": _reshape,
    "reverse": _reverse,
    "transpose": _transpose,
}
