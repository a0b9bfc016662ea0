"""Element-wise chains on devices that load and store for a subgroup at once: eight neighbours are a vector.

A subgroup computes some consecutive vectors. The last workgroup begins earlier if the result is not a multiple of its
elements. This avoids bounds checks, which would be branches; some elements are written twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ...analysis.weights import HEAVY, MOVES, words_of
from ...ir.operation import Operation
from ...ir.sizes import Dim
from ...kernels.elements import scalar_of, shape_of
from ...kernels.index import Index
from ...kernels.kernel import Kernel
from ...kernels.region import KernelRegion, Shader, group_count
from ...kernels.scalars.scalars import storage_bits
from ...kernels.strategy import Strategy, elements_cost
from ...kernels.subgroup_access import LOAD_WORDS, MAX_BINDINGS, PUSHED_NUMBERS, WIDTH, SubgroupBuilder

MIN_ELEMENTS: Final = 1 << 18
"""With fewer elements, updating the addresses in a recording takes longer than the computation."""

MAX_WORDS: Final = 3 << 10
"""The estimated most words of an invocation's code."""

VECTORS: Final = 16
"""The most vectors of a subgroup."""

SUBGROUPS: Final = 8
"""Subgroups of a workgroup."""


@dataclass(frozen=True, slots=True)
class SubgroupVectors(Strategy):
    """The schedule in which each subgroup computes some vectors of neighbours.

    Attributes:
        vectors: the number of a subgroup's vectors, each with an element per invocation.
        subgroups: the number of a workgroup's subgroups.
    """

    vectors: int
    subgroups: int

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, SubgroupVectors]]:
        """Yields the largest number of vectors that the code's length allows."""
        count = region.results[0].tensor.count
        if not region.target.whole_vectors or not isinstance(count, int) or count < MIN_ELEMENTS:
            return
        words = sum(map(words_of, region.block.operations)) + LOAD_WORDS * len(region.block.arguments)
        vectors = VECTORS
        while vectors > 1 and vectors * words > MAX_WORDS:
            vectors //= 2
        yield elements_cost(region) / 64, cls(vectors, SUBGROUPS)

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether all operations are element-wise on words, with results of one shape of whole vectors."""
        results, values = region.results, [*region.block.arguments, *region.results]
        if (
            region.is_update
            or not region.target.whole_vectors
            or not 1 <= self.subgroups <= PUSHED_NUMBERS
            or self.subgroups * WIDTH > region.target.max_workgroup_invocations
            or not self.vectors
            or len(values) > MAX_BINDINGS
            or len({shape_of(value) for value in results}) != 1
            or any(storage_bits(scalar_of(value)) != 32 for value in values)
            or not all(map(keeps_places, region.block.operations[:-1]))
        ):
            return False
        count = results[0].tensor.count
        if not isinstance(count, int) or count < self._part or count % WIDTH:
            return False
        return not region.in_place or math.prod(self._groups(region, count)) * self._part == count

    def copies(self, region: KernelRegion) -> int:
        return self.vectors

    @property
    def _part(self) -> int:
        """Returns the number of a workgroup's elements."""
        return self.vectors * self.subgroups * WIDTH

    def _groups(self, region: KernelRegion, count: int) -> tuple[int, int, int]:
        return group_count(-(-count // self._part), region.target)

    def emit(self, region: KernelRegion) -> Kernel:
        builder = SubgroupBuilder(len(region.block.arguments) + len(region.results))
        shader, results = Shader(region, builder), region.results
        shape, count = shape_of(results[0]), results[0].tensor.count
        assert isinstance(count, int)
        groups = self._groups(region, count)
        group = builder.same(shader.group(groups), math.prod(groups))
        first = group * self._part + builder.same(builder.subgroup(), self.subgroups) * (self.vectors * WIDTH)
        if math.prod(groups) * self._part != count:
            first = builder.least(first, count - self.vectors * WIDTH, WIDTH)
        indices = [
            Index(builder, shape, linear=builder.spread(first + vector * WIDTH)) for vector in range(self.vectors)
        ]
        for index in indices:
            for number, scalar in enumerate([shader.frame.at(value, index) for value in results]):
                shader.store(number, [(index, scalar)])
        return shader.finish((self.subgroups * WIDTH, 1, 1), groups)


def keeps_places(operation: Operation, lengths: Sequence[Dim] = ()) -> bool:
    """Returns whether elements depend only on elements at the same index, or on values uniform within a vector.

    Args:
        operation: an operation of a region.
        lengths: the dimensions that vectors span; by default all.
    """
    name = operation.name.removeprefix("stablehlo.")
    if name == "broadcast_in_dim" and operation.integers("broadcast_dimensions"):
        (*_, last) = [length for length in lengths or shape_of(operation.result) if length != 1] or [WIDTH]
        return isinstance(last, int) and last % WIDTH == 0
    return not operation.regions and name not in HEAVY and name not in MOVES - {"broadcast_in_dim", "reshape"}
