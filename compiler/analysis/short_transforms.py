"""Fourier transforms that a kernel computes row by row, and what it may compute with each element at once."""

from __future__ import annotations

from typing import Final

from ..ir.operation import Operation, Value
from .weights import HEAVY, MOVES

MAX_RADIX: Final = 16
"""Elements of a row at most."""


def follows_element_by_element(operation: Operation, value: Value) -> bool:
    """Whether an operation takes each element of an operand to one element of its result, and to no other."""
    name = operation.name.removeprefix("stablehlo.")
    if name in ("reshape", "transpose"):
        return True
    alone = len(operation.results) == 1 and not operation.regions and name not in HEAVY | MOVES
    return alone and all(each.tensor.shape == value.tensor.shape for each in (*operation.operands, *operation.results))
