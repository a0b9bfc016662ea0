"""The division of a contraction's result among workgroups and invocations, and the stores of its elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ....spirv.binary.expression import Id
from ...analysis.special_forms import products_per_element
from ...analysis.weights import words_of
from ...ir.operation import Operation
from ...ir.sizes import Dim, Size, is_multiple, product, quotient
from ...kernels.contractions import operands_along, working_type
from ...kernels.elements import scalar_of, shape_of
from ...kernels.index import Index, split
from ...kernels.kernel import Kernel
from ...kernels.region import KernelRegion, Shader
from ...kernels.scalars.lengths import KernelBuilder
from ...kernels.scalars.scalars import Scalar, storage_bits
from ...kernels.scalars.target import Target
from ...kernels.strategy import number_of

MIN_PRODUCTS: Final = 1 << 16
"""With fewer products, a kernel takes almost no time, and a tiled kernel takes longer to compile."""

_FACTOR_WORDS: Final = 24
"""The estimated words of code that load a factor."""

_ELEMENT_WORDS: Final = 48
"""The estimated words of code that address and store an element of the result."""

PRODUCT_WORDS: Final = 12
"""Words of code that add a product to a sum."""

_HEROES: Final = ("dot_general", "convolution")


class Sides(NamedTuple):
    """Counts along the rows and the columns of a tile."""

    rows: int
    columns: int


class ResultSides(NamedTuple):
    """The numbers of rows and columns of a result."""

    rows: Dim
    columns: Dim


class TilePlace(NamedTuple):
    """The position of an invocation.

    Attributes:
        tile: the invocation's elements, row by row.
        parts: the position of its workgroup, by dimension; rows and columns are unused.
        row: the first row of its workgroup.
        column: the first column of its workgroup.
        down: the tile's number along the rows of the workgroup.
        across: the tile's number along the columns.
    """

    tile: Sequence[Sequence[Index]]
    parts: Sequence[Id]
    row: Id
    column: Id
    down: Id
    across: Id


class ContractionGrid:
    """The result of a contraction, divided among workgroups and invocations.

    Columns are the last dimension whose length is not 1. Rows are preferably a dimension that shares no operand with
    the columns, as in a matrix product, where all columns of a row share a factor, and so do all rows of a column.

    Args:
        hero: the contraction.
        tile: the number of an invocation's elements.
        group: the number of invocations in a workgroup.
        is_linear: whether the invocations of a workgroup are numbered in one dimension, row by row.
        is_whole: whether at the end of the result whole workgroups, instead of single tiles, begin earlier. Rows are
            then all dimensions that differ in the same operand, such as the positions of an image.

    Attributes:
        operands: the operands that differ from row to row, and from column to column.
        lengths: the numbers of rows and columns.
        count: the number of workgroups, which may be call-dependent.
        unit: the number of elements in a workgroup.
        across: the number of a workgroup's invocations along the columns.
        invocations: the number of invocations in a workgroup.
    """

    def __init__(
        self, hero: Operation, tile: Sides, group: Sides, is_whole: bool = False, is_linear: bool = False
    ) -> None:
        self._hero = hero
        self._tile, self._group, self._is_whole, self._is_linear = tile, group, is_whole, is_linear
        self._shape = shape_of(hero.result)
        self._axes = axes_of(hero, is_whole)
        along = operands_along(hero)
        self.operands: list[frozenset[int]] = [
            frozenset(along[axes[0]]) if axes else frozenset[int]() for axes in self._axes
        ]
        self.lengths: ResultSides = lengths_of(hero, is_whole)
        self.unit: Sides = Sides(tile.rows * group.rows, tile.columns * group.columns)
        self.across: int
        self.invocations: int
        self.across, self.invocations = group.columns, group.rows * group.columns
        # Workgroups by dimension: the last row dimension counts for all row dimensions.
        self._groups = list(self._shape)
        for axes, length, unit in zip(self._axes, self.lengths, self.unit, strict=True):
            for axis in axes:
                self._groups[axis] = quotient(length + (unit - 1), unit) if axis == axes[-1] else 1
        self.count: Dim = product(self._groups)

    def cost(self, target: Target) -> float:
        """Returns the overhead of repeated, useless and idle work, as a factor."""
        lengths = [number_of(length) for length in self.lengths]
        computed = math.prod(-(-length // unit) * unit for length, unit in zip(lengths, self.unit, strict=True))
        count = number_of(self.count)
        waves = -(-count // target.compute_units)
        return computed / max(math.prod(lengths), 1) * waves * target.compute_units / max(count, 1)

    def emit(self, shader: Shader, compute: Callable[[TilePlace], Sequence[Scalar]]) -> Kernel:
        """Emits the kernel; ``compute`` returns the elements of an invocation's tile."""
        builder = shader.builder

        def write(group: Id) -> None:
            parts = split(builder, group, self._groups)
            across, down, _ = builder.built_in("LocalInvocationId")
            if self._is_linear:
                across, down = across % self._group.columns, across // self._group.columns
            sides, is_there, firsts = [], [], []
            for side, local in enumerate((down, across)):
                axes, length, unit, tile = self._axes[side], self.lengths[side], self.unit[side], self._tile[side]
                first = parts[axes[-1]] * unit if axes else builder.word(0)
                wanted = start = first + local * tile if axes else first
                # Tiles at the end begin early enough to end with the result, and skip elements that other tiles write.
                if isinstance(length, Size):
                    pass
                elif length % unit and self._is_whole:
                    wanted = first
                    first = (first < length - unit).select(first, length - unit)
                    start = first + local * tile
                elif length % unit:
                    start = (start < length - tile).select(start, length - tile)
                numbers = [start + number for number in range(tile)]
                if isinstance(length, Size) and self._is_written_once(shader.region):
                    is_there.append([number < builder.word(length) for number in numbers])
                elif start is not wanted:
                    is_there.append([number >= wanted for number in numbers])
                else:
                    is_there.append([builder.boolean(True)] * tile)
                sides.append(numbers)
                firsts.append(first)
            rows, columns = sides
            tiled = [[self.index(builder, parts, row, column) for column in columns] for row in rows]
            position = TilePlace(tiled, parts, firsts[0], firsts[1], down, across)
            for scalar, index in zip(compute(position), (index for row in tiled for index in row), strict=True):
                shader.frame.keep(self._hero.result, index, [scalar])
            self._store(shader, tiled, *is_there)

        rows, columns = self._group
        return shader.over_groups(self.count, (rows * columns, 1, 1) if self._is_linear else (columns, rows, 1), write)

    def index(self, builder: KernelBuilder, parts: Sequence[Id], row: Id, column: Id) -> Index:
        """Returns the index of an element of the result, clamped to a call-dependent length."""
        element = list(parts)
        for axes, number, length in zip(self._axes, (row, column), self.lengths, strict=True):
            if isinstance(length, Size):
                last = builder.word(length) - 1
                number = (number < last).select(number, last)
            numbers = split(builder, number, [self._shape[axis] for axis in axes])
            for axis, part in zip(axes, numbers, strict=True):
                element[axis] = part
        return Index(builder, self._shape, element)

    def _is_written_once(self, region: KernelRegion) -> bool:
        """Returns whether no element may be written twice, because results overwrite inputs or elements share words."""
        return bool(region.in_place) or storage_bits(scalar_of(region.results[0])) < 32

    def _store(
        self, shader: Shader, tile: Sequence[Sequence[Index]], rows: Sequence[Id], columns: Sequence[Id]
    ) -> None:
        """Writes the rows and columns of a tile that no other invocation writes."""
        (result,) = shader.region.results
        lanes = max(32 // storage_bits(scalar_of(result)), 1)
        are_neighbours = not isinstance(self.lengths.columns, Size) and all(column.value for column in columns)
        step = len(columns) if are_neighbours else lanes
        for row, is_row in zip(tile, rows, strict=True):
            for first in range(0, len(row), step):
                indices = row[first : first + step]

                def write(indices: Sequence[Index] = indices) -> None:
                    shader.frame.load_ahead(result, indices)
                    shader.store(0, [(index, shader.frame.at(result, index)) for index in indices])

                shader.builder.when(is_row & columns[first], write)


def contraction_in(region: KernelRegion) -> Operation | None:
    """Returns the contraction or convolution of real numbers if it is a region's only loop, or None."""
    hero = region.only(_HEROES)
    if hero is None or region.is_update or len(region.results) != 1:
        return None
    shape, kind = shape_of(hero.result), working_type(scalar_of(hero.result)).kind
    if shape != shape_of(region.results[0]) or not shape or not hero.result.tensor.count or kind in ("bool", "complex"):
        return None
    # Workgroup counts are quotients, which cannot be divided again.
    return (
        None if any(isinstance(length, Size) and length.symbols != length.plain_symbols for length in shape) else hero
    )


def fits(region: KernelRegion, hero: Operation, tile: Sides, is_whole: bool = False) -> bool:
    """Returns whether a tile is at most as large as the result, and its rows fill whole words."""
    lengths, columns = lengths_of(hero, is_whole), lengths_of(hero).columns
    lanes = max(32 // storage_bits(scalar_of(region.results[0])), 1)
    return (
        all(isinstance(length, Size) or 1 <= side <= length for side, length in zip(tile, lengths, strict=True))
        and min(tile) >= 1
        and tile.columns % lanes == 0
        and is_multiple(columns, lanes)
    )


def words_around(region: KernelRegion, hero: Operation) -> tuple[int, int]:
    """Estimates the words of code for each factor of a contraction, and for each element of the result."""
    after = {hero.result}
    words = [0, 0]
    for operation in region.block.operations:
        if operation is not hero:
            is_after = not after.isdisjoint(operation.operands)
            words[is_after] += words_of(operation)
            after.update(operation.results if is_after else ())
    return words[0] + _FACTOR_WORDS, words[1] + _ELEMENT_WORDS


def products_in(hero: Operation) -> int:
    """Returns the number of products of a contraction."""
    return number_of(hero.result.tensor.count) * number_of(products_per_element(hero))


def lengths_of(hero: Operation, is_whole: bool = False) -> ResultSides:
    """Returns the numbers of rows and columns of a contraction's result."""
    shape = shape_of(hero.result)
    rows, columns = (product(shape[axis] for axis in axes) for axes in axes_of(hero, is_whole))
    return ResultSides(rows, columns)


def axes_of(hero: Operation, is_whole: bool = False) -> tuple[list[int], list[int]]:
    """Returns the dimensions of rows, possibly none, and of columns."""
    shape, sides = shape_of(hero.result), operands_along(hero)
    long = [axis for axis, length in enumerate(shape) if length != 1]
    if not long:
        return [], [len(shape) - 1]
    *others, columns = long
    apart = [axis for axis in others if not sides[axis] & sides[columns]]
    fewer = [axis for axis in others if len(sides[axis]) == 1]
    *_, rows = [[], *([axis] for axis in apart or fewer or others)]
    if is_whole and apart:
        rows = [axis for axis in apart if sides[axis] == sides[rows[0]]]
    return rows, [columns]
