"""Contractions and convolutions by tiles in registers: an invocation computes several rows and columns of the result.

Factors that several elements of a tile share are loaded once: the same element at the same index is the same
instruction. So a tile is nothing but a loop over the products whose body asks for all elements of the tile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from ...spirv.builder import Id
from ..codegen.contractions import products_of, products_per_element, result_of, summed, working_type
from ..codegen.elements import Frame, scalar_of, shape_of
from ..codegen.index import Index, split
from ..codegen.kernel import Kernel
from ..codegen.region import KernelRegion, Shader, group_count
from ..codegen.scalars import Scalar, storage_bits
from ..ir.operation import Operation
from ..ir.sizes import Size
from .strategy import LOAD, Strategy, number_of

_HEROES: Final = ("dot_general", "convolution")
_MIN_PRODUCTS: Final = 1 << 16
"""Below, a kernel takes no time to run, and a larger one takes longer to compile."""

_MIN_RUN: Final = 16

TILES: Final[dict[str, tuple[tuple[int, int], ...]]] = {
    "default": ((1, 4), (4, 4), (4, 8), (8, 4), (4, 2), (4, 1)),
}
"""Rows and columns of an invocation to choose among, by the family of devices."""


@dataclass(frozen=True, slots=True)
class ContractionTile(Strategy):
    """A tile of the result for each invocation.

    Attributes:
        rows: along the last dimension but one that is not of length 1.
        columns: along the last dimension.
        across: invocations of a workgroup along the columns.
        down: invocations of a workgroup along the rows.
    """

    rows: int
    columns: int
    across: int
    down: int
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
        for rows, columns in TILES["default"]:
            loads = 1 / rows + 1 / columns
            yield count * (loads * LOAD + 1), cls(rows, columns, 8, region.target.workgroup_size // 8)

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
        return (
            1 <= self.rows <= rows
            and 1 <= self.columns <= columns
            and 1 <= self.across * self.down <= region.target.workgroup_size
            and self.columns % lanes == 0
            and columns % lanes == 0
        )

    def _axes(self, shape: Sequence[object]) -> tuple[int, int]:
        """The dimension of rows, -1 if there is none, and that of columns."""
        long = [axis for axis, length in enumerate(shape) if length != 1]
        columns = long[-1] if long else len(shape) - 1
        return (long[-2] if len(long) > 1 else -1), columns

    def _lengths(self, hero: Operation) -> tuple[int, int]:
        shape = shape_of(hero.result)
        rows, columns = self._axes(shape)
        return number_of(shape[rows]) if rows >= 0 else 1, number_of(shape[columns])

    def emit(self, region: KernelRegion) -> Kernel:
        """The kernel of a region that these parameters take."""
        hero = region.only(_HEROES)
        assert hero is not None
        shader = Shader(region)
        builder, shape = shader.builder, [number_of(length) for length in shape_of(hero.result)]
        axes, lengths, sides = self._axes(shape), self._lengths(hero), (self.rows, self.columns)
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
            tile = []
            for row in range(self.rows):
                for column in range(self.columns):
                    place = list(parts)
                    if axes[0] >= 0:
                        place[axes[0]] = starts[0] + row
                    place[axes[1]] = starts[1] + column
                    tile.append(Index(builder, shape, place))
            sums = _sums(shader.frame, hero, tile)
            for index, found in zip(tile, sums, strict=True):
                shader.frame.keep(hero.result, index, [found])
            self._store(shader, tile, wanted, starts, axes)

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


def _sums(frame: Frame, hero: Operation, tile: Sequence[Index]) -> list[Scalar]:
    """The elements of a contraction at some places."""
    type = scalar_of(hero.result)
    working = working_type(type)
    products = products_of(frame, hero)
    lengths = [number_of(length) for length in products.depth]
    # Short lengths together make runs that are worth a loop.
    at = len(lengths) - 1
    while at and math.prod(lengths[at:]) < _MIN_RUN:
        at -= 1
    depth = [*lengths[:at], math.prod(lengths[at:])]
    parts = [index.parts for index in tile]

    def step(inner: Sequence[Id], sums: Sequence[Scalar]) -> Sequence[Scalar]:
        numbers = [*inner[:at], *split(frame.builder, inner[-1], lengths[at:])]
        return [products.added(total, place, numbers) for place, total in zip(parts, sums, strict=True)]

    zeros = [frame.scalars.constant(working, 0) for _ in tile]
    found = summed(frame, hero, depth, zeros, step)
    return [result_of(frame, type, each) for each in found]
