"""A walk over a program in order that replaces operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ..ir.operation import Block, Operation, Value
from .builder import Builder

Rewrite: TypeAlias = Callable[[Builder, Operation], Sequence[Value] | None]
"""Returns the replacements of an operation's results, and appends operations as needed; None keeps the operation."""


def rewrite_block(block: Block, rewrite: Rewrite, replaced: dict[Value, Value] | None = None) -> None:
    """Replaces operations of a block and its nested regions, innermost first.

    Args:
        block: the block, whose list of operations is rebuilt.
        rewrite: a function that is called with each operation, whose operands are already replaced.
        replaced: the replacements of values from outside the block; new replacements are added.
    """
    replaced = {} if replaced is None else replaced
    operations, block.operations = block.operations, []
    builder = Builder(block)
    for operation in operations:
        operation.operands = [replaced.get(value, value) for value in operation.operands]
        for region in operation.regions:
            for inner in region.blocks:
                rewrite_block(inner, rewrite, replaced)
        builder.location = operation.location
        values = rewrite(builder, operation)
        if values is None:
            block.append(operation)
        else:
            replaced.update(zip(operation.results, values, strict=True))


def rewrite_named(block: Block, rules: Mapping[str, Rewrite]) -> None:
    """Replaces operations of a block and its nested regions, by the rules for their names."""
    rewrite_block(block, lambda builder, operation: rules.get(operation.name, _kept)(builder, operation))


def _kept(builder: Builder, operation: Operation) -> None:
    return None
