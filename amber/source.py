"""The text of a script: lines, statements of tokens, and errors that point at them.

A statement is a line; ``\\`` at a line's end continues it on the next. ``#`` begins a comment. Tokens are separated by
white space; a quoted token may contain white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NoReturn, TypeVar

from ..base.lazy_dataclass import dataclass
from ..status import InvalidArgumentError, UnimplementedError, close_to, shown

_T = TypeVar("_T")
_W = TypeVar("_W", bound=str)
_TOKEN: Final = re.compile(r'"([^"]*)"|[^\s#"]+')
_INTEGER: Final = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})")
_MAX_U32: Final = (1 << 32) - 1
_MAX_SHOWN: Final = 100


class ScriptError(InvalidArgumentError):
    """A script that is wrong: ``location`` is ``file:line:column``, and the message ends with the line and a caret."""


class UnsupportedScriptError(UnimplementedError):
    """A valid script that needs a feature that pumice does not run, such as a graphics pipeline; located like
    `ScriptError`.
    """


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the script; both numbers count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Token:
    """A token, without the quotes around it, and its position."""

    text: str
    position: Position


class Source:
    """The lines of a script, read from top to bottom."""

    def __init__(self, text: str, file_name: str) -> None:
        self.file_name = file_name
        self.lines: list[str] = text.splitlines()
        self._next = 0

    def statement(self) -> Statement | None:
        """Returns the next line that has tokens, with those that continue it; ``None`` at the end."""
        while self._next < len(self.lines):
            tokens: list[Token] = []
            while self._next < len(self.lines):
                number = self._next + 1
                line = self.lines[self._next]
                self._next = number
                line_tokens, goes_on = self._tokens(line, number)
                tokens += line_tokens
                if not goes_on:
                    break
            if tokens:
                last = tokens[-1]
                return Statement(self, tokens, Position(last.position.line, last.position.column + len(last.text)))
        return None

    def _tokens(self, line: str, number: int) -> tuple[list[Token], bool]:
        tokens: list[Token] = []
        column = 0
        while True:
            while column < len(line) and line[column].isspace():
                column += 1
            if column == len(line) or line[column] == "#":
                return tokens, False
            if line[column] == "\\" and line[column + 1 :].split("#")[0].strip() == "":
                return tokens, True
            position = Position(number, column + 1)
            match = _TOKEN.match(line, column)
            if match is None:
                self.fail("this quote is not closed on its line", position)
            tokens.append(Token(match[0] if match[1] is None else match[1], position))
            column = match.end()

    def block(self, title: str, position: Position) -> Iterator[Statement]:
        """Yields the statements up to a line ``END``; ScriptError at ``position`` if there is none."""
        while (line := self.statement()) is not None:
            if line.accept("END"):
                line.finish()
                return
            yield line
        self.fail(f"{title} is not closed: expected END", position)

    def raw(self, opened: Token) -> tuple[str, int]:
        """Returns the unchanged lines up to one whose first word is ``END``, and the number of the first."""
        first = self._next
        for index in range(first, len(self.lines)):
            if self.lines[index].split("#")[0].split()[:1] == ["END"]:
                self._next = index + 1
                return "\n".join(self.lines[first:index]) + "\n", first + 1
        raise self.error(f"{opened.text} is not closed: expected a line END after its text", opened.position)

    def fail(self, message: str, position: Position) -> NoReturn:
        raise self.error(message, position)

    def error(self, message: str, position: Position) -> ScriptError:
        return ScriptError(self._pointed(message, position), location=self.at(position))

    def unsupported(self, message: str, position: Position) -> UnsupportedScriptError:
        return UnsupportedScriptError(self._pointed(message, position), location=self.at(position))

    def at(self, position: Position) -> str:
        """Returns ``file:line:column``."""
        return f"{self.file_name}:{position.line}:{position.column}"

    def _pointed(self, message: str, position: Position) -> str:
        line = self.lines[position.line - 1] if position.line <= len(self.lines) else ""
        start = max(0, position.column - 1 - _MAX_SHOWN // 2)  # long lines do not fit a terminal
        shown_line = line[start : start + _MAX_SHOWN].rstrip()
        caret = "".join("\t" if c == "\t" else " " for c in line[start : position.column - 1]) + "^"
        return f"{message}\n  {shown_line}\n  {caret}"


class Statement:
    """The tokens of one statement, taken from left to right."""

    def __init__(self, source: Source, tokens: list[Token], end: Position) -> None:
        self.source = source
        self.tokens = tokens
        self._end = end
        self._at = 0

    @property
    def first(self) -> Token:
        return self.tokens[0]

    def peek(self) -> Token | None:
        """Returns the next token, or ``None`` at the end."""
        return self.tokens[self._at] if self._at < len(self.tokens) else None

    @property
    def position(self) -> Position:
        """The position of the next token, or of the end."""
        token = self.peek()
        return self._end if token is None else token.position

    def accept(self, *words: str) -> str | None:
        """Takes the next token if it is one of these words."""
        token = self.peek()
        if token is None or token.text not in words:
            return None
        self._at += 1
        return token.text

    def expect(self, word: str) -> None:
        """Takes this word; ScriptError for another word."""
        if self.accept(word) is None:
            raise self.wrong(f"expected {word}")

    def take(self, expected: str) -> Token:
        """Takes any token; ``expected`` describes it, for the error at the end of the statement."""
        token = self.peek()
        if token is None:
            raise self.wrong(f"expected {expected}")
        self._at += 1
        return token

    def choice(self, expected: str, known: Mapping[str, _T]) -> _T:
        """Takes one of the known words."""
        token = self.take(expected)
        if token.text not in known:
            raise self.unknown(expected, token, known)
        return known[token.text]

    def word(self, expected: str, known: Iterable[_W]) -> _W:
        """Takes one of these words."""
        return self.choice(expected, {word: word for word in known})

    def unknown(self, expected: str, token: Token, known: Iterable[str]) -> ScriptError:
        """Returns the error for an unknown word. It suggests similar words, or lists all if there are at most 12."""
        names = list(known)
        alike = close_to(token.text, names)
        if alike:
            hint = f"did you mean {' or '.join(alike)}?"
        elif names and len(names) <= 12:
            hint = f"there are: {', '.join(names)}"
        else:
            hint = "there is none of that name"
        return self.source.error(f"expected {expected}, got {shown(token.text)}; {hint}", token.position)

    def integer(self, expected: str, low: int = 0, high: int = _MAX_U32) -> int:
        """Takes an integer, decimal or hexadecimal, from ``low`` to ``high``."""
        token = self.take(expected)
        value = as_integer(token.text)
        if value is None or not low <= value <= high:
            self.source.fail(
                f"expected {expected}, an integer from {low} to {high}, got {shown(token.text)}", token.position
            )
        return value

    def number(self, expected: str) -> float:
        token = self.take(expected)
        value = as_number(token.text)
        if value is None:
            self.source.fail(f"expected {expected}, a number, got {shown(token.text)}", token.position)
        return float(value)

    def switch(self, expected: str) -> bool:
        """Takes ``on`` or ``off``."""
        return self.choice(expected, {"on": True, "off": False})

    def finish(self) -> None:
        """Raises if tokens are left."""
        token = self.peek()
        if token is not None:
            self.source.fail(
                f"{self.first.text}: expected the end of the line, got {shown(token.text)}", token.position
            )

    def wrong(self, message: str) -> ScriptError:
        """Returns the error for an unexpected next token."""
        token = self.peek()
        got = "the end of the line" if token is None else shown(token.text)
        return self.source.error(f"{self.first.text}: {message}, got {got}", self.position)


def as_integer(text: str) -> int | None:
    """Returns an integer in decimal or hexadecimal, or ``None``."""
    if not _INTEGER.fullmatch(text):
        return None
    return int(text, 16 if "x" in text.lower() else 10)


def as_number(text: str) -> int | float | None:
    """Returns an integer, or a float (``nan`` and ``inf`` too), or ``None``."""
    whole = as_integer(text)
    if whole is not None:
        return whole
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return float.fromhex(text)
    except (ValueError, OverflowError):
        return None
