"""Contractions and convolutions by tiles in registers: an invocation computes several rows and columns of the result.

Factors that several elements of a tile share are loaded once: the same element at the same index is the same
instruction. So a tile is nothing but a loop over the products whose body asks for all elements of the tile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from ...spirv.builder import Id
from ..codegen.contractions import (
    Products,
    operands_along,
    products_of,
    products_per_element,
    result_of,
    summed,
    working_type,
)
from ..codegen.elements import Frame, scalar_of, shape_of
from ..codegen.index import Index, split
from ..codegen.kernel import Kernel
from ..codegen.region import KernelRegion, Shader, group_count
from ..codegen.scalars import Scalar, as_id, storage_bits
from ..codegen.target import Target
from ..ir.operation import Operation
from ..ir.sizes import Size
from .strategy import LOAD, Strategy, number_of

_HEROES: Final = ("dot_general", "convolution")
_MIN_PRODUCTS: Final = 1 << 16
"""Below, a kernel takes no time to run, and a larger one takes longer to compile."""

_MIN_RUN: Final = 16
_MAX_STEP: Final = 32
"""So few products are one step, whose places are known: neighbouring windows share what they have in common."""

_WORDS: Final = 1 << 13
"""Products that an invocation of a kernel has to compute for each product in its code, to be worth compiling it."""


class Tile(NamedTuple):
    """What ``ContractionTile`` has by these names."""

    rows: int
    columns: int
    across: int
    down: int
    depth: int
    shuffled: int


_SIDES: Final = ((16, 4), (8, 4), (4, 4), (2, 4), (1, 4), (1, 2), (8, 1), (1, 1))

TILES: Final[dict[str, tuple[Tile, ...]]] = {
    # A CPU runs the 8 invocations of a subgroup as one vector, and loads for each in turn, except that 128 bits take
    # little more than 32. A shuffle is one instruction. Local memory is memory like any other.
    "cpu": tuple(Tile(*sides, 8, 1, 8, 1) for sides in _SIDES),
    "default": tuple(Tile(*sides, 8, 8, 4, 0) for sides in ((8, 8), (8, 4), (4, 4), (2, 4), (1, 4), (1, 2), (1, 1))),
}
"""Tiles to choose among, by the family of devices."""


class _Along(NamedTuple):
    """How the elements of a tile share factors.

    Attributes:
        rows: operands that differ from row to row.
        columns: operands that differ from column to column.
        lane: of this invocation in its subgroup, if factors are shuffled.
        lanes: of a subgroup.
        width: products of a step.
    """

    rows: frozenset[int]
    columns: frozenset[int]
    lane: Id | None
    lanes: int
    width: int


def _axes(hero: Operation) -> tuple[int, int]:
    """The dimension of rows, -1 if there is none, and that of columns.

    Columns are the last dimension. Rows are best another that columns share no operand with, as in a product of
    matrices: all columns of a row share a factor, and all rows of a column.
    """
    shape, sides = shape_of(hero.result), operands_along(hero)
    long = [axis for axis, length in enumerate(shape) if length != 1]
    if not long:
        return -1, len(shape) - 1
    *others, columns = long
    apart = [axis for axis in others if not sides[axis] & sides[columns]]
    fewer = [axis for axis in others if len(sides[axis]) == 1]
    return (apart or fewer or others or [-1])[-1], columns


@dataclass(frozen=True, slots=True)
class ContractionTile(Strategy):
    """A tile of the result for each invocation.

    Attributes:
        rows: along the last dimension but one that is not of length 1.
        columns: along the last dimension.
        across: invocations of a workgroup along the columns.
        down: invocations of a workgroup along the rows.
        depth: products of a step, which are code of their own.
        shuffled: 1 where the invocations across a workgroup are a subgroup, each of which loads a part of what all
            need; else 0.
    """

    rows: int
    columns: int
    across: int
    down: int
    depth: int
    shuffled: int
    NAME: ClassVar[str] = "contraction_tile"

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, ContractionTile]]:
        """Tiles of the family's table, by how many loads they need for a product."""
        hero = region.only(_HEROES)
        if hero is None:
            return
        count = number_of(hero.result.tensor.count) * number_of(products_per_element(hero))
        if count < _MIN_PRODUCTS:
            return
        for tile in TILES.get(region.target.family, TILES["default"]):
            strategy = cls(*tile)
            yield count * strategy._cost(hero, region.target), strategy

    def _cost(self, hero: Operation, target: Target) -> float:
        """Of a product, where the device is busy."""
        axes, sides = _axes(hero), operands_along(hero)
        elements = self.rows * self.columns
        cost = 1.0
        for side in range(2):
            differ = [axis >= 0 and side in sides[axis] for axis in axes]
            factors = (self.rows if differ[0] else 1) * (self.columns if differ[1] else 1)
            load = LOAD / self.across + 1 if self.shuffled and not differ[1] else LOAD
            cost += load * factors / elements
        computed, groups = 1, 1
        units = self.rows * self.down, self.columns * self.across
        for length, unit in zip(self._lengths(hero), units, strict=True):
            groups *= -(-length // unit)
            computed *= -(-length // unit) * unit
        others = number_of(hero.result.tensor.count) // max(math.prod(self._lengths(hero)), 1)
        wasted = computed * others / max(number_of(hero.result.tensor.count), 1)
        waves = -(-groups * others // target.compute_units)
        idle = waves * target.compute_units / (groups * others)
        return cost * wasted * idle

    def takes(self, region: KernelRegion) -> bool:
        """Whether the only loop is a contraction of real numbers whose tile fits into the result."""
        hero = region.only(_HEROES)
        if hero is None or region.is_update or len(region.results) != 1:
            return False
        shape, kind = shape_of(hero.result), working_type(scalar_of(hero.result)).kind
        if shape != shape_of(region.results[0]) or not shape or kind in ("bool", "complex"):
            return False
        if any(isinstance(length, Size) for value in (hero.result, *hero.operands) for length in shape_of(value)):
            return False
        rows, columns = self._lengths(hero)
        lanes = max(32 // storage_bits(scalar_of(region.results[0])), 1)
        if self.shuffled and (
            self.across != region.target.subgroup_size or "shuffle" not in region.target.subgroup_operations
        ):
            return False
        return (
            1 <= self.rows <= rows
            and 1 <= self.columns <= columns
            and 1 <= self.across * self.down <= region.target.max_workgroup_invocations
            and self.depth >= 1
            and self.columns % lanes == 0
            and columns % lanes == 0
        )

    def _lengths(self, hero: Operation) -> tuple[int, int]:
        shape = shape_of(hero.result)
        rows, columns = _axes(hero)
        return number_of(shape[rows]) if rows >= 0 else 1, number_of(shape[columns])

    def emit(self, region: KernelRegion) -> Kernel:
        """The kernel of a region that these parameters take."""
        hero = region.only(_HEROES)
        assert hero is not None
        shader = Shader(region)
        builder, shape = shader.builder, [number_of(length) for length in shape_of(hero.result)]
        axes, lengths, sides = _axes(hero), self._lengths(hero), (self.rows, self.columns)
        units = self.rows * self.down, self.columns * self.across
        groups = list(shape)
        for axis, length, unit in zip(axes, lengths, units, strict=True):
            if axis >= 0:
                groups[axis] = -(-length // unit)
        count = math.prod(groups)
        workgroups = group_count(count, region.target)
        group = shader.group(workgroups)

        def write() -> None:
            parts = split(builder, group, groups)
            across, down, _ = builder.built_in("LocalInvocationId")
            wanted = [builder.word(0), (parts[axes[1]] * self.across + across) * self.columns]
            if axes[0] >= 0:
                wanted[0] = (parts[axes[0]] * self.down + down) * self.rows
            # Tiles at the end begin early enough to end with the result, and leave out what others write.
            starts = []
            for start, length, side, unit in zip(wanted, lengths, sides, units, strict=True):
                last = builder.word(length - side)
                starts.append(start if length % unit == 0 else (start < last).select(start, last))
            tile: list[list[Index]] = []
            for row in range(self.rows):
                tile.append([])
                for column in range(self.columns):
                    place = list(parts)
                    if axes[0] >= 0:
                        place[axes[0]] = starts[0] + row
                    place[axes[1]] = starts[1] + column
                    tile[-1].append(Index(builder, shape, place))
            apart = operands_along(hero)
            lane = across if self.shuffled else None
            along = _Along(
                frozenset(apart[axes[0]] if axes[0] >= 0 else ()),
                frozenset(apart[axes[1]]),
                lane,
                self.across,
                self.depth,
            )
            indices = [index for row in tile for index in row]
            for index, found in zip(indices, _sums(shader.frame, hero, tile, along), strict=True):
                shader.frame.keep(hero.result, index, [found])
            self._store(shader, indices, wanted, starts, axes)

        if math.prod(workgroups) == count:
            write()
        else:
            builder.when(group < count, write)
        return shader.finish((self.across, self.down, 1), workgroups)

    def _store(
        self, shader: Shader, tile: Sequence[Index], wanted: Sequence[Id], starts: Sequence[Id], axes: tuple[int, int]
    ) -> None:
        """Writes a tile but for what begins before the place that was wanted, which another invocation writes."""
        (result,) = shader.region.results
        lanes = max(32 // storage_bits(scalar_of(result)), 1)
        for first in range(0, len(tile), lanes):
            here = shader.builder.boolean(True)
            for side in range(2):
                if starts[side] is not wanted[side]:
                    here = here & (tile[first].parts[axes[side]] >= wanted[side])
            indices = tile[first : first + lanes]

            def write(indices: Sequence[Index] = indices) -> None:
                shader.store(0, [(index, shader.frame.at(result, index)) for index in indices])

            shader.builder.when(here, write)


def _sums(frame: Frame, hero: Operation, tile: Sequence[Sequence[Index]], along: _Along) -> list[Scalar]:
    """The elements of a contraction at the places of a tile, row by row."""
    products = products_of(frame, hero)
    lengths = [number_of(length) for length in products.depth]
    # Short lengths together make runs that are worth a loop.
    merged = len(lengths) - 1
    while merged and math.prod(lengths[merged:]) < _MIN_RUN:
        merged -= 1
    depth = [*lengths[:merged], math.prod(lengths[merged:])]

    def step(number: Sequence[Id], count: int, sums: Sequence[Scalar]) -> Sequence[Scalar]:
        *outer, first = number

        def inner(offset: Id | int) -> list[Id]:
            return [*outer, *split(frame.builder, first + offset, lengths[merged:])]

        sides = [_factors(frame, products, side, tile, along, count, inner) for side in range(2)]
        found = list(sums)
        for row in range(len(tile)):
            for column in range(len(tile[0])):
                # All products of an element together: that is what compilers of CPUs keep in registers.
                for at in range(count):
                    left, right = (factors[row][column][at] for factors in sides)
                    position = row * len(tile[0]) + column
                    found[position] = products.plus(found[position], left, right)
        return found

    zeros = [frame.scalars.constant(products.working, 0)] * (len(tile) * len(tile[0]))
    width = depth[-1] if depth[-1] <= _MAX_STEP else along.width
    found = summed(frame, hero, depth, zeros, step, width)
    return [result_of(frame, scalar_of(hero.result), each) for each in found]


def _factors(
    frame: Frame,
    products: Products,
    side: int,
    tile: Sequence[Sequence[Index]],
    along: _Along,
    count: int,
    inner: Callable[[Id | int], list[Id]],
) -> list[list[list[Scalar]]]:
    """Factors of one operand by row, column and product; what several elements share stands there several times."""
    operand = products.operands[side]
    rows = tile if side in along.rows else tile[:1]
    columns = range(len(tile[0]) if side in along.columns else 1)
    if along.lane is not None and side not in along.columns:
        # All invocations of the subgroup need the same: each loads one factor, and gives it to all.
        shared: list[list[list[Scalar]]] = []
        for row in rows:
            found: list[Scalar] = []
            for first in range(0, count, along.lanes):
                lane = along.lane
                if count - first < along.lanes:
                    lane = (lane < count - first).select(lane, count - first - 1)
                mine = as_id(products.factor(side, *products.place(side, row[0].parts, inner(lane + first))))
                numbers = range(min(along.lanes, count - first))
                found += [frame.builder.shuffled(mine, frame.word(number)) for number in numbers]
            shared.append([found])
    else:
        places = [
            [[products.place(side, row[column].parts, inner(at)) for at in range(count)] for column in columns]
            for row in rows
        ]
        frame.load_ahead(operand, [index for row in places for column in row for _, index in column])
        shared = [[[products.factor(side, *place) for place in column] for column in row] for row in places]
    return [
        [
            shared[row if side in along.rows else 0][column if side in along.columns else 0]
            for column in range(len(tile[0]))
        ]
        for row in range(len(tile))
    ]
