"""Small integer tensors with known elements: numbers or call-dependent sizes.

A value computed from data is a separate symbol, an unknown. So the limit of a slice minus its start may be a size,
although neither is. An unknown also records the integer arguments that it comes from: if a length is needed, their
values may be lengths.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeGuard

import numpy as np
import numpy.typing as npt

from ...dialects.rules.requirements import OperationError
from ...ir.attributes import DenseElements, EnumAttr, type_shape
from ...ir.operation import Operation, Value
from ...ir.sizes import Dim, Size, SizeError, is_at_least, is_multiple, quotient, symbol
from ...ir.types import TensorType, Type

Sizes = npt.NDArray[np.object_]
"""Elements are integers, booleans and sizes; None if unknown."""

MAX_ELEMENTS: Final = 64
"""The most elements of a tensor that is followed."""

_UNKNOWN: Final = 10**6
"""Symbols from this number on are unknowns, which may be negative."""


def is_size(value: object) -> TypeGuard[Dim]:
    """Whether an element is a number or a size without unknowns."""
    return isinstance(value, int) or (isinstance(value, Size) and not _has_unknown(value))


def _has_unknown(size: Size) -> bool:
    return any(int(name[1:]) >= _UNKNOWN for name in size.plain_symbols)


def _at_least(size: Dim, low: int) -> bool | None:
    return None if isinstance(size, Size) and _has_unknown(size) else is_at_least(size, low)


class ArgumentsError(OperationError):
    """An unknown length that would or might be known if values of integer arguments were lengths.

    Attributes:
        arguments: the numbers of the arguments.
    """

    def __init__(self, expected: str, arguments: frozenset[int]) -> None:
        super().__init__(expected)
        self.arguments = arguments


class Known:
    """Sizes known for values.

    Attributes:
        sizes: the elements by value.
        divisions: the symbols and divisors whose divisibility is not known.
    """

    def __init__(self) -> None:
        self.sizes: dict[Value, Sizes] = {}
        self.divisions: list[tuple[str, int]] = []
        self._count = _UNKNOWN
        self._origins: dict[str, frozenset[int]] = {}

    def note_argument(self, value: Value, number: int) -> None:
        """Adds an integer argument of rank 0, as an unknown."""
        self.sizes[value] = self._with_unknowns(self.scalar(None), frozenset({number}))

    def not_known(self, elements: Iterable[object], expected: str) -> OperationError:
        """Makes the error for elements that must be known."""
        arguments = self._origin(elements)
        return ArgumentsError(expected, arguments) if arguments else OperationError(expected)

    def _origin(self, elements: Iterable[object]) -> frozenset[int]:
        """Returns the integer arguments that elements are computed from."""
        if not self._origins:
            return frozenset()
        names = {name for element in elements if isinstance(element, Size) for name in element.plain_symbols}
        return frozenset(number for name in names for number in self._origins.get(name, ()))

    def elements(self, value: Value) -> Sizes | None:
        """Returns elements of a small tensor of integers or booleans, including unknowns; None for other values."""
        if value not in self.sizes and _is_small(value.type):
            self.sizes[value] = np.full(type_shape(value.tensor), None, object)
            if value.tensor.scalar.is_integer:
                self.sizes[value] = self._with_unknowns(self.sizes[value])
        return self.sizes.get(value)

    def _with_unknowns(self, elements: Sizes, origin: frozenset[int] = frozenset()) -> Sizes:
        completed = elements.copy()
        for index in np.ndindex(completed.shape):
            if completed[index] is None:
                completed[index] = symbol(self._count)
                if origin:
                    self._origins[f"d{self._count}"] = origin
                self._count += 1
        return completed

    @staticmethod
    def scalar(size: Dim | bool | None) -> Sizes:
        """Makes a tensor of rank 0."""
        tensor = np.empty((), object)
        tensor[()] = size
        return tensor

    def lengths(self, value: Value, noun: str, declared: Sequence[Dim | None] = ()) -> tuple[Dim, ...]:
        """Returns the elements of a vector of sizes.

        Args:
            value: the vector.
            noun: the vector's name in errors.
            declared: the required values of elements, or None.

        Raises:
            ArgumentsError: an element is unknown and comes from values of arguments.
            OperationError: an element is unknown.
        """
        known = self.elements(value)
        listed = [None] * len(declared) if known is None else known.reshape(-1).tolist()
        pairs = itertools.zip_longest(listed, declared)
        elements = [size for element, wanted in pairs if is_size(size := element if is_size(element) else wanted)]
        if len(elements) < len(listed) or (known is None and not declared):
            raise self.not_known(
                listed,
                f"{noun} that is a polynomial in the lengths of arguments' dimensions, such as 2*b+1; what is computed "
                "from data, or divided with a rest, is not known before the call: export the program for fixed lengths",
            )
        return tuple(elements)

    def comparison(self, value: Value) -> tuple[str, Dim, Dim] | None:
        """Returns the direction and the sides of a value that compares sizes; None for other values."""
        owner = value.owner
        if not isinstance(owner, Operation) or owner.name != "stablehlo.compare":
            return None
        sides = [self.elements(operand) for operand in owner.operands]
        direction = owner.attributes["comparison_direction"]
        if sides[0] is None or sides[1] is None or sides[0].size != 1 or not isinstance(direction, EnumAttr):
            return None
        left, right = (side.reshape(-1)[0] for side in sides if side is not None)
        if not is_size(left) or not is_size(right):
            return None
        return direction.case, left, right

    def note(self, operation: Operation) -> None:
        """Adds the results of an operation that computes with sizes."""
        rule = _RULES.get(operation.name.removeprefix("stablehlo."))
        if rule is None or len(operation.results) != 1 or not _is_small(operation.results[0].type):
            return
        operands = [self.elements(value) for value in operation.operands]
        known = [operand for operand in operands if operand is not None]
        if len(known) == len(operands):
            result = rule(operation, *known)
            if operation.name in ("stablehlo.divide", "stablehlo.remainder") and None in result.reshape(-1):
                self._note_division(*(operand.reshape(-1)[0] for operand in known))
            if operation.results[0].tensor.scalar.is_integer and None in result.reshape(-1):
                result = self._with_unknowns(
                    result, self._origin(element for operand in known for element in operand.flat)
                )
            self.sizes[operation.results[0]] = result

    def _note_division(self, size: object, divisor: object) -> None:
        if is_size(size) and isinstance(size, Size) and size.name is not None and isinstance(divisor, int) and divisor:
            self.divisions.append((size.name, abs(divisor)))


def _is_small(type: Type) -> bool:
    if not isinstance(type, TensorType) or not (type.scalar.is_integer or type.scalar.kind == "bool"):
        return False
    return isinstance(type.count, int) and type.count <= MAX_ELEMENTS


def is_true(known: Known, value: Value) -> bool | None:
    """Whether a boolean is true in every call, or false in every call; None if unknown."""
    sizes = known.sizes.get(value)
    return None if sizes is None or sizes.size != 1 else sizes.reshape(-1)[0]


def _each(function: Callable[..., object]) -> Callable[..., Sizes]:
    """Makes a rule that applies a function to each known element."""

    def rule(operation: Operation, *operands: Sizes) -> Sizes:
        shape = type_shape(operation.results[0].tensor)
        spread = [np.broadcast_to(operand, shape) for operand in operands]
        result = np.empty(spread[0].shape, object)
        for index in np.ndindex(result.shape):
            items = [operand[index] for operand in spread]
            result[index] = None if None in items else function(*items)
        return result

    return rule


def _divided(left: Dim, right: Dim) -> Dim | None:
    if not isinstance(right, int) or right == 0:
        return None
    if isinstance(left, int):
        return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    if is_multiple(left, right):
        return quotient(left, right)
    # A later assertion may say that a symbol is a multiple.
    is_large = left.name is None and right > 0 and _at_least(left, 1) and not left.symbols - left.plain_symbols
    return quotient(left, right) if is_large else None


def _rest(left: Dim, right: Dim) -> Dim | None:
    if not isinstance(right, int) or right == 0:
        return None
    if isinstance(left, int):
        return abs(left) % abs(right) * (-1 if left < 0 else 1)
    divided = _divided(left, right)
    return None if divided is None else left - right * divided


def _exceeds(left: Dim, right: Dim, least: int) -> bool | None:
    """Whether ``left >= right + least`` for all sizes, or for no sizes; else None."""
    try:
        return _at_least(left - right, least)
    except SizeError:  # a number that is no length, such as the largest of its type
        return None


def _larger(left: Dim, right: Dim) -> Dim | None:
    if _exceeds(left, right, 0):
        return left
    return right if _exceeds(right, left, 0) else None


def _smaller(left: Dim, right: Dim) -> Dim | None:
    if _exceeds(left, right, 0):
        return right
    return left if _exceeds(right, left, 0) else None


def _clamped(low: Dim, value: Dim, high: Dim) -> Dim | None:
    larger = _larger(low, value)
    return None if larger is None else _smaller(larger, high)


def _compared(operation: Operation, left: Sizes, right: Sizes) -> Sizes:
    direction = operation.attributes["comparison_direction"]
    assert isinstance(direction, EnumAttr)
    return _each(_COMPARISONS[direction.case])(operation, left, right)


def _equal(left: Dim, right: Dim) -> bool | None:
    if left == right:
        return True
    return False if _exceeds(left, right, 1) or _exceeds(right, left, 1) else None


def _either(absorbing: bool) -> Callable[..., Sizes]:
    """Folds ``or`` and ``and``: for booleans even if only one operand decides, for integers only if both are known."""

    def rule(operation: Operation, *operands: Sizes) -> Sizes:
        left, right = (np.broadcast_to(operand, type_shape(operation.results[0].tensor)) for operand in operands)
        result = np.empty(left.shape, object)
        for index in np.ndindex(result.shape):
            left_item, right_item = left.item(index), right.item(index)
            if left_item is absorbing or right_item is absorbing:
                result[index] = absorbing
            elif isinstance(left_item, int) and isinstance(right_item, int):
                result[index] = left_item | right_item if absorbing else left_item & right_item
        return result

    return rule


def _sign(value: Dim) -> int | None:
    if isinstance(value, int):
        return (value > 0) - (value < 0)
    return 1 if _at_least(value, 1) else -1 if _at_least(-value, 1) else None


def _not(value: object) -> object:
    return (not value) if isinstance(value, bool) else None if isinstance(value, Size) else ~int(str(value))


_COMPARISONS: Final[Mapping[str, Callable[[Dim, Dim], bool | None]]] = {
    "EQ": _equal,
    "NE": lambda left, right: None if (are_equal := _equal(left, right)) is None else not are_equal,
    "GE": lambda left, right: _exceeds(left, right, 0),
    "GT": lambda left, right: _exceeds(left, right, 1),
    "LE": lambda left, right: _exceeds(right, left, 0),
    "LT": lambda left, right: _exceeds(right, left, 1),
}


def _constant(operation: Operation) -> Sizes:
    value = operation.attributes["value"]
    assert isinstance(value, DenseElements)
    elements = np.empty(value.array.shape, object)
    for index in np.ndindex(elements.shape):
        elements[index] = value.array[index].item()
    return elements


def _shape(operation: Operation) -> tuple[int, ...]:
    return type_shape(operation.results[0].tensor)


def _broadcast(operation: Operation, value: Sizes) -> Sizes:
    shape = [1] * len(_shape(operation))
    for axis, length in zip(operation.integers("broadcast_dimensions"), value.shape, strict=True):
        shape[axis] = length
    return np.broadcast_to(value.reshape(shape), _shape(operation))


def _slice(operation: Operation, value: Sizes) -> Sizes:
    lists = [operation.integers(name) for name in ("start_indices", "limit_indices", "strides")]
    return value[tuple(slice(*bounds) for bounds in zip(*lists, strict=True))]


_RULES: Final[Mapping[str, Callable[..., Sizes]]] = {
    "add": _each(lambda left, right: left + right),
    "and": _either(False),
    "broadcast_in_dim": _broadcast,
    "clamp": _each(_clamped),
    "compare": _compared,
    "concatenate": lambda operation, *values: np.concatenate(values, operation.integer("dimension")),
    "constant": _constant,
    "convert": _each(lambda value: int(value) if isinstance(value, bool) else value),
    "divide": _each(_divided),
    "maximum": _each(_larger),
    "minimum": _each(_smaller),
    "multiply": _each(lambda left, right: left * right),
    "negate": _each(lambda value: -value),
    "not": _each(_not),
    "or": _either(True),
    "remainder": _each(_rest),
    "reshape": lambda operation, value: value.reshape(_shape(operation)),
    "select": _each(lambda condition, chosen, other: chosen if condition else other),
    "sign": _each(_sign),
    "slice": _slice,
    "subtract": _each(lambda left, right: left - right),
}
