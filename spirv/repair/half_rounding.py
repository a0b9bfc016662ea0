"""Floats packed as halves, for a driver that does not round them.

Mesa's optimizer replaces ``unpackHalf2x16(packHalf2x16(v)).y`` by ``v.y``, which was not rounded. Seen in version 25.0.
"""

from __future__ import annotations

from typing import Final

from ..binary.grammar import Op
from ..instrument.editor import Editor, opcode_of
from ..instrument.rewrite import Writer
from ..reflection.reflection_types import ShaderModuleReflection
from .opaque import Hider, can_hide

_SET: Final = "GLSL.std.450"
_PACK: Final = 58


def with_rounded_halves(code: bytes, reflection: ShaderModuleReflection) -> bytes:
    """Returns a valid module whose packed halves a driver does not see through; the same bytes if it has none."""
    editor = Editor(code)
    sets = {id for id, name in editor.sets.items() if name == _SET}
    if not sets or not can_hide(editor):
        return code
    changed = False
    for body in editor.functions:
        hider, writer = Hider(editor), Writer(editor)
        is_hidden = False
        for instruction in body:
            if opcode_of(instruction) == Op.ExtInst and instruction[3] in sets and instruction[4] == _PACK:
                kind, result = instruction[1:3]
                hider.hidden(writer, kind, writer.op(Op.ExtInst, kind, *instruction[3:]), result)
                is_hidden = True
            else:
                writer.put(instruction)
        if is_hidden:
            changed = True
            body[:] = hider.started(writer.out)
    return editor.code() if changed else code
