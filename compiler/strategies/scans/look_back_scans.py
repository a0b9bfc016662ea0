"""Single-pass scans of long rows with decoupled look-back: each workgroup scans a tile and finds the prefix before it.

A workgroup takes the number of its tile from a counter, and publishes the tile's total. Then it searches for the
nearest previous tile with a published inclusive prefix, and joins to that prefix the totals of the tiles between, in
order. So results have the same bits in every run, even for floats, whichever tile it finds. If a tile has published
nothing after some looks, the workgroup computes it as well. So no workgroup waits for another, and every loop ends,
even on devices without forward-progress guarantees.

A published value lies in words of 16 bits, each with a bit pattern that marks it as present. Each word is written by
one atomic instruction and never changes, so that nothing depends on the order in which a device sees several words. The
words are the region's scratch memory, zeros at first (``passes/scans.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ....spirv.binary.expression import Id
from ....spirv.binary.grammar import Op
from ....spirv.binary.shared_memory import SharedMemory
from ...analysis.scans import LOOK_BACK_INVOCATIONS, LOOK_BACK_RUNS, look_back_words, value_words
from ...analysis.weights import words_of
from ...kernels.index import split
from ...kernels.kernel import Kernel
from ...kernels.reductions import Values, chosen, of_words
from ...kernels.reductions import words_of as words_of_values
from ...kernels.region import KernelRegion, group_count
from ...kernels.scalars.scalars import Scalar, as_id
from ...kernels.strategy import Strategy, elements_cost, number_of
from .row_scans import MAX_WORDS
from .scan_tiles import ScanTile, scan_in, stores_words

LOOKS: Final = 64
"""The number of looks at an unpublished tile before it is computed again."""

_HALF: Final = 16
_IS_THERE: Final = 1 << _HALF


@dataclass(frozen=True, slots=True)
class LookBackScans(Strategy):
    """The schedule in which each workgroup scans a tile of a row.

    Attributes:
        invocations: the number of invocations in a workgroup, which has a tile; a power of two.
        run: the number of an invocation's elements in a tile.
    """

    invocations: int
    run: int

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, LookBackScans]]:
        """Yields the longest run with short code, for regions that have memory for published values."""
        if region.scratch is None:
            return
        words = 2 * sum(words_of(operation) for operation in region.block.operations)
        fitting = [run for run in LOOK_BACK_RUNS if run * words <= 2 * MAX_WORDS and stores_words(region, run)]
        invocations = min(LOOK_BACK_INVOCATIONS, region.target.max_workgroup_invocations)
        yield elements_cost(region) / 128, cls(invocations, fitting[0] if fitting else LOOK_BACK_RUNS[-1])

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether the region scans rows of whole runs, and memory suffices for their tiles."""
        match = scan_in(region)
        if match is None or region.scratch is None or not match[1].is_of_rows or self.run < 1:
            return False
        operation, scan = match
        if not 1 < self.invocations <= region.target.max_workgroup_invocations or scan.length % self.run:
            return False
        tiles, size = self._tiles(scan.length), value_words(operation)
        return (
            self.invocations & (self.invocations - 1) == 0
            and look_back_words(operation, math.prod(scan.outer) * tiles) <= number_of(region.scratch.tensor.count)
            and 2 * tiles + -(-tiles // self.invocations) * (LOOKS + 1) <= region.target.max_loop_iterations
            and 4 * ((3 * size + 1) * self.invocations + 1) <= region.target.shared_memory
            and stores_words(region, self.run)
        )

    def _tiles(self, length: int) -> int:
        return -(-length // (self.run * self.invocations))

    def copies(self, region: KernelRegion) -> int:
        """Returns two per element of an invocation, as other workgroups' tiles have separate code."""
        return 2 * self.run

    def emit(self, region: KernelRegion) -> Kernel:
        tile = ScanTile(region, self.invocations, self.run)
        return _Writer(tile, region, self._tiles(tile.scan.length)).kernel()


class _Writer:
    def __init__(self, tile: ScanTile, region: KernelRegion, tiles: int) -> None:
        self._tile, self._region, self._tiles = tile, region, tiles
        self._builder, self._scalars = tile.builder, tile.shader.scalars
        self._scratch = tile.shader.scratch
        frame, operation = tile.shader.frame, tile.operation
        self._starts: Values = [frame.scalar(start) for start in operation.operands[len(operation.results) :]]
        self._words = len(words_of_values(self._scalars, self._starts))
        self._units = tile.scan.length // tile.run
        # The totals of the tiles of a window, and whether each total is known.
        self._window = SharedMemory(self._builder, tile.invocations * (self._words + 1))

    def kernel(self) -> Kernel:
        builder, tile = self._builder, self._tile
        count = math.prod(tile.scan.outer) * self._tiles
        groups = group_count(count, self._region.target)
        number = self._ticket(count)
        row, position = split(builder, number, (math.prod(tile.scan.outer), self._tiles))
        parts = split(builder, row, tile.scan.outer)
        unit = position * tile.invocations + tile.local
        is_inside = unit < self._units
        unit = is_inside.select(unit, builder.word(self._units - 1))
        indices, joined = tile.joined(self._from_end(unit), parts)
        ahead, total = tile.across(joined[-1])
        self._publish(number, 0, total)
        before = self._before(number, position, parts)
        self._publish(number, 1, tile.join(before, total))
        tile.write(indices, joined, tile.before(before, ahead), is_inside)
        return tile.shader.finish((tile.invocations, 1, 1), groups)

    def _from_end(self, unit: Id) -> Id:
        return (self._units - 1) - unit if self._tile.scan.is_reverse else unit

    def _ticket(self, count: int) -> Id:
        """Returns the number of this workgroup's tile; lower numbers were taken earlier."""
        builder, tile = self._builder, self._tile
        memory = SharedMemory(builder, 1)

        def take() -> None:
            memory.store(
                builder.word(0), [builder.atomic(Op.AtomicIAdd, self._scratch, builder.word(0), builder.word(1))]
            )

        builder.when(tile.local.equals(0), take)
        builder.barrier()
        (number,) = memory.load(builder.word(0))
        # Surplus workgroups compute the last tile again.
        return (number < count).select(number, builder.word(count - 1))

    def _slot(self, number: Id, which: int) -> Id:
        return (number * 2 + which) * (2 * self._words) + 1

    def _publish(self, number: Id, which: int, values: Values) -> None:
        """Publishes the total of a tile, or, if ``which`` is 1, its inclusive prefix."""
        builder = self._builder

        def write() -> None:
            first = self._slot(number, which)
            for position, word in enumerate(words_of_values(self._scalars, values)):
                for half, bits in enumerate((word & (_IS_THERE - 1), word >> _HALF)):
                    builder.atomic(Op.AtomicOr, self._scratch, first + (2 * position + half), bits | _IS_THERE)

        builder.when(self._tile.local.equals(0), write)

    def _published(self, number: Id, which: int) -> tuple[list[Id], Id]:
        """Returns the published words of a tile, and whether all of them are present."""
        builder, first = self._builder, self._slot(number, which)
        halves = [builder.load_atomic(self._scratch, first + part) for part in range(2 * self._words)]
        is_there = builder.boolean(True)
        for half in halves:
            is_there = is_there & (half & _IS_THERE).differs(0)
        pairs = zip(halves[::2], halves[1::2], strict=True)
        return [(low & (_IS_THERE - 1)) | (high << _HALF) for low, high in pairs], is_there

    def _before(self, number: Id, position: Id, parts: Sequence[Id]) -> Values:
        """Returns the prefix before a tile of a row, with the initial value."""
        builder, scalars, tile = self._builder, self._scalars, self._tile
        size, row = tile.invocations, number - position

        def back(state: Sequence[Scalar]) -> tuple[Sequence[Scalar], Id]:
            # The number of tiles before the window, and the number after the nearest tile with a known prefix.
            left = as_id(state[0])
            builder.barrier()
            is_tile = tile.local < left
            at = is_tile.select(left - 1 - tile.local, builder.word(0))
            _, is_there = self._published(row + at, 1)
            behind = (is_tile & is_there).select(at + 1, builder.word(0))
            distance = 1
            while distance < size:
                ((other,),) = tile.of_others([behind], [tile.local ^ distance], 2 * distance <= tile.subgroup)
                behind = (behind < as_id(other)).select(as_id(other), behind)
                distance *= 2
            left = (left < size).select(builder.word(0), left - size)
            return [left, behind], behind.equals(0) & left.differs(0)

        most = -(-self._tiles // size)
        _, begin = scalars.loop([position, builder.word(0)], back, most)
        known = as_id(begin).differs(0)
        words, _ = self._published(row + known.select(as_id(begin) - 1, builder.word(0)), 1)
        prefix = of_words(scalars, self._starts, words)
        first = chosen(known, prefix, self._starts)

        def forward(state: Sequence[Scalar]) -> tuple[Sequence[Scalar], Id]:
            begin, before = as_id(state[0]), state[1:]
            rest = position - begin
            count = (rest < size).select(rest, builder.word(size))
            self._look(row + begin, count)

            def step(state: Sequence[Scalar]) -> tuple[Sequence[Scalar], Id]:
                at, values = as_id(state[0]), state[1:]
                total = self._of_tile(row, begin + at, at, parts)
                return [at + 1, *chosen(at < count, tile.join(values, total), values)], at + 1 < count

            _, *after = scalars.loop([builder.word(0), *before], step, 0)
            return [begin + count, *after], begin + count < position

        # All windows together have at most one step for each tile.
        scalars.iterations += 2 * self._tiles
        return scalars.loop([begin, *first], forward, most * LOOKS)[1:]

    def _look(self, first: Id, count: Id) -> None:
        """Reads, in each invocation, the total of one tile of a window, and shares it."""
        builder, local = self._builder, self._tile.local
        number = first + (local < count).select(local, builder.word(0))

        def again(state: Sequence[Id]) -> tuple[Sequence[Id], Id]:
            words, is_there = self._published(number, 0)
            return [state[0] + 1, is_there.select(builder.word(1), 0), *words], ~is_there & (state[0] + 1 < LOOKS)

        zeros = [builder.word(0)] * (2 + self._words)
        _, is_there, *words = builder.loop(zeros, again)
        builder.barrier()
        self._window.store(local * (self._words + 1), [is_there])
        for position, word in enumerate(words):
            self._window.store(local * (self._words + 1) + (position + 1), [word])
        builder.barrier()

    def _of_tile(self, row: Id, tile_in_row: Id, at: Id, parts: Sequence[Id]) -> Values:
        """Returns the total of a tile, by its positions in the row and in the window; computes it if unknown."""
        builder, tile = self._builder, self._tile
        first = at * (self._words + 1)
        (is_there,) = self._window.load(first)
        words = [self._window.load(first + (position + 1))[0] for position in range(self._words)]

        def computed() -> Values:
            builder.barrier()
            unit = tile_in_row * tile.invocations + tile.local
            unit = (unit < self._units).select(unit, builder.word(self._units - 1))
            _, total = tile.across(tile.joined(self._from_end(unit), parts)[1][-1])
            builder.barrier()
            self._publish(row + tile_in_row, 0, total)
            return total

        return self._scalars.conditional(
            is_there.differs(0), lambda: of_words(self._scalars, self._starts, words), computed
        )
