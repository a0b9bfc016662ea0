"""Tokens of VM assembly text, and errors that point at them.

The text is a sequence of lines; no statement spans two. ``//`` and ``#`` start a comment outside of quotes, and a
leading ``[…]`` on a line (a program counter in a listing) is skipped. A quoted string ends at the next quote and has
no escapes: a backslash is a backslash. ``e"…"`` is a string with escapes, which the peer does not read. The notation is
that of IREE's ``iree-as-module``, release 3.13 (runtime/src/iree/vm/bytecode/assembler).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ...status import InvalidArgumentError, close_to

_MAX_SHOWN: Final = 100


class TokenKind(enum.Enum):
    """Kinds of tokens."""

    REGISTER = enum.auto()
    SYMBOL = enum.auto()
    LABEL = enum.auto()
    NUMBER = enum.auto()
    STRING = enum.auto()
    TYPE = enum.auto()
    WORD = enum.auto()
    PUNCTUATION = enum.auto()
    END = enum.auto()  # of the line


class Token(NamedTuple):
    """One token and its position."""

    kind: TokenKind
    text: str  # as written, quotes and sigils included; empty at the end of a line
    line: int  # from 0, as the column
    column: int

    @property
    def name(self) -> str:
        """The name of a symbol without ``@``, quotes and ordinal."""
        if self.text.startswith('@"'):
            return self.text[2 : self.text.index('"', 2)]
        return self.text[1:].partition(":")[0]

    @property
    def ordinal(self) -> str | None:
        """The digits of ``@name:12``; ``None`` for a symbol without an ordinal."""
        _, colon, digits = self.text[1:].rpartition('"')[2].partition(":")
        return digits if colon else None

    def __str__(self) -> str:
        if self.kind is TokenKind.END:
            return "the end of the line"
        shown = self.text if len(self.text) <= 40 else f"{self.text[:37]}..."
        return f"'{shown}'"


_SYMBOL_NAME: Final = r"[A-Za-z0-9_$.]+"
_PATTERNS: Final = (
    (TokenKind.STRING, r'"[^"]*"|e"(?:[^"\\]|\\.)*"'),
    (TokenKind.REGISTER, r"%[A-Za-z]*[0-9]*(?::[0-9]+)?"),
    (TokenKind.SYMBOL, rf'@(?:{_SYMBOL_NAME}|"[^"]*")(?::[0-9]+)?'),
    (TokenKind.LABEL, rf"\^{_SYMBOL_NAME}"),
    (
        TokenKind.NUMBER,
        r"[+-]?(?:0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?(?:[pP][+-]?[0-9]+)?"
        r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
        r"|(?i:inf(?:inity)?|nan(?:\([0-9a-z_]*\))?|bits\(0x[0-9a-f]*\)))(?![A-Za-z0-9_$.])",
    ),
    (TokenKind.WORD, r"[A-Za-z_.][A-Za-z0-9_$.]*"),
    (TokenKind.PUNCTUATION, r"->|[()\[\]{},:=?]"),
)
_SPACE: Final = re.compile(r"[ \t\r\v\f]*")
_TOKEN: Final = re.compile(f"{_SPACE.pattern}(?:{'|'.join(f'({pattern})' for _, pattern in _PATTERNS)})", re.ASCII)
_KINDS: Final = tuple(kind for kind, _ in _PATTERNS)
_TYPE_NAME: Final = re.compile(r"![A-Za-z0-9_$.*]+", re.ASCII)
_BEFORE_COMMENT: Final = re.compile(r'(?:[^"#/]+|"[^"]*(?:"|\Z)|/(?!/))*')
_LISTING_PREFIX: Final = re.compile(r"[ \t\r\v\f]*\[[^\]]*\]")


class SourceText:
    """A text, its lines, and the errors that point into it."""

    def __init__(self, text: str, file_name: str) -> None:
        self.file_name = file_name
        self.lines: list[str] = text.split("\n")

    def error(self, at: Token, message: str) -> InvalidArgumentError:
        """Returns an error located at a token, with the line and a caret under the token's first character."""
        return self._error_at(at.line, at.column, message)

    def unknown(self, expected: str, at: Token, name: str, known: Iterable[str]) -> InvalidArgumentError:
        """Returns an error for an unknown name after its sigil, with the nearest known ones."""
        near = [at.text[0] + candidate for candidate in close_to(name, list(known), 2)]
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        return self.error(at, f"expected {expected}, got {at}{hint}")

    def statements(self) -> Iterator[list[Token]]:
        """Yields the tokens of every non-empty line; each list ends with an ``END`` token."""
        for number, line in enumerate(self.lines):
            tokens = self._tokens(number, line)
            if len(tokens) > 1:
                yield tokens

    def between(self, start: Token, end: Token) -> str:
        """Returns the text of a line from the end of one token to the start of another."""
        return self.lines[start.line][start.column + len(start.text) : end.column]

    def _tokens(self, number: int, line: str) -> list[Token]:
        tokens: list[Token] = []
        prefix = _LISTING_PREFIX.match(line)
        position = prefix.end() if prefix else 0
        length = len(line)
        while True:
            match = _TOKEN.match(line, position)
            if match is not None and match.lastindex is not None:
                kind, start, end = _KINDS[match.lastindex - 1], match.start(match.lastindex), match.end()
            else:
                space = _SPACE.match(line, position)
                start = space.end() if space else position
                if start >= length or line[start] == "#" or line.startswith("//", start):
                    tokens.append(Token(TokenKind.END, "", number, start))
                    return tokens
                if line[start] != "!":
                    raise self._unexpected(number, line, start)
                kind, end = TokenKind.TYPE, self._type_end(number, line, start)
            tokens.append(Token(kind, line[start:end], number, start))
            position = end
            if kind is TokenKind.PUNCTUATION and line[position - 1] == "=" and tokens[0].text == "vm.rodata":
                # Hexadecimal bytes are not tokens: the parser reads the rest of the line.
                comment = _BEFORE_COMMENT.match(line, position)
                position = comment.end() if comment else position

    def _type_end(self, number: int, line: str, start: int) -> int:
        name = _TYPE_NAME.match(line, start)
        if name is None:
            raise self._error_at(number, start, "expected a type name after '!', such as !vm.buffer")
        end = name.end()
        if not line.startswith("<", end):
            return end
        depth = 0
        for position in range(end, len(line)):
            if line[position] == "<":
                depth += 1
            elif line[position] == ">":
                depth -= 1
                if depth == 0:
                    return position + 1
        raise self._error_at(number, start, "expected a '>' that closes the type's '<'; the line ends before it")

    def _unexpected(self, number: int, line: str, position: int) -> InvalidArgumentError:
        character = line[position]
        if character == '"':
            return self._error_at(number, position, "expected a closing quote; the string does not end on its line")
        if character in "@^":
            noun = "function or global name" if character == "@" else "block name"
            return self._error_at(number, position, f"expected a {noun} after '{character}'")
        return self._error_at(number, position, f"expected an operand or a directive, got the character {character!r}")

    def _error_at(self, number: int, column: int, message: str) -> InvalidArgumentError:
        line = self.lines[number]
        # Long lines do not fit a terminal, so a window around the caret is shown.
        start = 0 if column <= _MAX_SHOWN - 20 else column - _MAX_SHOWN // 2
        shown = "".join(c if c.isprintable() else " " for c in line[start : start + _MAX_SHOWN])
        caret = " " * (column - start) + "^"
        return InvalidArgumentError(
            f"{message}\n  {shown.rstrip()}\n  {caret}", location=f"{self.file_name}:{number + 1}:{column + 1}"
        )
