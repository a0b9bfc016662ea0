"""Removes extensions and decorations that do not affect execution.

Compilers record names of the source (semantics and types of HLSL, debug information) and assumptions for optimizers. A
device without the extension runs the module without these records just as well.
"""

from __future__ import annotations

from typing import Final

from ..binary.grammar import ENUMERATIONS, Decoration, Op
from ..binary.words import HEADER_WORDS, encode, pack, read_binary, string_words

_NON_SEMANTIC: Final = "NonSemantic."
_PRINT: Final = "NonSemantic.DebugPrintf"
_OF_HLSL: Final = frozenset({Decoration.CounterBuffer, Decoration.UserSemantic})
_OF_TYPES: Final = frozenset({Decoration.UserTypeGOOGLE})
# Extension -> the decorations that need it.
_DECORATIONS: Final = {
    "SPV_GOOGLE_hlsl_functionality1": _OF_HLSL,
    "SPV_GOOGLE_user_type": _OF_TYPES,
    "SPV_GOOGLE_decorate_string": _OF_HLSL | _OF_TYPES,
    "SPV_KHR_no_integer_wrap_decoration": frozenset({Decoration.NoSignedWrap, Decoration.NoUnsignedWrap}),
}
# The second is only for instructions of such sets.
_DEBUG: Final = frozenset({"SPV_KHR_non_semantic_info", "SPV_KHR_relaxed_extended_instruction"})
_EXPECT: Final = "SPV_KHR_expect_assume"
_OPENCL_DEBUG: Final = "OpenCL.DebugInfo."

#: Extension names that devices of Vulkan 1.2 do not have -> the later name.
RENAMED: Final = {"SPV_EXT_physical_storage_buffer": "SPV_KHR_physical_storage_buffer"}
#: Extensions and capabilities that a device need not have.
HINT_EXTENSIONS: Final = frozenset({*_DECORATIONS, *_DEBUG, _EXPECT})
HINT_CAPABILITIES: Final = frozenset({"ExpectAssumeKHR"})

# The word index of an instruction's decoration.
_DECORATES: Final = {
    **dict.fromkeys((Op.Decorate, Op.DecorateId, Op.DecorateString), 2),
    **dict.fromkeys((Op.MemberDecorate, Op.MemberDecorateString), 3),
}
_EXPECT_ASSUME: Final = ENUMERATIONS["Capability"].ExpectAssumeKHR


def without_hints(code: bytes, extensions: frozenset[str]) -> bytes:
    """Returns a valid module without the given ones of `HINT_EXTENSIONS`; the same bytes if it has none of them.

    SPV_EXT_physical_storage_buffer becomes SPV_KHR_physical_storage_buffer, the only name that devices of Vulkan 1.2
    have it under.
    """
    if not extensions and not any(name.encode() in code for name in RENAMED):
        return code
    return _without(code, extensions, (_NON_SEMANTIC,) if not extensions.isdisjoint(_DEBUG) else ())


def without_debug_info(code: bytes) -> bytes:
    """Returns a module without instructions that describe its source; the same bytes if it has none.

    Its prints stay.
    """
    return _without(code, frozenset(), (_NON_SEMANTIC, _OPENCL_DEBUG), kept_set=_PRINT)


def _without(code: bytes, extensions: frozenset[str], sets_removed: tuple[str, ...], kept_set: str = "") -> bytes:
    """Returns a module without extensions, and without the instruction sets whose names start so, but one."""
    binary = read_binary(code)
    words = binary.words
    decorations = frozenset[int]().union(*(_DECORATIONS.get(name, ()) for name in extensions))
    expect = _EXPECT in extensions
    kept = list(words[:HEADER_WORDS])
    names: list[tuple[int, int]] = []
    sets: set[int] = set()
    removed: set[int] = set()
    for opcode, start, end in binary:
        instruction = words[start:end]
        match opcode:
            case Op.Extension:
                name = binary.string(start + 1, end, "replace")[0]
                if name in extensions:
                    continue
                if name in RENAMED:
                    instruction = encode(opcode, *string_words(RENAMED[name]))
            case Op.Capability if expect and instruction[1] == _EXPECT_ASSUME:
                continue
            case Op.ExtInstImport:
                name = binary.string(start + 2, end, "replace")[0]
                if not name.startswith(sets_removed) or name == kept_set:
                    kept += instruction
                    continue
                sets.add(instruction[1])
                removed.add(instruction[1])
                continue
            case Op.ExtInst | Op.ExtInstWithForwardRefsKHR if instruction[3] in sets:
                removed.add(instruction[2])
                continue
            case Op.AssumeTrueKHR if expect:
                continue
            case Op.ExpectKHR if expect:
                instruction = encode(Op.CopyObject, *instruction[1:4])
            case Op.Name:
                names.append((len(kept), instruction[1]))
            case _ if opcode in _DECORATES and instruction[_DECORATES[opcode]] in decorations:
                continue
        kept += instruction
    for at, target in reversed(names):
        if target in removed:
            del kept[at : at + (kept[at] >> 16)]
    return code if tuple(kept) == words else pack(kept)
