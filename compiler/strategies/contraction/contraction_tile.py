"""Contractions and convolutions by register tiles: an invocation computes several rows and columns of the result.

Factors that several elements of a tile share are loaded once, since the same element at the same index is the same
instruction. So a tile is just a loop over the products whose body adds to all elements of the tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, NamedTuple

from ....spirv.binary.expression import Id
from ...analysis.special_forms import depth_of
from ...ir.operation import Operation
from ...ir.sizes import Dim, product
from ...kernels.contractions import Products, pack_of, products_of, result_of, summed
from ...kernels.elements import Frame, scalar_of
from ...kernels.index import Index, split
from ...kernels.kernel import Kernel
from ...kernels.reductions import of_words, subgroup_of, words_of
from ...kernels.region import KernelRegion, Shader, access_bits
from ...kernels.scalars.scalars import Scalar, as_id
from ...kernels.scalars.target import Target
from ...kernels.scalars.wide_integers import Pair
from ...kernels.strategy import LOAD, Strategy, number_of
from .contraction_grid import (
    MIN_PRODUCTS,
    PRODUCT_WORDS,
    ContractionGrid,
    Sides,
    TilePlace,
    contraction_in,
    fits,
    products_in,
    words_around,
)

_MIN_RUN: Final = 16
_MAX_STEP: Final = 32
"""The most products of an element in one step with constant indices."""

_MAX_PRODUCTS: Final = 512
"""The most products of a tile in one step, if longer steps do not share factors among neighbours."""


class _Along(NamedTuple):
    """The sharing of factors among the elements of a tile.

    Attributes:
        rows: the numbers of the operands that differ from row to row.
        columns: the numbers of the operands that differ from column to column.
        lane: the number of this invocation in its subgroup, if factors are shuffled.
        lanes: the number of invocations in a subgroup.
        width: the number of products in a step.
    """

    rows: frozenset[int]
    columns: frozenset[int]
    lane: Id | None
    lanes: int
    width: int


@dataclass(frozen=True, slots=True)
class ContractionTile(Strategy):
    """The schedule in which each invocation computes a tile of the result.

    Attributes:
        rows: the number of elements along the second to last dimension whose length is not 1.
        columns: the number of elements along the last dimension.
        across: the number of a workgroup's invocations along the columns.
        down: the number of a workgroup's invocations along the rows.
        depth: the number of products in a step, each with its own code.
        shuffled: 1 if the invocations of a workgroup are a subgroup, each of which loads a part of the shared factors;
            else 0.
    """

    rows: int
    columns: int
    across: int
    down: int
    depth: int
    shuffled: int
    SWITCHES: ClassVar[frozenset[str]] = frozenset({"shuffled"})

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, ContractionTile]]:
        """Yields the tiles of the family's table, with costs by their loads per product."""
        hero = contraction_in(region)
        if hero is None or products_in(hero) < MIN_PRODUCTS:
            return
        for tile in TILES.get(region.target.family, TILES["default"]):
            if tile.shuffled:  # a workgroup is a subgroup of any size
                tile = replace(tile, across=subgroup_of(region.target))
            if tile.takes(region):
                code = tile.words(region) * (_CPU_CODE if region.target.family == "cpu" else _CODE)
                yield products_in(hero) * tile._cost(hero, region.target) + code, tile

    def _cost(self, hero: Operation, target: Target) -> float:
        """Estimates the cost of a product."""
        grid = self._grid(hero)
        elements = self.rows * self.columns
        cost = 1.0
        for side in range(2):
            differ = [side in operands for operands in grid.operands]
            factors = (self.rows if differ[0] else 1) * (self.columns if differ[1] else 1)
            load = LOAD / self.across + 1 if self.shuffled and not differ[1] else LOAD
            cost += load * factors / elements
        return cost * grid.cost(target) / pack_of(hero, target)

    def _grid(self, hero: Operation) -> ContractionGrid:
        return ContractionGrid(hero, Sides(self.rows, self.columns), Sides(self.down, self.across))

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether the only loop is a contraction of real numbers whose tile fits into the result."""
        hero, target = contraction_in(region), region.target
        # On a device with larger subgroups, the invocations are still the first of a subgroup.
        is_subgroup = self.across == subgroup_of(target) > 1 and self.down == 1
        return (
            hero is not None
            and fits(region, hero, Sides(self.rows, self.columns))
            and 1 <= self.across * self.down <= target.max_workgroup_invocations
            and self.depth >= 1
            and (is_subgroup or not self.shuffled)
        )

    def words(self, region: KernelRegion) -> int:
        """Estimates the words for the products of a step, their factors, and the elements of a tile."""
        hero = contraction_in(region)
        assert hero is not None
        factor, element = words_around(region, hero)
        elements = self.rows * self.columns
        depth = self._width(depth_of(hero))
        return depth * (elements * PRODUCT_WORDS + (self.rows + self.columns) * factor) + elements * element

    def _width(self, lengths: Sequence[Dim]) -> int:
        """Returns the products of a step: all if they are few, so that their indices are constant."""
        merged = _merged(lengths)
        last = product(lengths[merged:])
        # Neighbouring windows share their common factors.
        is_window = merged < len(lengths) - 1
        most = _MAX_STEP if is_window else min(_MAX_PRODUCTS // (self.rows * self.columns), _MAX_STEP)
        return last if isinstance(last, int) and last <= most else self.depth

    def emit(self, region: KernelRegion) -> Kernel:
        hero = contraction_in(region)
        assert hero is not None
        shader, grid = Shader(region), self._grid(hero)

        def compute(position: TilePlace) -> list[Scalar]:
            lane = position.across if self.shuffled else None
            rows, columns = grid.operands
            along = _Along(rows, columns, lane, self.across, self._width(depth_of(hero)))
            return _sums(shader.frame, hero, position.tile, along)

        return grid.emit(shader, compute)


_CODE: Final = 800
"""How many products take as long as compiling a word of code, if a kernel runs a thousand times."""

_CPU_CODE: Final = 20
"""The same on a CPU, where both products and compilation are slow."""

_SIDES: Final = ((16, 4), (8, 4), (4, 4), (2, 4), (1, 4), (1, 2), (8, 1), (1, 1))

TILES: Final[dict[str, tuple[ContractionTile, ...]]] = {
    # A CPU runs the 8 invocations of a subgroup as one vector, and loads for each invocation in turn, but a load of 128
    # bits takes little longer than a load of 32. A shuffle is one instruction. Shared memory is as slow as other
    # memory.
    "cpu": tuple(ContractionTile(*sides, 8, 1, 8, 1) for sides in _SIDES),
    "apple": tuple(ContractionTile(*sides, 32, 4, 4, 0) for sides in ((8, 4), (4, 4), (2, 4), (1, 4), (1, 2), (1, 1))),
    "arm": tuple(ContractionTile(*sides, 8, 2, 4, 0) for sides in ((6, 4), (4, 4), (2, 4), (1, 4), (1, 2), (1, 1))),
    "adreno": tuple(ContractionTile(*sides, 32, 2, 4, 0) for sides in ((16, 4), (8, 4), (4, 4), (1, 4), (1, 1))),
    "default": tuple(ContractionTile(*sides, 8, 8, 4, 0) for sides in ((8, 8), *_SIDES[1:])),
}
"""Candidate tiles by the family of devices."""


def _sums(frame: Frame, hero: Operation, tile: Sequence[Sequence[Index]], along: _Along) -> list[Scalar]:
    """Returns the elements of a contraction at the indices of a tile, row by row."""
    products = products_of(frame, hero, pack_of(hero, frame.scalars.target))
    lengths, merged = products.depth, _merged(products.depth)
    depth = [*lengths[:merged], product(lengths[merged:])]

    def step(number: Sequence[Id], count: int, sums: Sequence[Scalar]) -> Sequence[Scalar]:
        *outer, first = number

        def inner(offset: Id | int) -> list[Id]:
            return [*outer, *split(frame.builder, first + offset, lengths[merged:])]

        sides = [_factors(frame, products, side, tile, along, count, inner) for side in range(2)]
        totals = list(sums)
        for row in range(len(tile)):
            for column in range(len(tile[0])):
                # Add all products of an element together: then compilers for CPUs keep the sum in a register.
                for at in range(-(-count // products.pack)):
                    left, right = (factors[row][column][at] for factors in sides)
                    position = row * len(tile[0]) + column
                    totals[position] = products.plus(totals[position], left, right)
        return totals

    zeros = [frame.scalars.constant(products.working, 0)] * (len(tile) * len(tile[0]))
    totals = summed(frame, hero, depth, zeros, step, along.width)
    return [result_of(frame, scalar_of(hero.result), total) for total in totals]


def _merged(lengths: Sequence[Dim]) -> int:
    """Returns the first of the last lengths to merge: together, short lengths are long enough for a loop."""
    merged = len(lengths) - 1
    while merged and number_of(product(lengths[merged:])) < _MIN_RUN:
        merged -= 1
    return merged


def _factors(
    frame: Frame,
    products: Products,
    side: int,
    tile: Sequence[Sequence[Index]],
    along: _Along,
    count: int,
    inner: Callable[[Id | int], list[Id]],
) -> list[list[list[Scalar]]]:
    """Returns the factors of one operand by row, column and product; shared factors are repeated."""
    operand = products.operands[side]
    rows = tile if side in along.rows else tile[:1]
    columns = range(len(tile[0]) if side in along.columns else 1)
    pack = products.pack
    units = -(-count // pack)
    if along.lane is not None and side not in along.columns:
        # All invocations of the subgroup need the same factors: each loads a factor, or a word of factors, and shuffles
        # distribute it.
        shared: list[list[list[Scalar]]] = []
        for row in rows:
            factors: list[Scalar] = []
            for first in range(0, units, along.lanes):
                lane = along.lane
                if units - first < along.lanes:
                    lane = (lane < units - first).select(lane, units - first - 1)
                mine = []
                for word_lane in range(min(pack, count)):
                    number = (lane + first) * pack + word_lane
                    inside = frame.builder.boolean(True)
                    if count % pack and units > 1:
                        inside = number < count
                        number = inside.select(number, 0)
                    there, index = products.factor_index(side, row[0].parts, inner(number))
                    mine.append((there & inside, index))
                own = as_id(products.factors(side, mine))
                numbers = range(min(along.lanes, units - first))
                factors += [_shuffled(frame, own, frame.word(number)) for number in numbers]
            shared.append([factors])
    else:
        places = [
            [[products.factor_index(side, row[column].parts, inner(at)) for at in range(count)] for column in columns]
            for row in rows
        ]
        indices = [index for row in places for column in row for _, index in column]
        frame.load_ahead(operand, indices, access_bits(frame.scalars.target) // 32)
        shared = [
            [[products.factors(side, column[at : at + pack]) for at in range(0, count, pack)] for column in row]
            for row in places
        ]
    return [
        [
            shared[row if side in along.rows else 0][column if side in along.columns else 0]
            for column in range(len(tile[0]))
        ]
        for row in range(len(tile))
    ]


def _shuffled(frame: Frame, value: Id, lane: Id) -> Scalar:
    """Returns another invocation's value; a pair of words is exchanged word by word."""
    if not isinstance(value, Pair):
        return frame.builder.shuffled(value, lane)
    words = [frame.builder.shuffled(word, lane) for word in words_of(frame.scalars, [value])]
    return of_words(frame.scalars, [value], words)[0]
