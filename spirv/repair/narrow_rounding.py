"""Floats rounded to narrower types, for a driver that leaves that out where they become wide again.

Mesa's optimizer replaces ``double(float(x))`` by ``x``, and ``unpackHalf2x16(packHalf2x16(v)).y`` by ``v.y``. Seen in
version 25.0.
"""

from __future__ import annotations

from typing import Final

from ..binary.grammar import Op
from ..instrument.editor import Editor, Words, opcode_of
from ..instrument.rewrite import Writer
from ..reflection.reflection_types import ShaderModuleReflection
from .opaque import Hider, can_hide

_SET: Final = "GLSL.std.450"
_PACK_HALVES: Final = 58


def with_narrow_rounding(code: bytes, reflection: ShaderModuleReflection) -> bytes:
    """Returns a valid module whose narrower floats a driver does not see through; the same bytes if it has none."""
    editor = Editor(code)
    if not can_hide(editor):
        return code
    changed = False
    sets = {id for id, name in editor.sets.items() if name == _SET}
    globals_ = {result: words[1] for result, words in editor.defs.items()}
    for body in editor.functions:
        types = {**globals_, **{words[2]: words[1] for words in body if len(words) > 2}}
        hider, writer = Hider(editor), Writer(editor)
        is_hidden = False
        for words in body:
            opcode = opcode_of(words)
            packs = opcode == Op.ExtInst and words[3] in sets and words[4] == _PACK_HALVES
            if packs or (opcode == Op.FConvert and _bits(editor, words[1]) < _bits(editor, types[words[3]])):
                hider.hidden(writer, words[1], writer.op(opcode, words[1], *words[3:]), words[2])
                is_hidden = True
            else:
                writer.put(words)
        if is_hidden:
            changed = True
            body[:] = hider.started(writer.out)
    return editor.code() if changed else code


def _bits(editor: Editor, type_id: int) -> int:
    """Returns the width of a float, or of the floats in a vector."""
    declared: Words = editor.defs[type_id]
    return _bits(editor, declared[2]) if opcode_of(declared) == Op.TypeVector else declared[2]
