"""Contractions and convolutions by workgroup tiles, whose invocations read factors from shared memory.

While a workgroup computes with one part of the operands, its invocations load the next part, so there are two buffers,
and one barrier per part. Each invocation loads neighbours, by 128 bits if they are contiguous.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ....spirv.binary.expression import Id
from ...ir.operation import Operation
from ...kernels.contractions import pack_of, products_of, result_of, working_type
from ...kernels.elements import scalar_of
from ...kernels.kernel import Kernel
from ...kernels.region import KernelRegion, Shader
from ...kernels.scalars.scalars import Scalar, storage_bits
from ...kernels.strategy import LOAD, Strategy
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
from .shared_factors import SharedFactors, is_shareable, pipelined, shared_bytes

_SHARED: Final = 0.5
"""The cost of a word from shared memory, read by 128 bits."""


@dataclass(frozen=True, slots=True)
class WorkgroupTile(Strategy):
    """The schedule in which each workgroup computes a tile of the result.

    Attributes:
        rows: the number of an invocation's rows.
        columns: the number of an invocation's columns.
        across: the number of a workgroup's invocations along the columns.
        down: the number of a workgroup's invocations along the rows.
        depth: the number of products whose factors are in shared memory at a time.
    """

    rows: int
    columns: int
    across: int
    down: int
    depth: int

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, WorkgroupTile]]:
        """Yields the tiles of the family's table, with costs by their loads per product."""
        hero = contraction_in(region)
        if hero is None or products_in(hero) < MIN_PRODUCTS:
            return
        for tile in TILES.get(region.target.family, ()):
            if tile.takes(region):
                shared = (1 / tile.rows + 1 / tile.columns) * _SHARED
                loads = (1 / (tile.rows * tile.down) + 1 / (tile.columns * tile.across)) * LOAD
                products = products_in(hero) / pack_of(hero, region.target)
                yield products * (1 + shared + loads) * tile._grid(hero).cost(region.target), tile

    def _grid(self, hero: Operation) -> ContractionGrid:
        return ContractionGrid(hero, Sides(self.rows, self.columns), Sides(self.down, self.across), is_whole=True)

    def _sides(self) -> Sides:
        return Sides(self.rows * self.down, self.columns * self.across)

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether rows and columns share no operand, the tile fits, and invocations load equal amounts."""
        hero, target = contraction_in(region), region.target
        invocations = self.across * self.down
        if hero is None or not 1 <= invocations <= target.max_workgroup_invocations or not self.depth:
            return False
        working, sides, pack = working_type(scalar_of(hero.result)), self._sides(), pack_of(hero, target)
        return (
            working.bits == 32
            and is_shareable(self._grid(hero), sides, self.depth, working, invocations, pack)
            and fits(region, hero, sides, is_whole=True)
            and self.columns % max(32 // storage_bits(scalar_of(region.results[0])), 1) == 0
            and sum(shared_bytes((self.depth // pack, side), working) for side in sides) <= target.shared_memory
        )

    def words(self, region: KernelRegion) -> int:
        """Estimates the words for the products of a part, an invocation's share of the factors, and the elements of a
        tile.
        """
        hero = contraction_in(region)
        assert hero is not None
        factor, element = words_around(region, hero)
        elements, loaded = self.rows * self.columns, sum(self._sides()) * self.depth // (self.across * self.down)
        return self.depth * elements * PRODUCT_WORDS + loaded * factor + elements * element

    def emit(self, region: KernelRegion) -> Kernel:
        hero = contraction_in(region)
        assert hero is not None
        shader, grid = Shader(region), self._grid(hero)
        working = working_type(scalar_of(hero.result))

        def compute(tile: TilePlace) -> list[Scalar]:
            products = products_of(shader.frame, hero, pack_of(hero, region.target))
            invocation = tile.down * self.across + tile.across, self.down * self.across
            factors = [
                SharedFactors(shader, products, grid, tile, (self.depth, side), number == 0, working, False, invocation)
                for number, side in enumerate(self._sides())
            ]
            starts = tile.down * self.rows, tile.across * self.columns

            def read(side: int, at: Id, count: int) -> list[Scalar]:
                width = 4 if count % 4 == 0 else 1
                places = (at + starts[side] + first for first in range(0, count, width))
                words = [word for index in places for word in factors[side].memory.load(index, width)]
                return [shader.scalars.from_words(working, [word]) for word in words]

            def multiplied(buffer: Id, count: int, sums: Sequence[Scalar]) -> list[Scalar]:
                totals = list(sums)
                for number in range(-(-count // products.pack)):
                    at = [factor.size * buffer + number * factor.pitch for factor in factors]
                    left, right = read(0, at[0], self.rows), read(1, at[1], self.columns)
                    for row, factor in enumerate(left):
                        for column, other in enumerate(right):
                            # Factors are in the order of the operands.
                            pair = (factor, other) if factors[0].operand == 0 else (other, factor)
                            position = row * self.columns + column
                            totals[position] = products.plus(totals[position], *pair)
                return totals

            zeros = [shader.scalars.constant(working, 0)] * (self.rows * self.columns)
            sums = pipelined(shader, hero, factors, self.depth, zeros, multiplied)
            return [result_of(shader.frame, scalar_of(hero.result), sum) for sum in sums]

        return grid.emit(shader, compute)


TILES: Final[dict[str, tuple[WorkgroupTile, ...]]] = {
    "nvidia": (
        WorkgroupTile(8, 8, 16, 16, 8),
        WorkgroupTile(8, 4, 16, 16, 16),
        WorkgroupTile(4, 4, 32, 8, 16),
        WorkgroupTile(4, 4, 16, 8, 16),
        # For bytes, of which four share a word.
        WorkgroupTile(8, 8, 16, 16, 32),
        WorkgroupTile(4, 4, 16, 16, 64),
    ),
    "amd": (
        WorkgroupTile(8, 8, 16, 16, 8),
        WorkgroupTile(8, 4, 32, 8, 16),
        WorkgroupTile(4, 4, 16, 16, 16),
        WorkgroupTile(4, 4, 16, 8, 16),
        # For bytes, of which four share a word.
        WorkgroupTile(8, 8, 16, 16, 32),
        WorkgroupTile(4, 4, 16, 16, 64),
    ),
}
"""Candidate tiles by the family of devices; on other families, caches do as well."""
