"""SPIR-V with other defaults: what a shader declares once its specialization constants are set.

Local sizes, array lengths and shared memory may all depend on specialization constants. The driver is given the module
as it is, with the values beside it; this makes the module that those values amount to, for reflection to look at.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

__all__ = ["specialize"]

_HEADER_WORDS: Final = 5
_OP_SPEC_CONSTANT_TRUE: Final = 48
_OP_SPEC_CONSTANT_FALSE: Final = 49
_OP_SPEC_CONSTANT: Final = 50
_OP_DECORATE: Final = 71
_DECORATION_SPEC_ID: Final = 1


def specialize(code: bytes, values: Mapping[int, bytes]) -> bytes:
    """The module with new defaults for its specialization constants.

    Args:
        code: a module that reflection has accepted.
        values: specialization data by constant id, as VkSpecializationInfo takes it: little-endian in the constant's
            width, a VkBool32 for booleans. Ids that the module does not have are ignored.
    """
    words = list(struct.unpack(f"<{len(code) // 4}I", code))
    ids: dict[int, bytes] = {}
    at = _HEADER_WORDS
    while at < len(words):
        opcode, count = words[at] & 0xFFFF, words[at] >> 16
        if opcode == _OP_DECORATE and count >= 4 and words[at + 2] == _DECORATION_SPEC_ID:
            value = values.get(words[at + 3])
            if value is not None:
                ids[words[at + 1]] = value
        elif opcode in (_OP_SPEC_CONSTANT_TRUE, _OP_SPEC_CONSTANT_FALSE) and words[at + 2] in ids:
            chosen = _OP_SPEC_CONSTANT_TRUE if any(ids[words[at + 2]]) else _OP_SPEC_CONSTANT_FALSE
            words[at] = count << 16 | chosen
        elif opcode == _OP_SPEC_CONSTANT and words[at + 2] in ids:
            literal = ids[words[at + 2]].ljust(4 * (count - 3), b"\0")
            words[at + 3 : at + count] = struct.unpack(f"<{count - 3}I", literal[: 4 * (count - 3)])
        at += count
    return struct.pack(f"<{len(words)}I", *words)
