"""Repairs of what IREE's compilers get wrong in SPIR-V, so that modules can be checked and drivers see valid ones.

Three mistakes are known, in releases 3.0 to 3.13:

- ``OpEntryPoint`` lists storage buffers in its interface, where only Input and Output variables may stand before
  SPIR-V 1.4 (SPIR-V specification, OpEntryPoint): they are left out;
- ``NoSignedWrap`` and ``NoUnsignedWrap`` decorate results without the extension SPV_KHR_no_integer_wrap_decoration,
  needed before 1.4. They only permit optimizations, and are left out;
- SPV_EXT_physical_storage_buffer is named where devices of Vulkan 1.2 have SPV_KHR_physical_storage_buffer, its later
  name.

Nothing else changes.
"""

from __future__ import annotations

from typing import Final

from ...status import PumiceError
from ..binary.grammar import Decoration, Op, StorageClass
from ..binary.words import HEADER_WORDS, Binary, encode, pack, read_binary, string_words
from .hints import RENAMED

_NO_WRAP: Final = (Decoration.NoSignedWrap, Decoration.NoUnsignedWrap)
_INTERFACE_CLASSES: Final = (StorageClass.Input, StorageClass.Output)
_WRAP_EXTENSION: Final = "SPV_KHR_no_integer_wrap_decoration"


def repair(code: bytes | memoryview) -> bytes:
    """Returns the module without these mistakes; the same bytes where there are none, or where it is damaged in other
    ways.
    """
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
            listed = [one for one in words[interface:end] if storage.get(one, StorageClass.Input) in _INTERFACE_CLASSES]
            instruction = encode(opcode, *words[start + 1 : interface], *listed)
        kept += instruction
    if tuple(kept) == words[:first_function]:
        return None
    return pack([*kept, *words[first_function:]])
