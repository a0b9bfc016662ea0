"""The operations that bodies of reductions consist of, and their identity elements."""

from __future__ import annotations

import math
from typing import Final

from ..ir.operation import Block
from ..ir.types import ScalarType

REPLACED: Final = "replaced"
"""The name for a body that returns its second argument."""


def joined_by(block: Block) -> str:
    """Returns the operation that joins a body's two arguments, ``REPLACED``, or an empty string."""
    *operations, last = block.operations
    if len(block.arguments) != 2 or block.arguments[0].type is not block.arguments[1].type:
        return ""
    if not operations and last.operands[0] is block.arguments[1]:
        return REPLACED
    if len(operations) != 1 or set(operations[0].operands) != set(block.arguments):
        return ""
    name = operations[0].name.removeprefix("stablehlo.")
    return name if name in _JOINING and last.operands[0] in operations[0].results else ""


def identity_of(name: str, element: ScalarType) -> complex | None:
    """Returns the identity element of an operation, or None."""
    if name not in _JOINING:
        return None
    kind, bits = element.kind, element.bits
    if kind == "bool":
        return name in ("and", "multiply", "minimum")
    if name == "multiply":
        return 1
    if name == "add":
        return -0.0 if kind == "float" else 0
    if kind == "float":
        # Some narrow floats have no infinities.
        return {"maximum": -math.inf, "minimum": math.inf}.get(name) if bits >= 16 else None
    if kind not in ("int", "uint"):
        return None
    low, high = (0, (1 << bits) - 1) if kind == "uint" else (-1 << (bits - 1), (1 << (bits - 1)) - 1)
    return {"and": high if kind == "uint" else -1, "maximum": low, "minimum": high, "or": 0, "xor": 0}[name]


_JOINING: Final = frozenset({"add", "and", "maximum", "minimum", "multiply", "or", "xor"})
