"""Small integer tensors whose elements are known as numbers, or as sizes that depend on the call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..dialects.rules import OperationError
from ..ir.attributes import DenseElements, EnumAttr
from ..ir.operation import Operation, Value
from ..ir.sizes import Dim, Size, is_at_least, is_multiple, quotient
from ..ir.types import TensorType

Sizes = npt.NDArray[np.object_]
"""Elements are integers, booleans and sizes; None where one is not known."""

MAX_ELEMENTS: Final = 64
"""Larger tensors are not followed."""


class Known:
    """What is known of values.

    Attributes:
        sizes: elements by value.
    """

    def __init__(self) -> None:
        self.sizes: dict[Value, Sizes] = {}

    @staticmethod
    def scalar(size: Dim | bool | None) -> Sizes:
        """A tensor without dimensions."""
        found = np.empty((), object)
        found[()] = size
        return found

    def lengths(self, value: Value, what: str) -> tuple[Dim, ...]:
        """Elements of a vector of sizes.

        Raises:
            OperationError: one is not known.
        """
        found = self.sizes.get(value)
        elements = [] if found is None else [each for each in found.reshape(-1) if isinstance(each, int | Size)]
        if found is None or len(elements) < found.size:
            raise OperationError(
                f"{what} that is a polynomial in the lengths of arguments' dimensions, such as 2*b+1; what is computed "
                "from data, or divided with a rest, is not known before the call: export the program for fixed lengths"
            )
        return tuple(elements)

    def comparison(self, value: Value) -> tuple[str, Dim, Dim] | None:
        """Direction and sides of the comparison of sizes that a value is, if it is one."""
        owner = value.owner
        if not isinstance(owner, Operation) or owner.name != "stablehlo.compare":
            return None
        sides = [self.sizes.get(operand) for operand in owner.operands]
        direction = owner.attributes["comparison_direction"]
        if sides[0] is None or sides[1] is None or sides[0].size != 1 or not isinstance(direction, EnumAttr):
            return None
        left, right = (side.reshape(-1)[0] for side in sides if side is not None)
        if not isinstance(left, int | Size) or not isinstance(right, int | Size):
            return None
        return direction.case, left, right

    def note(self, operation: Operation) -> None:
        """Follows an operation, if it is one that computes with sizes."""
        rule = _RULES.get(operation.name.removeprefix("stablehlo."))
        if rule is None or len(operation.results) != 1:
            return
        type = operation.results[0].type
        if not isinstance(type, TensorType) or not (type.scalar.is_integer or type.scalar.kind == "bool"):
            return
        if not isinstance(type.count, int) or type.count > MAX_ELEMENTS:
            return
        operands = [self.sizes.get(value) for value in operation.operands]
        given = [operand for operand in operands if operand is not None]
        if len(given) == len(operands):
            found = rule(operation, *given)
            if found is not None:
                self.sizes[operation.results[0]] = found


def is_true(known: Known, value: Value) -> bool | None:
    """Whether a boolean holds in every call, or in none; None where it is not known."""
    found = known.sizes.get(value)
    return None if found is None or found.size != 1 else found.reshape(-1)[0]


def _each(function: Callable[..., object]) -> Callable[..., Sizes | None]:
    """A rule that applies a function to each element; what is not known stays so."""

    def rule(operation: Operation, *operands: Sizes) -> Sizes | None:
        shape = operation.results[0].tensor.lengths
        spread = [np.broadcast_to(operand, [int(str(each)) for each in shape]) for operand in operands]
        found = np.empty(spread[0].shape, object)
        for index in np.ndindex(found.shape):
            items = [operand[index] for operand in spread]
            found[index] = None if None in items else function(*items)
        return found

    return rule


def _divided(left: Dim, right: Dim) -> Dim | None:
    if not isinstance(right, int) or right == 0:
        return 1 if left == right and right != 0 else None
    if isinstance(left, int):
        return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return quotient(left, right) if is_multiple(left, right) else None


def _rest(left: Dim, right: Dim) -> Dim | None:
    if not isinstance(right, int) or right == 0:
        return None
    if isinstance(left, int):
        return abs(left) % abs(right) * (-1 if left < 0 else 1)
    return 0 if is_multiple(left, right) else None


def _larger(left: Dim, right: Dim) -> Dim | None:
    if is_at_least(left - right, 0):
        return left
    return right if is_at_least(right - left, 0) else None


def _smaller(left: Dim, right: Dim) -> Dim | None:
    if is_at_least(left - right, 0):
        return right
    return left if is_at_least(right - left, 0) else None


def _clamped(low: Dim, value: Dim, high: Dim) -> Dim | None:
    larger = _larger(low, value)
    return None if larger is None else _smaller(larger, high)


def _compared(operation: Operation, left: Sizes, right: Sizes) -> Sizes | None:
    direction = operation.attributes["comparison_direction"]
    assert isinstance(direction, EnumAttr)
    return _each(_COMPARISONS[direction.case])(operation, left, right)


def _equal(left: Dim, right: Dim) -> bool | None:
    difference = left - right
    if isinstance(difference, int):
        return difference == 0
    return False if is_at_least(difference, 1) or is_at_least(-difference, 1) else None


def _not(value: object) -> object:
    return (not value) if isinstance(value, bool) else None if isinstance(value, Size) else ~int(str(value))


_COMPARISONS: Final[Mapping[str, Callable[[Dim, Dim], bool | None]]] = {
    "EQ": _equal,
    "NE": lambda left, right: None if (found := _equal(left, right)) is None else not found,
    "GE": lambda left, right: is_at_least(left - right, 0),
    "GT": lambda left, right: is_at_least(left - right, 1),
    "LE": lambda left, right: is_at_least(right - left, 0),
    "LT": lambda left, right: is_at_least(right - left, 1),
}


def _chosen(operation: Operation, predicate: Sizes, then: Sizes, otherwise: Sizes) -> Sizes | None:
    def choose(condition: object, one: object, other: object) -> object:
        return one if condition else other

    return _each(choose)(operation, predicate, then, otherwise)


def _constant(operation: Operation) -> Sizes | None:
    value = operation.attributes["value"]
    assert isinstance(value, DenseElements)
    found = np.empty(value.array.shape, object)
    for index in np.ndindex(found.shape):
        found[index] = value.array[index].item()
    return found


def _shape(operation: Operation) -> list[int]:
    return [length for length in operation.results[0].tensor.lengths if isinstance(length, int)]


def _broadcast(operation: Operation, value: Sizes) -> Sizes | None:
    shape = [1] * len(_shape(operation))
    for axis, length in zip(operation.integers("broadcast_dimensions"), value.shape, strict=True):
        shape[axis] = length
    return np.broadcast_to(value.reshape(shape), _shape(operation))


def _slice(operation: Operation, value: Sizes) -> Sizes | None:
    lists = [operation.integers(name) for name in ("start_indices", "limit_indices", "strides")]
    return value[tuple(slice(*each) for each in zip(*lists, strict=True))]


def _product(left: Any, right: Any) -> object:
    return left * right


_RULES: Final[Mapping[str, Callable[..., Sizes | None]]] = {
    "add": _each(lambda left, right: left + right),
    "and": _each(lambda left, right: None if isinstance(left, Size) or isinstance(right, Size) else left & right),
    "broadcast_in_dim": _broadcast,
    "clamp": _each(_clamped),
    "compare": _compared,
    "concatenate": lambda operation, *values: np.concatenate(values, operation.integer("dimension")),
    "constant": _constant,
    "convert": _each(lambda value: int(value) if isinstance(value, bool) else value),
    "divide": _each(_divided),
    "maximum": _each(_larger),
    "minimum": _each(_smaller),
    "multiply": _each(_product),
    "negate": _each(lambda value: -value),
    "not": _each(_not),
    "or": _each(lambda left, right: None if isinstance(left, Size) or isinstance(right, Size) else left | right),
    "remainder": _each(_rest),
    "reshape": lambda operation, value: value.reshape(_shape(operation)),
    "select": _chosen,
    "slice": _slice,
    "subtract": _each(lambda left, right: left - right),
}
