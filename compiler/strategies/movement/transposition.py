"""Transposes that move the innermost dimension: the region reads along one dimension and writes along another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ....spirv.binary.expression import Id
from ...analysis.weights import HEAVY, MOVES, name_of
from ...ir.operation import Operation, Value
from ...ir.sizes import Dim, Size, number_of
from ...kernels.elements import scalar_of, shape_of
from ...kernels.index import Index, split
from ...kernels.kernel import Kernel
from ...kernels.region import KernelRegion, Shader, access_bits
from ...kernels.scalars.lengths import KernelBuilder
from ...kernels.scalars.scalars import storage_bits
from ...kernels.strategy import elements_cost
from ..contraction.contraction_grid import Sides

_Path: TypeAlias = tuple[tuple[Dim, ...], ...]
_Groups: TypeAlias = tuple[tuple[int, ...], ...]

MIN_ELEMENTS: Final = 1 << 14
"""With fewer elements, all reads hit caches, and compiling a tile's code takes longer than it saves."""

MAX_WORDS: Final = 1 << 16
"""The estimated most words of an invocation's code."""


@dataclass(frozen=True, slots=True)
class Transposition:
    """Transposes of one kind, each element of which becomes one element of the result.

    Dimensions that stay together are merged, and those of length 1 are dropped. *Columns* are the innermost dimension
    of the result. *Rows* are the innermost dimension of the operands.

    Attributes:
        heroes: the transposes, with the shapes of the reshapes from the result back to each.
        groups: the dimensions of the operands that stay together, in the order of the result.
        lengths: the lengths of the groups.
        row: the group of the rows.
    """

    heroes: tuple[tuple[Operation, _Path], ...]
    groups: _Groups
    lengths: tuple[int, ...]
    row: int

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.lengths[self.row]

    @property
    def columns(self) -> int:
        """The number of columns."""
        return self.lengths[-1]

    def position(self, parts: Sequence[Id], row: Id, column: Id) -> tuple[Id, ...]:
        """Returns the position, in each group of dimensions, of a row and a column."""
        position = list(parts)
        position[self.row], position[-1] = row, column
        return tuple(position)

    def index(self, builder: KernelBuilder, result: Value, position: Sequence[Id]) -> Index:
        """Returns the index of an element in the region's result."""
        _, path = self.heroes[0]
        shape = shape_of(result)
        if not path and self._is_apart:
            axes = [axis for axis, length in enumerate(shape) if length != 1]
            return Index(builder, shape, self._parts(builder, shape, axes, position))
        return Index(builder, shape, linear=Index(builder, self.lengths, position).linear)

    def operand_index(self, builder: KernelBuilder, hero: Operation, position: Sequence[Id]) -> Index:
        """Returns the index at which a transpose reads an element."""
        shape = shape_of(hero.operands[0])
        order = sorted(range(len(self.groups)), key=lambda number: self.groups[number])
        parts = [position[number] for number in order]
        if self._is_apart:
            return Index(builder, shape, self._parts(builder, shape, [self.groups[group][0] for group in order], parts))
        return Index(builder, shape, linear=Index(builder, [self.lengths[group] for group in order], parts).linear)

    @property
    def _is_apart(self) -> bool:
        return all(len(group) == 1 for group in self.groups)

    @staticmethod
    def _parts(builder: KernelBuilder, shape: Sequence[object], axes: Sequence[int], parts: Sequence[Id]) -> list[Id]:
        parts_there = [builder.word(0)] * len(shape)
        for axis, part in zip(axes, parts, strict=True):
            parts_there[axis] = part
        return parts_there

    @staticmethod
    def hero_index(index: Index, path: _Path) -> Index:
        """Returns the index in a transpose of an element of the result."""
        for shape in path:
            index = index.reshaped(shape)
        return index

    def emit(
        self, shader: Shader, tile: Sides, group: Sides, workgroup: int, write: Callable[[TransposedTile], None]
    ) -> Kernel:
        """Emits the kernel.

        Args:
            shader: the shader of the region.
            tile: the numbers of rows and columns in a tile, at most those of the result.
            group: the number of a workgroup's tiles along rows and columns.
            workgroup: the number of invocations in a workgroup: one for each tile, or more for a single tile.
            write: a function that computes and writes a tile.
        """
        builder, lengths = shader.builder, Sides(self.rows, self.columns)
        units = [side * tiles for side, tiles in zip(tile, group, strict=True)]
        counts = list(self.lengths)
        counts[self.row], counts[-1] = (-(-length // unit) for length, unit in zip(lengths, units, strict=True))

        def run(number: Id) -> None:
            local = builder.built_in("LocalInvocationId")[0]
            tile_numbers = (local // group.columns, local % group.columns) if workgroup == math.prod(group) else ()
            parts = split(builder, number, counts)
            wanted, starts = [], []
            for side, part in enumerate((parts[self.row], parts[-1])):
                start = part * units[side] + (tile_numbers[side] * tile[side] if tile_numbers else 0)
                # A tile at the end begins early enough to end with the result, and skips elements that other tiles
                # write.
                last = lengths[side] - tile[side]
                wanted.append(start)
                starts.append((start < last).select(start, last) if lengths[side] % units[side] else start)
            is_edge = [length % unit > 0 for length, unit in zip(lengths, units, strict=True)]
            write(TransposedTile(parts, starts, wanted, is_edge, local))

        return shader.over_groups(math.prod(counts), (workgroup, 1, 1), run)


@dataclass(frozen=True, slots=True)
class TransposedTile:
    """The position of a tile.

    Attributes:
        parts: the tile's number in each group; rows and columns are unused.
        starts: the tile's first row and column.
        wanted: the first row and column that no other tile writes.
        is_edge: for rows and for columns, whether other tiles may write some of them.
        local: the invocation's number in its workgroup.
    """

    parts: Sequence[Id]
    starts: Sequence[Id]
    wanted: Sequence[Id]
    is_edge: Sequence[bool]
    local: Id

    def when_wanted(self, builder: KernelBuilder, row: Id, column: Id, run: Callable[[], None]) -> None:
        """Runs code that writes elements of a row from a column on, unless another tile writes them."""
        condition = builder.boolean(True)
        for number, start, is_edge in zip((row, column), self.wanted, self.is_edge, strict=True):
            if is_edge:
                condition = condition & (number >= start)
        builder.when(condition, run)


def transposition_in(region: KernelRegion) -> Transposition | None:
    """Returns the transposes of a loop-free region whose elements all become its only result, or None."""
    operations, results = region.block.operations[:-1], region.results
    if region.is_update or len(results) != 1 or any(name_of(op) in HEAVY or op.regions for op in operations):
        return None
    paths: dict[Value, _Path] = {results[0]: ()}
    kinds: dict[tuple[_Groups, tuple[Dim, ...]], list[tuple[Operation, _Path]]] = {}
    for operation in reversed(operations):
        if len(operation.results) != 1 or operation.result not in paths:
            continue
        path, shape = paths[operation.result], shape_of(operation.result)
        if any(
            isinstance(length, Size)
            for value in (*operation.operands, operation.result)
            for length in value.tensor.lengths
        ):
            return None
        name = name_of(operation)
        if name == "transpose":
            groups = _groups(operation)
            if groups is not None:
                kinds.setdefault((groups, tuple(shape)), []).append((operation, path))
        elif name == "reshape":
            (operand,) = operation.operands
            paths.setdefault(operand, (*path, shape_of(operand)))
        elif name not in MOVES:
            for operand in operation.operands:
                if shape_of(operand) == shape:
                    paths.setdefault(operand, path)
    if not kinds:
        return None
    ((groups, _), heroes) = max(kinds.items(), key=lambda entry: len(entry[1]))
    shape = shape_of(heroes[0][0].operands[0])
    lengths = tuple(math.prod(number_of(shape[axis]) for axis in group) for group in groups)
    last = max(groups)
    return Transposition(tuple(heroes), groups, lengths, groups.index(last))


def _groups(operation: Operation) -> _Groups | None:
    """Returns the operand's dimensions that stay together, in the result's order; None if the last dimension stays."""
    shape = shape_of(operation.operands[0])
    axes = [axis for axis in operation.integers("permutation") if shape[axis] != 1]
    long = [axis for axis, length in enumerate(shape) if length != 1]
    if not long or axes[-1] == long[-1] or 0 in shape:
        return None
    groups: list[list[int]] = []
    for axis in axes:
        if groups and long.index(axis) == long.index(groups[-1][-1]) + 1:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return tuple(map(tuple, groups))


def narrowest(region: KernelRegion, transposition: Transposition) -> int:
    """Returns the bits of the narrowest elements, of the transposed values and of the result."""
    values = [region.results[0], *(hero.operands[0] for hero, _ in transposition.heroes)]
    return min(storage_bits(scalar_of(value)) for value in values)


def cost_of(region: KernelRegion, transposition: Transposition) -> float:
    """Estimates the cost as half that of the strategy of neighbours, which accesses distant elements."""
    return elements_cost(region) * narrowest(region, transposition) / (8 * access_bits(region.target))


def fills_words(region: KernelRegion, transposition: Transposition, columns: int) -> bool:
    """Returns whether this number of columns of a tile, and the columns of the result, fill whole words."""
    lanes = max(32 // storage_bits(scalar_of(region.results[0])), 1)
    return columns % lanes == 0 and transposition.columns % lanes == 0
