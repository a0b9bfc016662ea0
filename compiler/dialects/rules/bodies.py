"""What operations require of the regions that combine elements: reductions, windows, scatters, sorts."""

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
"""How many regions an operation has, by its name without the dialect; none where it is not here."""


def is_promotable(narrow: Type, wide: Type) -> bool:
    """Whether elements of one type may be combined in another: the same kind with as many bits or more."""
    if narrow is wide:
        return True
    if not isinstance(narrow, ScalarType) or not isinstance(wide, ScalarType):
        return False
    return narrow.kind == wide.kind and narrow.bits <= wide.bits


def combined(operation: Operation, inputs: Sequence[TensorType], starts: Sequence[TensorType]) -> list[Type]:
    """Element types of the results of a region that combines two of each input, the last one of the operation's.

    Args:
        operation: whose last region combines.
        inputs: types of what is combined, one for each result.
        starts: types of what is combined with them: initial values, or updates.

    Raises:
        OperationError: the region does not take two scalars for each input, or gives other types.
    """
    block = operation.regions[-1].block
    count = len(inputs)
    taken = [value.type for value in block.arguments]
    given = [value.type for value in block.terminator.operands]
    if len(taken) != 2 * count or len(given) != count:
        raise OperationError(
            f"a region of {2 * count} arguments that gives {count} values, got {len(taken)} and {len(given)}"
        )
    for number, type in enumerate(given):
        if not isinstance(type, TensorType) or type.rank:
            raise OperationError(f"a region that gives tensors without dimensions, got {type}")
        for source in (inputs[number], starts[number]):
            if not is_promotable(source.element, type.element):
                raise OperationError(f"a region that gives {source.element} or wider, got {type}")
    for number, type in enumerate(taken):
        if not compatible(type, given[number % count]):
            raise OperationError(f"a region that takes ({types_text([*given, *given])}), got ({types_text(taken)})")
    return [type.element for type in given if isinstance(type, TensorType)]


def selected(operation: Operation, element: Type) -> None:
    """Holds that the first region takes two elements and says whether to take the first.

    Raises:
        OperationError: it does not.
    """
    block = operation.regions[0].block
    wanted = [TensorType((), element)] * 2
    if [value.type for value in block.arguments] != wanted:
        raise OperationError(f"a first region that takes ({types_text(wanted)})")
    if [value.type for value in block.terminator.operands] != [TensorType((), I1)]:
        raise OperationError("a first region that gives tensor<i1>")


def mapped(operation: Operation, inputs: Sequence[TensorType]) -> Type:
    """The element type of what a region makes of an element of each input.

    Raises:
        OperationError: the region takes or gives other types.
    """
    block = operation.regions[0].block
    wanted = [TensorType((), type.element) for type in inputs]
    if [value.type for value in block.arguments] != wanted:
        raise OperationError(f"a region that takes ({types_text(wanted)})")
    given = [value.type for value in block.terminator.operands]
    if len(given) != 1 or not isinstance(given[0], TensorType) or given[0].rank:
        raise OperationError(f"a region that gives one tensor without dimensions, got ({types_text(given)})")
    return given[0].element
