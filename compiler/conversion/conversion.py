"""The common part of the handlers of operations: types, values, and bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ..dialects.builder import Builder
from ..dialects.rules.requirements import OperationError
from ..ir.operation import Block, Operation, Value, tensor_of
from ..ir.types import I64, FunctionType, ScalarType, ShapedType, TensorType, TupleType, Type
from ..passes.canonical.legacy import constant_integer
from ..passes.formulas.expression import Expression
from .quantized import quantized_of


def tensor_type(type: Type) -> Type:
    """Converts a type: numbers are tensors without dimensions, ``index`` is i64, and quantized elements are their
    storage type.
    """
    if isinstance(type, ScalarType) and type.kind != "none":
        return TensorType((), _element(type))
    if isinstance(type, TensorType):
        return TensorType(type.shape, _element(type.element), type.encoding)
    if isinstance(type, FunctionType):
        return FunctionType(
            [tensor_type(element) for element in type.inputs], [tensor_type(element) for element in type.results]
        )
    if isinstance(type, TupleType):
        return TupleType([tensor_type(element) for element in type.elements])
    return type


def _element(type: Type) -> Type:
    quantized = quantized_of(type)
    if quantized is not None:
        return quantized.storage
    return I64 if isinstance(type, ScalarType) and type.kind == "index" else type


class Conversion(Protocol):
    """A program on its way to StableHLO."""

    def inline(self, block: Block, arguments: Sequence[Value], builder: Builder) -> list[Value]:
        """Appends a block's operations, converted; returns the terminator's operands."""

    def body(self, blocks: Sequence[Block], arguments: Sequence[Value], builder: Builder) -> list[Value]:
        """Appends blocks that branch to each other, converted; returns the operands of their return."""


class Site(NamedTuple):
    """An operation to convert.

    Attributes:
        conversion: the conversion that it is part of.
        builder: the builder that appends the replacement.
        operation: the original.
        operands: the converted operands.
        types: the converted types of the results.
    """

    conversion: Conversion
    builder: Builder
    operation: Operation
    operands: list[Value]
    types: list[Type]

    def result_type(self, index: int = 0) -> TensorType:
        """Returns the type of a result, which must be a tensor."""
        type = self.types[index] if index < len(self.types) else None
        if not isinstance(type, TensorType):
            raise OperationError(f"a number or a tensor as result {index}, got {type}")
        return type


Handler = Callable[[Site], Sequence[Value]]


class Rule(NamedTuple):
    """The conversion of an operation.

    Attributes:
        operands: the operand count, or None where it varies.
        handler: the function that returns the values which replace the results.
        regions: the region count.
    """

    operands: int | None
    handler: Handler
    regions: int = 0


def integers_of(values: Sequence[Value], noun: str) -> list[int]:
    """Returns the integers of constants.

    Raises:
        OperationError: a value is not constant.
    """
    integers = []
    for value in values:
        number = constant_integer(value)
        if number is None:
            raise OperationError(f"{noun} that are constants, since shapes are known when a program is compiled")
        integers.append(number)
    return integers


def length_of(site: Site, value: Value, axis: int) -> Value:
    """Returns the length of a dimension as i64; it may be call-dependent."""
    type = tensor_of(value)
    if not 0 <= axis < type.rank:
        raise OperationError(f"a dimension below {type.rank}, got {axis}")
    length = type.shape[axis]
    if isinstance(length, int):
        return site.builder.constant(length, TensorType((), I64))
    return site.builder.convert(site.builder.dimension(value, axis), I64)


def static_shape(type: Type, noun: str = "a tensor") -> tuple[int, ...]:
    """Returns the lengths of a tensor, all of which must be known; ``noun`` names it in the error."""
    if not isinstance(type, ShapedType) or not all(isinstance(length, int) for length in type.shape):
        raise OperationError(f"{noun} of known shape, got {type}")
    return tuple(length for length in type.shape if isinstance(length, int))


def same_types(site: Site) -> TensorType:
    """Returns the common type of all operands.

    Raises:
        OperationError: the types differ, or are neither numbers nor tensors.
    """
    first = site.operands[0].type
    for index, value in enumerate(site.operands):
        if value.type is not first or not isinstance(value.type, TensorType):
            raise OperationError(f"numbers or tensors of one type, got {first} and {value.type}", index)
    return tensor_of(site.operands[0])


def simple(name: str) -> Handler:
    """Returns a handler for an element-wise StableHLO operation on operands of one type."""

    def handler(site: Site) -> Sequence[Value]:
        same_types(site)
        return [site.builder.elementwise(name, *site.operands)]

    return handler


def formula(function: Callable[..., Expression]) -> Handler:
    """Returns a handler for a formula over operands of one type."""

    def handler(site: Site) -> Sequence[Value]:
        same_types(site)
        return [function(*(Expression(site.builder, value) for value in site.operands)).value]

    return handler
