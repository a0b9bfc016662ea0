"""Operations on lists and byte buffers of the host as statements in C."""

from __future__ import annotations

from typing import Final

from ...status import UnimplementedError
from ...vm.translation.expressions import ZERO, Cast, Name, Unary, call
from ..program.ir import Instruction
from .arguments import Values
from .calls import size_of
from .statements import NULL, Assign, Declare, Group, Statement, assign_reference, attempt
from .types import KINDS, c_type, is_owned

_HELD: Final = Name("held")
_ADDRESS: Final = Unary("&", _HELD)


def write_list(values: Values, instruction: Instruction) -> list[Statement]:
    """Writes an operation on a list."""
    _, verb, *rest = instruction.operation.split(".")
    operands = [values.value(operand) for operand in instruction.operands]
    if verb == "alloc":
        return [attempt("list_alloc", values.result(instruction))]
    if verb == "reserve":
        return []
    if verb == "resize":
        return [attempt("list_resize", *operands)]
    if verb == "size":
        return [Assign(values.name(instruction.results[0]), size_of(operands[0], "count", "int32_t"))]
    kind = rest[0]
    form, wide = ("real", "double") if kind[0] == "f" else ("integer", "int64_t")
    if verb == "set":
        return [attempt(f"list_set_{'reference' if kind == 'ref' else form}", *operands)]
    target = instruction.results[0]
    name, narrow = values.name(target), c_type(target)
    if kind == "ref":
        if not is_owned(target) or narrow == "object":
            raise UnimplementedError(f"{values.where()} has a list of {target.type}, which has no form in C")
        got = attempt("list_get_reference", *operands, Name(f"{narrow}_destroy"), _ADDRESS)
        return [Group([Declare("void *", "held", NULL), got, assign_reference(name, _HELD)])]
    if narrow == wide:
        return [attempt(f"list_get_{form}", *operands, Unary("&", name))]
    got = attempt(f"list_get_{form}", *operands, _ADDRESS)
    return [Group([Declare(wide, "held", ZERO), got, Assign(name, Cast(str(narrow), _HELD))])]


def write_bytes(values: Values, instruction: Instruction) -> list[Statement]:
    """Writes an operation on a byte buffer."""
    _, verb, *rest = instruction.operation.split(".")
    operands = [values.value(operand) for operand in instruction.operands]
    results = [values.name(result) for result in instruction.results]
    addresses = [Unary("&", result) for result in results]
    match verb:
        case "alloc" | "clone" | "copy" | "compare":  # memory of the host has the alignment that anything needs
            taken = operands[:-1] if verb in ("alloc", "clone") else operands
            return [attempt(f"bytes_{verb}", *taken, *addresses)]
        case "length":
            return [Assign(results[0], size_of(operands[0], "size", "int64_t"))]
        case "load" | "store" | "fill":
            kind = f"{'u' if rest[1:] == ['u'] else ''}{KINDS[rest[0]]}"
            size = call("sizeof", _HELD)
            if verb == "load":
                loaded = attempt("bytes_load", *operands, _ADDRESS, size)
                return [Group([Declare(kind, "held", ZERO), loaded, Assign(results[0], _HELD)])]
            held = Declare(f"const {kind}", "held", Cast(kind, operands[-1]))
            return [Group([held, attempt(f"bytes_{verb}", *operands[:-1], _ADDRESS, size)])]
    raise UnimplementedError(f"{values.where()} does {instruction.operation}, which has no form in C")
