"""Collective operations of a group of one process: what it would receive is its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...dialects.builder import Builder
from ...ir.copying import copy_operations
from ...ir.operation import Operation, Value, tensor_of

Values = Sequence[Value]


def _same(builder: Builder, operation: Operation) -> Values:
    return operation.operands


def _reduced(builder: Builder, operation: Operation) -> Values:
    """Reduces one value: converts it to the computation's type."""
    pairs = zip(operation.operands, operation.results, strict=True)
    return [builder.convert(value, tensor_of(result).scalar) for value, result in pairs]


def _moved(attribute: str) -> Callable[[Builder, Operation], Values]:
    """Replaces sends: a process that nobody sends to has zeros."""

    def rule(builder: Builder, operation: Operation) -> Values:
        if operation.integers(attribute):
            return operation.operands
        return [builder.like(value, 0) for value in operation.operands]

    return rule


def _async_start(builder: Builder, operation: Operation) -> Values:
    """Runs the body at once; a future is a tuple of its results."""
    body = operation.regions[0].block
    inside = dict(zip(body.arguments, operation.operands, strict=True))
    copy_operations(body.operations[:-1], builder.block, inside)
    results = [inside.get(value, value) for value in body.terminator.operands]
    return builder.append("tuple", results, [operation.results[0].type]).results


def _async_done(builder: Builder, operation: Operation) -> Values | None:
    owner = operation.operands[0].owner
    if isinstance(owner, Operation) and owner.name == "stablehlo.tuple":
        return owner.operands
    return None


DISTRIBUTION: Final[Mapping[str, Callable[[Builder, Operation], Values | None]]] = {
    "all_gather": _same,
    "all_reduce": _reduced,
    "all_to_all": _same,
    "async_done": _async_done,
    "async_start": _async_start,
    "collective_broadcast": _moved("replica_groups"),
    "collective_permute": _moved("source_target_pairs"),
    "collective_reduce": _reduced,
    "reduce_scatter": _reduced,
}
"""Rewrites of collectives for one process. Keys are operation names without the dialect's prefix."""
