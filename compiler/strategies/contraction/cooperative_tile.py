"""Contractions and convolutions of halves and bytes by cooperative matrices (``VK_KHR_cooperative_matrix``).

Factors go through shared memory in their stored form, so that layouts, padding and fused operands are handled as for
other tiles. The sums go through it as well, because the following operations read single elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ....spirv.binary import matrices
from ....spirv.binary.declarations import F16, F32, S8, S32, U8, U32, Kind
from ....spirv.binary.expression import Id
from ....spirv.binary.offsets import quotient
from ....spirv.binary.shared_memory import SharedMemory
from ....spirv.checks.matrix_shapes import MatrixProduct
from ...ir.operation import Operation
from ...ir.types import ScalarType
from ...kernels.contractions import products_of, result_of, working_type
from ...kernels.elements import scalar_of
from ...kernels.kernel import Kernel
from ...kernels.reductions import WHOLE_SUBGROUPS
from ...kernels.region import KernelRegion, Shader
from ...kernels.scalars.scalars import Scalar, as_id, storage_bits
from ...kernels.scalars.target import Target
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

_KINDS: Final[dict[str, Kind]] = {"f16": F16, "f32": F32, "s8": S8, "u8": U8, "s32": S32, "u32": U32}
_TYPES: Final[dict[str, str]] = {"f16": "f16", "i8": "s8", "ui8": "u8"}
"""Matrix element types by tensor element types."""

_PRODUCT: Final = 1 / 16
"""The cost of a product in matrices, relative to a product in an invocation."""

_SUBGROUPS: Final = ((4, 4, 2, 2), (4, 2, 2, 2), (2, 2, 2, 2), (2, 2, 1, 2), (1, 1, 2, 2))
"""Candidates: matrices of a subgroup down and across, and subgroups of a workgroup down and across."""


@dataclass(frozen=True, slots=True)
class CooperativeTile(Strategy):
    """The schedule in which each subgroup computes a tile of matrices.

    Attributes:
        m: the number of rows in a matrix of the result.
        n: the number of a matrix's columns.
        k: the number of products that one multiplication adds to an element.
        rows: the number of a subgroup's matrices along the rows.
        columns: the number of a subgroup's matrices along the columns.
        down: the number of a workgroup's subgroups along the rows.
        across: the number of a workgroup's subgroups along the columns.
        depth: the number of products whose factors are in shared memory at a time.
    """

    m: int
    n: int
    k: int
    rows: int
    columns: int
    down: int
    across: int
    depth: int

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, CooperativeTile]]:
        """Yields tiles of the matrix shapes that the device supports for the operands' types."""
        hero = contraction_in(region)
        if hero is None or products_in(hero) < MIN_PRODUCTS:
            return
        shapes = dict.fromkeys((matrix.m, matrix.n, matrix.k) for matrix in _matrices(hero, region.target))
        for shape in shapes:
            for counts in _SUBGROUPS:
                tile = cls(*shape, *counts, max(32, shape[2]))
                if tile.takes(region):
                    sides = tile._sides()
                    loads = (1 / sides.rows + 1 / sides.columns) * LOAD
                    busy = tile._grid(region, hero).cost(region.target)
                    yield products_in(hero) * (_PRODUCT + loads) * busy, tile

    def _sides(self) -> Sides:
        return Sides(self.m * self.rows * self.down, self.n * self.columns * self.across)

    def _invocations(self, target: Target) -> int:
        return self.down * self.across * target.subgroup_size

    def _grid(self, region: KernelRegion, hero: Operation) -> ContractionGrid:
        """Creates the grid for the stores, with 128 bits of neighbouring elements per invocation."""
        sides = self._sides()
        invocations = self._invocations(region.target)
        neighbours = min(128 // storage_bits(scalar_of(region.results[0])), sides.columns)
        columns = max(neighbours, sides.columns // invocations)
        across = max(sides.columns // columns, 1)
        down = max(invocations // across, 1)
        return ContractionGrid(
            hero, Sides(max(sides.rows // down, 1), columns), Sides(down, across), is_whole=True, is_linear=True
        )

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether the device multiplies matrices of these shapes and the operands' types, and tiles fit."""
        hero, target = contraction_in(region), region.target
        if hero is None or not all(getattr(self, name) for name in self.parameters()):
            return False
        sides, invocations = self._sides(), self._invocations(target)
        element, grid = scalar_of(hero.operands[0]), self._grid(region, hero)
        tile = grid.unit
        return (
            self._matrix(hero, target) is not None
            and "basic" in target.subgroup_operations
            and target.family in WHOLE_SUBGROUPS
            and invocations <= target.max_workgroup_invocations
            and tile == sides
            and grid.invocations == invocations
            and is_shareable(grid, sides, self.depth, element, invocations)
            and self.depth % self.k == 0
            and all(side * storage_bits(element) % 128 == 0 for side in (self.m, self.n, self.k))
            and self.n % 4 == 0
            and fits(region, hero, sides, is_whole=True)
            and self._shared_bytes(element) <= target.shared_memory
        )

    def _shared_bytes(self, element: ScalarType) -> int:
        sides = self._sides()
        factors = sum(shared_bytes((self.depth, side), element) for side in sides)
        return factors + 4 * sides.rows * (sides.columns + 4)

    def _matrix(self, hero: Operation, target: Target) -> MatrixProduct | None:
        fitting = (
            matrix for matrix in _matrices(hero, target) if (matrix.m, matrix.n, matrix.k) == (self.m, self.n, self.k)
        )
        return next(fitting, None)

    def words(self, region: KernelRegion) -> int:
        """Estimates the words for the matrix products, an invocation's share of the factors, and its elements."""
        hero = contraction_in(region)
        assert hero is not None
        factor, element = words_around(region, hero)
        sides, invocations = self._sides(), self._invocations(region.target)
        products = self.rows * self.columns * self.depth // self.k
        loaded, elements = sum(sides) * self.depth // invocations, sides.rows * sides.columns // invocations
        return products * PRODUCT_WORDS + loaded * factor + elements * element

    def emit(self, region: KernelRegion) -> Kernel:
        hero = contraction_in(region)
        assert hero is not None
        shader, grid = Shader(region), self._grid(region, hero)
        matrix = self._matrix(hero, region.target)
        assert matrix is not None

        def compute(position: TilePlace) -> list[Scalar]:
            return self._sums(shader, hero, grid, position, matrix)

        return grid.emit(shader, compute)

    def _sums(
        self, shader: Shader, hero: Operation, grid: ContractionGrid, position: TilePlace, matrix: MatrixProduct
    ) -> list[Scalar]:
        builder, sides = shader.builder, self._sides()
        products, element = products_of(shader.frame, hero), scalar_of(hero.operands[0])
        number = position.down * grid.across + position.across
        factors = [
            SharedFactors(
                shader,
                products,
                grid,
                position,
                (self.depth, side),
                factor_number == 0,
                element,
                True,
                (number, grid.invocations),
            )
            for factor_number, side in enumerate(sides)
        ]
        subgroup = builder.subgroup()
        lanes = 32 // storage_bits(element)
        starts = (
            subgroup // self.across * (self.m * self.rows),
            subgroup % self.across * (self.n * self.columns),
        )
        kinds = (
            matrices.matrix(builder, _KINDS[matrix.a], self.m, self.k, 0),
            matrices.matrix(builder, _KINDS[matrix.b], self.k, self.n, 1),
            matrices.matrix(builder, _KINDS[matrix.result], self.m, self.n, 2),
        )

        def loaded(side: int, buffer: Id, first: int, count: int, length: int) -> list[Id]:
            """Loads matrices of rows, or of columns, for the products from ``first`` on."""
            shared, loads = factors[side], []
            for index in range(count):
                start = starts[side] + index * length
                row, inner = (start, builder.word(first)) if shared.is_along_depth else (builder.word(first), start)
                at = shared.size * buffer + row * shared.pitch + quotient(inner, lanes)
                is_column_major = shared.is_along_depth == (side == 1)
                loads.append(matrices.load(kinds[side], shared.memory, at, shared.pitch, is_column_major))
            return loads

        def multiplied(buffer: Id, count: int, sums: Sequence[Scalar]) -> list[Scalar]:
            totals = [as_id(sum) for sum in sums]
            # Factors after the last product are zeros.
            for first in range(0, count, self.k):
                left = loaded(0, buffer, first, self.rows, self.m)
                right = loaded(1, buffer, first, self.columns, self.n)
                for row, factor in enumerate(left):
                    for column, other in enumerate(right):
                        at = row * self.columns + column
                        totals[at] = matrices.multiplied(factor, other, totals[at])
            return list(totals)

        zeros: list[Scalar] = [matrices.zeros(builder, kinds[2])] * (self.rows * self.columns)
        sums = [as_id(total) for total in pipelined(shader, hero, factors, self.depth, zeros, multiplied)]
        pitch = sides.columns + 4
        staged = SharedMemory(builder, sides.rows * pitch, 4)
        for row in range(self.rows):
            for column in range(self.columns):
                at = (starts[0] + row * self.m) * pitch + starts[1] + column * self.n
                matrices.store(sums[row * self.columns + column], staged, at, pitch)
        builder.barrier()
        return self._elements(shader, hero, position, staged, pitch)

    def _elements(
        self, shader: Shader, hero: Operation, position: TilePlace, staged: SharedMemory, pitch: int
    ) -> list[Scalar]:
        """Returns an invocation's elements of the sums of its workgroup."""
        rows, columns = len(position.tile), len(position.tile[0])
        working, type = working_type(scalar_of(hero.result)), scalar_of(hero.result)
        scalars = []
        for row in range(rows):
            at = (position.down * rows + row) * pitch + position.across * columns
            width = 4 if columns % 4 == 0 else 1
            words = [word for first in range(0, columns, width) for word in staged.load(at + first, width)]
            scalars += [shader.scalars.from_words(working, [word]) for word in words]
        return [result_of(shader.frame, type, scalar) for scalar in scalars]


def _matrices(hero: Operation, target: Target) -> list[MatrixProduct]:
    """Returns the matrix shapes of the device for the types of a contraction's operands and sums."""
    left, right = (str(scalar_of(value)) for value in hero.operands[:2])
    if left != right or left not in _TYPES:
        return []
    type, working = _TYPES[left], working_type(scalar_of(hero.result))
    total = "f32" if working.kind == "float" else "s32"
    return [matrix for matrix in target.cooperative_matrices if matrix[3:] == (type, type, total, total)]
