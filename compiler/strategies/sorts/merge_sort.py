"""Sorts by merging: an invocation sorts a few elements in registers, or writes a part of two merged runs.

The beginning of a part in both runs is found by bisection (merge path), so that all parts take equally long. Any
comparison is supported, and equal elements stay in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from ....spirv.binary.expression import Id
from ...analysis.special_forms import GIVEN
from ...ir.operation import Operation
from ...ir.sizes import Dim, Size, number_of, product
from ...kernels.elements import scalar_of, shape_of
from ...kernels.index import split
from ...kernels.kernel import Kernel
from ...kernels.region import KernelRegion, Shader
from ...kernels.scalars.scalars import Scalar, as_id, select, storage_bits
from ...kernels.strategy import Strategy

PARTS: Final[dict[str, int]] = {"cpu": 32, "default": 16}
"""Elements of two merged runs that an invocation writes, by the family of devices."""

_PARTS: Final = (8, 16, 32, 64, 128)
"""Chosen such that blocks end where parts do."""

MAX_NETWORK: Final = 8
"""The most elements that are sorted in registers; the code grows with the square."""


@dataclass(frozen=True, slots=True)
class MergeSort(Strategy):
    """The schedule in which each invocation sorts, or merges, a part of a block.

    Attributes:
        part: the number of elements in a part if blocks are made of runs; a block sorted in registers is one part.
    """

    part: int

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, MergeSort]]:
        """Yields the only candidates for a sort."""
        hero = region.only(("sort",))
        if hero is not None and GIVEN not in hero.attributes:
            yield 0.0, cls(PARTS.get(region.target.family, PARTS["default"]))

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether the region is a sort of word elements, in blocks that fit registers or in two runs."""
        hero = region.only(("sort",))
        if hero is None or region.is_update or region.results != hero.results or self.part not in _PARTS:
            return False
        if GIVEN in hero.attributes:
            return False
        if not hero.tensor.rank or any(storage_bits(scalar_of(value)) < 32 for value in hero.results):
            return False
        axis, runs = hero.integer("dimension", -1) % hero.tensor.rank, hero.integer("runs", 1)
        length = shape_of(hero.results[0])[axis]
        if isinstance(length, Size):
            return False
        block = hero.integer("block", length)
        is_power = block & (block - 1) == 0
        return block <= MAX_NETWORK if runs == 1 else runs > 1 and block == 2 * runs and is_power

    def emit(self, region: KernelRegion) -> Kernel:
        hero = region.only(("sort",))
        assert hero is not None
        shader = Shader(region)
        builder, sort = shader.builder, _Sort(shader, hero)
        step = sort.block if sort.runs == 1 else min(self.part, sort.block)
        parts = -(-sort.length // step)

        def write(invocation: Id) -> None:
            row = split(builder, invocation // parts, sort.rows)
            first = invocation % parts * step
            if sort.runs == 1:
                sort.in_registers(row, first)
            else:
                sort.merged(row, first, step)

        return shader.over(product(sort.rows) * parts, region.target.workgroup_size, write)


class _Sort:
    """The state of a sort while its code is written.

    Attributes:
        length: the length of the sorted dimension.
        rows: the lengths of the other dimensions.
        block: the number of elements in a sorted block.
        runs: the number of elements that are already in order.
    """

    def __init__(self, shader: Shader, operation: Operation) -> None:
        self._shader, self._operation = shader, operation
        self._shape = shape_of(operation.results[0])
        self._axis = operation.integer("dimension", -1) % len(self._shape)
        self.length = number_of(self._shape[self._axis])
        self.rows: list[Dim] = [length for axis, length in enumerate(self._shape) if axis != self._axis]
        self.block, self.runs = operation.integer("block", self.length), operation.integer("runs", 1)
        self._block = operation.regions[0].block
        read = {value for outer in self._block.operations for inner in outer.walk() for value in inner.operands}
        arguments = self._block.arguments
        self._compared = [
            number for number in range(len(operation.operands)) if read & {*arguments[2 * number : 2 * number + 2]}
        ]

    def _index(self, row: Sequence[Id], position: Id) -> tuple[Id, ...]:
        return (*row[: self._axis], position, *row[self._axis :])

    def _loaded(self, number: int, row: Sequence[Id], position: Id) -> Scalar:
        """Loads the element of an operand at a position; the last element for positions beyond the end."""
        last = self._shader.builder.word(self.length - 1)
        index = self._shader.frame.index(self._shape, self._index(row, _minimum(position, last)))
        return self._shader.frame.at(self._operation.operands[number], index)

    def _store(self, number: int, row: Sequence[Id], position: Id, scalar: Scalar) -> None:
        index = self._shader.frame.index(self._shape, self._index(row, position))
        self._shader.store(number, [(index, scalar)])

    def _precedes(self, first: Sequence[Scalar], other: Sequence[Scalar]) -> Id:
        """Returns whether an element precedes another; both are passed as their compared operands."""
        scalars, arguments = self._shader.scalars, []
        for number, operand in enumerate(self._operation.operands):
            if number in self._compared:
                at = self._compared.index(number)
                arguments += [first[at], other[at]]
            else:
                arguments += [scalars.constant(scalar_of(operand), 0)] * 2
        return as_id(self._shader.frame.call(self._block, arguments)[0])

    def in_registers(self, row: Sequence[Id], first: Id) -> None:
        """Sorts a block by exchanges of neighbours, which keep equal elements in order."""
        builder, operands = self._shader.builder, range(len(self._operation.operands))
        last = self.length - 1
        elements = [[self._loaded(number, row, first + at) for number in operands] for at in range(self.block)]
        for turn in range(self.block):
            for at in range(turn % 2, self.block - 1, 2):
                left, right = elements[at : at + 2]
                swaps = self._precedes(*([side[number] for number in self._compared] for side in (right, left)))
                if self.length % self.block:
                    swaps = swaps & (first + at < last)
                pairs = list(zip(left, right, strict=True))
                elements[at] = [select(swaps, other, earlier) for earlier, other in pairs]
                elements[at + 1] = [select(swaps, earlier, other) for earlier, other in pairs]
        for at, element in enumerate(elements):

            def write(position: Id = first + at, element: Sequence[Scalar] = element) -> None:
                for number, scalar in enumerate(element):
                    self._store(number, row, position, scalar)

            if self.length % self.block:
                builder.when(first + at <= last, write)
            else:
                write()

    def merged(self, row: Sequence[Id], first: Id, count: int) -> None:
        """Writes ``count`` elements of the two merged runs of a block, from a position on."""
        builder, scalars = self._shader.builder, self._shader.scalars
        begin = first // self.block * self.block
        middle, wanted = begin + self.runs, first - begin
        left = right = builder.word(self.runs)
        if self.length % self.block:
            rest = builder.word(self.length) - begin
            left = _minimum(rest, left)
            right = _minimum(rest - left, right)
        compared = partial(self._compared_at, row)

        def halve(range: Sequence[Scalar]) -> tuple[Sequence[Scalar], Id]:
            low, high = (as_id(bound) for bound in range)
            half = (low + high) >> 1
            before = self._precedes(compared(middle + (wanted - 1 - half)), compared(begin + half))
            is_open = low < high
            high = (is_open & before).select(half, high)
            low = (is_open & ~before).select(half + 1, low)
            return [low, high], low < high

        low = (wanted < right).select(builder.word(0), wanted - right)
        bounds = scalars.loop([low, _minimum(wanted, left)], halve, self.runs.bit_length() + 1)
        left_start = as_id(bounds[0])
        other = wanted - left_start
        end = builder.word(count)
        if self.length % count:
            end = _minimum(builder.word(self.length) - first, end)
        size = len(self._compared)

        def step(state: Sequence[Scalar]) -> tuple[Sequence[Scalar], Id]:
            number, left_at, other = (as_id(bound) for bound in state[:3])
            ours, theirs = state[3 : 3 + size], state[3 + size :]
            takes = (left_at >= left) | ((other < right) & self._precedes(theirs, ours))
            source = takes.select(middle + other, begin + left_at)
            for operand in range(len(self._operation.operands)):
                if operand in self._compared:
                    at = self._compared.index(operand)
                    scalar = select(takes, theirs[at], ours[at])
                else:
                    scalar = self._loaded(operand, row, source)
                self._store(operand, row, first + number, scalar)
            moved = takes.select(builder.word(1), 0)
            left_at, other = left_at + 1 - moved, other + moved
            following = compared(source + 1)
            ours = [select(takes, old, new) for old, new in zip(ours, following, strict=True)]
            theirs = [select(takes, new, old) for old, new in zip(theirs, following, strict=True)]
            return [number + 1, left_at, other, *ours, *theirs], number + 1 < end

        scalars.loop(
            [builder.word(0), left_start, other, *compared(begin + left_start), *compared(middle + other)], step, count
        )

    def _compared_at(self, row: Sequence[Id], position: Id) -> list[Scalar]:
        return [self._loaded(number, row, position) for number in self._compared]


def _minimum(left: Id, other: Id) -> Id:
    return (left < other).select(left, other)
