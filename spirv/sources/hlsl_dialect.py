"""Translates HLSL for FXC and dxc to Slang's dialect.

Slang is stricter than the compilers of Direct3D: it has no conversion that truncates a vector, no ``unsigned int``, no
counter of a structured buffer, and so on. `DECLARATIONS` has what a declaration can give. `translated` rewrites the
rest in a preprocessed source: a token is replaced or moved where the meaning stays the same.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Final

from .hlsl_structures import OPENING, closing, with_slang_structures

_SCALARS: Final = ("float", "int", "uint", "half", "double")
_TOKENS: Final = re.compile(
    r'"(?:\\.|[^"\\])*"|[A-Za-z_]\w*|\.?\d(?:[eE][+-]|[\w.])*|<<=|>>=|::|->|\+\+|--|&&|\|\||[-+*/%&|^!=<>]=|<<|>>|\S'
)
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_WORDS: Final = {
    "dword": "uint",
    "DWORD": "uint",
    "tbuffer": "cbuffer",
    "unsigned": "uint",
    **{
        f"{old}{shape}": f"{new}{shape}"
        for old, new in (
            *(("min16float", "half"), ("min10float", "half"), ("min16int", "int16_t")),
            *(("min12int", "int16_t"), ("min16uint", "uint16_t")),
        )
        for shape in ("", *"1234", *(f"{rows}x{columns}" for rows in "1234" for columns in "1234"))
    },
}
# What a global constant has that is static already, or may not be.
_STATIC: Final = frozenset({"static", "constant_id", "SpecializationConstant"})
_HINTS: Final = frozenset({"branch", "flatten", "fastopt", "call", "forcecase", "allow_uav_condition"})
_CHANNELS: Final = {"r": "x", "g": "y", "b": "z", "a": "w"}
# Words before a name that is used, not declared.
_NO_TYPES: Final = frozenset({"return", "else", "do", "case", "in", "out", "inout", "goto"})
_QUALIFIERS: Final = frozenset(
    {
        "static",
        "extern",
        "uniform",
        "groupshared",
        "precise",
        "volatile",
        "inline",
        "row_major",
        "column_major",
        "shared",
    }
)
_COUNTED: Final = {"IncrementCounter": "pumice_increment", "DecrementCounter": "pumice_decrement"}
_COUNTERS: Final = (
    "uint pumice_increment ( RWStructuredBuffer < int > counter ) "
    "{ int before ; InterlockedAdd ( counter [ 0 ] , 1 , before ) ; return uint ( before ) ; }\n"
    "uint pumice_decrement ( RWStructuredBuffer < int > counter ) "
    "{ int before ; InterlockedAdd ( counter [ 0 ] , -1 , before ) ; return uint ( before - 1 ) ; }\n"
)


def _conversions() -> str:
    def init(to: str, source: str, size: int, value: str) -> str:
        return f"__implicit_conversion(5000) __init(vector<{source}, {size}> v) {{ this = {to}({value}); }}"

    lines = []
    for to in _SCALARS:
        for size, swizzle in ((1, "x"), (2, "xy"), (3, "xyz")):
            name = to if size == 1 else f"vector<{to}, {size}>"
            longer = range(size + 1, 5)
            inits = [init(name, source, n, f"v.{swizzle}") for source in _SCALARS for n in longer]
            lines.append(f"extension {name} {{ {' '.join(inits)} }}")
    return "\n".join(lines) + "\n"


def _exponents() -> str:
    return "\n".join(
        f"{of} frexp({of} x, out {of} exponent) {{ int{size} e; {of} m = frexp(x, e); exponent = e; return m; }}"
        for size in ("", "2", "3", "4")
        for of in [f"float{size}"]
    )


def _atomics() -> str:
    lines = []
    for name in ("Add", "And", "Or", "Xor", "Min", "Max", "Exchange", "CompareExchange"):
        for of, other in (("int", "uint"), ("uint", "int")):
            compare, compared = (f"{of} compare, ", "compare, ") if name.startswith("Compare") else ("", "")
            lines.append(
                f"void Interlocked{name}(__ref {of} memory, {compare}{of} value, out {other} original) "
                f"{{ {of} o; Interlocked{name}(memory, {compared}value, o); original = {other}(o); }}"
            )
    return "\n".join(lines)


DECLARATIONS: Final = f"{_conversions()}{_exponents()}\n{_atomics()}\n"
"""Conversions that truncate vectors, implicit as in HLSL, after which any other overload is preferred; and functions of
HLSL that Slang declares otherwise.
"""


def translated(text: str, entry_point: str | None) -> str:
    """Returns a preprocessed source in words that Slang takes.

    Args:
        text: the source without directives.
        entry_point: the kernel's name; functions of the same name get another.
    """
    tokens = _with_plain_enumerators(_with_words(_without_unused_templates(_TOKENS.findall(text))))
    tokens = _with_static_constants(tokens)
    tokens = _with_distinct_types(tokens)
    if entry_point is not None:
        tokens = _with_distinct_entry(tokens, entry_point)
    tokens = with_slang_structures(_with_loop_variables(tokens))
    tokens, counters = _with_counters(tokens)
    declared = "".join(f"RWStructuredBuffer < int > {name} ;\n" for name in counters)
    # A line for each statement: messages and reports quote lines.
    body = re.sub(r"(?<=[;{}]) ", "\n", " ".join(tokens))
    return f"{body}\n{declared}{_COUNTERS if counters else ''}"


def _without_unused_templates(tokens: Sequence[str]) -> list[str]:
    """Removes templates of functions that nothing names, which need not compile for Direct3D's compilers."""
    result = list(tokens)
    position = 0
    while position < len(result):
        if result[position] == "template":
            parameters = next((n for n in range(position, len(result)) if result[n] in ("(", "{", ";")), position)
            name, end = result[parameters - 1], _statement_end(result, closing(result, parameters) + 1)
            if result[parameters] == "(" and result.count(name) == result[position:end].count(name):
                del result[position:end]
                position = 0  # it may have named another
                continue
        position += 1
    return result


def _with_words(tokens: Sequence[str]) -> list[str]:
    result: list[str] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        following = tokens[position + 1] if position + 1 < len(tokens) else ""
        if token in _WORDS and result[-1:] != ["."]:
            result.append(_WORDS[token])
            position += token == "unsigned" and following == "int"
            if token == "tbuffer" and tokens[position + 2 : position + 3] == [":"]:  # a register of another kind
                result.append(following)
                position = tokens.index("{", position) - 1
        elif token == "[" and following in _HINTS and tokens[position + 2 : position + 3] == ["]"]:
            position += 2
        elif token in ("Buffer", "RWBuffer") and following != "<":
            result += [token, "<", "float4", ">"]
        elif following == "const" and _NAME.fullmatch(token) and token not in _QUALIFIERS and token not in _NO_TYPES:
            result += ["const", token]
            position += 1
        elif token == "using" and tokens[position + 2 : position + 3] == ["="] and ";" in tokens[position:]:
            end = tokens.index(";", position)
            result += ["typedef", *tokens[position + 3 : end], following, ";"]
            position = end
        elif token == "packoffset" and tokens[position + 3 : position + 4] == ["."]:
            channel = tokens[position + 4]
            result += [*tokens[position : position + 4], _CHANNELS.get(channel, channel)]
            position += 4
        else:
            result.append(token)
        position += 1
    return result


def _with_plain_enumerators(tokens: Sequence[str]) -> list[str]:
    """Makes enumerators integers: they convert to any number, and are known without the name of their type."""
    result: list[str] = []
    enumerations: set[str] = set()
    spaces = {name for word, name in itertools.pairwise(tokens) if word == "namespace"}
    position = 0
    while position < len(tokens):
        opening = position + 1
        if tokens[position] == "enum" and tokens[opening] not in ("class", "struct"):
            opening = next((n for n in range(opening, len(tokens)) if tokens[n] in ("{", ";")), position)
        if tokens[opening : opening + 1] != ["{"] or tokens[position] != "enum":
            is_qualifier = tokens[position] in enumerations - spaces and tokens[opening : opening + 1] == ["::"]
            result += [] if is_qualifier else [tokens[position]]
            position += 2 if is_qualifier else 1
            continue
        name, *base = tokens[position + 1 : opening] or ["", ":", "int"]
        kind = base[-1] if base else "int"
        end = closing(tokens, opening)
        if name not in ("", ":"):
            enumerations.add(name)
            result += ["typedef", kind, name, ";"]
        result += _enumerators(tokens[opening + 1 : end], kind)
        position = end + 2
    return result


def _enumerators(tokens: Sequence[str], kind: str) -> list[str]:
    result: list[str] = []
    previous = ""
    position = 0
    while position < len(tokens):
        end = position
        while end < len(tokens) and tokens[end] != ",":
            end = closing(tokens, end) + 1 if tokens[end] in OPENING else end + 1
        name, *value = tokens[position:end]
        value = value[1:] or ([previous, "+", "1"] if previous else ["0"])
        result += ["static", "const", kind, name, "=", "(", kind, ")", "(", *value, ")", ";"]
        previous = name
        position = end + 1
    return result


def _with_static_constants(tokens: Sequence[str]) -> list[str]:
    """Makes global constants with a value static, as they are meant; Direct3D's compilers ignore the value."""
    result: list[str] = []
    blocks: list[bool] = []  # whether each open brace is a namespace's
    parentheses = 0
    start = 0
    for position, token in enumerate(tokens):
        if token == "{":
            blocks.append("namespace" in tokens[start:position])
        elif token == "}" and blocks:
            blocks.pop()
        parentheses += (token == "(") - (token == ")")
        if token == "const" and all(blocks) and not parentheses and _STATIC.isdisjoint(tokens[start : position + 2]):
            end = next((n for n in range(position, len(tokens)) if tokens[n] in (";", "{", "(")), len(tokens))
            if "=" in tokens[position : end + 1] or tokens[end - 1 : end] == ["="]:
                result.append("static")
        result.append(token)
        if token in (";", "{", "}"):
            start = position + 1
    return result


def _with_distinct_types(tokens: Sequence[str]) -> list[str]:
    """Renames structures that have the name of a variable."""
    structures = {name for word, name in itertools.pairwise(tokens) if word in ("struct", "class")}
    shared = {
        name
        for before, name, after in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if name in structures and after in (":", ";", "[", "=") and before not in ("struct", "class", "}", ";", "{")
        if before == ">" or (_NAME.fullmatch(before) and before not in _NO_TYPES)
    }
    if not shared:
        return list(tokens)
    result = list(tokens)
    for position, token in enumerate(tokens):
        before = tokens[position - 1] if position else ""
        after = tokens[position + 1] if position + 1 < len(tokens) else ""
        is_cast = before == "(" and after == ")" and _begins_operand(tokens[position + 2 : position + 3])
        if token in shared and (before in ("struct", "class", "<") or _NAME.fullmatch(after) or is_cast):
            result[position] = f"{token}_type"
    return result


def _begins_operand(tokens: Sequence[str]) -> bool:
    return bool(tokens) and (tokens[0] == "(" or tokens[0][0].isalnum() or tokens[0][0] == "_")


def _with_distinct_entry(tokens: Sequence[str], entry_point: str) -> list[str]:
    """Renames functions with the name of the entry point, which is the one with ``numthreads``."""
    calls = [n for n, token in enumerate(tokens) if token == entry_point and tokens[n + 1 : n + 2] == ["("]]
    kernels = set()
    threads = -1
    for position, token in enumerate(tokens):
        if token.lower() == "numthreads":
            threads = position
        elif token in ("{", ";") and threads >= 0:
            threads = -1
        elif threads >= 0 and position in calls:
            kernels.add(position)
    if not kernels or len(calls) == len(kernels):
        return list(tokens)
    return [f"{token}_function" if n in calls and n not in kernels else token for n, token in enumerate(tokens)]


def _statement_end(tokens: Sequence[str], start: int) -> int:
    """Returns the position after the statement at ``start``."""
    while start < len(tokens):
        token = tokens[start]
        if token == "[":  # an attribute
            start = closing(tokens, start) + 1
        elif token in ("for", "while", "switch", "if"):
            end = _statement_end(tokens, closing(tokens, start + 1) + 1)
            if token != "if" or tokens[end : end + 1] != ["else"]:
                return end
            start = end + 1
        elif token == "{":
            return closing(tokens, start) + 1
        elif token == "do":
            return _statement_end(tokens, _statement_end(tokens, start + 1))
        else:
            while start < len(tokens) and tokens[start] != ";":
                start = closing(tokens, start) + 1 if tokens[start] in OPENING else start + 1
            return start + 1
    return start


def _with_loop_variables(tokens: Sequence[str]) -> list[str]:
    """Declares before a loop the variables of the loop that are used after it, as old HLSL allows."""
    result = list(tokens)
    position = 0
    while position < len(result):
        if result[position] == "for" and result[position + 1 : position + 2] == ["("]:
            position = _hoisted(result, position)
        position += 1
    return result


def _hoisted(tokens: list[str], loop: int) -> int:
    """Moves the declaration of a loop before it if its variable is used after it; returns the loop's new position."""
    semicolon = next((n for n in range(loop, len(tokens)) if tokens[n] == ";"), len(tokens))
    declaration = tokens[loop + 2 : semicolon]
    if "=" not in declaration or not all(map(_NAME.fullmatch, declaration[: declaration.index("=")])):
        return loop
    equals = declaration.index("=")
    if equals < 2 or not _is_used_after(tokens, _statement_end(tokens, loop), declaration[equals - 1]):
        return loop
    start = loop
    while tokens[start - 1] == "]":  # attributes
        start = max(n for n in range(start) if tokens[n] == "[" and closing(tokens, n) == start - 1)
    del tokens[loop + 2 : semicolon]
    tokens[start:start] = [*declaration, ";"]
    return loop + len(declaration) + 1


def _is_used_after(tokens: Sequence[str], position: int, name: str) -> bool:
    depth = 0
    while position < len(tokens) and depth >= 0:
        token = tokens[position]
        depth += (token == "{") - (token == "}")
        if token == name and tokens[position - 1] != ".":
            before = tokens[position - 1]
            return not (_NAME.fullmatch(before) and before not in _NO_TYPES)
        position += 1
    return False


def _with_counters(tokens: Sequence[str]) -> tuple[list[str], list[str]]:
    """Replaces counters of structured buffers by buffers of one element; returns their names too."""
    result: list[str] = []
    counters: dict[str, None] = {}
    position = 0
    while position < len(tokens):
        if tokens[position] == "." and tokens[position + 1] in _COUNTED and _NAME.fullmatch(result[-1]):
            name = f"{result.pop()}_counter"
            counters[name] = None
            result += [_COUNTED[tokens[position + 1]], "(", name, ")"]
            position += 4
        else:
            result.append(tokens[position])
            position += 1
    return result, list(counters)
