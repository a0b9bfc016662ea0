"""Operations, blocks, regions and values: the parts of a program.

A value is defined once, by an operation or as a block's argument. Passes do not edit a program in place: they walk it
in order, in which every definition precedes its uses, and build another program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from .attributes import Attribute, DenseArray, DenseElements, IntegerAttr
from .sizes import Dim, Size
from .types import ShapedType, TensorType, Type


class DebugLocation:
    """A location in the program's text: ``loc("name"("file.py":3:1))``.

    Attributes:
        text: the text, with aliases resolved.
        name: the outermost name, or empty.
        file_name: the file of the innermost location, or empty.
        line: the line from 1, or 0.
        column: the column from 1, or 0.
    """

    __slots__ = ("column", "file_name", "line", "name", "text")

    def __init__(self, text: str, name: str = "", file_name: str = "", line: int = 0, column: int = 0) -> None:
        self.text: str = text
        self.name: str = name
        self.file_name: str = file_name
        self.line: int = line
        self.column: int = column


class Location(NamedTuple):
    """The origin of an operation.

    Attributes:
        offset: the offset in the program's text, or -1.
        debug: the location written in the text, or None.
    """

    offset: int = -1
    debug: DebugLocation | None = None


NOWHERE: Final = Location()


class Value:
    """A result of an operation or an argument of a block.

    Attributes:
        type: the type of the value.
        owner: the operation or the block that defines it.
        index: the index among the results or the arguments of its owner.
        name: the name in the text, without the sigil, or empty.
    """

    __slots__ = ("index", "name", "owner", "type")

    def __init__(self, type: Type, owner: Operation | Block, index: int, name: str = "") -> None:
        self.type: Type = type
        self.owner: Operation | Block = owner
        self.index: int = index
        self.name: str = name

    @property
    def tensor(self) -> ShapedType:
        """The shaped type of the value.

        Raises:
            TypeError: the value has no shape, such as a token or a tuple.
        """
        if not isinstance(self.type, ShapedType):
            raise TypeError(f"a value of type {self.type} has no shape")
        return self.type


class Operation:
    """An operation: a name, operands, results, attributes and regions.

    Attributes:
        name: the name with its dialect: ``stablehlo.add``.
        operands: the values used.
        results: the values defined.
        attributes: the attributes by name, both inherent and discardable.
        regions: the operation's bodies.
        successors: the blocks to which a terminator branches.
        location: the location in the program's text.
        parent: the block that contains it, or None.
    """

    __slots__ = ("attributes", "location", "name", "operands", "parent", "regions", "results", "successors")

    def __init__(
        self,
        name: str,
        operands: Sequence[Value] = (),
        result_types: Sequence[Type] = (),
        attributes: dict[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
        successors: Sequence[Block] = (),
        location: Location = NOWHERE,
    ) -> None:
        self.name: str = name
        self.operands: Sequence[Value] = operands
        self.results: list[Value] = [Value(type, self, index) for index, type in enumerate(result_types)]
        self.attributes: dict[str, Attribute] = {} if attributes is None else attributes
        self.regions: Sequence[Region] = regions
        self.successors: Sequence[Block] = successors
        self.location: Location = location
        self.parent: Block | None = None
        for region in regions:
            region.parent = self

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    @property
    def tensor(self) -> ShapedType:
        """The type of the first result."""
        return self.results[0].tensor

    def integer(self, name: str, default: int = 0) -> int:
        """Returns an integer attribute."""
        value = self.attributes.get(name)
        return value.value if isinstance(value, IntegerAttr) else default

    def flag(self, name: str) -> bool:
        """Returns a boolean attribute; False if it is missing."""
        return self.attributes.get(name, False) in (True, None)

    def integers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Returns the integers of an ``array<i64: …>``, a ``dense<…>`` of any shape, or nested lists; row by row."""
        return tuple(map(int, self.sizes(name, default)))  # type: ignore[arg-type]

    def sizes(self, name: str, default: Sequence[Dim] = ()) -> tuple[Dim, ...]:
        """Returns integers as ``integers`` does, or call-dependent sizes."""
        value = self.attributes.get(name)
        return tuple(default) if value is None else tuple(_integers(value))

    def walk(self) -> Iterator[Operation]:
        """Yields this operation and all operations in its regions, in order."""
        stack = [self]
        while stack:
            operation = stack.pop()
            yield operation
            for region in reversed(operation.regions):
                for block in reversed(region.blocks):
                    stack.extend(reversed(block.operations))


def _integers(value: Attribute) -> Iterator[Dim]:
    if isinstance(value, IntegerAttr):
        yield value.value
    elif isinstance(value, DenseArray):
        yield from (item if isinstance(item, Size) else int(item) for item in value.values)
    elif isinstance(value, DenseElements):
        yield from map(int, value.array.reshape(-1))
    elif isinstance(value, tuple):
        for item in value:
            yield from _integers(item)


class Block:
    """Operations that run one after another; the last may branch.

    Attributes:
        arguments: the values that a predecessor, or the enclosing operation, passes.
        operations: the operations in order.
        parent: the region that contains it.
    """

    __slots__ = ("arguments", "operations", "parent")

    def __init__(self, argument_types: Sequence[Type] = ()) -> None:
        self.arguments: list[Value] = [Value(type, self, index) for index, type in enumerate(argument_types)]
        self.operations: list[Operation] = []
        self.parent: Region | None = None

    def append(self, operation: Operation) -> Operation:
        """Appends an operation and returns it."""
        operation.parent = self
        self.operations.append(operation)
        return operation

    @property
    def scratch(self) -> Value | None:
        """The last argument, if it is returned as the last result and has no other use."""
        if len(self.terminator.operands) < 2 or not self.arguments:
            return None
        *others, last = self.terminator.operands
        if last is not self.arguments[-1] or last in others:
            return None
        used = any(last in inner.operands for operation in self.operations[:-1] for inner in operation.walk())
        return None if used or not last.tensor.is_static else last

    @property
    def terminator(self) -> Operation:
        """The last operation."""
        return self.operations[-1]


def block_of(operations: Sequence[Operation]) -> Block:
    """Creates a block from operations."""
    block = Block()
    for operation in operations:
        block.append(operation)
    return block


class Region:
    """A body of an operation.

    Attributes:
        blocks: the blocks; the first is the entry.
        parent: the operation that contains it.
    """

    __slots__ = ("blocks", "parent")

    def __init__(self, blocks: Sequence[Block] = ()) -> None:
        self.blocks: list[Block] = list(blocks)
        self.parent: Operation | None = None
        for block in self.blocks:
            block.parent = self

    @property
    def block(self) -> Block:
        """The only block."""
        (block,) = self.blocks
        return block


def tensor_of(value: Value) -> TensorType:
    """Returns the type of a tensor value.

    Raises:
        TypeError: the value is not a tensor.
    """
    if not isinstance(value.type, TensorType):
        raise TypeError(f"expected a tensor, got a value of type {value.type}")
    return value.type


def origin_of(operation: Operation) -> str:
    """Describes an operation's location in the user's source, for messages; empty if the program has none."""
    debug = operation.location.debug
    return f" (from {debug.file_name}:{debug.line})" if debug is not None and debug.line else ""
