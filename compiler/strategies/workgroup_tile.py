"""Contractions and convolutions by tiles that a workgroup keeps in shared memory, from which invocations take theirs.

While a workgroup computes with one part of the operands, its invocations load the next: there are two buffers, and one
barrier for each part. Each invocation loads neighbours, by 128 bits where they lie side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from ...spirv.builder import Id
from ..codegen.contractions import Products, products_of, result_of, summed, working_type
from ..codegen.elements import scalar_of, shape_of
from ..codegen.index import Index, split
from ..codegen.kernel import Kernel
from ..codegen.region import KernelRegion, Shader
from ..codegen.scalars import Scalar, as_id, storage_bits
from ..ir.operation import Operation
from .contraction_grid import MIN_PRODUCTS, ContractionGrid, Sides, TilePlace, contraction_in, fits, products_in
from .strategy import LOAD, Strategy, number_of

_NEIGHBOURS: Final = 4
"""Elements that an invocation loads together."""

_PADDING: Final = 4
"""Words between the rows of shared memory, so that its columns lie in different banks."""

_SHARED: Final = 0.5
"""What a word from shared memory counts as, read by 128 bits."""


@dataclass(frozen=True, slots=True)
class WorkgroupTile(Strategy):
    """A tile of the result for each workgroup.

    Attributes:
        rows: of an invocation.
        columns: of an invocation.
        across: invocations of a workgroup along the columns.
        down: invocations of a workgroup along the rows.
        depth: products for which the factors are in shared memory at a time.
    """

    rows: int
    columns: int
    across: int
    down: int
    depth: int
    NAME: ClassVar[str] = "workgroup_tile"

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, WorkgroupTile]]:
        """Tiles of the family's table, by how many loads they need for a product."""
        hero = contraction_in(region)
        if hero is None or products_in(hero) < MIN_PRODUCTS:
            return
        for tile in TILES.get(region.target.family, ()):
            if tile.takes(region):
                shared = (1 / tile.rows + 1 / tile.columns) * _SHARED
                loads = (1 / (tile.rows * tile.down) + 1 / (tile.columns * tile.across)) * LOAD
                yield products_in(hero) * (1 + shared + loads) * tile._grid(hero).cost(region.target), tile

    def _grid(self, hero: Operation) -> ContractionGrid:
        return ContractionGrid(hero, Sides(self.rows, self.columns), Sides(self.down, self.across), is_whole=True)

    def _pitches(self) -> Sides:
        """Words of a row of shared memory, which has the factors of one product of all rows, or of all columns."""
        return Sides(*(-(-(side + _PADDING) // 4) * 4 for side in self._sides()))

    def _sides(self) -> Sides:
        return Sides(self.rows * self.down, self.columns * self.across)

    def takes(self, region: KernelRegion) -> bool:
        """Whether rows and columns share no operand, the tile fits, and all invocations load as much."""
        hero, target = contraction_in(region), region.target
        invocations = self.across * self.down
        if hero is None or not 1 <= invocations <= target.max_workgroup_invocations or not self.depth:
            return False
        working = working_type(scalar_of(hero.result))
        operands = self._grid(hero).operands
        return (
            working.bits == 32
            and all(len(each) == 1 for each in operands)
            and operands[0] != operands[1]
            and fits(region, hero, self._sides(), is_whole=True)
            and self.columns % max(32 // storage_bits(scalar_of(region.results[0])), 1) == 0
            and self.depth % _NEIGHBOURS == 0
            and all(side % 4 == 0 and side * self.depth % (_NEIGHBOURS * invocations) == 0 for side in self._sides())
            and 2 * self.depth * sum(self._pitches()) * 4 <= target.shared_memory
        )

    def emit(self, region: KernelRegion) -> Kernel:
        """The kernel of a region that these parameters take."""
        hero = contraction_in(region)
        assert hero is not None
        shader, grid = Shader(region), self._grid(hero)
        (rows,), (columns,) = grid.operands

        def compute(place: TilePlace) -> list[Scalar]:
            products = products_of(shader.frame, hero)
            invocation = place.down * self.across + place.across
            loaders = [
                _Loader(shader, products, operand, grid, place, invocation, self, side)
                for side, operand in enumerate((rows, columns))
            ]
            return self._sums(shader, hero, place, loaders)

        return grid.emit(shader, compute)

    def _sums(self, shader: Shader, hero: Operation, place: TilePlace, loaders: Sequence[_Loader]) -> list[Scalar]:
        frame, builder = shader.frame, shader.builder
        products = loaders[0].products
        depth = math.prod(number_of(length) for length in products.depth)
        whole = depth // self.depth
        starts = place.down * self.rows, place.across * self.columns

        def multiplied(buffer: Id, count: int, sums: Sequence[Scalar]) -> list[Scalar]:
            found = list(sums)
            for number in range(count):
                left, right = (
                    loader.read(buffer, number, start, side)
                    for loader, start, side in zip(loaders, starts, (self.rows, self.columns), strict=True)
                )
                for row, one in enumerate(left):
                    for column, other in enumerate(right):
                        # Factors go in the order of the operands.
                        pair = (one, other) if loaders[0].operand == 0 else (other, one)
                        at = row * self.columns + column
                        found[at] = products.plus(found[at], *pair)
            return found

        def step(number: Sequence[Id], count: int, sums: Sequence[Scalar]) -> Sequence[Scalar]:
            (first,) = number
            if count < self.depth:
                buffer = builder.word(whole % 2)
                for loader in loaders:
                    loader.write(buffer, loader.load(first, count))
                builder.barrier()
                return multiplied(buffer, count, sums)
            buffer = builder.quotient(first, self.depth) % 2
            last = builder.word((whole - 1) * self.depth)
            following = (first < last).select(first + self.depth, last)
            loaded = [loader.load(following, self.depth) for loader in loaders]
            found = multiplied(buffer, self.depth, sums)
            for loader, factors in zip(loaders, loaded, strict=True):
                loader.write(buffer ^ 1, factors)
            builder.barrier()
            return found

        if whole:
            for loader in loaders:
                loader.write(builder.word(0), loader.load(builder.word(0), self.depth))
            builder.barrier()
        zeros = [frame.scalars.constant(products.working, 0)] * (self.rows * self.columns)
        found = summed(frame, hero, [depth], zeros, step, self.depth)
        return [result_of(frame, scalar_of(hero.result), each) for each in found]


TILES: Final[dict[str, tuple[WorkgroupTile, ...]]] = {
    "nvidia": (
        WorkgroupTile(8, 8, 16, 16, 8),
        WorkgroupTile(8, 4, 16, 16, 16),
        WorkgroupTile(4, 4, 32, 8, 16),
        WorkgroupTile(4, 4, 16, 8, 16),
    ),
    "amd": (
        WorkgroupTile(8, 8, 16, 16, 8),
        WorkgroupTile(8, 4, 32, 8, 16),
        WorkgroupTile(4, 4, 16, 16, 16),
        WorkgroupTile(4, 4, 16, 8, 16),
    ),
}
"""Tiles to choose among, by the family of devices; on the others, caches do as well."""


class _Loader:
    """Factors of one operand on their way from buffers to shared memory and to registers.

    Args:
        shader: of the region.
        products: of the contraction.
        operand: 0 or 1.
        grid: of the result.
        place: of the invocation.
        invocation: its number in the workgroup.
        tile: of the workgroup.
        side: 0 for rows, 1 for columns.
    """

    def __init__(
        self,
        shader: Shader,
        products: Products,
        operand: int,
        grid: ContractionGrid,
        place: TilePlace,
        invocation: Id,
        tile: WorkgroupTile,
        side: int,
    ) -> None:
        self.products, self.operand = products, operand
        self._frame, self._builder = shader.frame, shader.builder
        self._grid, self._place, self._invocation = grid, place, invocation
        self._depth, self._side, self._pitch = tile.depth, tile._sides()[side], tile._pitches()[side]
        self._is_rows = side == 0
        self._invocations = tile.across * tile.down
        self._array = shader.builder.shared_quads(2 * self._depth * self._pitch)
        self._is_along_depth = self._are_neighbours()

    def _are_neighbours(self) -> bool:
        """Whether factors of successive products lie side by side in the operand."""
        zero = self._builder.word(0)
        lengths = [number_of(length) for length in self.products.depth]
        numbers = [[*[zero] * (len(lengths) - 1), self._builder.word(each)] for each in range(2)]
        parts = [zero] * len(self._place.parts)
        first, second = (self.products.place(self.operand, parts, each)[1] for each in numbers)
        shape = shape_of(self.products.operands[self.operand])
        differing = [axis for axis, (a, b) in enumerate(zip(first.parts, second.parts, strict=True)) if a is not b]
        return bool(differing) and all(length == 1 for length in shape[differing[-1] + 1 :])

    def load(self, first: Id, count: int) -> list[tuple[Id, Id, list[Id]]]:
        """This invocation's share of the factors of so many products: numbers in both directions, and neighbours."""
        groups = self._depth * self._side // _NEIGHBOURS
        found = []
        for turn in range(groups // self._invocations):
            group = self._invocation + turn * self._invocations
            along = (self._depth if self._is_along_depth else self._side) // _NEIGHBOURS
            number, place = (group % along) * _NEIGHBOURS, group // along
            if not self._is_along_depth:
                number, place = place, number
            found.append((number, place, self._neighbours(first, count, number, place)))
        return found

    def _neighbours(self, first: Id, count: int, number: Id, place: Id) -> list[Id]:
        builder, lengths = self._builder, self.products.depth
        there: list[Id] = []
        indices: list[Index] = []
        for each in range(_NEIGHBOURS):
            product = number + each if self._is_along_depth else number
            inside = builder.boolean(True)
            if count < self._depth:
                inside = product < count
                product = inside.select(product, 0)
            offset = place if self._is_along_depth else place + each
            row = self._place.row + offset if self._is_rows else builder.word(0)
            column = builder.word(0) if self._is_rows else self._place.column + offset
            parts = self._grid.index(builder, self._place.parts, row, column).parts
            here, index = self.products.place(self.operand, parts, split(builder, first + product, lengths))
            there.append(here & inside)
            indices.append(index)
        self._frame.load_ahead(self.products.operands[self.operand], indices)
        factors = [self.products.factor(self.operand, *each) for each in zip(there, indices, strict=True)]
        return [self._frame.scalars.to_words(self.products.working, factor)[0] for factor in factors]

    def write(self, buffer: Id, loaded: Sequence[tuple[Id, Id, list[Id]]]) -> None:
        """Writes what was loaded to one of the buffers."""
        for number, place, words in loaded:
            at = (buffer * self._depth + number) * self._pitch + place
            if self._is_along_depth:
                for each, word in enumerate(words):
                    self._builder.write_shared(self._array, at + each * self._pitch, [word])
            else:
                self._builder.write_shared(self._array, at, words)

    def read(self, buffer: Id, number: int, start: Id, count: int) -> list[Scalar]:
        """Factors of a product for neighbouring rows or columns."""
        at = (buffer * self._depth + number) * self._pitch + start
        width = 4 if count % 4 == 0 else 1
        words = [
            word
            for first in range(0, count, width)
            for word in self._builder.read_shared(self._array, at + first, width)
        ]
        return [as_id(self._frame.scalars.from_words(self.products.working, [word])) for word in words]
