"""Facts about regions of rows: the rows, the spaces of values, and the widths of accesses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...analysis.rows import RowShape, Space, spaces_of
from ...ir.operation import Value
from ...ir.sizes import Size, is_multiple
from ...kernels.elements import scalar_of
from ...kernels.reductions import is_commutative
from ...kernels.region import KernelRegion, access_bits
from ...kernels.scalars.scalars import storage_bits

_SMALL: Final = 1 << 10
"""With fewer elements, the dispatch dominates a kernel's time: wide accesses save 2 µs of 43 on lavapipe."""


def spaces_in(region: KernelRegion) -> tuple[RowShape, dict[Value, Space]] | None:
    """Returns the rows of a region, and the space in which each value is read; None if there are no rows."""
    operations = region.block.operations[-2::-1]
    if not operations or list(operations[0].results) != region.results:
        return None
    return spaces_of(operations)


def joins_in_order(region: KernelRegion) -> bool:
    """Returns whether a body joins elements only in order."""
    return not all(
        is_commutative(operation) for operation in region.block.operations if operation.name == "stablehlo.reduce"
    )


def is_small(shape: RowShape) -> bool:
    """Returns whether a region is so small that compile time matters more than speed."""
    size = shape.row_count * shape.length
    return isinstance(size, int) and size < _SMALL


def stored_bits(region: KernelRegion, spaces: Mapping[Value, Space]) -> list[int]:
    """Returns the bits of the elements of each result that consists of rows' elements."""
    return [storage_bits(scalar_of(value)) for value in region.results if spaces[value] is Space.ELEMENTS]


def width_of(region: KernelRegion, shape: RowShape, spaces: Mapping[Value, Space]) -> int:
    """Returns the number of neighbours that fill an access in every call."""
    width = most_width_of(region, shape, spaces)
    while not is_multiple(shape.length, width):
        width //= 2
    return width


def most_width_of(region: KernelRegion, shape: RowShape, spaces: Mapping[Value, Space]) -> int:
    """Returns the number of neighbours that fill an access if a call-dependent length is a multiple of that number."""
    inputs = [value for value in region.block.arguments if spaces.get(value) is Space.ELEMENTS]
    bits = min([storage_bits(scalar_of(value)) for value in inputs] + stored_bits(region, spaces), default=32)
    width = max(access_bits(region.target) // bits, 1)
    is_one = sum(length != 1 for length in shape.columns) == 1
    while not (is_multiple(shape.length, width) or (isinstance(shape.length, Size) and is_one)):
        width //= 2
    return width
