"""Types and names of variables in C."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from ...status import UnimplementedError
from ...vm.translation.expressions import Expression, Literal, Name, call
from ...vm.types.numerics import bitcast_f32_i32, bitcast_f64_i64
from ..program.ir import Program, Variable

KINDS: Final = {"i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t", "f32": "float", "f64": "double"}
"""C types of numbers, by the names in operations."""

_NUMBERS: Final = {"i": "int32_t", "I": "int64_t", "f": "float", "F": "double"}
_REFERENCES: Final = {
    "hal.buffer": "buffer",
    "hal.buffer_view": "view",
    "hal.command_buffer": "commands",
    "hal.executable": "executable",
    "hal.fence": "fence",
    "hal.file": "file",
    "vm.buffer": "bytes",
}
_WORDS: Final = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    bool true false p status done main errno stdin stdout stderr result data
"""
KEYWORDS: Final = frozenset(_WORDS.split())
"""Names that variables must not have."""


def c_type(variable: Variable) -> str | None:
    """Returns the C type of a variable; for references the pointee type; ``None`` if it needs no variable in C.

    Raises:
        UnimplementedError: the type has no C form; the message names it.
    """
    if variable.kind != "r":
        return _NUMBERS[variable.kind]
    kind = variable.type
    if kind in ("hal.device", "hal.allocator"):
        return None
    if kind is None:
        return "object"
    if kind.startswith("vm.list"):
        return "list"
    if kind not in _REFERENCES:
        raise UnimplementedError(f"the program holds a !{kind}, which has no form in C; run it with pumice run")
    return _REFERENCES[kind]


def pointer(variable: Variable) -> str:
    """Returns the C type of a variable in a declaration: with a star for references."""
    return f"{c_type(variable)} *" if variable.kind == "r" else str(c_type(variable))


def zero(variable: Variable) -> Expression:
    """Returns the initial value of a variable."""
    return number("r" if variable.kind == "r" else "i", 0)


def is_owned(variable: Variable) -> bool:
    """Whether a variable holds a counted reference."""
    return variable.kind == "r" and c_type(variable) not in (None, "executable")


def number(kind: str, value: int | float) -> Expression:
    """Returns a constant in C."""
    if kind == "r":
        return Name("NULL")
    if kind in "fF":
        if math.isnan(value):
            is_single = kind == "f"
            pattern = number("i", bitcast_f32_i32(value)) if is_single else number("I", bitcast_f64_i64(value))
            return call(f"bits_to_{'float' if is_single else 'double'}", pattern)
        if math.isinf(value):
            return Name("INFINITY" if value > 0 else "-INFINITY")
        real = float(value)
        # A decimal that rounds may keep more digits than its type: x87, of 32-bit x86, computes with 80 bits.
        text = repr(real) if Fraction(repr(real)) == Fraction(real) else real.hex()
        return Name(f"{text}{'f' if kind == 'f' else ''}")
    bits = 32 if kind == "i" else 64
    if value == -(1 << (bits - 1)):
        return Name(f"INT{bits}_MIN")
    return Literal(value) if -(1 << 31) < value < 1 << 31 else call("INT64_C", Literal(value))


def global_name(program: Program, ordinal: int) -> str:
    """Returns the name of a reference global in C."""
    return f"{c_type(Variable('r', program.global_types.get(ordinal)))}_{ordinal}"
