"""SPIR-V with other defaults for its specialization constants.

Local sizes, array lengths and shared memory may depend on specialization constants. The driver gets the unchanged
module and the values; reflection gets this module, whose defaults are the values.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from ..binary.grammar import Decoration, Op
from ..binary.words import pack, read_binary


def specialize(code: bytes, values: Mapping[int, bytes]) -> bytes:
    """Returns a module that reflection has accepted, with new defaults for its specialization constants.

    ``values`` are specialization data by constant id, as VkSpecializationInfo takes it: little-endian in the constant's
    width, a VkBool32 for booleans. Ids that the module does not have are ignored.
    """
    binary = read_binary(code)
    words = list(binary.words)
    ids: dict[int, bytes] = {}
    for opcode, start, end in binary:
        if opcode == Op.Decorate and words[start + 2] == Decoration.SpecId:
            value = values.get(words[start + 3])
            if value is not None:
                ids[words[start + 1]] = value
        elif opcode in (Op.SpecConstantTrue, Op.SpecConstantFalse) and words[start + 2] in ids:
            chosen = Op.SpecConstantTrue if any(ids[words[start + 2]]) else Op.SpecConstantFalse
            words[start] = (end - start) << 16 | chosen
        elif opcode == Op.SpecConstant and words[start + 2] in ids:
            count = end - start - 3
            literal = ids[words[start + 2]].ljust(4 * count, b"\0")
            words[start + 3 : end] = struct.unpack(f"<{count}I", literal[: 4 * count])
    return pack(words)
