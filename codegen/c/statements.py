"""Statements and functions in C as trees: their text, and the names that they use."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from ...vm.translation.expressions import Cast, Expression, Name, call
from .expressions import c_text

_WIDTH: Final = 120

P: Final = Name("p")
"""The program, the first argument of most functions."""

NULL: Final = Name("NULL")


class Evaluate(NamedTuple):
    """An expression evaluated for its effect."""

    value: Expression


class Assign(NamedTuple):
    """An assignment."""

    target: Expression
    value: Expression


class Declare(NamedTuple):
    """A variable with its first value; pointer types end with a star."""

    type: str
    name: str
    value: Expression


class If(NamedTuple):
    """A conditional."""

    test: Expression
    yes: Sequence[Statement]
    no: Sequence[Statement] = ()


class Switch(NamedTuple):
    """Cases numbered from 0, and a default at the end."""

    value: Expression
    cases: Sequence[Sequence[Statement]]


class Group(NamedTuple):
    """Statements with variables of their own."""

    body: Sequence[Statement]


class Goto(NamedTuple):
    """A jump."""

    label: str


class Label(NamedTuple):
    """The target of jumps."""

    label: str


class Break(NamedTuple):
    """The end of a case."""


class Comment(NamedTuple):
    """A comment on a line of its own."""

    text: str


Statement: TypeAlias = Evaluate | Assign | Declare | If | Switch | Group | Goto | Label | Break | Comment
DONE: Final = Goto("done")


# No star, which might end the comment; no backslash and no two question marks, which could form one.
_OUTSIDE: Final = re.compile(r"[^ -~]|[*\\%]|(?<=\?)\?")


def comment_text(text: str) -> str:
    """Returns a module's text in a form for comments: printable ASCII, other characters as ``%2A``."""
    return _OUTSIDE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace")), text)


class Definition(NamedTuple):
    """A function.

    Attributes:
        name: the C name, with ``NAME`` in place of the program's prefix.
        parameters: the types and names.
        body: the statements; a function that returns a status sets ``status`` and ends at ``done``.
        ends: the statements after ``done``, which run on every way out.
        result: the storage class and type of the result: a status, or ``void``.
    """

    name: str
    parameters: Sequence[tuple[str, str]]
    body: Sequence[Statement]
    ends: Sequence[Statement] = ()
    result: str = "static int"

    def prototype(self) -> str:
        """Returns the declaration, without the semicolon."""
        parameters = ",\n".join(declarator(type, name) for type, name in self.parameters)
        return "\n".join(_filled("", f"{self.result} {self.name}({parameters})"))

    def names(self) -> set[str]:
        """Returns the names that it uses, types included."""
        types = {word for type, _ in self.parameters for word in _words(type)}
        return types | set(names_in((*self.body, *self.ends)))

    def text(self) -> str:
        """Returns the definition."""
        names = self.names()
        unused = [Evaluate(Cast("void", Name(name))) for _, name in self.parameters if name not in names]
        lines = [self.prototype(), "{"]
        has_status = self.result.endswith("int")
        if has_status:
            lines.append("    int status = OK;")
        declared = next((at for at, item in enumerate(self.body) if not isinstance(item, Declare)), len(self.body))
        lines += lines_of([*self.body[:declared], *unused, *self.body[declared:]])
        if has_status and not names.isdisjoint(("TRY", "done")):
            lines.append("done:")
        lines += lines_of(self.ends)
        return "\n".join([*lines, *(["    return status;"] if has_status else []), "}"])


def declarator(type: str, name: str) -> str:
    """Returns a type and a name, without a space after a star."""
    return f"{type}{'' if type.endswith('*') else ' '}{name}"


def attempt(function: str, *arguments: Expression) -> Evaluate:
    """Builds a call that may fail, with the program as its first argument."""
    return Evaluate(call("TRY", call(function, P, *arguments)))


def assign_reference(target: Expression, value: Expression) -> Statement:
    """Builds the assignment of a counted reference."""
    return Evaluate(call("REPLACE", target, NULL) if value == NULL else call("ASSIGN", target, value))


def lines_of(statements: Iterable[Statement], level: int = 1) -> Iterator[str]:
    """Yields the lines of statements."""
    indent = "    " * level
    for statement in statements:
        match statement:
            case Evaluate(value):
                yield from _filled(indent, f"{c_text(value)};")
            case Assign(target, value):
                yield from _filled(indent, f"{c_text(target)} = {c_text(value)};")
            case Declare(type, name, value):
                yield from _filled(indent, f"{declarator(type, name)} = {c_text(value)};")
            case If(test, yes, no):
                yield from _filled(indent, f"if ({c_text(test)}) {{")
                yield from lines_of(yes, level + 1)
                if no:
                    yield f"{indent}}} else {{"
                    yield from lines_of(no, level + 1)
                yield f"{indent}}}"
            case Switch(value, cases):
                yield f"{indent}switch ({c_text(value)}) {{"
                for number, body in enumerate(cases, 1):
                    yield f"{indent}{'default' if number == len(cases) else f'case {number - 1}'}:"
                    yield from lines_of(body, level + 1)
                yield f"{indent}}}"
            case Group(body):
                yield f"{indent}{{"
                yield from lines_of(body, level + 1)
                yield f"{indent}}}"
            case Goto(label):
                yield f"{indent}goto {label};"
            case Label(label):
                yield f"{label}:;"
            case Break():
                yield f"{indent}break;"
            case Comment(text):
                yield f"{indent}/* {comment_text(text)} */"


def _filled(indent: str, text: str) -> Iterator[str]:
    """Yields a statement, broken after commas if it is too long."""
    line, *rest = text.split("\n")
    if len(indent) + len(text) <= _WIDTH:
        line, rest = " ".join([line, *rest]), []
    line = indent + line
    for piece in rest:
        if len(line) + len(piece) < _WIDTH:
            line += f" {piece}"
        else:
            yield line
            line = f"{indent}        {piece}"
    yield line


def names_in(part: object) -> Iterator[str]:
    """Yields the names in statements and expressions: variables, functions, labels, and words of types."""
    match part:
        case Name(name) | Goto(name):
            yield name
            return
        case Cast(type, _) | Declare(type, _, _):
            yield from _words(type)
    if isinstance(part, Declare):
        yield part.name
    if isinstance(part, tuple | list):
        for item in part:
            yield from names_in(item)


def _words(type: str) -> list[str]:
    return type.replace("*", " ").replace("[]", "").split()


def without_dead(body: Sequence[Statement], variables: Collection[str]) -> Sequence[Statement]:
    """Removes assignments to variables that nothing reads."""
    while True:
        dead = set(variables) - set(_reads(body))
        kept = _without(body, dead)
        if kept == body:
            return body
        body = kept


def _reads(part: object) -> Iterator[str]:
    """Yields the names whose values statements use."""
    match part:
        case Assign(Name(), value):
            yield from names_in(value)
        case Evaluate() | Assign() | Declare():
            yield from names_in(part)
        case If(test, _, _) | Switch(test, _):
            yield from names_in(test)
            for body in part[1:]:
                yield from _reads(body)
        case tuple() | list():
            for item in part:
                yield from _reads(item)


def _without(body: Sequence[Statement], dead: Collection[str]) -> Sequence[Statement]:
    kept: list[Statement] = []
    for statement in body:
        match statement:
            case Assign(Name(name), _) if name in dead:
                continue
            case If(test, yes, no):
                statement = If(test, _without(yes, dead), _without(no, dead))
            case Switch(value, cases):
                statement = Switch(value, [_without(case, dead) for case in cases])
            case Group(inner):
                statement = Group(_without(inner, dead))
        kept.append(statement)
    return kept
