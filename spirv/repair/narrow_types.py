"""Kernels that a compiler made for devices without narrow types, and that misread tensors of them.

IREE's compiler, told of no device in particular, assumes that there is no 16-bit and no 8-bit storage. It reads bytes
and shorts out of words, which is right. But it makes floats of halves, in registers and in memory alike: such kernels
take two halves for one float. And where it has made vectors of bytes, shorts or bfloat16s, it loads a vector of words.
Nothing in SPIR-V says what a buffer should have held; the names of kernels do (``sum_dispatch_0_reduction_8x7_f16``).
Seen in releases 3.0 to 3.13.
"""

from __future__ import annotations

import re
from typing import Final

from ..binary.grammar import Op, StorageClass
from ..binary.words import read_binary

_SUFFIX: Final = re.compile(r"_((?:(?:f|bf|i)\d+x)*(?:f|bf|i)\d+)$")
_NARROW: Final = frozenset({"f16", "bf16", "i16", "i8"})
_SHIFTS: Final = (Op.ShiftLeftLogical, Op.ShiftRightLogical, Op.ShiftRightArithmetic)
_PACKS: Final = (58, 62)  # PackHalf2x16 and UnpackHalf2x16 of GLSL.std.450


def misread_type(name: str, code: bytes) -> str | None:
    """Returns the element type that a kernel of that name misreads, as compilers write types; ``None``
    if it does not.
    """
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
    """Widths of scalar types; (opcode of the scalar, components) of what storage buffers are arrays of; whether bits
    are shifted; whether halves are packed or unpacked."""
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
                one = pending.pop()
                pending += inner.get(one, ())
                scalar, count = vectors.get(one, (one, 1))
                if scalar in scalars:
                    elements.add((scalars[scalar], count))
        elif opcode in _SHIFTS:
            shifts = True
        elif opcode == Op.ExtInst and words[start + 4] in _PACKS:
            packs = True
    return widths, elements, shifts, packs
