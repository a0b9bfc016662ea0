"""Push constants in memory: a module whose push-constant blocks are read-only storage buffers instead.

The values of push constants are fixed when commands are recorded. A kernel that reads them from memory takes other
values without new commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .grammar import ENUMERATIONS, Decoration, Op, StorageClass, opcodes_of
from .words import HEADER_WORDS, Binary, encode, pack, read_binary, string_words

_EXTENSION: Final = "SPV_KHR_storage_buffer_storage_class"
_ANNOTATIONS: Final = frozenset(opcodes_of("Annotation"))
_NARROW: Final = frozenset(
    getattr(ENUMERATIONS["Capability"], name) for name in ("StoragePushConstant8", "StoragePushConstant16")
)


def with_push_constants_in_memory(code: bytes) -> bytes | None:
    """Returns a module with its push constants in the binding after all others of its last descriptor set.

    Returns:
        The module, or ``None`` if its push constants are of types that the device may not have in storage buffers.
    """
    binary = read_binary(code)
    words, push = binary.words, int(StorageClass.PushConstant)
    instructions = [(opcode, words[start:end]) for opcode, start, end in binary]
    if any(opcode == Op.Capability and instruction[1] in _NARROW for opcode, instruction in instructions):
        return None
    variables = [
        instruction[2] for opcode, instruction in instructions if opcode == Op.Variable and instruction[3] == push
    ]
    added = _decorations(instructions, variables)
    result: list[int] = list(words[:HEADER_WORDS])
    has_extension = binary.version >= (1, 3) or _EXTENSION in _extensions(binary)
    for opcode, instruction in instructions:
        if not has_extension and opcode in (Op.ExtInstImport, Op.MemoryModel):
            has_extension = True
            result += encode(Op.Extension, *string_words(_EXTENSION))
        if added and opcode in _ANNOTATIONS:
            result += added
            added = []
        at = {Op.TypePointer: 2, Op.TypeForwardPointer: 2, Op.Variable: 3}.get(opcode)
        if at is not None and instruction[at] == push:
            instruction = (*instruction[:at], int(StorageClass.StorageBuffer), *instruction[at + 1 :])
        result += instruction
    return pack(result)


def _decorations(instructions: list[tuple[int, tuple[int, ...]]], variables: list[int]) -> list[int]:
    """Returns the decorations that make variables of the module's next free binding."""
    sets: dict[int, int] = {}
    bindings: dict[int, int] = {}
    for opcode, words in instructions:
        if opcode == Op.Decorate and words[2] == Decoration.DescriptorSet:
            sets[words[1]] = words[3]
        elif opcode == Op.Decorate and words[2] == Decoration.Binding:
            bindings[words[1]] = words[3]
    last = max(sets.values(), default=0)
    free = 1 + max((binding for target, binding in bindings.items() if sets.get(target) == last), default=-1)
    result: list[int] = []
    for variable in variables:
        result += encode(Op.Decorate, variable, Decoration.DescriptorSet, last)
        result += encode(Op.Decorate, variable, Decoration.Binding, free)
        result += encode(Op.Decorate, variable, Decoration.NonWritable)
    return result


def _extensions(binary: Binary) -> Iterator[str]:
    for opcode, start, end in binary:
        if opcode == Op.Extension:
            yield binary.string(start + 1, end, "replace")[0]
