"""Repairs of defects of IREE's compilers in SPIR-V, so that modules can be checked and drivers see valid ones.

Three mistakes are known, in releases 3.0 to 3.13:

- ``OpEntryPoint`` lists storage buffers in its interface, where only Input and Output variables may stand before
  SPIR-V 1.4 (SPIR-V specification, OpEntryPoint): they are left out;
- ``NoSignedWrap`` and ``NoUnsignedWrap`` decorate results without the extension SPV_KHR_no_integer_wrap_decoration,
  needed before 1.4. They only permit optimizations, and are left out;
- SPV_EXT_physical_storage_buffer is declared, which devices of Vulkan 1.2 have only by its later name,
  SPV_KHR_physical_storage_buffer.

Nothing else changes.

A fourth mistake is only recognised (`misread_type`): kernels for devices without narrow types that misread tensors of
narrow types. Without a target device, IREE's compiler assumes that there is no 16-bit and no 8-bit storage. It reads
bytes and shorts out of words, which is right. But it replaces halves by floats, in registers and in memory alike, so
such kernels take two halves for one float. And for vectors of bytes, shorts or bfloat16s it loads a vector of words.
SPIR-V does not record the intended element type; kernel names do (``sum_dispatch_0_reduction_8x7_f16``). Seen in
releases 3.0 to 3.13.
"""

from __future__ import annotations

import re
from typing import Final

from ...status import PumiceError
from ..binary.grammar import Decoration, Op, StorageClass
from ..binary.words import HEADER_WORDS, Binary, encode, pack, read_binary, string_words
from .hints import RENAMED

_NO_WRAP: Final = (Decoration.NoSignedWrap, Decoration.NoUnsignedWrap)
_INTERFACE_CLASSES: Final = (StorageClass.Input, StorageClass.Output)
_WRAP_EXTENSION: Final = "SPV_KHR_no_integer_wrap_decoration"
_SUFFIX: Final = re.compile(r"_((?:(?:f|bf|i)\d+x)*(?:f|bf|i)\d+)$")
_NARROW: Final = frozenset({"f16", "bf16", "i16", "i8"})
_SHIFTS: Final = (Op.ShiftLeftLogical, Op.ShiftRightLogical, Op.ShiftRightArithmetic)
_PACKS: Final = (58, 62)  # PackHalf2x16 and UnpackHalf2x16 of GLSL.std.450


def repair(code: bytes | memoryview) -> bytes:
    """Returns the module without these mistakes; the same bytes if it has none, or is damaged in other ways."""
    data = bytes(code)
    try:
        return _repaired(read_binary(data)) or data
    except PumiceError:
        return data


def _repaired(binary: Binary) -> bytes | None:
    words = binary.words
    before_1_4 = binary.version < (1, 4)
    storage: dict[int, int] = {}
    extensions: dict[int, str] = {}
    declarations = []
    first_function = len(words)
    for opcode, start, end in binary:
        if opcode == Op.Function:
            first_function = start
            break
        if opcode == Op.Variable:
            storage[words[start + 2]] = words[start + 3]
        elif opcode == Op.Extension:
            extensions[start] = binary.string(start + 1, end)[0]
        declarations.append((opcode, start, end))
    may_not_wrap = before_1_4 and _WRAP_EXTENSION not in extensions.values()
    kept = list(words[:HEADER_WORDS])
    for opcode, start, end in declarations:
        instruction = words[start:end]
        if opcode == Op.Decorate and may_not_wrap and instruction[2] in _NO_WRAP:
            continue
        if (later := RENAMED.get(extensions.get(start, ""))) is not None:
            instruction = encode(Op.Extension, *string_words(later))
        elif opcode == Op.EntryPoint and before_1_4:
            interface = binary.string(start + 3, end, "replace")[1]
            listed = [id for id in words[interface:end] if storage.get(id, StorageClass.Input) in _INTERFACE_CLASSES]
            instruction = encode(opcode, *words[start + 1 : interface], *listed)
        kept += instruction
    if tuple(kept) == words[:first_function]:
        return None
    return pack([*kept, *words[first_function:]])


def misread_type(name: str, code: bytes) -> str | None:
    """Returns the element type that a kernel of that name misreads, in compilers' notation; ``None`` if none."""
    match = _SUFFIX.search(name)
    types: set[str] = set(match[1].split("x")) if match else set()
    if not types & _NARROW:
        return None
    widths, elements, shifts, packs = _storage(code)
    if min(widths, default=32) < 32:
        return None
    floats = any(kind == Op.TypeFloat for kind, _ in elements)
    if "f16" in types and not packs and (not shifts or (floats and "f32" not in types)):
        return "f16"
    if types <= _NARROW and any(count > 1 for _, count in elements):
        return min(types)
    return None


def _storage(code: bytes) -> tuple[set[int], set[tuple[int, int]], bool, bool]:
    """Reads the types and operations on which narrow storage depends.

    Returns:
        The widths of scalar types; for each array in a storage buffer, its element's scalar opcode and number of
        components; whether bits are shifted; whether halves are packed or unpacked.
    """
    binary = read_binary(code)
    words = binary.words
    scalars: dict[int, int] = {}
    vectors: dict[int, tuple[int, int]] = {}
    inner: dict[int, tuple[int, ...]] = {}
    widths: set[int] = set()
    elements: set[tuple[int, int]] = set()
    shifts = packs = False
    for opcode, start, end in binary:
        if opcode in (Op.TypeInt, Op.TypeFloat):
            scalars[words[start + 1]] = opcode
            widths.add(words[start + 2])
        elif opcode == Op.TypeVector:
            vectors[words[start + 1]] = words[start + 2], words[start + 3]
        elif opcode in (Op.TypeRuntimeArray, Op.TypeArray):
            inner[words[start + 1]] = (words[start + 2],)
        elif opcode == Op.TypeStruct:
            inner[words[start + 1]] = words[start + 2 : end]
        elif opcode == Op.TypePointer and words[start + 2] in (StorageClass.StorageBuffer, StorageClass.Uniform):
            pending = [words[start + 3]]
            while pending:
                type_id = pending.pop()
                pending += inner.get(type_id, ())
                scalar, count = vectors.get(type_id, (type_id, 1))
                if scalar in scalars:
                    elements.add((scalars[scalar], count))
        elif opcode in _SHIFTS:
            shifts = True
        elif opcode == Op.ExtInst and words[start + 4] in _PACKS:
            packs = True
    return widths, elements, shifts, packs
