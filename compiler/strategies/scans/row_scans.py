"""Scans along the innermost dimension: some invocations process a row together, one tile of elements at a time.

Each invocation has a run of neighbours of a tile, which it joins one after another. Invocations then exchange the
totals of their runs: in a subgroup directly, across subgroups through shared memory. The loop carries the prefix before
the tile. The order of joins depends only on the parameters.

No workgroup waits for another: rows that are too long are split beforehand (``passes/decomposition/scans.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ....spirv.binary.expression import Id
from ...analysis.rows import MAX_LENGTH
from ...analysis.weights import words_of
from ...kernels.index import split
from ...kernels.kernel import Kernel
from ...kernels.reductions import Values, subgroup_of
from ...kernels.region import KernelRegion, access_bits, group_count
from ...kernels.scalars.scalars import Scalar
from ...kernels.strategy import Strategy, elements_cost
from .scan_tiles import ScanTile, narrowest, scan_in, stores_words

RUNS: Final = {"default": 8, "cpu": 32}
"""Target elements of a run, by the family of devices: GPUs load those of several invocations together."""

MAX_WORDS: Final = 1 << 14
"""The estimated most words of code written out for each element of a run."""

_WITHOUT_SUBGROUPS: Final = 32
"""Invocations of a row if values are exchanged through memory."""

_WORKGROUP: Final = 64
"""Invocations of a workgroup of several rows."""


@dataclass(frozen=True, slots=True)
class RowScans(Strategy):
    """The schedule in which each workgroup scans one or several rows.

    Attributes:
        invocations: the number of invocations that share a row, a power of two.
        rows: the number of rows in a workgroup.
        run: the number of an invocation's elements in a tile.
    """

    invocations: int
    rows: int
    run: int

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, RowScans]]:
        """Yields one candidate: by the family's table, as far as the row's length allows."""
        match = scan_in(region)
        if match is None or not match[1].is_of_rows:
            return
        length, target = match[1].length, region.target
        words = sum(words_of(operation) for operation in region.block.operations)
        most = min(RUNS.get(target.family, RUNS["default"]), max(MAX_WORDS // words, 4))
        width = access_bits(target) // narrowest(region)
        runs = [size for size in range(1, most + 1) if length % size == 0 and stores_words(region, size)]
        if not runs:
            return
        run = max(runs, key=lambda size: (math.gcd(size, width), size))
        subgroup = subgroup_of(target)
        invocations = subgroup if subgroup > 1 else _WITHOUT_SUBGROUPS
        while invocations > length // run:
            invocations //= 2
        yield elements_cost(region) / 64, cls(invocations, max(_WORKGROUP // invocations, 1), run)

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether the region scans rows, and each invocation has at least one run."""
        match = scan_in(region)
        return (
            match is not None
            and match[1].is_of_rows
            and self.run >= 1
            and 1 <= self.invocations * self.rows <= region.target.max_workgroup_invocations
            and self.invocations & (self.invocations - 1) == 0
            and match[1].length % self.run == 0
            and match[1].length <= MAX_LENGTH
            and match[1].length // self.run >= self.invocations
            and stores_words(region, self.run)
        )

    def copies(self, region: KernelRegion) -> int:
        return self.run

    def emit(self, region: KernelRegion) -> Kernel:
        tile = ScanTile(region, self.invocations, self.run, self.rows)
        shader, builder, scan = tile.shader, tile.builder, tile.scan
        count = math.prod(scan.outer)
        groups = group_count(-(-count // self.rows), region.target)
        row = shader.group(groups) * self.rows + tile.local // self.invocations
        covered = math.prod(groups) * self.rows
        is_there = row < count if covered > count else builder.boolean(True)
        row = is_there.select(row, builder.word(count - 1))
        parts = split(builder, row, scan.outer)
        units = scan.length // self.run
        tiles = -(-units // self.invocations)

        def step(number: Id, before: Values) -> list[Scalar]:
            if tiles > 1 and self.invocations > tile.subgroup:
                # Values shared for the previous tile may still be read.
                builder.barrier()
            position = number * self.invocations + tile.lane
            is_inside = is_there
            if units % self.invocations:
                is_inside = is_there & (position < units)
                position = (position < units).select(position, builder.word(units - 1))
            indices, joined = tile.joined((units - 1) - position if scan.is_reverse else position, parts)
            ahead, total = tile.across(joined[-1])
            tile.write(indices, joined, tile.before(before, ahead), is_inside)
            return list(tile.join(before, total))

        starts = [shader.frame.scalar(start) for start in tile.operation.operands[len(tile.operation.results) :]]
        shader.frame.fold(tile.operation, tiles, starts, step)
        return shader.finish((self.invocations * self.rows, 1, 1), groups)
