"""Operations on lists and byte buffers of the host as statements in C."""

from __future__ import annotations

from typing import Final

from ...status import UnimplementedError
from ..program.ir import Instruction
from .arguments import Texts
from .types import c_type, is_owned

_KINDS: Final = {
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "f32": "float",
    "f64": "double",
}


def list_text(texts: Texts, instruction: Instruction) -> list[str]:
    """Writes an operation on a list."""
    _, verb, *rest = instruction.operation.split(".")
    values = [texts.value(operand) for operand in instruction.operands]
    if verb == "alloc":
        return [f"TRY(list_alloc(p, &{texts.name(instruction.results[0])}));"]
    if verb == "reserve":
        return []
    if verb == "resize":
        return [f"TRY(list_resize(p, {', '.join(values)}));"]
    if verb == "size":
        return [f"{texts.name(instruction.results[0])} = {values[0]} ? (int32_t){values[0]}->count : 0;"]
    kind = rest[0]
    if kind == "ref":
        if verb == "set":
            return [f"TRY(list_set_reference(p, {', '.join(values)}));"]
        target = instruction.results[0]
        found = c_type(target)
        if not is_owned(target) or found == "object":
            raise UnimplementedError(f"{texts.where()} has a list of {target.type}, which has no form in C")
        return [
            "{",
            "    void *held = NULL;",
            f"    TRY(list_get_reference(p, {', '.join(values)}, {found}_destroy, &held));",
            f"    ASSIGN({texts.name(target)}, held);",
            "}",
        ]
    form, wide = ("real", "double") if kind[0] == "f" else ("integer", "int64_t")
    if verb == "set":
        return [f"TRY(list_set_{form}(p, {', '.join(values)}));"]
    name, narrow = texts.name(instruction.results[0]), c_type(instruction.results[0])
    if narrow == wide:
        return [f"TRY(list_get_{form}(p, {', '.join(values)}, &{name}));"]
    return [
        "{",
        f"    {wide} held = 0;",
        f"    TRY(list_get_{form}(p, {', '.join(values)}, &held));",
        f"    {name} = ({narrow})held;",
        "}",
    ]


def bytes_text(texts: Texts, instruction: Instruction) -> list[str]:
    """Writes an operation on a byte buffer."""
    _, verb, *rest = instruction.operation.split(".")
    values = [texts.value(operand) for operand in instruction.operands]
    result = f"&{texts.name(instruction.results[0])}" if instruction.results else ""
    if verb == "alloc":
        return [f"TRY(bytes_alloc(p, {values[0]}, {result}));"]
    if verb == "clone":
        return [f"TRY(bytes_clone(p, {', '.join(values[:3])}, {result}));"]
    if verb == "length":
        return [f"{result[1:]} = {values[0]} ? (int64_t){values[0]}->size : 0;"]
    if verb == "copy":
        return [f"TRY(bytes_copy(p, {', '.join(values)}));"]
    if verb == "compare":
        return [f"TRY(bytes_compare(p, {', '.join(values)}, {result}));"]
    if verb not in ("load", "store", "fill"):
        raise UnimplementedError(f"{texts.where()} does {instruction.operation}, which has no form in C")
    kind = _KINDS[rest[0]]
    if rest[1:] == ["u"]:
        kind = f"u{kind}"
    if verb == "load":
        return [
            "{",
            f"    {kind} held = 0;",
            f"    TRY(bytes_load(p, {values[0]}, {values[1]}, &held, sizeof held));",
            f"    {result[1:]} = held;",
            "}",
        ]
    call = (
        f"bytes_store(p, {values[0]}, {values[1]}, " if verb == "store" else f"bytes_fill(p, {', '.join(values[:3])}, "
    )
    return ["{", f"    const {kind} held = ({kind}){values[-1]};", f"    TRY({call}&held, sizeof held));", "}"]
