"""Structures of HLSL in the words of Slang: methods that change members, that are defined outside, and no names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ...base.lazy_dataclass import dataclass

OPENING: Final = ("(", "[", "{")
_CLOSING: Final = (")", "]", "}")
_ASSIGNING: Final = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "<<=", ">>=", "++", "--"})
_NAME: Final = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class _Method:
    """A method: the positions of its first token, its name, and its body's braces."""

    start: int
    name: int
    opening: int
    closing: int


def closing(tokens: Sequence[str], start: int) -> int:
    """Returns the position of the bracket that closes the one at ``start``."""
    depth = 0
    for position in range(start, len(tokens)):
        depth += (tokens[position] in OPENING) - (tokens[position] in _CLOSING)
        if not depth:
            return position
    return len(tokens) - 1


def with_slang_structures(tokens: Sequence[str]) -> list[str]:
    """Returns preprocessed HLSL whose structures Slang takes."""
    return _with_mutating_methods(_with_inner_methods(_with_named_structures(tokens)))


def _bodies(tokens: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Yields the structures: their name, and the positions of their braces."""
    for position, token in enumerate(tokens):
        if token in ("struct", "class", "extension"):
            opening = next((n for n in range(position, len(tokens)) if tokens[n] in ("{", ";", "(", ")", ">")), 0)
            if tokens[opening : opening + 1] == ["{"]:
                name = tokens[position + 1]
                yield name if _NAME.fullmatch(name) else "", opening, closing(tokens, opening)


def _statement_start(tokens: Sequence[str], position: int) -> int:
    while position and tokens[position - 1] not in (";", "{", "}"):
        position -= 1
    return position


def _is_announcement(tokens: Sequence[str], position: int) -> bool:
    return position >= 0 and tokens[position] in ("struct", "class") and tokens[position + 2 : position + 3] == [";"]


def _with_named_structures(tokens: Sequence[str]) -> list[str]:
    """Names structures without a name, declares them apart from their variables, and never without their members."""
    result = [
        token
        for position, token in enumerate(tokens)
        if not any(_is_announcement(tokens, position - offset) for offset in range(3))
    ]
    for number, (name, opening, end) in reversed(list(enumerate(_bodies(result)))):
        start = _statement_start(result, opening)
        word = next(n for n in range(start, opening) if result[n] in ("struct", "class", "extension"))
        if result[end + 1 : end + 2] == [";"] or (name and word == start):
            continue
        name = name or f"pumice_structure_{number}"
        qualifiers = result[start:word]
        result[end + 1 : end + 1] = [";", *qualifiers, name]
        result[start:opening] = ["struct", name]
    return result


def _with_inner_methods(tokens: Sequence[str]) -> list[str]:
    """Makes methods that are defined outside of their structure extensions of it."""
    result = list(tokens)
    structures = {name for name, _, _ in _bodies(result)}
    depth = position = 0
    moved: dict[str, set[str]] = {}
    while position < len(result):
        depth += (result[position] == "{") - (result[position] == "}")
        is_outside = (
            result[position : position + 1] == ["::"] and not depth and result[position + 2 : position + 3] == ["("]
        )
        if is_outside and result[position - 1] in structures:
            structure, method = result[position - 1], result[position + 1]
            start, end = _statement_start(result, position), closing(result, position + 2)
            if result[end + 1 : end + 2] == ["{"] and start < position - 1:
                body = closing(result, end + 1)
                moved.setdefault(structure, set()).add(method)
                is_static = _is_static(result, structure, method)
                inner = [
                    *(["static"] if is_static else []),
                    *result[start : position - 1],
                    *result[position + 1 : body + 1],
                ]
                result[start : body + 1] = ["extension", structure, "{", *inner, "}"]
                position = start + len(inner) + 4
                continue
        position += 1
    for name, opening, end in reversed(list(_bodies(result))):
        if name in moved and result[opening - 2] != "extension":
            result[opening + 1 : end] = _without_prototypes(result[opening + 1 : end], moved[name])
    return result


def _is_static(tokens: Sequence[str], structure: str, method: str) -> bool:
    return any(
        tokens[n : n + 2] == [method, "("] and "static" in tokens[_statement_start(tokens, n) : n]
        for name, opening, end in _bodies(tokens)
        if name == structure
        for n in range(opening, end)
    )


def _without_prototypes(body: Sequence[str], methods: set[str]) -> list[str]:
    result: list[str] = []
    start = position = 0
    while position < len(body):
        if body[position] in OPENING:
            is_prototype = position and body[position - 1] in methods
            position = closing(body, position) + 1
            if is_prototype and body[position : position + 1] == [";"]:
                position = start = position + 1
                continue
            if body[position - 1] == "}":
                result += body[start:position]
                start = position
            continue
        position += 1
        if body[position - 1] == ";":
            result += body[start:position]
            start = position
    return [*result, *body[start:]]


def _methods(tokens: Sequence[str], opening: int, end: int) -> Iterator[_Method]:
    start = position = opening + 1
    name = 0
    while position < end:
        token = tokens[position]
        if token == "(":
            name = position - 1
            position = closing(tokens, position)
        elif token == "{":
            last = closing(tokens, position)
            if name:
                yield _Method(start, name, position, last)
            start, position, name = last + 1, last, 0
        elif token == ";":
            start, name = position + 1, 0
        position += 1


def _with_mutating_methods(tokens: Sequence[str]) -> list[str]:
    """Marks methods that change a member, or call a method that does."""
    bodies = list(_bodies(tokens))
    members: dict[str, set[str]] = {}
    for name, opening, end in bodies:
        inner = set[int]()
        for method in _methods(tokens, opening, end):
            inner.update(range(method.start, method.closing + 1))
        members.setdefault(name, set()).update(
            tokens[n] for n in range(opening + 1, end) if n not in inner and tokens[n + 1] in (";", ",", "[")
        )
    methods = [(name, method) for name, opening, end in bodies for method in _methods(tokens, opening, end)]
    mutating: set[tuple[str, str]] = set()
    grows = True
    while grows:
        count = len(mutating)
        for name, method in methods:
            called = {other for structure, other in mutating if structure == name}
            if _changes(tokens[method.opening : method.closing], members[name], called):
                mutating.add((name, tokens[method.name]))
        grows = len(mutating) > count
    result = list(tokens)
    for name, method in sorted(methods, key=lambda entry: entry[1].start, reverse=True):
        if (name, tokens[method.name]) in mutating and "static" not in tokens[method.start : method.name]:
            result[method.start : method.start] = ["[", "mutating", "]"]
    return result


def _changes(body: Sequence[str], members: set[str], called: set[str]) -> bool:
    """Whether a method's body assigns to a member or calls one of the methods."""
    for position, token in enumerate(body):
        before = body[position - 1] if position else ""
        is_own = before != "." or body[position - 2 : position - 1] == ["this"]
        if not is_own or (_NAME.fullmatch(before) and before != "return"):
            continue
        if token in called and body[position + 1 : position + 2] == ["("]:
            return True
        if token in members:
            if before in ("++", "--"):
                return True
            end = position + 1
            while body[end : end + 1] == ["["] or (body[end : end + 1] == ["."] and body[end + 2 : end + 3] != ["("]):
                end = closing(body, end) + 1 if body[end] == "[" else end + 2
            if body[end : end + 1] and body[end] in _ASSIGNING:
                return True
    return False
