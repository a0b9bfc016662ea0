"""Transposes through shared memory: a workgroup reads a tile along its rows and writes it along its columns.

Neighbouring invocations read neighbours and write neighbours. In between, elements are exchanged through shared memory,
whose rows are one word longer than the tile's, so that elements of a column lie in different banks. Operations fused
before the transpose run at the read, operations fused after it at the write.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ....spirv.binary.expression import Id
from ....spirv.binary.shared_memory import SharedMemory
from ...kernels.elements import scalar_of
from ...kernels.kernel import Kernel
from ...kernels.region import KernelRegion, Shader
from ...kernels.scalars.scalars import storage_bits
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

_SLOW: Final[dict[str, int]] = {"cpu": 16, "arm": 16}
"""The cost factor on families whose shared memory is as slow as other memory."""


@dataclass(frozen=True, slots=True)
class SharedTranspose(Strategy):
    """The schedule in which each workgroup transposes a tile of the result.

    Attributes:
        rows: the number of rows in a tile, the direction of reads.
        columns: the number of a tile's columns, the direction of writes.
        invocations: the number of invocations in a workgroup.
        width: the number of neighbours that an invocation reads and writes at a time.
    """

    rows: int
    columns: int
    invocations: int
    width: int

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, SharedTranspose]]:
        """Yields the tiles of the family's table; the first that takes the region is the best."""
        transposition, family = transposition_in(region), region.target.family
        if transposition is None or math.prod(transposition.lengths) < MIN_ELEMENTS:
            return
        cost = cost_of(region, transposition) * _SLOW.get(family, 1)
        lanes = max(32 // narrowest(region, transposition), 1)
        for number, (rows, columns, invocations, words) in enumerate(TILES.get(family, TILES["default"])):
            tile = cls(rows, columns, invocations, words * lanes)
            if tile.words(region) <= MAX_WORDS:
                yield cost * (1 + number / 100), tile

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether the region is a transpose at least as large as the tile, which fits into shared memory."""
        transposition = transposition_in(region)
        return (
            transposition is not None
            and 1 <= self.rows <= transposition.rows
            and 1 <= self.columns <= transposition.columns
            and 1 <= self.invocations <= region.target.max_workgroup_invocations
            and self.width >= 1
            and self.rows % self.width == self.columns % self.width == transposition.columns % self.width == 0
            and self.rows * self.columns % (self.width * self.invocations) == 0
            and fills_words(region, transposition, self.width)
            and 4 * sum(self._shared_words(size) for size in _bits(transposition)) <= region.target.shared_memory
        )

    def copies(self, region: KernelRegion) -> int:
        return self.rows * self.columns // max(self.invocations, 1)

    def emit(self, region: KernelRegion) -> Kernel:
        transposition = transposition_in(region)
        assert transposition is not None
        shader = Shader(region)
        return transposition.emit(
            shader,
            Sides(self.rows, self.columns),
            Sides(1, 1),
            self.invocations,
            lambda tile: self._write(shader, transposition, tile),
        )

    def _shared_words(self, bits: int) -> int:
        """Returns the words of shared memory for the elements of a tile."""
        return self.columns * (self.rows + 1) * max(bits // 32, 1)

    def _units(self, local: Id, side: int) -> list[tuple[Id, Id]]:
        """Returns an invocation's positions in tiles whose neighbours lie along a side: along and across the side."""
        across = side // self.width
        turns = self.rows * self.columns // self.width // self.invocations
        numbers = [local + turn * self.invocations for turn in range(turns)]
        return [((number % across) * self.width, number // across) for number in numbers]

    def _write(self, shader: Shader, transposition: Transposition, tile: TransposedTile) -> None:
        builder, frame, scalars, (result,) = shader.builder, shader.frame, shader.scalars, shader.region.results
        memories = [SharedMemory(builder, self._shared_words(bits)) for bits in _bits(transposition)]
        first_row, first_column = tile.starts
        read = self._units(tile.local, self.rows)
        for (hero, _), memory in zip(transposition.heroes, memories, strict=True):
            (operand,) = hero.operands
            type, loaded = scalar_of(operand), []
            for row, column in read:
                positions = [
                    transposition.position(tile.parts, first_row + (row + offset), first_column + column)
                    for offset in range(self.width)
                ]
                indices = [transposition.operand_index(builder, hero, position) for position in positions]
                frame.load_ahead(operand, indices)
                loaded += [scalars.to_words(type, frame.at(operand, index)) for index in indices]
            for number, words in enumerate(loaded):
                (row, column), lane = read[number // self.width], number % self.width
                for plane, word in enumerate(words):
                    memory.store(self._word_index(row + lane, column, plane), [word])
        builder.barrier()
        for column, row in self._units(tile.local, self.columns):
            at_row = first_row + row

            def store(row: Id = row, column: Id = column, at_row: Id = at_row) -> None:
                columns = [column + offset for offset in range(self.width)]
                indices = [
                    transposition.index(builder, result, transposition.position(tile.parts, at_row, first_column + at))
                    for at in columns
                ]
                for (hero, path), memory in zip(transposition.heroes, memories, strict=True):
                    type = scalar_of(hero.result)
                    for index, at_column in zip(indices, columns, strict=True):
                        planes = range(max(storage_bits(type) // 32, 1))
                        words = [memory.load(self._word_index(row, at_column, plane))[0] for plane in planes]
                        frame.keep(
                            hero.result, transposition.hero_index(index, path), [scalars.from_words(type, words)]
                        )
                frame.load_ahead(result, indices)
                shader.store(0, [(index, frame.at(result, index)) for index in indices])

            tile.when_wanted(builder, at_row, first_column + column, store)

    def _word_index(self, row: Id, column: Id, plane: int) -> Id:
        """Returns the index in shared memory of a word of an element; the words of longer elements lie apart."""
        pitch = self.rows + 1
        return column * pitch + (row + plane * self.columns * pitch)


def _bits(transposition: Transposition) -> list[int]:
    return [storage_bits(scalar_of(hero.result)) for hero, _ in transposition.heroes]


TILES: Final[dict[str, tuple[tuple[int, int, int, int], ...]]] = {
    "cpu": ((32, 32, 64, 1),),
    "nvidia": ((32, 32, 256, 1), (64, 64, 256, 1), (64, 64, 256, 4), (16, 16, 64, 1)),
    "amd": ((64, 64, 256, 1), (32, 32, 256, 1), (64, 64, 256, 4), (16, 16, 64, 1)),
    "default": ((32, 32, 128, 1), (16, 16, 64, 1)),
}
"""Candidate rows, columns, invocations and words of neighbours, by the family of devices.

With one word, the invocations of a subgroup read and write whole cache lines together.
"""
