"""Rows by vectors of subgroups, on devices that load and store for a subgroup at once (``subgroup_vectors.py``).

A workgroup has a row; each of its subgroups has runs of a few vectors, one after another. The code is unrolled for each
vector, since vector accesses work only outside loops.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ....spirv.binary.expression import Id
from ...analysis.weights import words_of
from ...kernels.elements import scalar_of
from ...kernels.index import Index
from ...kernels.kernel import Kernel, Workload
from ...kernels.reductions import Values
from ...kernels.region import KernelRegion, group_count
from ...kernels.scalars.scalars import Scalar, storage_bits
from ...kernels.strategy import Strategy, elements_cost
from ...kernels.subgroup_access import MAX_BINDINGS, WIDTH, SubgroupBuilder
from .rows_region import joins_in_order, spaces_in
from .rows_writer import RowShare, RowsWriter
from .subgroup_vectors import MIN_ELEMENTS, keeps_places

MAX_WORDS: Final = 1 << 9
"""The most words of an element's code. Longer code is not bound by loads, and its values do not stay in registers."""

VECTORS: Final = 32
"""The most vectors of a subgroup."""

RUN: Final = 4
"""The most contiguous vectors; each vector has a separate sum."""


@dataclass(frozen=True, slots=True)
class SubgroupRows(Strategy):
    """The schedule in which each workgroup computes a row by vectors of its subgroups.

    Attributes:
        subgroups: the number of a workgroup's subgroups, a power of two.
        run: the number of a subgroup's contiguous vectors.
    """

    subgroups: int
    run: int

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, SubgroupRows]]:
        """Yields the fewest subgroups that the length allows, if elements are cheap to compute."""
        rows_and_spaces = spaces_in(region)
        if rows_and_spaces is None or not region.target.whole_vectors:
            return
        count, length = rows_and_spaces[0].row_count, rows_and_spaces[0].length
        if not isinstance(count, int) or not isinstance(length, int) or count * length < MIN_ELEMENTS:
            return
        if sum(map(words_of, region.block.operations)) > MAX_WORDS:
            return
        subgroups = 1
        while length > subgroups * WIDTH * VECTORS:
            subgroups *= 2
        run = next((size for size in (RUN, 2, 1) if length % (size * WIDTH * subgroups) == 0), 0)
        yield elements_cost(region) / 128, cls(subgroups, run)

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether all elements are words, and rows consist of whole runs."""
        rows_and_spaces, values = spaces_in(region), [*region.block.arguments, *region.results]
        if (
            rows_and_spaces is None
            or region.is_update
            or not region.target.whole_vectors
            or joins_in_order(region)
            or not self.run
            or not self.subgroups
            or self.subgroups & (self.subgroups - 1)
            or self.subgroups * WIDTH > region.target.max_workgroup_invocations
            or len(values) > MAX_BINDINGS
            or any(storage_bits(scalar_of(value)) != 32 for value in values)
            or not all(
                operation.name == "stablehlo.reduce" or keeps_places(operation, rows_and_spaces[0].columns)
                for operation in region.block.operations[:-1]
            )
        ):
            return False
        count, length, columns = rows_and_spaces[0].row_count, rows_and_spaces[0].length, rows_and_spaces[0].columns
        if not isinstance(count, int) or not isinstance(length, int) or length % (self.subgroups * self.run * WIDTH):
            return False
        return math.prod(group_count(count, region.target)) == count and not (
            len(columns) > 1 and any(not isinstance(column, int) or column % WIDTH for column in columns[-1:])
        )

    def copies(self, region: KernelRegion) -> int:
        rows_and_spaces = spaces_in(region)
        length = rows_and_spaces[0].length if rows_and_spaces is not None else 0
        return length // (self.subgroups * WIDTH) if isinstance(length, int) else 1

    def emit(self, region: KernelRegion) -> Kernel:
        return _Writer(self, region).kernel()


class _Writer(RowsWriter):
    def __init__(self, parameters: SubgroupRows, region: KernelRegion) -> None:
        self._vectors = SubgroupBuilder(len(region.block.arguments) + len(region.results))
        super().__init__(RowShare(parameters.subgroups * WIDTH, 1, parameters.run, 1), region, self._vectors)
        self._subgroups = parameters.subgroups

    def _unit(self, groups: tuple[int, int, int] | Workload) -> Id:
        assert not isinstance(groups, Workload)
        return self._vectors.same(super()._unit(groups), math.prod(groups))

    def _base(self, number: Id) -> Id:
        return number * self._subgroups + self._vectors.same(self._vectors.subgroup(), self._subgroups)

    def _indices(self, base: Id, parts: Sequence[Id]) -> list[Index]:
        indices = []
        for vector in range(self._share.width):
            column = self._vectors.spread(base * (WIDTH * self._share.width) + vector * WIDTH)
            inner = Index(self._vectors, self._shape.columns, linear=column).parts
            indices.append(Index(self._vectors, self._shape.shape, [*parts, *inner]))
        return indices

    def _store_elements(self, results: Sequence[int], parts: Sequence[Id]) -> None:
        frame, (root, *_) = self._shader.frame, self._region.block.operations[::-1][1:]

        def step(base: Id, _: Values) -> list[Scalar]:
            for index in self._indices(base, parts):
                for result in results:
                    self._shader.store(result, [(index, frame.at(self._region.results[result], index))])
            return []

        self._over_row(root, [], step, 0)
