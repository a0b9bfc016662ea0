"""Fourier transforms that a kernel computes row by row, and the operations on single elements that may follow."""

from __future__ import annotations

from typing import Final

from ..ir.operation import Operation, Value
from .weights import HEAVY, MOVES

MAX_RADIX: Final = 16
"""The most elements of a row."""


def follows_element_by_element(operation: Operation, value: Value) -> bool:
    """Returns whether each element of an operand contributes to exactly one element of an operation's result."""
    name = operation.name.removeprefix("stablehlo.")
    if name in ("reshape", "transpose"):
        return True
    alone = len(operation.results) == 1 and not operation.regions and name not in HEAVY | MOVES
    return alone and all(
        operand.tensor.shape == value.tensor.shape for operand in (*operation.operands, *operation.results)
    )
