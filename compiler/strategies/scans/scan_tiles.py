"""A tile of a scan along the innermost dimension: consecutive invocations have consecutive runs of neighbours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ....spirv.binary.expression import Id
from ....spirv.binary.offsets import neighbours
from ....spirv.binary.shared_memory import SharedMemory
from ...analysis.scans import Scan, fills_words, scan_of
from ...analysis.weights import HEAVY, MOVES, name_of
from ...ir.operation import Operation, Value
from ...ir.sizes import Dim
from ...kernels.elements import scalar_of, shape_of
from ...kernels.index import Index
from ...kernels.reductions import Join, Values, chosen, join_of, of_words, rounded, subgroup_of, words_of
from ...kernels.region import KernelRegion, Shader
from ...kernels.scalars.scalars import storage_bits

if TYPE_CHECKING:
    from ...kernels.scalars.lengths import KernelBuilder

_ALL: Final = 0xFFFFFFFF


class ScanTile:
    """Writes the code of a region's scan, a tile at a time.

    Args:
        region: a region for which ``scan_in`` is not None.
        invocations: the number of invocations that share a tile, a power of two.
        run: the number of an invocation's elements in a tile.
        rows: the number of rows in a workgroup, each with a tile.
    """

    def __init__(self, region: KernelRegion, invocations: int, run: int, rows: int = 1) -> None:
        match = scan_in(region)
        assert match is not None
        self.operation: Operation
        self.scan: Scan
        self.operation, self.scan = match
        self.invocations: int
        self.run: int
        self.invocations, self.run = invocations, run
        self.shader: Shader = Shader(region)
        self.shader.load_runs()
        self.builder: KernelBuilder = self.shader.builder
        self.subgroup: int = subgroup_of(region.target)
        self.local: Id = self.builder.built_in("LocalInvocationId")[0]
        self.lane: Id = self.local % invocations
        self.join: Join = join_towards_end(self.shader, self.operation, self.scan)
        self._size = invocations * rows
        self._memory: SharedMemory | None = None
        self._exchanges = 0

    def joined(self, unit: Id, parts: Sequence[Id]) -> tuple[list[Index], list[Values]]:
        """Returns the indices of a run by its number in a row, and its running totals, in order."""
        frame, scan = self.shader.frame, self.scan
        count = len(self.operation.results)
        indices = []
        for column in neighbours(unit, self.run):
            inner = [column, *[self.builder.word(0)] * len(scan.inner)]
            indices.append(element_index(self.shader, scan.shape, [*parts, *inner]))
        totals: list[Values] = []
        for index in indices[::-1] if scan.is_reverse else indices:
            value = [frame.at(operand, index) for operand in self.operation.operands[:count]]
            totals.append(self.join(totals[-1], value) if totals else value)
        return indices, totals

    def write(self, indices: Sequence[Index], joined: Sequence[Values], first: Values, is_inside: Id) -> None:
        """Writes the elements of a run, if it is inside the row; ``first`` is the prefix before it."""
        wholes = [self.join(first, total) for total in joined]
        totals = [first, *wholes[:-1]] if self.scan.is_exclusive else wholes
        frame = self.shader.frame
        for index, values in zip(indices[::-1] if self.scan.is_reverse else indices, totals, strict=True):
            frame.keep(self.operation.results[0], index, rounded(frame, self.operation, values))
        self.builder.when(is_inside, partial(store_results, self.shader, indices))

    def before(self, tile: Values, ahead: Values) -> Values:
        """Returns the prefix before a run, from the prefix before its tile and the total of the previous runs."""
        first = self.join(tile, ahead)
        return chosen(self.lane.equals(0), tile, first) if self.invocations > 1 else tile

    def across(self, own: Values) -> tuple[Values, Values]:
        """Returns the total of the previous invocations (none for the first), and the total of the tile."""
        count, local = self.invocations, self.local
        if count == 1:
            return own, own
        before = own
        distance = 1
        while distance < count:
            # In each block of twice the distance, the last invocation of the lower half holds the total before the
            # upper half.
            last = (local & (_ALL - (2 * distance - 1))) | (distance - 1)
            (other,) = self.of_others(before, [last], 2 * distance <= self.subgroup)
            is_upper = (local & distance).differs(0)
            before = chosen(is_upper, self.join(other, before), before)
            distance *= 2
        previous = self.lane.equals(0).select(local, local - 1)
        ahead, total = self.of_others(before, [previous, local | (count - 1)], count <= self.subgroup)
        return ahead, total

    def of_others(self, values: Values, indices: Sequence[Id], is_near: bool) -> list[Values]:
        """Returns the values of other invocations."""
        builder, scalars = self.builder, self.shader.scalars
        words = words_of(scalars, values)
        if is_near:
            lanes = [index & (self.subgroup - 1) for index in indices]
            exchanged = [[builder.shuffled(word, lane) for word in words] for lane in lanes]
            return [of_words(scalars, values, theirs) for theirs in exchanged]
        size = self._size
        memory = self._memory = self._memory or SharedMemory(builder, 2 * size * len(words))
        # Alternating halves of the memory: values shared before the last barrier may still be read.
        self._exchanges += 1
        first = size * len(words) * (self._exchanges % 2)
        for position, word in enumerate(words):
            memory.store(self.local * len(words) + (first + position), [word])
        builder.barrier()

        def shared(lane: Id) -> list[Id]:
            positions = range(first, first + len(words))
            return [memory.load(lane * len(words) + position)[0] for position in positions]

        return [of_words(scalars, values, shared(index)) for index in indices]


def scan_in(region: KernelRegion) -> tuple[Operation, Scan] | None:
    """Returns the scan of a region that otherwise uses the scan's elements one by one and in order; or None."""
    operations = region.block.operations[:-1]
    heavy = [candidate for candidate in operations if name_of(candidate) in HEAVY]
    scan = scan_of(heavy[0]) if len(heavy) == 1 else None
    if scan is None or region.is_update:
        return None
    count = math.prod(scan.shape)
    if any(value.tensor.count != count or not fills_words(scan, value) for value in region.results):
        return None
    in_order, elsewhere = set(region.results), set[Value]()
    for operation in reversed(operations):
        name = operation.name.removeprefix("stablehlo.")
        is_of_each = name == "reshape" or (name not in MOVES and operation not in heavy)
        is_in_order = is_of_each and in_order.issuperset(operation.results) and not operation.regions
        for value in operation.operands:
            (in_order if is_in_order and value.tensor.count == count else elsewhere).add(value)
    results = set(heavy[0].results)
    return (heavy[0], scan) if results <= in_order and not results & elsewhere else None


def join_towards_end(shader: Shader, operation: Operation, scan: Scan) -> Join:
    """Returns the function that joins elements in the order of a scan; the body takes them in memory order."""
    join = join_of(shader.frame, operation)
    return (lambda before, after: join(after, before)) if scan.is_reverse else join


def store_results(shader: Shader, indices: Sequence[Index]) -> None:
    """Writes neighbouring elements of all results."""
    for number, value in enumerate(shader.region.results):
        shape = shape_of(value)
        there = [
            index if index.shape == shape else Index(shader.builder, shape, linear=index.linear) for index in indices
        ]
        shader.store(number, [(index, shader.frame.at(value, index)) for index in there])


def element_index(shader: Shader, shape: Sequence[Dim], parts: Sequence[Id]) -> Index:
    """Returns an index with linear index and parts, equal to one that came through another shape."""
    return Index(shader.builder, shape, parts, Index(shader.builder, shape, parts).linear)


def narrowest(region: KernelRegion) -> int:
    """Returns the bits of the narrowest elements that a scan reads or writes."""
    count = region.results[0].tensor.count
    inputs = [value for value in region.block.arguments if value.tensor.count == count]
    return min(storage_bits(scalar_of(value)) for value in (*region.results, *inputs))


def stores_words(region: KernelRegion, run: int) -> bool:
    """Returns whether a run fills whole words of each result."""
    return all(run * storage_bits(scalar_of(value)) % 32 == 0 for value in region.results)
