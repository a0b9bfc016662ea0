"""Transposes by tiles in registers: an invocation reads along one side of a tile and writes along the other.

Both accesses are by 128 bits or more, through operations fused before and after. This suits families whose caches
absorb accesses of distant invocations; on other families, elements go through shared memory (``shared_transpose.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ...kernels.index import Index
from ...kernels.kernel import Kernel
from ...kernels.region import KernelRegion, Shader, access_bits
from ...kernels.strategy import Strategy
from ..contraction.contraction_grid import Sides
from .transposition import (
    MAX_WORDS,
    MIN_ELEMENTS,
    TransposedTile,
    Transposition,
    cost_of,
    fills_words,
    narrowest,
    transposition_in,
)

TILES: Final[dict[str, tuple[tuple[int, int, int, int], ...]]] = {
    "cpu": ((4, 16, 8, 16), (4, 8, 8, 32), (4, 4, 8, 32)),
    "arm": ((4, 4, 8, 8),),
}
"""Candidate words of rows, words of columns, and invocations of a workgroup in both directions, by the family of
devices.

On lavapipe, workgroups of many columns and few rows change the memory page least often.
"""


@dataclass(frozen=True, slots=True)
class TransposeTile(Strategy):
    """The schedule in which each invocation transposes a tile of the result.

    Attributes:
        rows: the number of rows in a tile, the direction of reads.
        columns: the number of a tile's columns, the direction of writes.
        down: the number of a workgroup's invocations along the rows.
        across: the number of a workgroup's invocations along the columns.
    """

    rows: int
    columns: int
    down: int
    across: int

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, TransposeTile]]:
        """Yields the tiles of the family's table, the larger the better."""
        transposition = transposition_in(region)
        if transposition is None or math.prod(transposition.lengths) < MIN_ELEMENTS:
            return
        bits = narrowest(region, transposition)
        for words, columns, down, across in TILES.get(region.target.family, ()):
            # Short sides have smaller tiles, and workgroups then extend in the other direction.
            sides = Sides(min(max(words * 32 // bits, 1), transposition.rows), min(columns, transposition.columns))
            tiles = Sides(-(-transposition.rows // sides.rows), -(-transposition.columns // sides.columns))
            invocations, across = down * across, min(across, tiles.columns)
            down = min(invocations // across, tiles.rows)
            tile = cls(*sides, down, min(invocations // down, tiles.columns))
            if tile.words(region) <= MAX_WORDS:
                # Larger tiles change the cache line less often.
                yield cost_of(region, transposition) * (1 + 1 / columns), tile

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether the region is a transpose at least as large as the tile."""
        transposition = transposition_in(region)
        return (
            transposition is not None
            and 1 <= self.rows <= transposition.rows
            and 1 <= self.columns <= transposition.columns
            and 1 <= self.down * self.across <= region.target.max_workgroup_invocations
            and fills_words(region, transposition, self.columns)
        )

    def copies(self, region: KernelRegion) -> int:
        return self.rows * self.columns

    def emit(self, region: KernelRegion) -> Kernel:
        transposition = transposition_in(region)
        assert transposition is not None
        shader = Shader(region)
        tile, group = Sides(self.rows, self.columns), Sides(self.down, self.across)
        return transposition.emit(
            shader, tile, group, self.down * self.across, lambda at: self._write(shader, transposition, at)
        )

    def _write(self, shader: Shader, transposition: Transposition, tile: TransposedTile) -> None:
        builder, frame, (result,) = shader.builder, shader.frame, shader.region.results
        rows = [tile.starts[0] + offset for offset in range(self.rows)]
        columns = [tile.starts[1] + offset for offset in range(self.columns)]
        positions = [transposition.position(tile.parts, row, column) for row in rows for column in columns]
        targets = [transposition.index(builder, result, position) for position in positions]
        widest = access_bits(shader.region.target) // 32
        for hero, path in transposition.heroes:
            (operand,) = hero.operands
            sources = [transposition.operand_index(builder, hero, position) for position in positions]
            frame.load_ahead(operand, sources, widest)
            for source, target in zip(sources, targets, strict=True):
                frame.keep(hero.result, transposition.hero_index(target, path), [frame.at(operand, source)])
        # Runs of columns belong as a whole to this tile or another tile.
        run = math.gcd(self.columns, transposition.columns)
        for number in range(0, len(positions), run):
            there = targets[number : number + run]

            def store(there: Sequence[Index] = there) -> None:
                frame.load_ahead(result, there, widest)
                shader.store(0, [(index, frame.at(result, index)) for index in there])

            row, column = rows[number // self.columns], columns[number % self.columns]
            tile.when_wanted(builder, row, column, store)
