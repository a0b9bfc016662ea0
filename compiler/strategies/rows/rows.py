"""Rows: reductions of the innermost dimensions with computations on the same rows, by workgroups that share a row.

Each invocation has some of a row's elements; consecutive elements belong to neighbouring invocations. It joins its own
elements, then the invocations join their results: in a subgroup by exchanging values, across subgroups through shared
memory. If an invocation has few elements, its code is unrolled for each of them. Then values that several reductions
and the result need are loaded and computed once, and stay in registers. Otherwise each reduction and the result loop
over the row again.

A body that is one associative and commutative operation joins elements in any order. Any other body joins them in
order: then an invocation has consecutive elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from ...analysis.weights import words_of
from ...ir.sizes import Size, is_multiple
from ...kernels.kernel import Kernel
from ...kernels.region import KernelRegion
from ...kernels.strategy import MAX_WORDS as STRATEGY_WORDS
from ...kernels.strategy import Strategy, elements_cost
from .rows_region import is_small, joins_in_order, most_width_of, spaces_in, stored_bits, width_of
from .rows_writer import STEPS, RowShare, RowsWriter

SHARES: Final = {"default": (16, 64), "cpu": (64, 256), "nvidia": (16, 256), "amd": (16, 256)}
"""Target numbers of elements of an invocation and of invocations of a workgroup, by the family of devices."""

UNKNOWN: Final = {"default": 64, "cpu": 8}
"""Invocations that share a row of call-dependent length, by the family of devices.

A CPU spills all values that live across a barrier, and runs branches that no invocation takes. There a row belongs to
one subgroup, which needs neither barriers nor branches.
"""

MAX_WORDS: Final = 1 << 14
"""The estimated most words of unrolled code: it compiles within half a second."""


_WORKGROUP: Final = 64
"""Invocations of a workgroup of several rows."""


@dataclass(frozen=True, slots=True)
class Rows(Strategy):
    """The schedule in which each workgroup computes one or several rows.

    Attributes:
        invocations: the number of invocations that share a row, a power of two.
        rows: the number of rows in a workgroup.
        width: the number of neighbouring elements of an invocation; for rows of call-dependent length, only in calls
            where the length is a multiple.
        unrolled: 1 if the code is unrolled for each element, 0 if it loops; for rows of call-dependent length, 1 if
            each iteration has ``STEPS``.
    """

    invocations: int
    rows: int
    width: int
    unrolled: int
    SWITCHES: ClassVar[frozenset[str]] = frozenset({"unrolled"})

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, Rows]]:
        """Yields one candidate: by the family's table, as far as the row's length allows."""
        rows_and_spaces = spaces_in(region)
        if rows_and_spaces is None or region.is_update:
            return
        shape, spaces = rows_and_spaces
        share, workgroup = SHARES.get(region.target.family, SHARES["default"])
        workgroup = min(workgroup, region.target.max_workgroup_invocations)
        width = most_width_of(region, shape, spaces)
        if is_small(shape):
            # One element at a time, or the elements of a word, in loops.
            width = max([32 // bits for bits in stored_bits(region, spaces) if bits < 32], default=1)
        words = sum(words_of(operation) for operation in region.block.operations)
        share = max(min(share, MAX_WORDS // words), width)
        invocations, length = 1, shape.length
        if isinstance(length, Size):
            invocations = min(UNKNOWN.get(region.target.family, UNKNOWN["default"]), workgroup)
            unrolled = 0
        else:
            while invocations < workgroup and length > invocations * share and _has(length, width, 2 * invocations):
                invocations *= 2
            if joins_in_order(region):
                while length // width % invocations:
                    invocations //= 2
            unrolled = int(not is_small(shape) and length // invocations * words <= 2 * MAX_WORDS)
        yield elements_cost(region) / 64, cls(invocations, max(_WORKGROUP // invocations, 1), width, unrolled)

    @classmethod
    def of_long(cls, region: KernelRegion) -> Rows | None:
        """Returns the strategy for rows of dynamic length that exceed the candidate's loops, or None for other regions.

        A workgroup has a row, of which each iteration covers many elements.
        """
        rows_and_spaces = spaces_in(region)
        if rows_and_spaces is None or not isinstance(rows_and_spaces[0].length, Size):
            return None
        _, workgroup = SHARES.get(region.target.family, SHARES["default"])
        invocations = min(workgroup, region.target.max_workgroup_invocations)
        made = cls(invocations, 1, width_of(region, *rows_and_spaces), 1)
        return made if made.takes(region) and made.words(region) <= STRATEGY_WORDS else None

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether the region is over rows, and each invocation has at least one element."""
        rows_and_spaces = spaces_in(region)
        if (
            rows_and_spaces is None
            or region.is_update
            or self.invocations & (self.invocations - 1)
            or not self.invocations
        ):
            return False
        shape, spaces = rows_and_spaces
        length, is_ordered = shape.length, joins_in_order(region)
        return (
            1 <= self.width <= most_width_of(region, shape, spaces)
            and (is_multiple(length, self.width) or (isinstance(length, Size) and self.width & (self.width - 1) == 0))
            and all(self.width * bits % 32 == 0 for bits in stored_bits(region, spaces))
            # The word counts of narrow results are quotients, which cannot be divided again.
            and (isinstance(rows := shape.row_count, int) or rows.symbols == rows.plain_symbols)
            and 1 <= self.invocations * self.rows <= region.target.max_workgroup_invocations
            and (
                not is_ordered
                if isinstance(length, Size)
                else _has(length, self.width, self.invocations)
                and not (is_ordered and length // self.width % self.invocations)
            )
        )

    def copies(self, region: KernelRegion) -> int:
        """Returns the number of an invocation's elements with code of their own, outside loops."""
        rows_and_spaces = spaces_in(region)
        length = rows_and_spaces[0].length if rows_and_spaces is not None and self.unrolled else 0
        if isinstance(length, Size):
            return self.width * STEPS
        return max(-(-length // self.invocations), self.width)

    def emit(self, region: KernelRegion) -> Kernel:
        return RowsWriter(RowShare(self.invocations, self.rows, self.width, self.unrolled), region).kernel()


def _has(length: int, width: int, invocations: int) -> bool:
    """Returns whether each invocation has elements of a row."""
    return length // width >= invocations
