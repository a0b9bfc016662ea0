"""A walk over a program in order that replaces operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ..ir.operation import Block, Operation, Value
from .builder import Builder

Rewrite: TypeAlias = Callable[[Builder, Operation], Sequence[Value] | None]
"""Returns the replacements of an operation's results, appending operations as needed; or None to keep the operation."""


def rewrite_block(block: Block, rewrite: Rewrite, replaced: dict[Value, Value] | None = None) -> None:
    """Replaces operations of a block and of the regions inside, innermost first.

    Args:
        block: the block, whose list of operations is rebuilt.
        rewrite: a function that is called with each operation, whose operands are already replaced.
        replaced: the replacements of values from around the block; new ones are added.
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
    """Replaces operations of a block and of the regions inside by the rule for their name, if there is one."""
    rewrite_block(block, lambda builder, operation: rules.get(operation.name, _kept)(builder, operation))


def _kept(builder: Builder, operation: Operation) -> None:
    return None
