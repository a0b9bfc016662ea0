"""Copies of operations, with replacements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from .operation import Block, Operation, Region, Value

Replace: TypeAlias = Callable[[Operation, Sequence[Value], Block], Sequence[Value] | None]
"""Returns the replacements of an operation's results, and appends operations to the block; None copies it."""


def copy_operations(
    operations: Sequence[Operation], into: Block, values: dict[Value, Value], replace: Replace | None = None
) -> None:
    """Appends copies of operations to a block.

    Args:
        operations: the operations in order.
        into: the block.
        values: the copies by original values; new copies are added. Values not listed are used unchanged.
        replace: a function that is called with each operation, including those in regions, and the copies of its
            operands.
    """
    for operation in operations:
        operands = [values.get(value, value) for value in operation.operands]
        results = replace(operation, operands, into) if replace is not None else None
        if results is None:
            copy = Operation(
                operation.name,
                operands,
                [value.type for value in operation.results],
                operation.attributes,
                [copy_region(region, values, replace) for region in operation.regions],
                location=operation.location,
            )
            results = into.append(copy).results
        values.update(zip(operation.results, results, strict=True))


def copy_region(region: Region, values: dict[Value, Value], replace: Replace | None = None) -> Region:
    copies = []
    for block in region.blocks:
        copy = Block([value.type for value in block.arguments])
        values.update(zip(block.arguments, copy.arguments, strict=True))
        copy_operations(block.operations, copy, values, replace)
        copies.append(copy)
    return Region(copies)
