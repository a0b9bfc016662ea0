"""Repairs of what IREE's compilers get wrong in SPIR-V, so that modules can be checked and drivers see valid ones.

Three slips are known, in releases 3.0 to 3.13:

- ``OpEntryPoint`` lists storage buffers in its interface, where only Input and Output variables may stand before
  SPIR-V 1.4 (SPIR-V specification, OpEntryPoint): they are left out;
- ``NoSignedWrap`` and ``NoUnsignedWrap`` decorate results without the extension SPV_KHR_no_integer_wrap_decoration, needed
  before 1.4. They only promise what need not be used, and are left out;
- SPV_EXT_physical_storage_buffer is named where devices of Vulkan 1.2 have SPV_KHR_physical_storage_buffer, which is the
  same under its later name.

Nothing else changes.
"""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["repair"]

_MAGIC: Final = 0x07230203
_VERSION_1_4: Final = 0x00010400
_EXTENSION: Final = 10
_ENTRY_POINT: Final = 15
_FUNCTION: Final = 54
_VARIABLE: Final = 59
_DECORATE: Final = 71
_NO_WRAP: Final = (4469, 4470)
_INPUT: Final = 1
_OUTPUT: Final = 3
_WRAP_EXTENSION: Final = b"SPV_KHR_no_integer_wrap_decoration\0"
_OLD_NAME: Final = struct.unpack("<8I", b"SPV_EXT_physical_storage_buffer\0")
_NEW_NAME: Final = struct.unpack("<8I", b"SPV_KHR_physical_storage_buffer\0")


def repair(code: bytes | memoryview) -> bytes:
    """The module without the slips; the same bytes where there are none, or where it is damaged in other ways."""
    data = bytes(code)
    if len(data) < 20 or len(data) % 4:
        return data
    words = struct.unpack(f"<{len(data) // 4}I", data)
    if words[0] != _MAGIC:
        return data
    before_1_4 = words[1] < _VERSION_1_4
    may_not_wrap = before_1_4
    storage: dict[int, int] = {}
    starts: list[tuple[int, int, int]] = []
    at = 5
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        if not count or at + count > len(words):
            return data
        if opcode == _FUNCTION:
            break
        if opcode == _VARIABLE and count >= 4:
            storage[words[at + 2]] = words[at + 3]
        elif opcode == _EXTENSION and data.startswith(_WRAP_EXTENSION, 4 * at + 4):
            may_not_wrap = False
        starts.append((at, count, opcode))
        at += count
    kept: list[int] = list(words[:5])
    for start, count, opcode in starts:
        instruction = words[start : start + count]
        if opcode == _DECORATE and count >= 3 and may_not_wrap and instruction[2] in _NO_WRAP:
            continue
        if opcode == _EXTENSION and instruction[1:] == _OLD_NAME:
            instruction = (instruction[0], *_NEW_NAME)
        elif opcode == _ENTRY_POINT and before_1_4:
            name_end = data.find(b"\0", 4 * (start + 3), 4 * (start + count))
            if name_end < 0:
                return data
            interface = name_end // 4 + 1 - start
            listed = [one for one in instruction[interface:] if storage.get(one, _INPUT) in (_INPUT, _OUTPUT)]
            instruction = ((interface + len(listed)) << 16 | opcode, *instruction[1:interface], *listed)
        kept += instruction
    if tuple(kept) == words[:at]:
        return data
    return struct.pack(f"<{len(kept)}I", *kept) + data[4 * at :]
