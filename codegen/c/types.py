"""Types and names of variables in C."""

from __future__ import annotations

import math
from typing import Final

from ...status import UnimplementedError
from ...vm.types.numerics import bitcast_f32_i32, bitcast_f64_i64
from ..program.ir import Program, Variable

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
KEYWORDS: Final = frozenset(
    [
        "auto",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "bool",
        "true",
        "false",
        "p",
        "status",
        "done",
        "main",
        "errno",
        "stdin",
        "stdout",
        "stderr",
        "result",
        "data",
    ]
)
"""Names that variables must not have."""


def c_type(variable: Variable) -> str | None:
    """Returns the C type of a variable; for references the pointee type; ``None`` if it has no variable in C.

    Raises:
        UnimplementedError: a type without a C form; the message names it.
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


def is_owned(variable: Variable) -> bool:
    """Whether a variable holds a counted reference."""
    return variable.kind == "r" and c_type(variable) not in (None, "executable")


def number_text(kind: str, number: int | float) -> str:
    """Returns a constant in C."""
    if kind == "r":
        return "NULL"
    if kind in "fF":
        if math.isnan(number):
            bits = (
                number_text("i", bitcast_f32_i32(number)) if kind == "f" else number_text("I", bitcast_f64_i64(number))
            )
            return f"bits_to_{'float' if kind == 'f' else 'double'}({bits})"
        if math.isinf(number):
            return "INFINITY" if number > 0 else "-INFINITY"
        return repr(float(number)) + ("f" if kind == "f" else "")
    if kind == "i":
        return "INT32_MIN" if number == -(1 << 31) else str(number)
    if number == -(1 << 63):
        return "INT64_MIN"
    return str(number) if -(1 << 31) < number < 1 << 31 else f"INT64_C({number})"


def global_name(program: Program, ordinal: int) -> str:
    """Returns the name of a reference global in C."""
    return f"{c_type(Variable('r', program.global_types.get(ordinal)))}_{ordinal}"
