"""Walking a program in order and building what takes its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ..ir.operation import Block, Operation, Value
from .builder import Builder

Rewrite: TypeAlias = Callable[[Builder, Operation], Sequence[Value] | None]
"""Gives the values that stand for an operation's results, appending what it needs; or None to keep the operation."""


def rewrite_block(block: Block, rewrite: Rewrite, replaced: dict[Value, Value] | None = None) -> None:
    """Replaces operations of a block and of the regions inside, innermost first.

    Args:
        block: whose list of operations is made anew.
        rewrite: called for each operation, whose operands are the new ones.
        replaced: values by those that they stand for, from around the block; grows.
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
    """Replaces operations of a block and of the regions inside by the rule of their name, where there is one."""
    rewrite_block(block, lambda builder, operation: rules.get(operation.name, _kept)(builder, operation))


def _kept(builder: Builder, operation: Operation) -> None:
    return None
