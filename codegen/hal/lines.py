"""Statements in lines that are not too long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

WIDTH: Final = 112
"""The most characters of a line, without the indentation of a method's body."""


def broken(indent: str, text: str) -> list[str]:
    """A statement in lines that are not too long: broken at the commas of its outermost call."""
    if len(indent) + len(text) <= WIDTH or text.startswith(("#", "if ", "while ", "elif ")):
        return [indent + text]
    start = _opening(text)
    if start is None or not text.endswith(text[start].translate(str.maketrans("([{", ")]}"))):
        return [indent + text]
    called = text[start] == "[" or text[start - 1 : start].isidentifier()
    parts = _parts(text[start + 1 : -1])
    if not called and len(parts) == 1:  # an expression in parentheses
        return [indent + text]
    inner = indent + "    "
    if not parts:
        target, found, value = text.partition(" = ")
        return [f"{indent}{target} = (", inner + value, f"{indent})"] if found else [indent + text]
    lines = [indent + text[: start + 1]]
    joined = ", ".join(parts)
    if len(inner) + len(joined) <= WIDTH and not (len(parts) == 1 and text[start] == "("):
        lines.append(inner + joined)
    else:
        for part in parts:
            lines += broken(inner, f"{part},") if len(inner) + len(part) <= WIDTH - 1 else _with_comma(inner, part)
    return [*lines, indent + text[-1]]


def _with_comma(indent: str, part: str) -> list[str]:
    lines = broken(indent, part)
    return [*lines[:-1], f"{lines[-1]},"]


def _code(text: str) -> Iterator[tuple[int, str]]:
    """The characters that stand outside of quotes, with their positions."""
    quote = ""
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote and text[position - 1] != "\\" else quote
        elif character in "\"'":
            quote = character
        else:
            yield position, character


def _opening(text: str) -> int | None:
    """The bracket that the last character closes."""
    stack: list[int] = []
    for position, character in _code(text):
        if character in "([{":
            stack.append(position)
        elif character in ")]}":
            found = stack.pop()
            if position == len(text) - 1:
                return found
    return None


def _parts(text: str) -> list[str]:
    """The texts between the commas of a level."""
    parts = []
    depth = start = 0
    for position, character in _code(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and not depth:
            parts.append(text[start:position].strip())
            start = position + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts
