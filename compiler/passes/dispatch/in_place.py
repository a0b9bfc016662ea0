"""Inputs of a dispatch region that may share memory with its result.

An input may if each of its elements is read only to compute the element at the same index. A region that only updates a
slice of an input, or scatters to it, need not write the other elements.
"""

from __future__ import annotations

from typing import Final

from ...analysis.direct_scatters import is_direct
from ...analysis.weights import HEAVY, MOVES
from ...ir.operation import Block, Operation, Value
from ...ir.sizes import Dim
from ...ir.types import ShapedType

_FIRST: Final = frozenset({"dynamic_update_slice", "scatter"})
"""Operations that read their first operand at the result's index."""


def in_place_inputs(block: Block) -> tuple[int, ...]:
    """Returns positions of the inputs that may share memory with the result."""
    if len(block.terminator.operands) != 1:
        return ()
    result = block.terminator.operands[0].tensor
    aligned: set[Value] = set(block.terminator.operands)
    others: set[Value] = set()
    for operation in reversed(block.operations[:-1]):
        is_aligned = len(operation.results) == 1 and operation.results[0] in aligned
        for index, value in enumerate(operation.operands):
            (aligned if is_aligned and _reads_same_place(operation, index) else others).add(value)
        for inner in operation.walk():
            if inner is not operation:
                others.update(inner.operands)
        if others.intersection(operation.results):
            # It is computed at other indices, too, and reads its operands there.
            others.update(operation.operands)
    return tuple(
        index
        for index, value in enumerate(block.arguments)
        if value in aligned and value not in others and _is_laid_out_as(value.tensor, result)
    )


def updates_slice(block: Block) -> bool:
    """Whether a region only updates its first input, and uses it for nothing else."""
    root = block.terminator.operands[0].owner
    if not isinstance(root, Operation) or not (root.name == "stablehlo.dynamic_update_slice" or is_direct(root)):
        return False
    value, update = root.operands[0], root.operands[-1 if root.name == "stablehlo.scatter" else 1]
    used = [operand for operation in block.operations for inner in operation.walk() for operand in inner.operands]
    is_input = value.owner is block and value.index == 0 and used.count(value) == 1
    is_static = value.tensor.is_static and update.tensor.is_static
    return is_input and is_static and value.tensor.scalar.bits >= 32 and update.tensor.count != 0


def is_view(block: Block) -> bool:
    """Whether a region's result has the bytes of its only input, in another shape or type."""
    if len(block.arguments) != 1 or len(block.terminator.operands) != 1:
        return False
    value, result = block.arguments[0], block.terminator.operands[0]
    for operation in block.operations[:-1]:
        if operation.name not in ("stablehlo.reshape", "stablehlo.bitcast_convert"):
            return False
    return value.tensor.is_static and _bits(value) == _bits(result)


def _bits(value: Value) -> Dim:
    return value.tensor.count * max(value.tensor.scalar.bits, 8)


def _reads_same_place(operation: Operation, index: int) -> bool:
    name = operation.name.removeprefix("stablehlo.")
    shape = operation.results[0].tensor.shape
    if name in _FIRST:
        return index == 0
    is_pointwise = not operation.regions and name not in HEAVY and name not in MOVES
    return is_pointwise and operation.operands[index].tensor.shape == shape


def _is_laid_out_as(type: ShapedType, other: ShapedType) -> bool:
    is_alike = type.scalar is other.scalar or (type.scalar.bits == other.scalar.bits and type.scalar.bits >= 8)
    return is_alike and type.shape == other.shape and type.is_static and type.count != 0
