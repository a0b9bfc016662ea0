"""Helpers of rules: operands as tensors, lengths that agree, and errors that name the expected value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from ...ir.attributes import Attribute, DenseArray, DenseElements, IntegerAttr
from ...ir.operation import Operation
from ...ir.sizes import Dim, Size, is_at_least, is_multiple, quotient, solved
from ...ir.types import ScalarType, ShapedType, TensorType, Type

Length: TypeAlias = Dim | None
Rule: TypeAlias = Callable[[Operation], Sequence[Type]]
Kinds: TypeAlias = frozenset[str]

NUMBERS: Final = frozenset({"int", "uint", "float", "complex", "index"})
REALS: Final = frozenset({"int", "uint", "float", "index"})
FLOATS: Final = frozenset({"float", "complex"})
BITS: Final = frozenset({"bool", "int", "uint", "index"})
ALL: Final = NUMBERS | {"bool"}
INTEGERS: Final = frozenset({"int", "uint", "index"})


class OperationError(Exception):
    """An operation violates a constraint.

    Attributes:
        expected: the message after "expected": the expected value, then the actual value.
        operand: the wrong operand, or None.
    """

    def __init__(self, expected: str, operand: int | None = None) -> None:
        super().__init__(expected)
        self.expected = expected
        self.operand = operand


class UnequalError(OperationError):
    """Two lengths that are not known to be equal, but may be equal in a call.

    Attributes:
        difference: the size that must be 0.
    """

    def __init__(self, expected: str, operand: int | None, difference: Size) -> None:
        super().__init__(expected, operand)
        self.difference = difference


def operands(operation: Operation, count: int) -> None:
    """Checks the operand count."""
    if len(operation.operands) != count:
        raise OperationError(f"{count} operands, got {len(operation.operands)}")


def tensors(operation: Operation, count: int | None = None) -> list[TensorType]:
    """Returns the types of the operands, which must be tensors."""
    if count is not None:
        operands(operation, count)
    types = []
    for index, value in enumerate(operation.operands):
        if not isinstance(value.type, TensorType):
            raise OperationError(f"a tensor as operand {index}, got {value.type}", index)
        if not isinstance(value.type.element, ScalarType):
            raise OperationError(f"elements of scalar types; {value.type.element} is none", index)
        types.append(value.type)
    return types


def ints(operation: Operation, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
    """Returns a list of integers, which is required unless there is a default."""
    numbers = tuple(item for item in sizes(operation, name, default) if isinstance(item, int))
    if len(numbers) < len(operation.sizes(name, default or ())):
        raise OperationError(f"numbers that do not depend on the call in {name}, got {operation.attributes[name]}")
    return numbers


def sizes(operation: Operation, name: str, default: Sequence[Dim] | None = None) -> tuple[Dim, ...]:
    """Returns a list like ``ints``, of sizes that may be call-dependent."""
    value = operation.attributes.get(name)
    if value is None and default is not None:
        return tuple(default)
    if not isinstance(value, IntegerAttr) and not _is_integers(value):
        raise OperationError(f"the attribute {name} with a list of integers")
    return operation.sizes(name)


def _is_integers(value: Attribute) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(item, IntegerAttr) or _is_integers(item) for item in value)
    if isinstance(value, DenseArray):
        return not value.values or (isinstance(value.element, ScalarType) and value.element.is_integer)
    return isinstance(value, DenseElements) and value.type.scalar.is_integer


def integer(operation: Operation, name: str, default: int = 0) -> int:
    """Returns an integer, or the default if the attribute is missing."""
    value = operation.attributes.get(name)
    if value is not None and not isinstance(value, IntegerAttr):
        raise OperationError(f"the attribute {name} with an integer, got {value}")
    return default if value is None else value.value


def axes(numbers: Iterable[int], rank: int, noun: str) -> None:
    """Checks that axis numbers are distinct and in range."""
    listed = list(numbers)
    if len(set(listed)) != len(listed) or any(not 0 <= number < rank for number in listed):
        raise OperationError(f"{noun} to be different numbers from 0 to {rank - 1}, got {listed}")


def increasing(numbers: Sequence[int], noun: str) -> None:
    """Checks that numbers are in increasing order."""
    if list(numbers) != sorted(numbers):
        raise OperationError(f"{noun} in order, got {list(numbers)}")


def same_length(left: Length, other: Length, expected: str, operand: int | None = None) -> Length:
    """Returns the common length of two lengths that must agree.

    Raises:
        UnequalError: the lengths may agree in a call, but need not.
        OperationError: the lengths do not agree.
    """
    if left is not None and other is not None and left != other:
        difference = left - other
        if isinstance(difference, Size):
            raise UnequalError(expected, operand, difference)
        raise OperationError(expected, operand)
    return other if left is None else left


def same_count(left: Dim, other: Dim, expected: str, operand: int | None = None) -> None:
    """Checks that two shapes have the same number of elements, if the equation can be solved for a length.

    Otherwise the call checks it: see ``passes/dynamic/requirements.py``.

    Raises: as for ``same_length``.
    """
    difference = left - other
    may_be = isinstance(difference, Size) and is_at_least(difference, 1) is None and is_at_least(-difference, 1) is None
    if not may_be or solved(difference) is not None:
        same_length(left, other, expected, operand)


def may_fit(left: Length, other: Length) -> bool:
    """Returns whether a length may be at most another length in some call."""
    return left is None or other is None or is_at_least(other - left, 0) is not False


def merged(
    left: Sequence[Length], other: Sequence[Length], expected: str, operand: int | None = None
) -> tuple[Length, ...]:
    """Returns the common shape of two shapes that must agree."""
    if len(left) != len(other):
        raise OperationError(expected, operand)
    return tuple(same_length(a, b, expected, operand) for a, b in zip(left, other, strict=True))


def strided(length: Dim, stride: int) -> Dim:
    """Returns the number of elements that a strided slice takes from a range.

    Raises:
        OperationError: the number would be a quotient of a quotient.
    """
    if isinstance(length, int):
        return max(0, -(-length // stride))
    if not length.symbols - length.plain_symbols:
        return quotient(length + stride - 1, stride)
    if not is_multiple(length, stride):
        raise OperationError(
            f"a stride of which the range's length {length} is a multiple in every call, got {stride}; reshape to "
            f"[…, {stride}] and take the first column, or export the program for fixed lengths"
        )
    return quotient(length, stride)


def expect_kind(element: ScalarType, kinds: Kinds) -> None:
    """Checks the kind of the first operand's elements."""
    if element.kind not in kinds:
        names = {"int": "signed", "uint": "unsigned", "bool": "boolean"}
        wanted = ", ".join(sorted(names.get(kind, kind) for kind in kinds if kind != "index"))
        raise OperationError(f"elements of one of these kinds: {wanted}; got {element}", 0)


def declared_result(operation: Operation, index: int = 0) -> TensorType:
    """Returns the declared type of a result, which must be a tensor."""
    if len(operation.results) <= index or not isinstance(operation.results[index].type, TensorType):
        raise OperationError("a tensor as result")
    type = operation.results[index].type
    assert isinstance(type, TensorType)
    return type


def compatible(left: Type, other: Type) -> bool:
    """Returns whether two types are equal except for unknown lengths."""
    if left is other:
        return True
    if not isinstance(left, ShapedType) or not isinstance(other, ShapedType) or left.element is not other.element:
        return False
    return len(left.shape) == len(other.shape) and all(
        a == b or a is None or b is None for a, b in zip(left.shape, other.shape, strict=True)
    )
