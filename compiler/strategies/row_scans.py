"""Scans along the innermost dimension: some invocations go over a row together, a tile of elements at a time.

Each invocation has a run of neighbours of a tile, which it joins one after another. Invocations then give each other
what their runs come to: those of a subgroup by exchanging values, others through the workgroup's memory. What is
before a tile goes with the loop. The order in which elements are joined depends on the parameters alone.

No workgroup waits for another: a row too long for some invocations is made of shorter ones beforehand
(``passes/decomposition/scans.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from ...spirv.expression import Id
from ...spirv.offsets import neighbours
from ...spirv.shared_memory import SharedMemory
from ..codegen.elements import scalar_of, shape_of
from ..codegen.index import Index, split
from ..codegen.kernel import Kernel
from ..codegen.region import KernelRegion, Shader, access_bits, group_count
from ..codegen.scalars import Scalar, storage_bits
from ..ir.operation import Operation, Value
from ..ir.sizes import Dim
from ..passes.rows import MAX_LENGTH
from ..passes.scans import Scan, fills_words, scan_of
from ..passes.weights import HEAVY, MOVES, words_of
from .joining import Join, Values, chosen, join_of, of_words, rounded, subgroup_of
from .joining import words_of as words_of_values
from .strategy import Strategy, elements_cost

RUNS: Final = {"default": 8, "cpu": 32}
"""Elements of a run that are aimed at, by the family of devices: GPUs load what several invocations have together."""

MAX_WORDS: Final = 1 << 14
"""Words of code that is written out for each element of a run, about."""

_WITHOUT_SUBGROUPS: Final = 32
"""Invocations of a row where they exchange values through memory."""

_WORKGROUP: Final = 64
"""Invocations of a workgroup of several rows."""


@dataclass(frozen=True, slots=True)
class RowScans(Strategy):
    """Rows of a workgroup.

    Attributes:
        invocations: that share a row, a power of two.
        rows: of a workgroup.
        run: elements that an invocation has of a tile.
    """

    invocations: int
    rows: int
    run: int
    NAME: ClassVar[str] = "row_scans"

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, RowScans]]:
        """One: by the family's table, as far as the row's length allows."""
        found = scan_in(region)
        if found is None or not found[1].is_of_rows:
            return
        length, target = found[1].length, region.target
        words = sum(words_of(each) for each in region.block.operations)
        most = min(RUNS.get(target.family, RUNS["default"]), max(MAX_WORDS // words, 4))
        width = access_bits(target) // narrowest(region)
        runs = [each for each in range(1, most + 1) if length % each == 0 and _stores_words(region, each)]
        if not runs:
            return
        run = max(runs, key=lambda each: (math.gcd(each, width), each))
        subgroup = subgroup_of(target)
        invocations = subgroup if subgroup > 1 else _WITHOUT_SUBGROUPS
        while invocations > length // run:
            invocations //= 2
        yield elements_cost(region) / 64, cls(invocations, max(_WORKGROUP // invocations, 1), run)

    def takes(self, region: KernelRegion) -> bool:
        """Whether the region scans rows, of which each invocation has a run at least."""
        found = scan_in(region)
        return (
            found is not None
            and found[1].is_of_rows
            and self.run >= 1
            and 1 <= self.invocations * self.rows <= region.target.max_workgroup_invocations
            and self.invocations & (self.invocations - 1) == 0
            and found[1].length % self.run == 0
            and found[1].length <= MAX_LENGTH
            and found[1].length // self.run >= self.invocations
            and _stores_words(region, self.run)
        )

    def copies(self, region: KernelRegion) -> int:
        """One for each element of an invocation."""
        return self.run

    def emit(self, region: KernelRegion) -> Kernel:
        """The kernel of a region that these parameters take."""
        return _Writer(self, region).kernel()


class _Writer:
    def __init__(self, parameters: RowScans, region: KernelRegion) -> None:
        found = scan_in(region)
        assert found is not None
        self._region = region
        self._operation, self._scan = found
        self._share = parameters
        self._shader = Shader(region)
        self._shader.load_runs()
        self._builder = self._shader.builder
        self._subgroup = subgroup_of(region.target)
        self._local = self._builder.built_in("LocalInvocationId")[0]
        self._place = self._local % parameters.invocations
        self._join = join_towards_end(self._shader, self._operation, self._scan)
        self._memory: SharedMemory | None = None
        self._exchanges = 0

    def kernel(self) -> Kernel:
        builder, share, scan = self._builder, self._share, self._scan
        count = math.prod(scan.outer)
        groups = group_count(-(-count // share.rows), self._region.target)
        row = self._shader.group(groups) * share.rows + self._local // share.invocations
        covered = math.prod(groups) * share.rows
        is_there = row < count if covered > count else builder.boolean(True)
        row = is_there.select(row, builder.word(count - 1))
        parts = split(builder, row, scan.outer)
        units = scan.length // share.run
        tiles = -(-units // share.invocations)
        starts = self._operation.operands[len(self._operation.results) :]

        def tile(number: Id, before: Values) -> list[Scalar]:
            if tiles > 1 and share.invocations > self._subgroup:
                # What was shared of the tile before may still be read.
                builder.barrier()
            place = number * share.invocations + self._place
            is_inside = is_there
            if units % share.invocations:
                is_inside = is_there & (place < units)
                place = (place < units).select(place, builder.word(units - 1))
            return self._tile((units - 1) - place if scan.is_reverse else place, parts, before, is_inside)

        frame = self._shader.frame
        frame.fold(self._operation, tiles, [frame.scalar(start) for start in starts], tile)
        return self._shader.finish((share.invocations * share.rows, 1, 1), groups)

    def _tile(self, unit: Id, parts: Sequence[Id], before: Values, is_inside: Id) -> list[Scalar]:
        """Writes a run of a tile; gives what is before the next tile."""
        frame, share, scan = self._shader.frame, self._share, self._scan
        count = len(self._operation.results)
        indices = []
        for column in neighbours(unit, share.run):
            inner = [column, *[self._builder.word(0)] * len(scan.inner)]
            indices.append(place_of(self._shader, scan.shape, [*parts, *inner]))
        order = indices[::-1] if scan.is_reverse else indices
        joined: list[Values] = []
        for index in order:
            value = [frame.at(each, index) for each in self._operation.operands[:count]]
            joined.append(self._join(joined[-1], value) if joined else value)
        ahead, total = self._across(joined[-1])
        first = self._join(before, ahead)
        first = chosen(self._place.equals(0), before, first) if share.invocations > 1 else before
        wholes = [self._join(first, each) for each in joined]
        found = [first, *wholes[:-1]] if scan.is_exclusive else wholes
        for index, values in zip(order, found, strict=True):
            frame.keep(self._operation.results[0], index, rounded(frame, self._operation, values))
        self._builder.when(is_inside, partial(store_results, self._shader, indices))
        return list(self._join(before, total))

    def _across(self, own: Values) -> tuple[Values, Values]:
        """What the invocations before this one have together, none for the first, and what all of a row have."""
        count, local = self._share.invocations, self._local
        if count == 1:
            return own, own
        found = own
        distance = 1
        while distance < count:
            # The last of the lower half of each block of twice the distance has what comes before the upper half.
            last = (local & (_ALL - (2 * distance - 1))) | (distance - 1)
            (other,) = self._of_others(found, [last], 2 * distance <= self._subgroup)
            is_upper = (local & distance).differs(0)
            found = chosen(is_upper, self._join(other, found), found)
            distance *= 2
        previous = self._place.equals(0).select(local, local - 1)
        ahead, total = self._of_others(found, [previous, local | (count - 1)], count <= self._subgroup)
        return ahead, total

    def _of_others(self, values: Values, places: Sequence[Id], is_near: bool) -> list[Values]:
        """What other invocations have for values."""
        builder, scalars = self._builder, self._shader.scalars
        words = words_of_values(scalars, values)
        if is_near:
            lanes = [place & (self._subgroup - 1) for place in places]
            given = [[builder.shuffled(word, lane) for word in words] for lane in lanes]
            return [of_words(scalars, values, each) for each in given]
        size = self._share.invocations * self._share.rows
        memory = self._memory = self._memory or SharedMemory(builder, 2 * size * len(words))
        # One half of the memory after the other: what was shared before the last barrier may still be read.
        self._exchanges += 1
        first = size * len(words) * (self._exchanges % 2)
        for position, word in enumerate(words):
            memory.store(self._local * len(words) + (first + position), [word])
        builder.barrier()

        def shared(place: Id) -> list[Id]:
            positions = range(first, first + len(words))
            return [memory.load(place * len(words) + position)[0] for position in positions]

        return [of_words(scalars, values, shared(place)) for place in places]


_ALL: Final = 0xFFFFFFFF


def scan_in(region: KernelRegion) -> tuple[Operation, Scan] | None:
    """The scan of a region that computes one, and else only what needs its elements one by one, in their order."""
    operations = region.block.operations[:-1]
    heavy = [each for each in operations if each.name.removeprefix("stablehlo.") in HEAVY]
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
    """What joins elements in the order of a scan; the body takes them in that of memory."""
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


def place_of(shader: Shader, shape: Sequence[Dim], parts: Sequence[Id]) -> Index:
    """A place by its number and its parts, found again where it has come through another shape."""
    return Index(shader.builder, shape, parts, Index(shader.builder, shape, parts).linear)


def narrowest(region: KernelRegion) -> int:
    """Bits of the narrowest elements that a scan reads or writes."""
    count = region.results[0].tensor.count
    given = [value for value in region.block.arguments if value.tensor.count == count]
    return min(storage_bits(scalar_of(value)) for value in (*region.results, *given))


def _stores_words(region: KernelRegion, run: int) -> bool:
    return all(run * storage_bits(scalar_of(value)) % 32 == 0 for value in region.results)
