"""The specialization constants that a source declares.

Compilers drop constants that no code uses. A constant that the source declares and the module lacks was dropped; a
constant in neither is a misspelling.
"""

from __future__ import annotations

import re
from typing import Final

from ..binary.grammar import Op
from ..binary.words import read_binary

# The declarations of GLSL, of HLSL and Slang, and of WGSL: the id (a number or a macro) and the name.
_DECLARATIONS: Final = (
    re.compile(r"\bconstant_id\s*=\s*(\w+)[^)]*\)\s*(?:\w+\s+)+(\w+)\s*[=;]"),
    re.compile(r"\bvk::constant_id\s*\(\s*(\w+)[^)]*\)[\s\]]*(?:\w+\s+)+(\w+)\s*[=;]"),
    re.compile(r"\[\s*(SpecializationConstant)[\s\]]*(?:\w+\s+)+(\w+)\s*[=;]"),
    re.compile(r"(?:@id\s*\(\s*(\w+)\s*\)\s*)?\boverride\s+(\w+)"),
)
_SIZE: Final = re.compile(r"\blocal_size_[xyz]_id\s*=\s*(\w+)")


def declares(text: str, key: int | str) -> bool:
    """Whether a source in GLSL, HLSL, Slang or WGSL declares a specialization constant by an id or a name.

    Ids may be macros, or left to the compiler: then any id may be declared.
    """
    declarations = [match for declaration in _DECLARATIONS for match in declaration.findall(text)]
    if isinstance(key, str):
        return any(name == key for _, name in declarations)
    ids = [number for number, _ in declarations] + _SIZE.findall(text)
    return any(not number.isdecimal() or int(number) == key for number in ids)


def embedded_source(code: bytes) -> str:
    """Returns the source text in a module's debug information; ``""`` if it has none."""
    binary = read_binary(code)
    texts = []
    for opcode, start, end in binary:
        if opcode == Op.Function:
            break
        first = {Op.String: 2, Op.Source: 4, Op.SourceContinued: 1}.get(opcode)
        if first is not None and start + first < end:
            texts.append(binary.string(start + first, end, "replace")[0])
    return "\n".join(text for text in texts if "\n" in text)  # single-line strings are names
