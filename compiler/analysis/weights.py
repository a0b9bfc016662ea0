"""Estimates of an operation's code size in a kernel, from its name and type; they bound regions.

The unit is a word of SPIR-V, measured for one element and rounded up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..ir.operation import Operation
from ..ir.types import ScalarType, ShapedType

HEAVY: Final = frozenset(
    {"dot_general", "convolution", "reduce", "reduce_window", "scatter", "select_and_scatter", "sort", "fft"}
    | {"cholesky", "triangular_solve", "rng_bit_generator", "rng"}
)
"""Operations that loop for each element of their results."""

MOVES: Final = frozenset(
    {"broadcast_in_dim", "reshape", "transpose", "slice", "pad", "concatenate", "reverse", "gather", "dynamic_slice"}
    | {"dynamic_update_slice", "bitcast_convert"}
)
"""Operations that move elements."""

_CHEAP: Final = 16
_ROUNDED: Final = 160
"""The words of an operation on narrow floats with its conversions."""

_COMPLEX: Final = 10_000
"""The most words of a function of complex numbers."""

_FUNCTIONS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("cosine", "power", "sine", "tan"), 2900),
    "remainder": 2100,
    "atan2": 1200,
    **dict.fromkeys(("cbrt", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "tanh"), 1000),
    **dict.fromkeys(("rsqrt", "sqrt", "divide"), 100),
}
_INTEGERS: Final[Mapping[str, int]] = {"divide": 1500, "remainder": 1500, "power": 500}
_LOOPS: Final[Mapping[int, int]] = {32: 38, 64: 196}
"""Iterations of a float remainder, by the bits of its computation."""

_STRUCTURES: Final = frozenset(
    {"bitcast_convert", "concatenate", "convolution", "dot_general", "dynamic_slice", "dynamic_update_slice", "gather"}
    | {"map", "pad", "reduce", "reduce_window", "scatter", "select_and_scatter"}
)


def name_of(operation: Operation) -> str:
    """Returns an operation's name without the dialect."""
    return operation.name.removeprefix("stablehlo.")


def words_of(operation: Operation) -> int:
    """Estimates the words of an operation in a kernel for one element of its result; bodies count eight times,
    unrolled.
    """
    total = sum(8 * words_of(inner) for region in operation.regions for inner in region.block.operations)
    type = _element(operation)
    if type is None:
        return total
    name = name_of(operation)
    if type.kind == "complex":
        return total + (_COMPLEX if name in _FUNCTIONS else 4 * _CHEAP)
    if type.is_integer:
        return total + (_INTEGERS.get(name, _CHEAP) if name in _INTEGERS else _CHEAP)
    narrow = _ROUNDED if type.kind == "float" and type.bits < 32 else 0
    return total + _FUNCTIONS.get(name, _CHEAP) + narrow


def is_structure(operation: Operation) -> bool:
    """Returns whether an operation computes its operands within its own code, in branches or in a loop."""
    return name_of(operation) in _STRUCTURES


def iterations_of(operation: Operation) -> int:
    """Returns the iterations of an element-wise operation's loop; 0 if it has none."""
    type = _element(operation)
    name = name_of(operation)
    if type is None or name not in ("power", "remainder"):
        return 0
    if type.is_integer:
        return type.bits if name == "power" else 0
    return _LOOPS[64 if type.bits == 64 else 32] if name == "remainder" and type.kind == "float" else 0


def lanes_of(type: ShapedType) -> int:
    """Returns the number of elements of a result that an invocation computes: those of one word."""
    element = type.element
    if not isinstance(element, ScalarType):
        return 1
    return max(32 // max(bits_of(element), 1), 1)


def bits_of(type: ScalarType) -> int:
    """Returns the bits of an element in memory."""
    return 8 if type.kind == "bool" or (type.kind == "float" and type.bits < 8) else type.bits


def _element(operation: Operation) -> ScalarType | None:
    for value in (*operation.operands, *operation.results):
        type = value.type
        if isinstance(type, ShapedType) and isinstance(type.element, ScalarType):
            return type.element
    return None
