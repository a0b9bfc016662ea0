"""Which scatters go forward: an invocation takes an update to its place, where others look for theirs.

That needs a result that holds the operand already, and an order of updates that does not matter: where no two go to one
place, or where they are joined by an atomic instruction of integers, whose results are the same in every order. Where
an update is a long row, an invocation may take an element of each, one after another; the attribute ``in_order`` says
so.
"""

from __future__ import annotations

import math
from typing import Final

from ..ir.attributes import StructAttr, type_shape
from ..ir.operation import Operation
from .identities import joined_by

IN_ORDER: Final = "in_order"
"""The attribute of scatters whose updates come one after another."""

MAX_LOOKS: Final = 1 << 14
"""So many elements times updates look backwards: the scatter is part of a larger region then."""

ATOMIC: Final = frozenset({"add", "and", "maximum", "minimum", "or", "xor"})
ATOMIC_IN_HALVES: Final = frozenset({"add", "and", "or", "xor"})
"""Of 64-bit integers: a sum is that of the low words and that of the high ones with the carry."""


def is_direct(operation: Operation) -> bool:
    """Whether a scatter goes forward."""
    if operation.name != "stablehlo.scatter" or len(operation.results) != 1:
        return False
    value = operation.operands[0]
    types = [each.tensor for each in (*operation.operands, operation.results[0])]
    if not all(type.is_static and type.count for type in types) or value in operation.operands[1:]:
        return False
    element = value.tensor.scalar
    if element.bits < 32 or _looks(operation) <= MAX_LOOKS:
        return False
    if operation.flag("unique_indices") or (operation.flag(IN_ORDER) and _are_rows(operation)):
        return True
    joined = joined_by(operation.regions[0].block)
    return element.kind in ("int", "uint") and joined in (ATOMIC if element.bits == 32 else ATOMIC_IN_HALVES)


def _are_rows(operation: Operation) -> bool:
    """Whether elements at different places of their updates never meet: no update is moved along its own dimensions."""
    numbers = operation.attributes["scatter_dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    apart = {*numbers.ints("inserted_window_dims"), *numbers.ints("input_batching_dims")}
    kept = [axis for axis in range(operation.operands[0].tensor.rank) if axis not in apart]
    lengths = zip(kept, numbers.ints("update_window_dims"), strict=True)
    shape, mapped = type_shape(operation.operands[-1].tensor), numbers.ints("scatter_dims_to_operand_dims")
    return all(shape[update] == 1 for axis, update in lengths if axis in mapped)


def _looks(operation: Operation) -> int:
    """Elements times updates."""
    numbers = operation.attributes["scatter_dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    value, _, updates = (type_shape(each.tensor) for each in operation.operands)
    window = numbers.ints("update_window_dims")
    return math.prod(value) * math.prod(length for axis, length in enumerate(updates) if axis not in window)
