"""Statements broken into lines of limited width."""

from __future__ import annotations

from typing import Final

from ...vm.translation.expressions import Call, Display, Expression, Keyword

WIDTH: Final = 112
"""The maximum line width, without the indentation of a method's body."""


def broken(indent: str, start: str, tree: Expression, end: str = "") -> list[str]:
    """Returns a statement with an expression between ``start`` and ``end``, broken where it is too long.

    It is broken at the commas of the outermost call or list.
    """
    text = tree.python()
    whole = f"{indent}{start}{text}{end}"
    if len(whole) <= WIDTH:
        return [whole]
    if isinstance(tree, Keyword):
        return broken(indent, f"{start}{tree.name}=", tree.value, end)
    if isinstance(tree, Call):
        parts, opening, closing = tree.arguments, f"{tree.function.python()}(", ")"
    elif isinstance(tree, Display) and (tree.is_list or len(tree.items) > 1):
        parts, (opening, closing) = tree.items, "[]" if tree.is_list else "()"
    else:
        return [whole]
    inner = indent + "    "
    if not parts:
        return [f"{indent}{start}(", f"{inner}{text}", f"{indent}){end}"] if start.endswith(" = ") else [whole]
    joined = inner + ", ".join(part.python() for part in parts)
    fits = len(joined) <= WIDTH
    lines = [joined] if fits else [line for part in parts for line in broken(inner, "", part, ",")]
    return [f"{indent}{start}{opening}", *lines, f"{indent}{closing}{end}"]
