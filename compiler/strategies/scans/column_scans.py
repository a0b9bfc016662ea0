"""Scans along an outer dimension: an invocation processes the elements of some neighbouring columns in order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ....spirv.binary.expression import Id
from ....spirv.binary.offsets import neighbours
from ...analysis.rows import MAX_LENGTH
from ...analysis.weights import words_of
from ...kernels.elements import scalar_of
from ...kernels.index import split
from ...kernels.kernel import Kernel
from ...kernels.reductions import Values, rounded
from ...kernels.region import KernelRegion, Shader, access_bits
from ...kernels.scalars.scalars import Scalar, storage_bits
from ...kernels.strategy import Strategy, elements_cost
from .row_scans import MAX_WORDS
from .scan_tiles import element_index, join_towards_end, narrowest, scan_in, store_results

COLUMNS: Final = {"cpu": 32}
"""The target number of columns of an invocation, by the family of devices, if an access has fewer."""

WORKGROUP: Final = 32
"""Invocations of a workgroup, which share nothing."""


@dataclass(frozen=True, slots=True)
class ColumnScans(Strategy):
    """The schedule in which each invocation scans some columns.

    Attributes:
        columns: the number of neighbours that an invocation scans together.
        workgroup: the number of invocations in a workgroup.
    """

    columns: int
    workgroup: int

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, ColumnScans]]:
        """Yields one candidate: the columns of one access, as long as the code stays short."""
        match = scan_in(region)
        if match is None or match[1].is_of_rows:
            return
        inner = math.prod(match[1].inner)
        words = sum(words_of(operation) for operation in region.block.operations)
        target = region.target
        # Neighbours in a row lie on fewer pages than rows, as long as there are enough invocations for the whole
        # device.
        width = access_bits(target) // narrowest(region)
        invocations = target.compute_units * max(target.subgroup_size, 8) * 2
        many = min(inner * math.prod(match[1].outer) // invocations, COLUMNS.get(target.family, 0))
        most = min(max(width, many), max(MAX_WORDS // words, 4))
        divisors = [count for count in range(1, most + 1) if _divides(region, inner, count)]
        columns = max(divisors, key=lambda count: (math.gcd(count, width), count), default=0)
        if columns:
            yield elements_cost(region) / 64, cls(columns, WORKGROUP)

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether the region scans columns, with a suitable multiple of columns."""
        match = scan_in(region)
        return (
            match is not None
            and not match[1].is_of_rows
            and self.columns >= 1
            and 1 <= self.workgroup <= region.target.max_workgroup_invocations
            and match[1].length <= MAX_LENGTH // 2
            and _divides(region, math.prod(match[1].inner), self.columns)
        )

    def copies(self, region: KernelRegion) -> int:
        return self.columns

    def emit(self, region: KernelRegion) -> Kernel:
        match = scan_in(region)
        assert match is not None
        operation, scan = match
        shader = Shader(region)
        shader.load_runs()
        builder, frame = shader.builder, shader.frame
        join = join_towards_end(shader, operation, scan)
        units = math.prod(scan.inner) // self.columns
        invocations = math.prod(scan.outer) * units
        results = len(operation.results)
        starts = operation.operands[results:]

        def scanned(invocation: Id) -> None:
            outer = split(builder, invocation // units, scan.outer)
            unit = invocation % units

            def step(number: Id, before: Values) -> list[Scalar]:
                position = (scan.length - 1) - number if scan.is_reverse else number
                indices, after = [], list[Scalar]()
                for lane, column in enumerate(neighbours(unit, self.columns)):
                    inner = split(builder, column, scan.inner)
                    index = element_index(shader, scan.shape, [*outer, position, *inner])
                    own = before[lane * results : (lane + 1) * results]
                    joined = join(own, [frame.at(operand, index) for operand in operation.operands[:results]])
                    total = own if scan.is_exclusive else joined
                    frame.keep(operation.results[0], index, rounded(frame, operation, total))
                    indices.append(index)
                    after.extend(joined)
                store_results(shader, indices)
                return after

            frame.fold(operation, scan.length, [frame.scalar(start) for start in starts] * self.columns, step)

        return shader.over(invocations, self.workgroup, scanned)


def _divides(region: KernelRegion, inner: int, columns: int) -> bool:
    stored = [storage_bits(scalar_of(value)) for value in region.results]
    return inner % columns == 0 and all(columns * bits % 32 == 0 for bits in stored)
