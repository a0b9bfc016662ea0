"""What size of subgroups a compiled kernel counts on.

Compilers that know the size of a target's subgroups write kernels for it: a reduction over a subgroup stands for one over so
many invocations, and shuffles reach so far. On a device with smaller subgroups such a kernel gives wrong results without a
word (SPIR-V specification, Group and Non-Uniform Instructions: a shuffle from an invocation that is not there is undefined).
"""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["least_subgroup_size"]

_CONSTANT: Final = 43
_DECORATE: Final = 71
_SHUFFLE_XOR: Final = 346
_SHUFFLE_UP: Final = 347
_SHUFFLE_DOWN: Final = 348
_ARITHMETIC: Final = range(349, 365)
_REDUCE: Final = 0
_CLUSTERED: Final = 3
_BUILTIN: Final = 11
_SUBGROUP_BUILTINS: Final = (36, 38, 40)  # SubgroupSize, NumSubgroups, SubgroupId
_LEAST_OF_TARGETS: Final = 16
"""No target that IREE's compilers know by name has smaller subgroups (KnownTargets.cpp)."""


def least_subgroup_size(code: bytes | memoryview, invocations: int) -> int:
    """The least size of subgroups with which a compiled kernel can be right; 1 if it has no use for them.

    Shuffles by constants tell how far they reach, clusters their size. A reduction over the whole subgroup tells nothing but
    that it is for the targets that compilers know, unless the kernel asks the device for the size.

    Args:
        code: valid SPIR-V.
        invocations: of a workgroup.
    """
    data = bytes(code)
    words = struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])
    constants: dict[int, int] = {}
    asks = False
    least = 1
    at = 5
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        if not count or at + count > len(words):
            break
        operands = words[at + 1 : at + count]
        if opcode == _CONSTANT and count == 4:
            constants[operands[1]] = operands[2]
        elif opcode == _DECORATE and count == 4 and operands[1] == _BUILTIN:
            asks = asks or operands[2] in _SUBGROUP_BUILTINS
        elif opcode in (_SHUFFLE_XOR, _SHUFFLE_UP, _SHUFFLE_DOWN) and count == 6:
            least = max(least, constants.get(operands[4], 0) + 1)
        elif opcode in _ARITHMETIC and count >= 6:
            if operands[3] == _CLUSTERED and count == 7:
                least = max(least, constants.get(operands[5], 1))
            elif operands[3] == _REDUCE and not asks:
                least = max(least, min(invocations, _LEAST_OF_TARGETS))
        at += count
    return 1 << (least - 1).bit_length()
