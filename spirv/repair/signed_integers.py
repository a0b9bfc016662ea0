"""Signed integers, for a driver that extends or divides them incorrectly.

Mesa's llvmpipe computes ``SMod`` as ``SRem``: the result has the dividend's sign. Its optimizer also makes comparisons
of a converted 32-bit integer with a 64-bit constant unsigned, including those in divisions by powers of two. Tried with
version 22.3.
"""

from __future__ import annotations

from ..binary.grammar import Op
from ..instrument.editor import Editor, Words, opcode_of
from ..instrument.rewrite import Writer
from ..reflection.reflection_types import ShaderModuleReflection
from .opaque import Hider, can_hide


def with_signed_modulo(code: bytes, reflection: ShaderModuleReflection) -> bytes:
    """Returns a valid module that computes ``SMod`` by ``SRem``; the same bytes if it has none."""
    editor = Editor(code)
    changed = False
    for body in editor.functions:
        if any(opcode_of(instruction) == Op.SMod for instruction in body):
            changed = True
            body[:] = _with_remainders(editor, body)
    return editor.code() if changed else code


def _with_remainders(editor: Editor, body: list[Words]) -> list[Words]:
    writer = Writer(editor)
    for instruction in body:
        if opcode_of(instruction) != Op.SMod:
            writer.put(instruction)
            continue
        kind, result, x, y = instruction[1:]
        declared = editor.defs[kind]
        boolean = editor.bool_type()
        if opcode_of(declared) == Op.TypeVector:
            boolean = editor.type(Op.TypeVector, boolean, declared[3])
        zero = editor.null(kind)
        remainder = writer.op(Op.SRem, kind, x, y)
        has_other_sign = writer.op(Op.SLessThan, boolean, writer.op(Op.BitwiseXor, kind, remainder, y), zero)
        is_inexact = writer.op(Op.INotEqual, boolean, remainder, zero)
        is_short = writer.op(Op.LogicalAnd, boolean, has_other_sign, is_inexact)
        writer.op(Op.Select, kind, is_short, writer.op(Op.IAdd, kind, remainder, y), remainder, result=result)
    return writer.out


def with_opaque_extension(code: bytes, reflection: ShaderModuleReflection) -> bytes:
    """Returns a valid module with conversions to signed 64-bit integers hidden; the same bytes if it has none."""
    if "Int64" not in reflection.capabilities:
        return code
    editor = Editor(code)
    if not can_hide(editor):
        return code
    changed = False
    for body in editor.functions:
        hider, writer = Hider(editor), Writer(editor)
        count = 0
        for instruction in body:
            if opcode_of(instruction) == Op.SConvert and _bits(editor, instruction[1]) == 64:
                kind, result, value = instruction[1:]
                hider.hidden(writer, kind, writer.op(Op.SConvert, kind, value), result)
                count += 1
            else:
                writer.put(instruction)
        if count:
            changed = True
            body[:] = hider.started(writer.out)
    return editor.code() if changed else code


def _bits(editor: Editor, type_id: int) -> int:
    """Returns the width of an integer or of the integers in a vector; 0 for other types."""
    declared = editor.defs[type_id]
    if opcode_of(declared) == Op.TypeVector:
        return _bits(editor, declared[2])
    return declared[2] if opcode_of(declared) == Op.TypeInt else 0
