"""Constraints and result types of batch normalisation, random numbers and tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...ir.attributes import EnumAttr, type_shape
from ...ir.operation import Operation
from ...ir.types import TensorType, TupleType, Type
from .dynamic import constant_numbers
from .requirements import OperationError, Rule, compatible, declared_result, expect_kind, integer, operands, tensors

_STATES: Final[Mapping[str, tuple[int, ...]]] = {"DEFAULT": (1, 2, 3), "THREE_FRY": (2,), "PHILOX": (2, 3)}
"""The 64-bit words of each algorithm's state."""


def _batch_norm(operation: Operation, count: int, vectors: Sequence[int]) -> tuple[TensorType, TensorType]:
    """Checks the operands; returns the types of the input and of a vector of its features.

    Args:
        operation: the operation, whose first operand is the input.
        count: the operand count.
        vectors: the operands with an element for each feature; the others have the input's type.
    """
    types = tensors(operation, count)
    value = types[0]
    expect_kind(value.scalar, frozenset({"float"}))
    axis = integer(operation, "feature_index", -1)
    if not 0 <= axis < value.rank:
        raise OperationError(f"feature_index from 0 to {value.rank - 1}, got {axis}")
    features = TensorType((value.shape[axis],), value.element)
    for index in range(1, count):
        wanted = features if index in vectors else value
        if not compatible(types[index], wanted):
            raise OperationError(f"operand {index} of type {wanted}, got {types[index]}", index)
    return value, features


def _batch_norm_with_features(count: int, vectors: Sequence[int]) -> Rule:
    def rule(operation: Operation) -> Sequence[Type]:
        value, features = _batch_norm(operation, count, vectors)
        return [value, features, features]

    return rule


def _rng(operation: Operation) -> Sequence[Type]:
    low, high, shape = tensors(operation, 3)
    for index, bound in enumerate((low, high)):
        expect_kind(bound.scalar, frozenset({"bool", "int", "uint", "float", "index"}))
        if bound.rank or bound.element is not low.element:
            raise OperationError(f"two bounds of one type without dimensions, got {low} and {high}", index)
    if shape.rank != 1 or not shape.is_static or not shape.scalar.is_integer:
        raise OperationError(f"a shape that is a vector of integers, got {shape}", 2)
    numbers = constant_numbers(operation.operands[2])
    (rank,) = type_shape(shape)
    return [TensorType([None] * rank if numbers is None else numbers, low.element)]


def _rng_bit_generator(operation: Operation) -> Sequence[Type]:
    (state,) = tensors(operation, 1)
    algorithm = operation.attributes.get("rng_algorithm")
    case = algorithm.case if isinstance(algorithm, EnumAttr) else ""
    if case not in _STATES:
        raise OperationError(f"rng_algorithm to be one of {', '.join(_STATES)}, got {algorithm}")
    if state.rank != 1 or state.scalar.bits != 64 or state.shape[0] not in (None, *_STATES[case]):
        sizes = " or ".join(map(str, _STATES[case]))
        raise OperationError(f"a state of {sizes} 64-bit integers for {case}, got {state}", 0)
    result = declared_result(operation, 1)
    expect_kind(result.scalar, frozenset({"int", "uint", "float"}))
    return [state, result]


def _tuple(operation: Operation) -> Sequence[Type]:
    return [TupleType([value.type for value in operation.operands])]


def _get_tuple_element(operation: Operation) -> Sequence[Type]:
    operands(operation, 1)
    type = operation.operands[0].type
    index = integer(operation, "index", -1)
    if not isinstance(type, TupleType) or not 0 <= index < len(type.elements):
        raise OperationError(f"a tuple of more than {index} elements, got {type}", 0)
    return [type.elements[index]]


STATISTICS: Final[Mapping[str, Rule]] = {
    "batch_norm_grad": _batch_norm_with_features(5, (1, 2, 3)),
    "batch_norm_inference": lambda operation: [_batch_norm(operation, 5, (1, 2, 3, 4))[0]],
    "batch_norm_training": _batch_norm_with_features(3, (1, 2)),
    "get_tuple_element": _get_tuple_element,
    "rng": _rng,
    "rng_bit_generator": _rng_bit_generator,
    "tuple": _tuple,
}
