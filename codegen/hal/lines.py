"""Statements of Python as trees, and their lines of limited width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from ...vm.translation.expressions import Call, Display, Expression, Keyword, Literal, call

WIDTH: Final = 112
"""The maximum line width, without the indentation of a method's body."""


class Statement(NamedTuple):
    """A statement: words, an optional expression, and the end."""

    start: str
    tree: Expression | None = None
    end: str = ""


class Raise(NamedTuple):
    """A failure with a status and a message."""

    status: Expression
    message: str


class PythonComment(NamedTuple):
    """A comment on a line of its own."""

    text: str


class Suite(NamedTuple):
    """A header, which ends with a colon, and the statements under it."""

    header: Statement
    body: list[Node]


Node: TypeAlias = Statement | Raise | PythonComment | Suite
PASS, CONTINUE, BREAK, RETURN = (Statement(word) for word in ("pass", "continue", "break", "return"))


def has_statements(body: Iterable[Node]) -> bool:
    """Whether there are statements besides comments."""
    return any(not isinstance(node, PythonComment) for node in body)


def leaves(body: Iterable[Node]) -> bool:
    """Whether the statements contain a ``break``."""
    return any(node == BREAK or (isinstance(node, Suite) and leaves(node.body)) for node in body)


def lines_of(body: Iterable[Node], indent: str = "") -> Iterator[str]:
    """Yields the lines of statements."""
    for node in body:
        match node:
            case Statement(start, tree, end):
                yield from [f"{indent}{start}{end}"] if tree is None else broken(indent, start, tree, end)
            case Raise(status, message):
                yield from _raised(indent, status, message)
            case PythonComment(text):
                yield f"{indent}# {text}"[:WIDTH]
            case Suite((start, tree, end), inner):
                yield f"{indent}{start}{'' if tree is None else tree.python()}{end}"
                yield from lines_of(inner, f"{indent}    ")


def _raised(indent: str, status: Expression, message: str) -> Sequence[str]:
    """Returns the lines of a failure, with a long message broken."""
    failure = call("failure", status, Literal(message))
    if len(indent) + len(failure.python()) < WIDTH - 6:
        return broken(indent, "raise ", failure)
    width = WIDTH - len(indent) - 7
    rest = message
    parts = []
    while rest:
        end = width
        while len(Literal(rest[:end]).python()) > width + 2:
            end -= 1
        if end < len(rest):
            end = rest.rfind(" ", 0, end) + 1 or end
        parts.append(f"    {Literal(rest[:end]).python()}")
        rest = rest[end:]
    lines = ("raise failure(", f"    {status.python()},", *parts[:-1], f"{parts[-1]},", ")")
    return [f"{indent}{line}" for line in lines]


def broken(indent: str, start: str, tree: Expression, end: str = "") -> list[str]:
    """Returns a statement with an expression between ``start`` and ``end``, broken if it is too long.

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
