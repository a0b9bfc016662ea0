"""A node during translation: its inputs as values, its attributes, and errors that name it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from ....dialects.builder import Builder
from ....ir.attributes import Array, Attribute, type_shape
from ....ir.operation import Operation, Value
from ....ir.sizes import Dim
from ....ir.source import CompileError
from ....ir.types import ScalarType, TensorType, Type, types_text
from ....passes.formulas.expression import Expression
from ..file.graph import Graph, GraphNode
from ..file.messages import AttributeMessage
from ..file.tensors import dims_of, element_of
from .known_values import broadcast_all, known_array, known_lengths

MAX_ELEMENTS: Final = 1 << 32
"""Exclusive bound on a tensor's elements, with lengths of 0 left out."""

MAX_COUNTED: Final = 1 << 24
"""The most things that are enumerated while a graph is read, such as the values of a range."""


class Caller(Protocol):
    """Translates calls of library functions."""

    def call(self, name: str, arguments: Sequence[Value], node: Node, builder: Builder) -> Sequence[Value]:
        """Appends the body of a function; returns its results."""


class Node:
    """A node during its translation.

    Attributes:
        op: the operation's name.
        operands: the values of the inputs.
        builder: the builder that appends StableHLO operations.
        caller: the translator of calls.
    """

    def __init__(
        self, graph: Graph, node: GraphNode, operands: Sequence[Value], builder: Builder, caller: Caller
    ) -> None:
        self._graph = graph
        self._node = node
        self.op: str = node.op
        self.operands = operands
        self.builder = builder
        self.caller = caller

    def error(self, message: str) -> CompileError:
        """Makes an error at this node."""
        return self._graph.error(self._node, message)

    # -- inputs

    def expect(self, least: int, most: int | None = None) -> Sequence[Value]:
        """Returns the operands, after a check of their number; without ``most`` it must be ``least``."""
        most = least if most is None else most
        if not least <= len(self.operands) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise self.error(f"expected {wanted} input{'s' * (wanted != '1')}, got {len(self.operands)}")
        return self.operands

    def expect_declared_type(self) -> None:
        """Checks that some operand has the element type of the attribute T, if that is a tensor element type."""
        declared = self._node.attributes.get("T")
        if declared is None or declared.WhichOneof("value") != "type" or not self.operands:
            return
        try:
            element = element_of(declared.type)
        except ValueError:
            return
        types = [value.type for value in self.operands]
        if all(isinstance(type, TensorType) and type.element is not element for type in types):
            raise self.error(f"its type T is {element}, its inputs are ({types_text(types)})")

    def operand(self, index: int) -> Value:
        """Returns an operand, which must exist."""
        if not 0 <= index < len(self.operands):
            raise self.error(f"expected at least {index + 1} inputs, got {len(self.operands)}")
        return self.operands[index]

    def type(self, index: int) -> TensorType:
        """Returns the type of an operand, which must be a tensor."""
        value = self.operand(index)
        if not isinstance(value.type, TensorType):
            raise self.error(f"expected a tensor as input {index}, got {value.type}")
        return value.type

    def shape(self, index: int) -> tuple[Dim, ...]:
        """Returns the lengths of an operand, some of which may depend on the call."""
        return self.type(index).lengths

    def fixed_shape(self, index: int) -> tuple[int, ...]:
        """Returns the lengths of an operand, all of which must be numbers."""
        return type_shape(self.type(index))

    def expression(self, index: int) -> Expression:
        """Returns an operand for a formula."""
        return Expression(self.builder, self.operand(index))

    def expressions(self, count: int) -> list[Expression]:
        """Returns the operands broadcast to one shape, after a check of their number."""
        return [Expression(self.builder, value) for value in broadcast_all(self.builder, self.expect(count))]

    def known(self, index: int, noun: str) -> Array:
        """Returns an operand's elements, which must be known while the graph is read.

        Args:
            index: the operand's number.
            noun: the operand's name in errors.
        """
        array = known_array(self.operand(index))
        if array is None:
            raise self.error(f"{noun} (input {index}) has to be a constant, or to follow from shapes and constants")
        return array

    def known_integers(self, index: int, noun: str) -> tuple[int, ...]:
        """Returns the integers of a known operand, in order."""
        array = self.known(index, noun)
        if array.dtype.kind not in "iu":
            raise self.error(f"expected integers as {noun} (input {index}), got {array.dtype}")
        return tuple(int(item) for item in array.reshape(-1))

    def known_integer(self, index: int, noun: str) -> int:
        """Returns the single integer of a known operand."""
        integers = self.known_integers(index, noun)
        if len(integers) != 1:
            raise self.error(f"expected one integer as {noun} (input {index}), got {list(integers)}")
        return integers[0]

    def counted(self, count: int, noun: str) -> int:
        """Checks that a number of enumerated things is not too large."""
        if not 0 <= count <= MAX_COUNTED:
            raise self.error(f"expected {noun} to be from 0 to {MAX_COUNTED}, got {count}")
        return count

    def known_lengths(self, index: int, noun: str) -> tuple[Dim, ...]:
        """Returns a known operand as lengths, some of which may depend on the call."""
        lengths = known_lengths(self.operand(index))
        return self.known_integers(index, noun) if lengths is None else lengths

    def axis(self, axis: int, rank: int) -> int:
        """Makes a dimension's number count from 0; negative numbers count from the end."""
        if not -rank <= axis < rank:
            raise self.error(f"expected a dimension from {-rank} to {rank - 1}, got {axis}")
        return axis % rank

    # -- attributes

    def has(self, name: str) -> bool:
        """Whether an attribute exists."""
        return name in self._node.attributes

    def _attribute(self, name: str, kind: str) -> AttributeMessage | None:
        attribute = self._node.attributes.get(name)
        if attribute is not None and attribute.WhichOneof("value") != kind:
            raise self.error(
                f"expected the attribute {name} to be of kind '{kind}', got '{attribute.WhichOneof('value')}'"
            )
        return attribute

    def _required(self, name: str, kind: str) -> AttributeMessage:
        attribute = self._attribute(name, kind)
        if attribute is None:
            raise self.error(f"expected the attribute {name}")
        return attribute

    def flag(self, name: str, default: bool = False) -> bool:
        """Returns a boolean attribute."""
        attribute = self._attribute(name, "b")
        return default if attribute is None else attribute.b

    def integer(self, name: str, default: int | None = None) -> int:
        """Returns an integer attribute, required unless there is a default."""
        attribute = self._attribute(name, "i") if default is not None else self._required(name, "i")
        return attribute.i if attribute is not None else default or 0

    def number(self, name: str, default: float) -> float:
        """Returns a floating-point attribute."""
        attribute = self._attribute(name, "f")
        return default if attribute is None else attribute.f

    def text(self, name: str, default: str | None = None) -> str:
        """Returns a string attribute, required unless there is a default."""
        attribute = self._attribute(name, "s") if default is not None else self._required(name, "s")
        return attribute.s.decode(errors="replace") if attribute is not None else default or ""

    def integers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Returns a list of integers; an empty list counts as missing."""
        attribute = self._attribute(name, "list")
        return tuple(attribute.list.i) if attribute is not None and attribute.list.i else tuple(default)

    def element(self, name: str) -> ScalarType:
        """Returns an element type attribute."""
        return self._element(self._required(name, "type").type)

    def _element(self, number: int) -> ScalarType:
        try:
            return element_of(number)
        except ValueError as error:
            raise self.error(str(error)) from None

    def dims(self, name: str) -> tuple[int | None, ...] | None:
        """Returns a shape attribute; None for an unknown rank or without the attribute."""
        attribute = self._attribute(name, "shape")
        if attribute is None:
            return None
        try:
            return dims_of(attribute.shape)
        except ValueError as error:
            raise self.error(str(error)) from None

    def functions(self, name: str) -> tuple[str, ...]:
        """Returns the names of library functions in an attribute."""
        attribute = self._node.attributes.get(name)
        if attribute is not None and attribute.WhichOneof("value") == "list":
            return tuple(item.name for item in attribute.list.func)
        return (self._required(name, "func").func.name,)

    @property
    def attributes(self) -> Mapping[str, AttributeMessage]:
        """All attributes."""
        return self._node.attributes

    # -- building

    def append(
        self, name: str, operands: Sequence[Value], types: Sequence[Type], attributes: Mapping[str, Attribute]
    ) -> Value:
        """Appends an operation with one result, of any dialect, by its full name."""
        made = Operation(name, list(operands), types, dict(attributes), location=self.builder.location)
        return self.builder.block.append(made).result

    def chlo(self, name: str, *operands: Value) -> Value:
        """Appends an element-wise CHLO operation."""
        return self.append(f"chlo.{name}", operands, [operands[0].type], {})


Translate: TypeAlias = Callable[[Node], Sequence[Value]]
"""Translates a node; returns its outputs."""
