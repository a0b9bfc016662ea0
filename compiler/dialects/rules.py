"""What rules for operations share: operands as tensors, lengths that agree, and errors that say what was expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from ..ir.attributes import Attribute, DenseArray, DenseElements, IntegerAttr
from ..ir.operation import Operation
from ..ir.types import ScalarType, ShapedType, TensorType, Type

Dim: TypeAlias = int | None
Rule: TypeAlias = Callable[[Operation], Sequence[Type]]
Kinds: TypeAlias = frozenset[str]

NUMBERS: Final = frozenset({"int", "uint", "float", "complex", "index"})
REALS: Final = frozenset({"int", "uint", "float", "index"})
FLOATS: Final = frozenset({"float", "complex"})
BITS: Final = frozenset({"bool", "int", "uint", "index"})
ALL: Final = NUMBERS | {"bool"}
INTEGERS: Final = frozenset({"int", "uint", "index"})


class OperationError(Exception):
    """An operation is not as it has to be.

    Attributes:
        expected: what was expected, and what came; "expected" stands before it.
        operand: the operand that is wrong, or None.
    """

    def __init__(self, expected: str, operand: int | None = None) -> None:
        super().__init__(expected)
        self.expected = expected
        self.operand = operand


def operands(operation: Operation, count: int) -> None:
    """Holds the number of operands."""
    if len(operation.operands) != count:
        raise OperationError(f"{count} operands, got {len(operation.operands)}")


def tensors(operation: Operation, count: int | None = None) -> list[TensorType]:
    """Types of the operands, which have to be tensors."""
    if count is not None:
        operands(operation, count)
    found = []
    for index, value in enumerate(operation.operands):
        if not isinstance(value.type, TensorType):
            raise OperationError(f"a tensor as operand {index}, got {value.type}", index)
        if not isinstance(value.type.element, ScalarType):
            raise OperationError(f"elements of scalar types; {value.type.element} is none", index)
        found.append(value.type)
    return found


def ints(operation: Operation, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
    """A list of integers, which has to be there unless there is a default."""
    value = operation.attributes.get(name)
    if value is None and default is not None:
        return tuple(default)
    if isinstance(value, IntegerAttr):
        return (value.value,)
    if not _is_integers(value):
        raise OperationError(f"the attribute {name} with a list of integers")
    return operation.integers(name)


def _is_integers(value: Attribute) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(item, IntegerAttr) or _is_integers(item) for item in value)
    if isinstance(value, DenseArray):
        return not value.values or (isinstance(value.element, ScalarType) and value.element.is_integer)
    return isinstance(value, DenseElements) and value.type.scalar.is_integer


def integer(operation: Operation, name: str, default: int = 0) -> int:
    """An integer; the default where the attribute is not there."""
    value = operation.attributes.get(name)
    if value is not None and not isinstance(value, IntegerAttr):
        raise OperationError(f"the attribute {name} with an integer, got {value}")
    return default if value is None else value.value


def axes(numbers: Iterable[int], rank: int, what: str) -> None:
    """Holds that numbers name different dimensions."""
    listed = list(numbers)
    if len(set(listed)) != len(listed) or any(not 0 <= number < rank for number in listed):
        raise OperationError(f"{what} to be different numbers from 0 to {rank - 1}, got {listed}")


def increasing(numbers: Sequence[int], what: str) -> None:
    """Holds that numbers are in order."""
    if list(numbers) != sorted(numbers):
        raise OperationError(f"{what} in order, got {list(numbers)}")


def same_length(one: Dim, other: Dim, expected: str, operand: int | None = None) -> Dim:
    """The length that two agree on."""
    if one is not None and other is not None and one != other:
        raise OperationError(expected, operand)
    return other if one is None else one


def merged(one: Sequence[Dim], other: Sequence[Dim], expected: str, operand: int | None = None) -> tuple[Dim, ...]:
    """The shape that two agree on."""
    if len(one) != len(other):
        raise OperationError(expected, operand)
    return tuple(same_length(a, b, expected, operand) for a, b in zip(one, other, strict=True))


def expect_kind(element: ScalarType, kinds: Kinds) -> None:
    """Holds the kind of the first operand's elements."""
    if element.kind not in kinds:
        names = {"int": "signed", "uint": "unsigned", "bool": "boolean"}
        wanted = ", ".join(sorted(names.get(kind, kind) for kind in kinds if kind != "index"))
        raise OperationError(f"elements of one of these kinds: {wanted}; got {element}", 0)


def declared_result(operation: Operation, index: int = 0) -> TensorType:
    """The type of a result, which has to be a tensor, as the operation declares it."""
    if len(operation.results) <= index or not isinstance(operation.results[index].type, TensorType):
        raise OperationError("a tensor as result")
    type = operation.results[index].type
    assert isinstance(type, TensorType)
    return type


def compatible(one: Type, other: Type) -> bool:
    """Whether two types are the same but for lengths that are not known."""
    if one is other:
        return True
    if not isinstance(one, ShapedType) or not isinstance(other, ShapedType) or one.element is not other.element:
        return False
    return len(one.shape) == len(other.shape) and all(
        a == b or a is None or b is None for a, b in zip(one.shape, other.shape, strict=True)
    )
