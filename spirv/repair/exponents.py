"""Exponents of ``ldexp`` as 32-bit integers, the only form that many drivers support.

GLSL.std.450's Ldexp has an exponent of any integer type. Drivers of Mesa assume 32 bits, and lavapipe crashes the
process on any other type. The exponent is converted before the instruction; a 64-bit exponent is first clamped to the
range of 16 bits, beyond which all exponents give the same float.
"""

from __future__ import annotations

from typing import Final

from ..binary.grammar import LAYOUTS, Op
from ..instrument.editor import Editor, Words, opcode_of
from ..instrument.rewrite import Writer
from ..reflection.reflection_types import ShaderModuleReflection

_SET: Final = "GLSL.std.450"
_LDEXP: Final = 53
_SCLAMP: Final = 45
_MOST: Final = (1 << 15) - 1
_OTHER_INTEGERS: Final = frozenset({"Int8", "Int16", "Int64"})


def with_plain_exponents(code: bytes, reflection: ShaderModuleReflection) -> bytes:
    """Returns a valid module whose exponents have 32 bits; the same bytes if they already have."""
    if _OTHER_INTEGERS.isdisjoint(reflection.capabilities):
        return code
    editor = Editor(code)
    sets = {id for id, name in editor.sets.items() if name == _SET}
    changed = False
    for body in editor.functions:
        if any(_is_ldexp(instruction, sets) for instruction in body):
            converted = _converted(editor, body, sets)
            changed = changed or len(converted) > len(body)
            body[:] = converted
    return editor.code() if changed else code


def _converted(editor: Editor, body: list[Words], sets: set[int]) -> list[Words]:
    types = {id: declaration[1] for id, declaration in editor.defs.items()}
    writer = Writer(editor)
    for instruction in body:
        layout = LAYOUTS.get(opcode_of(instruction))
        if layout is not None and layout.operands[:2] == ("IdResultType", "IdResult"):
            types[instruction[2]] = instruction[1]
        if _is_ldexp(instruction, sets):
            value = instruction[6]
            plain = _plain_type(editor, types[value])
            if plain is not None:
                if _scalar_bits(editor, types[value]) == 64:
                    limits = (_constant(editor, types[value], limit) for limit in (-_MOST, _MOST))
                    value = writer.op(Op.ExtInst, types[value], instruction[3], _SCLAMP, value, *limits)
                instruction = (*instruction[:6], writer.op(Op.SConvert, plain, value))
        writer.put(instruction)
    return writer.out


def _is_ldexp(instruction: Words, sets: set[int]) -> bool:
    return opcode_of(instruction) == Op.ExtInst and instruction[3] in sets and instruction[4] == _LDEXP


def _plain_type(editor: Editor, type_id: int) -> int | None:
    """Returns the 32-bit replacement of an integer type, or ``None`` if it has 32 bits."""
    declared = editor.defs[type_id]
    if opcode_of(declared) == Op.TypeVector:
        scalar = _plain_type(editor, declared[2])
        return None if scalar is None else editor.type(Op.TypeVector, scalar, declared[3])
    return None if declared[2] == 32 else editor.type(Op.TypeInt, 32, 1)


def _scalar_bits(editor: Editor, type_id: int) -> int:
    declared = editor.defs[type_id]
    return _scalar_bits(editor, declared[2]) if opcode_of(declared) == Op.TypeVector else declared[2]


def _constant(editor: Editor, type_id: int, value: int) -> int:
    """Returns a 64-bit constant, in every component of a vector."""
    declared = editor.defs[type_id]
    if opcode_of(declared) == Op.TypeVector:
        return editor.composite(type_id, *[_constant(editor, declared[2], value)] * declared[3])
    return editor.constant(type_id, value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF)
