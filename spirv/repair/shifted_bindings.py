"""Kernels whose bindings start before the data, for devices that bind at coarser multiples than a program's offsets.

IREE's compiler places constants and transient values at multiples of 64 bytes; some devices only bind storage buffers
at multiples of 256. There a binding starts at the last such multiple, and the kernel adds the distance to each index.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...status import UnimplementedError
from ..binary.grammar import Decoration, Op, StorageClass, operand_kinds
from ..instrument.editor import Editor, Words, opcode_of
from ..instrument.rewrite import Writer

_CHAINS: Final = (Op.AccessChain, Op.InBoundsAccessChain)


def with_shifted_bindings(code: bytes, shifts: Mapping[tuple[int, int], int]) -> bytes:
    """Returns a valid module for bindings that start earlier.

    Args:
        code: a valid module.
        shifts: the distances in bytes by (set, binding).

    Raises:
        UnimplementedError: the module accesses such a binding other than by the index of an element, or the distance is
            no multiple of an element's size.
    """
    editor = Editor(code)
    moved: dict[int, tuple[int, int]] = {}
    for variable, words in list(editor.defs.items()):
        if opcode_of(words) == Op.Variable and words[3] in (StorageClass.StorageBuffer, StorageClass.Uniform):
            binding = (
                editor.decoration(variable, Decoration.DescriptorSet) or 0,
                editor.decoration(variable, Decoration.Binding) or 0,
            )
            if shift := shifts.get(binding):
                moved[variable] = _moved(editor, variable, binding, shift)
    for body in editor.functions:
        body[:] = _rewritten(editor, body, moved)
    return editor.code()


def _moved(editor: Editor, variable: int, binding: tuple[int, int], shift: int) -> tuple[int, int]:
    """Returns a variable for the whole binding, and the number of elements before the data.

    Its array has no length: that of the module's own may be fixed.
    """
    words = editor.defs[variable]
    block = editor.defs[editor.defs[words[1]][3]]
    array = editor.defs[block[2]] if opcode_of(block) == Op.TypeStruct and len(block) == 3 else (0,)
    stride = editor.decoration(array[1], Decoration.ArrayStride) if len(array) > 2 else None
    if not stride or shift % stride or words[3] != StorageClass.StorageBuffer:
        raise UnimplementedError(
            f"set {binding[0]} binding {binding[1]} is no array of elements of which whole ones fit into {shift} bytes"
        )
    structure = editor.words_block(stride=stride, element=array[2])
    return editor.storage_buffer(structure, *binding), shift // stride


def _rewritten(editor: Editor, body: list[Words], moved: Mapping[int, tuple[int, int]]) -> list[Words]:
    writer = Writer(editor)
    types = {words[2]: words[1] for words in (*editor.defs.values(), *body) if len(words) > 2}
    for instruction in body:
        opcode = opcode_of(instruction)
        used = [instruction[at] for at, kind in operand_kinds(instruction, 0, len(instruction)) if kind == "IdRef"]
        if moved.keys().isdisjoint(used):
            writer.put(instruction)
        elif opcode in _CHAINS and len(instruction) >= 6:
            variable, elements = moved[instruction[3]]
            kind = types[instruction[5]]
            distance = editor.constant(kind, elements, *[0] * (editor.defs[kind][2] // 64))
            index = writer.op(Op.IAdd, kind, instruction[5], distance)
            writer.put((*instruction[:3], variable, instruction[4], index, *instruction[6:]))
        elif opcode == Op.ArrayLength:
            variable, elements = moved[instruction[3]]
            length = writer.op(opcode, instruction[1], variable, 0)
            distance = editor.constant(instruction[1], elements)
            writer.op(Op.ISub, instruction[1], length, distance, result=instruction[2])
        else:
            raise UnimplementedError("the kernel passes on a pointer to a whole binding")
    return writer.out
