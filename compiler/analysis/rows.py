"""Computations over rows: reductions of the innermost dimensions of one shape, and operations on the same rows.

A softmax is an example: its maxima and sums are one number per row, and all other values are elements of rows. One
kernel computes it, with the invocations of a workgroup sharing a row (``strategies/rows.py``), which is always possible
for these regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from ..ir.operation import Block, Operation, Value
from ..ir.sizes import Dim, Size, is_multiple, product
from .identities import identity_of, joined_by
from .weights import HEAVY, MOVES, bits_of, iterations_of

MAX_LENGTH = 1 << 16
"""The most elements of a row."""

MAX_ALONE = 2048
"""The most elements that one invocation reduces: sixteen results per word stay below 65,535 iterations."""

SHORT = 1 << 13
"""The most elements of a row that one workgroup reduces efficiently."""

MANY = 64
"""The approximate number of rows that keep a device busy."""

_REDUCE = "stablehlo.reduce"


class Space(Enum):
    """The way a value is read: at each element of the rows, once per row, or otherwise."""

    ELEMENTS = "elements"
    ROWS = "rows"
    OTHER = "other"


class RowShape(NamedTuple):
    """The rows of a reduction.

    Attributes:
        rows: the lengths of the kept dimensions, which come first.
        columns: the lengths of the reduced dimensions.
    """

    rows: tuple[Dim, ...]
    columns: tuple[Dim, ...]

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The shape of the reduced operand."""
        return self.rows + self.columns

    @property
    def row_count(self) -> Dim:
        """The number of rows."""
        return product(self.rows)

    @property
    def length(self) -> Dim:
        """The elements of a row."""
        return product(self.columns)


def rows_of(operation: Operation) -> RowShape | None:
    """Returns the rows of a reduction of the innermost dimensions.

    None for other operations, and if it is not worthwhile.
    """
    if operation.name != _REDUCE:
        return None
    rows = rows_over(operation.operands[0].tensor.lengths, sorted(operation.integers("dimensions")))
    narrow = {bits for value in operation.results if (bits := bits_of(value.tensor.scalar)) < 32}
    if rows is None or len(narrow) > 1:
        return None
    if isinstance(rows.length, Size):
        # Invocations without an element start with the identity element.
        return None if identity_in(operation) is None else rows
    return rows if rows.length <= MAX_LENGTH else None


def identity_in(reduction: Operation) -> complex | None:
    """Returns the identity element of a reduction's body, or None."""
    body = reduction.regions[0].block
    return identity_of(joined_by(body), body.arguments[0].tensor.scalar)


def rows_over(lengths: Sequence[Dim], axes: Sequence[int]) -> RowShape | None:
    """Returns the rows of a shape with elements along sorted dimensions; None if these are not the innermost."""
    shape = tuple(lengths)
    if 0 in shape or not axes:
        return None
    is_innermost = list(axes) == list(range(len(shape) - len(axes), len(shape)))
    return RowShape(shape[: axes[0]], shape[axes[0] :]) if is_innermost else None


def is_enough(rows: RowShape) -> bool:
    """Returns whether one workgroup per row keeps devices busy; a call-dependent row count is taken to be large."""
    is_many = isinstance(rows.row_count, Size) or rows.row_count >= MANY
    if isinstance(rows.length, Size):
        return is_many
    return rows.length <= SHORT or (rows.length <= MAX_LENGTH and is_many)


def fills_device(operation: Operation) -> bool:
    """Returns whether a reduction keeps devices busy with one workgroup per row. A body with a loop does not."""
    rows = rows_of(operation)
    if rows is None or any(iterations_of(inner) for inner in operation.regions[0].block.operations):
        return False
    return is_enough(rows)


def is_long(operation: Operation) -> bool:
    """Returns whether a reduction is too long for one invocation to compute an element in a loop."""
    rows = rows_of(operation)
    return rows is not None and (isinstance(rows.length, Size) or rows.length > MAX_ALONE)


def spaces_of(operations: Sequence[Operation]) -> tuple[RowShape, dict[Value, Space]] | None:
    """Returns the rows of a region and the spaces of its values; None unless all of it is over the same rows.

    Args:
        operations: the operations of the region, each before the producers of its operands; the first is the root.
    """
    every = {rows_of(operation) for operation in operations if operation.name == _REDUCE}
    rows = every.pop() if len(every) == 1 else None
    if rows is None:
        return None
    spaces = RowSpaces(rows, operations[0])
    for operation in operations:
        spaces.add(operation)
    return (rows, spaces.of) if spaces.is_over_rows else None


class RowSpaces:
    """The spaces of a region's values over fixed rows; the region grows by one operation at a time.

    Args:
        rows: the rows of its reductions.
        root: the first operation.

    Attributes:
        of: the spaces of the values read, and of the root's results.
        is_over_rows: whether the root and all operations are over these rows.
    """

    def __init__(self, rows: RowShape, root: Operation) -> None:
        self._rows = rows
        self.of: dict[Value, Space] = {}
        self.is_over_rows: bool = True
        for value in root.results:
            if _is_of_rows(value, rows):
                self.of[value] = Space.ROWS
            elif (
                value.tensor.lengths == rows.shape
                and root.name != _REDUCE
                and is_multiple(rows.length * bits_of(value.tensor.scalar), 32)
            ):
                self.of[value] = Space.ELEMENTS
            else:
                self.is_over_rows = False

    def takes(self, operation: Operation) -> bool:
        """Returns whether the region stays over the rows with one more operation, all of whose users are in it."""
        if not self.is_over_rows or operation.name.removeprefix("stablehlo.") not in HEAVY:
            return self.is_over_rows
        return operation.name == _REDUCE and self._space(operation) is Space.ROWS

    def add(self, operation: Operation) -> None:
        """Adds an operation whose users are all in the region, or the root."""
        self.is_over_rows = self.takes(operation)
        if not self.is_over_rows:
            return
        space = self._space(operation)
        for position, value in enumerate(operation.operands):
            read = _read(operation, position, space, self._rows)
            self.of[value] = read if self.of.get(value, read) is read else Space.OTHER

    def _space(self, operation: Operation) -> Space:
        own = {self.of.get(value) for value in operation.results} - {None}
        return own.pop() or Space.OTHER if len(own) == 1 else Space.OTHER


def computed_of_rows(block: Block) -> dict[Operation, RowShape]:
    """Returns the operations that are computed once per row of reductions with these rows."""
    computed: dict[Value, RowShape] = {}
    operations: dict[Operation, RowShape] = {}
    for operation in block.operations:
        if fills_device(operation):
            rows = rows_of(operation)
        elif operation.regions or len(operation.results) != 1:
            rows = None
        else:
            rows = next((computed[value] for value in operation.operands if value in computed), None)
            rows = rows if rows is not None and _is_of_rows(operation.results[0], rows) else None
        if rows is not None:
            operations[operation] = rows
            computed.update(dict.fromkeys(operation.results, rows))
    return operations


def _read(operation: Operation, position: int, space: Space, rows: RowShape) -> Space:
    """Returns the space in which an operand is read, from the space of the result."""
    value = operation.operands[position]
    name = operation.name.removeprefix("stablehlo.")
    if operation.name == _REDUCE:
        return Space.ELEMENTS if position < len(operation.results) else Space.OTHER
    if space is Space.OTHER or operation.regions or len(operation.results) != 1:
        return Space.OTHER
    shape, operand_lengths = operation.results[0].tensor.lengths, value.tensor.lengths
    if name == "broadcast_in_dim":
        axes = operation.integers("broadcast_dimensions")
        places = [axis for axis, length in zip(axes, operand_lengths, strict=True) if length != 1]
        if space is Space.ELEMENTS:
            kept = [axis for axis, length in enumerate(rows.rows) if length != 1]
            if places == kept:
                return Space.ROWS
            return Space.ELEMENTS if operand_lengths == shape and places == sorted(places) else Space.OTHER
        return Space.ROWS if places == sorted(places) and _is_of_rows(value, rows) else Space.OTHER
    if name == "reshape" and space is Space.ROWS:
        return Space.ROWS if _is_of_rows(value, rows) else Space.OTHER
    return space if name not in MOVES and operand_lengths == shape else Space.OTHER


def _is_of_rows(value: Value, rows: RowShape) -> bool:
    """Returns whether a value has one element per row, in the rows' order."""
    return [length for length in value.tensor.lengths if length != 1] == [length for length in rows.rows if length != 1]
