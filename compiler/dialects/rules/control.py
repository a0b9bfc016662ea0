"""Constraints and result types of control flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...ir.operation import Operation
from ...ir.types import I1, I32, TensorType, Type
from .requirements import OperationError, Rule, compatible, tensors


def region_results(operation: Operation, index: int) -> list[Type]:
    """Returns the types of a region's results."""
    return [value.type for value in operation.regions[index].block.terminator.operands]


def _agree(types: Sequence[Type], wanted: Sequence[Type], noun: str) -> None:
    if len(types) != len(wanted) or not all(compatible(type, other) for type, other in zip(types, wanted, strict=True)):
        raise OperationError(f"{noun} of types ({_texts(wanted)}), got ({_texts(types)})")


def _texts(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types))


def _while(operation: Operation) -> Sequence[Type]:
    types = [value.type for value in operation.operands]
    for region in operation.regions:
        _agree([value.type for value in region.blocks[0].arguments], types, "arguments of both regions")
    condition = region_results(operation, 0)
    if len(condition) != 1 or condition[0] is not TensorType((), I1):
        raise OperationError(f"a condition that gives tensor<i1>, got ({_texts(condition)})")
    _agree(region_results(operation, 1), types, "a body that gives values")
    return types


def _if(operation: Operation) -> Sequence[Type]:
    (predicate,) = tensors(operation, 1)
    if predicate is not TensorType((), I1):
        raise OperationError(f"a predicate of type tensor<i1>, got {predicate}", 0)
    types = region_results(operation, 0)
    _agree(region_results(operation, 1), types, "a second branch that gives values")
    return types


def _case(operation: Operation) -> Sequence[Type]:
    (index,) = tensors(operation, 1)
    if index is not TensorType((), I32):
        raise OperationError(f"an index of type tensor<i32>, got {index}", 0)
    if not operation.regions:
        raise OperationError("at least one branch")
    types = region_results(operation, 0)
    for number in range(1, len(operation.regions)):
        _agree(region_results(operation, number), types, f"branch {number} to give values")
    return types


CONTROL: Final[Mapping[str, Rule]] = {
    "case": _case,
    "if": _if,
    "while": _while,
}
