"""Constraints on the regions that combine elements: reductions, windows, scatters, sorts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...ir.operation import Operation
from ...ir.types import I1, ScalarType, TensorType, Type, types_text
from .requirements import OperationError, compatible

REGIONS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("all_reduce", "async_start", "collective_reduce", "reduce_scatter"), 1),
    **dict.fromkeys(("map", "reduce", "reduce_window", "scan", "scatter", "sort"), 1),
    **dict.fromkeys(("if", "select_and_scatter", "while"), 2),
}
"""The number of regions of an operation, by its name without the dialect; 0 for all others."""


def is_promotable(narrow: Type, wide: Type) -> bool:
    """Returns whether elements may be combined in a wider type: of the same kind, with no fewer bits."""
    if narrow is wide:
        return True
    if not isinstance(narrow, ScalarType) or not isinstance(wide, ScalarType):
        return False
    return narrow.kind == wide.kind and narrow.bits <= wide.bits


def combined(operation: Operation, inputs: Sequence[TensorType], starts: Sequence[TensorType]) -> list[Type]:
    """Checks the last region of an operation, which combines pairs of elements; returns the element types of its
    results.

    Args:
        operation: the operation.
        inputs: the types of the elements to combine, one for each result.
        starts: the types of the elements to combine them with: initial values, or updates.

    Raises:
        OperationError: the region does not take two scalars for each input, or returns other types.
    """
    block = operation.regions[-1].block
    count = len(inputs)
    taken = [value.type for value in block.arguments]
    returned = [value.type for value in block.terminator.operands]
    if len(taken) != 2 * count or len(returned) != count:
        raise OperationError(
            f"a region of {2 * count} arguments that gives {count} values, got {len(taken)} and {len(returned)}"
        )
    for number, type in enumerate(returned):
        if not isinstance(type, TensorType) or type.rank:
            raise OperationError(f"a region that gives tensors without dimensions, got {type}")
        for source in (inputs[number], starts[number]):
            if not is_promotable(source.element, type.element):
                raise OperationError(f"a region that gives {source.element} or wider, got {type}")
    for number, type in enumerate(taken):
        if not compatible(type, returned[number % count]):
            raise OperationError(
                f"a region that takes ({types_text([*returned, *returned])}), got ({types_text(taken)})"
            )
    return [type.element for type in returned if isinstance(type, TensorType)]


def selected(operation: Operation, element: Type) -> None:
    """Checks that the first region takes two elements and returns which to select.

    Raises:
        OperationError: the region has another form.
    """
    block = operation.regions[0].block
    wanted = [TensorType((), element)] * 2
    if [value.type for value in block.arguments] != wanted:
        raise OperationError(f"a first region that takes ({types_text(wanted)})")
    if [value.type for value in block.terminator.operands] != [TensorType((), I1)]:
        raise OperationError("a first region that gives tensor<i1>")


def mapped(operation: Operation, inputs: Sequence[TensorType]) -> Type:
    """Checks a region that maps an element of each input; returns the element type of its result.

    Raises:
        OperationError: the region takes or returns other types.
    """
    block = operation.regions[0].block
    wanted = [TensorType((), type.element) for type in inputs]
    if [value.type for value in block.arguments] != wanted:
        raise OperationError(f"a region that takes ({types_text(wanted)})")
    returned = [value.type for value in block.terminator.operands]
    if len(returned) != 1 or not isinstance(returned[0], TensorType) or returned[0].rank:
        raise OperationError(f"a region that gives one tensor without dimensions, got ({types_text(returned)})")
    return returned[0].element
