"""Constraints and result types of tokens and of operations between processes, for a single process.

Each group of processes contains only that process, or there is no group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...ir.attributes import DenseElements, RawAttr, StructAttr
from ...ir.operation import Operation
from ...ir.types import DialectType, ScalarType, TensorType, Type, types_text
from .bodies import combined
from .requirements import OperationError, Rule, axes, operands, tensors

_TOKEN: Final = DialectType("!stablehlo.token")


def _alone(operation: Operation, name: str = "replica_groups") -> None:
    """Checks that groups, or pairs, contain no process but the first."""
    for number in operation.integers(name):
        if number > 0:
            raise OperationError(
                f"a program of one process, got {name} with process {number}: modules run on one device"
            )
    value = operation.attributes.get(name)
    if isinstance(value, RawAttr | StructAttr):
        raise OperationError(f"{name} as numbers of processes, got {value}")
    if isinstance(value, DenseElements) and value.type.rank != 2:
        raise OperationError(f"{name} as rows of processes, got {value.type}")
    if operation.flag("use_global_device_ids") and isinstance(value, DenseElements) and not value.array.size:
        raise OperationError(f"a process in {name} where use_global_device_ids is there")


def _gathered(attribute: str) -> Rule:
    def rule(operation: Operation) -> Sequence[Type]:
        types = tensors(operation)
        _alone(operation)
        for type in types:
            axes([operation.integer(attribute, -1)], type.rank, attribute)
        return types

    return rule


def _all_to_all(operation: Operation) -> Sequence[Type]:
    if operation.integer("split_count", -1) != 1:
        raise OperationError(f"split_count to be 1 in a program of one process, got {operation.integer('split_count')}")
    return _gathered("concat_dimension")(operation)


def _reduced(operation: Operation) -> Sequence[Type]:
    types = tensors(operation)
    _alone(operation)
    elements = combined_of_each(operation, types)
    return [TensorType(type.shape, element) for type, element in zip(types, elements, strict=True)]


def combined_of_each(operation: Operation, types: Sequence[TensorType]) -> list[Type]:
    """Returns the result types of a region that combines two scalars, applied to each operand."""
    return [element for type in types for element in combined(operation, [type], [type])]


def _moved(attribute: str) -> Rule:
    def rule(operation: Operation) -> Sequence[Type]:
        types = tensors(operation)
        _alone(operation, attribute)
        return types

    return rule


_STARTED: Final = ("all_", "collective_", "reduce_scatter", "slice", "dynamic_slice", "dynamic_update_slice")


def _async_start(operation: Operation) -> Sequence[Type]:
    results = [value.type for value in operation.results]
    if len(results) != 1 or not isinstance(results[0], DialectType):
        raise OperationError(f"one result, a future, got ({types_text(results)})")
    body = operation.regions[0].block
    if not any(started.name.removeprefix("stablehlo.").startswith(_STARTED) for started in body.operations):
        raise OperationError("a region with an operation between processes, or with a slice")
    taken = [value.type for value in operation.operands]
    if [value.type for value in body.arguments] != taken:
        raise OperationError(f"a region that takes ({types_text(taken)})")
    return results


def _async_done(operation: Operation) -> Sequence[Type]:
    owner = operation.operands[0].owner if len(operation.operands) == 1 else None
    if not isinstance(owner, Operation) or owner.name != "stablehlo.async_start":
        raise OperationError("the future of a stablehlo.async_start")
    return [value.type for value in owner.regions[0].block.terminator.operands]


def _refused(why: str) -> Rule:
    def rule(operation: Operation) -> Sequence[Type]:
        raise OperationError(f"no communication with another process or a host program: {why}")

    return rule


def _after_all(operation: Operation) -> Sequence[Type]:
    if any(value.type is not _TOKEN for value in operation.operands):
        raise OperationError("operands that are tokens")
    return [_TOKEN]


def _place(operation: Operation) -> Sequence[Type]:
    operands(operation, 0)
    return [TensorType((), ScalarType("ui32"))]


DISTRIBUTION: Final[Mapping[str, Rule]] = {
    "after_all": _after_all,
    "all_gather": _gathered("all_gather_dim"),
    "all_reduce": _reduced,
    "all_to_all": _all_to_all,
    "async_done": _async_done,
    "async_start": _async_start,
    "collective_broadcast": _moved("replica_groups"),
    "collective_permute": _moved("source_target_pairs"),
    "collective_reduce": _reduced,
    "create_token": _after_all,
    "infeed": _refused("pass what it reads as an argument"),
    "outfeed": _refused("return what it writes as a result"),
    "partition_id": _place,
    "recv": _refused("pass what it receives as an argument"),
    "reduce_scatter": _reduced,
    "replica_id": _place,
    "send": _refused("return what it sends as a result"),
}
