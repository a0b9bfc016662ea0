"""Distinguishes modules that break a rule from modules that are newer than the validator.

Validators read a module before they judge it, and stop at the first number that they do not know. pumice's tables are
newer than many installed validators. So such a complaint is no verdict if the number is a capability or belongs to an
extension that the module declares, and the tables know every opcode, enumerant and operand of the module. Otherwise the
number is damage, and the complaint stands. Every other refusal means a broken rule.
"""

from __future__ import annotations

import re
from typing import Final

from ..binary.grammar import BIT_MASK_KINDS, ENUMERATIONS, LAYOUTS, Op, extensions_with, operand_kinds
from ..binary.words import Binary, pack, read_binary
from .requirement_tables import CAPABILITIES, EXTENSIONS
from .requirements import requirements

# An opcode, or an enumerant of a kind, where "mask component" is a bit of a mask.
_UNKNOWN: Final = re.compile(
    r"Invalid (?:(opcode): (\d+)|([^:\n]+) operand: (\d+)(?: has invalid mask component (\d+))?)"
)
_UNKNOWN_SET: Final = re.compile(r"Invalid extended instruction import '([^']*)'")
_UNKNOWN_CAPABILITY: Final = re.compile(r"operand of Capability: operand \w+\((\d+)\) requires one of these extensions")
# The grammars of extended instruction sets in SPIRV-Headers that Vulkan allows; all that start with "NonSemantic." too.
_SETS: Final = frozenset(
    {
        "GLSL.std.450",
        "OpenCL.DebugInfo.100",
        "SPV_AMD_gcn_shader",
        "SPV_AMD_shader_ballot",
        "SPV_AMD_shader_explicit_vertex_parameter",
        "SPV_AMD_shader_trinary_minmax",
    }
)
# Source languages since 2022: validators refuse a module for their numbers, which affect nothing.
_FIRST_NEW_LANGUAGE: Final = 7


def newer_than_validator(code: bytes, message: str) -> str:
    """Returns the part of a refused module that the validator is too old for, ``""`` if the module breaks a rule.

    Args:
        code: the refused module.
        message: the validator's message.
    """
    binary = read_binary(code)
    if match := _UNKNOWN_SET.search(message):
        return match[0] if match[1] in _SETS or match[1].startswith("NonSemantic.") else ""
    if match := _UNKNOWN_CAPABILITY.search(message):
        name = ENUMERATIONS["Capability"].name(int(match[1]))
        return f"capability {name} by its extension's name" if _declares_for(binary, name) else ""
    match = _UNKNOWN.search(message)
    if match is None or not _known(binary):
        return ""
    opcode, number, kind, value, component = match.groups()
    if kind == "capability":
        return f"capability {ENUMERATIONS['Capability'].name(int(value))}"
    # Capabilities come first in a module, so the validator knows those before an unknown number and what they allow.
    known = extensions_with(int(number or component or value))
    return f"{opcode or kind} {number or value}" if not known.isdisjoint(_extensions(binary)) else ""


def without_new_languages(code: bytes) -> bytes:
    """Returns the module with unknown source languages replaced by Unknown, for old validators and layers."""
    binary = read_binary(code)
    words = list(binary.words)
    changed = False
    for opcode, start, _ in binary:
        if opcode == Op.Function:
            break
        if (
            opcode == Op.Source
            and words[start + 1] >= _FIRST_NEW_LANGUAGE
            and words[start + 1] in ENUMERATIONS["SourceLanguage"].names
        ):
            words[start + 1] = 0
            changed = True
    return pack(words) if changed else code


def _declares_for(binary: Binary, name: str) -> bool:
    """Whether a module declares a capability's SPIR-V extension, perhaps by a later name than the validator knows."""
    wanted = {
        extension for alternative in requirements(CAPABILITIES).get(name, ()) for extension in alternative.extensions
    }
    return any(
        not wanted.isdisjoint(alternative.extensions)
        for declared in _extensions(binary)
        for alternative in requirements(EXTENSIONS).get(declared, ())
    )


def _extensions(binary: Binary) -> list[str]:
    return [binary.string(start + 1, end, "replace")[0] for opcode, start, end in binary if opcode == Op.Extension]


def _known(binary: Binary) -> bool:
    """Whether the tables have every opcode, enumerant and operand of a module."""
    words = binary.words
    for opcode, start, end in binary:
        if opcode not in LAYOUTS:
            return False
        last, kind = start, ""
        for last, kind in operand_kinds(words, start, end):
            if kind in ENUMERATIONS:
                names, value = ENUMERATIONS[kind].names, words[last]
                bits = (1 << bit for bit in range(32) if value >> bit & 1) if kind in BIT_MASK_KINDS else (value,)
                if any(mask_bit not in names for mask_bit in bits):
                    return False
        # Literals that may be longer than a word are the last operand, but in a switch.
        if last + 1 != end and not kind.startswith("Literal") and opcode != Op.Switch:
            return False
    return True
