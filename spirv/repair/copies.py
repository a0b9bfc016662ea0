"""Copies between types of one shape, member by member.

``OpCopyLogical`` copies a structure or an array to a type that differs in its layout only. Slang emits it between
uniform, storage and function memory. Mesa's compiler keeps the types of the members as they were, and refuses the next
use of one: "Type mismatch for SPIR-V SSA value" (22.3; its ``OpCopyLogical`` in src/compiler/spirv/spirv_to_nir.c).
"""

from __future__ import annotations

from typing import Final

from ..binary.grammar import Op
from ..binary.words import read_binary
from ..instrument.editor import Editor, Words, opcode_of
from ..instrument.paths import result_of
from ..instrument.rewrite import Writer

#: The scalars, vectors and matrices that one copy may take apart.
_MOST: Final = 4096


def with_plain_copies(code: bytes) -> bytes:
    """Returns a valid module that copies member by member; the same bytes if it has no logical copies."""
    if all(opcode != Op.CopyLogical for opcode, _, _ in read_binary(code)):
        return code
    editor = Editor(code)
    editor.functions[:] = [_rewritten(editor, body) for body in editor.functions]
    return editor.code()


def _rewritten(editor: Editor, body: list[Words]) -> list[Words]:
    writer = Writer(editor)
    types = {id: declaration[1] for id, declaration in editor.defs.items()}
    for instruction in body:
        opcode = opcode_of(instruction)
        if result := result_of(instruction):
            types[result] = instruction[1]
        if opcode == Op.CopyLogical and 0 < _leaves(editor, instruction[1]) <= _MOST:
            _, to, result, value = instruction
            _copy(writer, to, types[value], value, result)
        else:
            writer.put(instruction)
    return writer.out


def _members(editor: Editor, kind: int) -> list[int] | None:
    """Returns the types of an aggregate's members; ``None`` for other types, and lengths that are not fixed."""
    declaration = editor.defs[kind]
    if opcode_of(declaration) == Op.TypeStruct:
        return list(declaration[2:])
    if opcode_of(declaration) != Op.TypeArray:
        return None
    length = editor.defs[declaration[3]]
    return [declaration[2]] * length[3] if opcode_of(length) == Op.Constant and length[3] <= _MOST else None


def _leaves(editor: Editor, kind: int) -> int:
    """Returns the number of values that are no aggregates, 0 for a type that cannot be taken apart."""
    members = _members(editor, kind)
    if members is None:
        return opcode_of(editor.defs[kind]) not in (Op.TypeArray, Op.TypeStruct)
    leaves = {member: _leaves(editor, member) for member in dict.fromkeys(members)}
    return sum(leaves[member] for member in members) if all(leaves.values()) else 0


def _copy(writer: Writer, to: int, source: int, value: int, result: int = 0) -> int:
    if to == source and not result:
        return value
    members, sources = _members(writer.editor, to), _members(writer.editor, source)
    if members is None or sources is None:
        return value
    parts = [
        _copy(writer, member, kind, writer.op(Op.CompositeExtract, kind, value, index))
        for index, (member, kind) in enumerate(zip(members, sources, strict=True))
    ]
    return writer.op(Op.CompositeConstruct, to, *parts, result=result)
