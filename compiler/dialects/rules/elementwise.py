"""Constraints and result types of element-wise operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...ir.attributes import EnumAttr
from ...ir.operation import Operation
from ...ir.types import I1, ScalarType, TensorType, Type
from .requirements import (
    ALL,
    BITS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    REALS,
    Kinds,
    Length,
    OperationError,
    Rule,
    declared_result,
    expect_kind,
    integer,
    merged,
    tensors,
)


def elementwise(count: int, kinds: Kinds) -> Rule:
    """Creates the rule for operands and a result of the same type."""

    def rule(operation: Operation) -> Sequence[Type]:
        types = tensors(operation, count)
        expect_kind(types[0].scalar, kinds)
        shape = types[0].shape
        for index, type in enumerate(types[1:], 1):
            if type.element is not types[0].element:
                raise OperationError(f"operands of one element type, got {types[0]} and {type}", index)
            shape = merged(shape, type.shape, f"operands of one shape, got {types[0]} and {type}", index)
        return [TensorType(shape, types[0].element)]

    return rule


def _clamp(operation: Operation) -> Sequence[Type]:
    low, value, high = tensors(operation, 3)
    shape = value.shape
    for index, bound in ((0, low), (2, high)):
        expected = f"bounds of type {value} or without dimensions, got {bound}"
        if bound.element is not value.element:
            raise OperationError(expected, index)
        if bound.rank:
            shape = merged(shape, bound.shape, expected, index)
    expect_kind(value.scalar, REALS | {"bool", "complex"})
    return [TensorType(shape, value.element)]


def _compare(operation: Operation) -> Sequence[Type]:
    left, right = tensors(operation, 2)
    if left.element is not right.element:
        raise OperationError(f"operands of one element type, got {left} and {right}", 1)
    direction = operation.attributes.get("comparison_direction")
    if not isinstance(direction, EnumAttr) or direction.case not in ("EQ", "NE", "LT", "LE", "GT", "GE"):
        raise OperationError("comparison_direction to be EQ, NE, LT, LE, GT or GE")
    if left.scalar.kind == "complex" and direction.case not in ("EQ", "NE"):
        raise OperationError("EQ or NE, since complex numbers have no order", 0)
    return [TensorType(merged(left.shape, right.shape, f"operands of one shape, got {left} and {right}", 1), I1)]


def _select(operation: Operation) -> Sequence[Type]:
    predicate, chosen, other = tensors(operation, 3)
    if predicate.element is not I1:
        raise OperationError(f"a predicate of i1, got {predicate}", 0)
    if chosen.element is not other.element:
        raise OperationError(f"two values of one type, got {chosen} and {other}", 2)
    shape = merged(chosen.shape, other.shape, f"two values of one type, got {chosen} and {other}", 2)
    if predicate.rank:
        shape = merged(
            shape, predicate.shape, f"a predicate of the values' shape or without dimensions, got {predicate}", 0
        )
    return [TensorType(shape, chosen.element)]


def _convert(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    return [value.of(declared_result(operation).element)]


def _bitcast(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    result = declared_result(operation)
    source, target = value.scalar.bits, result.scalar.bits
    shape: tuple[Length, ...] = value.shape
    if source > target:
        shape = (*shape, source // target)
    elif source < target:
        if not value.rank or value.shape[-1] not in (None, target // source):
            raise OperationError(f"a last dimension of {target // source} elements to be put together, got {value}", 0)
        shape = shape[:-1]
    return [TensorType(shape, result.element)]


def _complex(operation: Operation) -> Sequence[Type]:
    real, imaginary = tensors(operation, 2)
    expected = f"two tensors of f32 or f64, got {real} and {imaginary}"
    if real.element is not imaginary.element or str(real.element) not in ("f32", "f64"):
        raise OperationError(expected, 1)
    return [TensorType(merged(real.shape, imaginary.shape, expected, 1), ScalarType(f"complex<{real.element}>"))]


def _part(kinds: Kinds) -> Rule:
    def rule(operation: Operation) -> Sequence[Type]:
        (value,) = tensors(operation, 1)
        expect_kind(value.scalar, kinds)
        return [value.of(value.scalar.part)]

    return rule


def predicate(operation: Operation) -> Sequence[Type]:
    """Returns the type of a predicate on real floats."""
    (value,) = tensors(operation, 1)
    expect_kind(value.scalar, frozenset({"float"}))
    return [value.of(I1)]


def _reduce_precision(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    expect_kind(value.scalar, frozenset({"float"}))
    if integer(operation, "exponent_bits") < 1 or integer(operation, "mantissa_bits") < 0:
        raise OperationError("at least 1 exponent bit and 0 mantissa bits")
    return [value]


ELEMENTWISE: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(("add", "maximum", "minimum", "multiply", "subtract"), elementwise(2, ALL)),
    **dict.fromkeys(("divide", "power"), elementwise(2, NUMBERS)),
    "remainder": elementwise(2, REALS),
    "atan2": elementwise(2, FLOATS),
    **dict.fromkeys(("and", "or", "xor"), elementwise(2, BITS)),
    **dict.fromkeys(("shift_left", "shift_right_arithmetic", "shift_right_logical"), elementwise(2, INTEGERS)),
    "not": elementwise(1, BITS),
    **dict.fromkeys(("popcnt", "count_leading_zeros"), elementwise(1, INTEGERS)),
    **dict.fromkeys(("negate", "sign"), elementwise(1, NUMBERS)),
    **dict.fromkeys(("ceil", "floor", "round_nearest_afz", "round_nearest_even"), elementwise(1, frozenset({"float"}))),
    **dict.fromkeys(
        (
            *("cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic"),
            *("rsqrt", "sine", "sqrt", "tan", "tanh"),
        ),
        elementwise(1, FLOATS),
    ),
    "abs": _part(frozenset({"int", "float", "complex"})),
    "bitcast_convert": _bitcast,
    "clamp": _clamp,
    "compare": _compare,
    "complex": _complex,
    "convert": _convert,
    "imag": _part(FLOATS),
    "is_finite": predicate,
    "real": _part(FLOATS),
    "reduce_precision": _reduce_precision,
    "select": _select,
}
