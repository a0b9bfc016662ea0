"""A position in the text of a program, and the tokens shared by its whole grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Never

from .sizes import SIZE_TEXT, Dim, Size, parse_size
from .source import SourceText

SPACE: Final = r"(?:[ \t\r\n]++|//[^\n]*+)*+"
"""White space and comments, without backtracking."""

_SPACE: Final = re.compile(SPACE)
_WORD: Final = re.compile(SPACE + r"([A-Za-z_][A-Za-z0-9_$.]*+)", re.ASCII)
_DECIMAL: Final = re.compile(SPACE + r"(-?[0-9]{1,400}(?:\.[0-9]{0,400})?(?:[eE][-+]?[0-9]{1,5})?)(?![\w.])", re.ASCII)
_INTEGER: Final = re.compile(SPACE + r"(-?(?:0x[0-9A-Fa-f]++|[0-9]++))", re.ASCII)
_SIZE: Final = re.compile(SPACE + rf"({SIZE_TEXT})", re.ASCII)
_STRING: Final = re.compile(SPACE + r'"((?:[^"\\\n]++|\\[^\n])*+)"')
_SYMBOL: Final = re.compile(SPACE + r'@(?:([A-Za-z_][A-Za-z0-9_$.-]*+)|"((?:[^"\\\n]++|\\[^\n])*+)")', re.ASCII)
_ESCAPE: Final = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_SHOWN: Final = re.compile(r'"[^"\n]{0,40}"?|[%@^#!]?[A-Za-z0-9_$.]+|->|::|\S', re.ASCII)
_SIMPLE_ESCAPES: Final = {b"n": b"\n", b"t": b"\t"}


class Scanner:
    """Reads a text from left to right.

    If something else comes next, ``accept`` methods do not move, and ``expect`` methods raise CompileError.

    Attributes:
        source: the text, for errors.
        text: the same text.
        position: the offset of the next character.
    """

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.text: str = source.text
        self.position: int = 0

    def error(self, message: str, offset: int | None = None) -> Never:
        """Raises an error at an offset, by default at the next token."""
        raise self.source.error(self.here() if offset is None else offset, message)

    def unexpected(self, expected: str) -> Never:
        """Raises an error that names the expected text."""
        offset = self.here()
        token = _SHOWN.match(self.text, offset)
        self.error(f"expected {expected}, got {token[0] if token else 'the end of the text'}", offset)

    def here(self) -> int:
        """Returns the offset of the next token."""
        match = _SPACE.match(self.text, self.position)
        assert match is not None
        self.position = match.end()
        return self.position

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Matches a pattern, which starts with ``SPACE``, and moves after the match."""
        match = pattern.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
        return match

    def at(self, literal: str) -> bool:
        """Returns whether a literal comes next, without reading it."""
        return self.text.startswith(literal, self.here())

    def accept(self, literal: str) -> bool:
        """Reads punctuation if present; returns whether it was."""
        position = self.here()
        if self.text.startswith(literal, position):
            self.position = position + len(literal)
            return True
        return False

    def expect(self, literal: str) -> None:
        """Reads punctuation."""
        if not self.accept(literal):
            self.unexpected(f"'{literal}'")

    def items(self, closing: str) -> Iterator[None]:
        """Yields before each item of a list; reads the commas between items and the closing bracket."""
        while not self.accept(closing):
            yield
            if not self.accept(","):
                self.expect(closing)
                break

    def peek_word(self) -> str:
        """Returns the word that comes next, or an empty string, without reading it."""
        match = _WORD.match(self.text, self.position)
        return match[1] if match else ""

    def accept_word(self, word: str) -> bool:
        """Reads a word if present; returns whether it was."""
        match = _WORD.match(self.text, self.position)
        if match is None or match[1] != word:
            return False
        self.position = match.end()
        return True

    def word(self, expected: str) -> str:
        """Reads any word."""
        match = self.match(_WORD)
        if match is None:
            self.unexpected(expected)
        return match[1]

    def expect_word(self, word: str) -> None:
        """Reads a word."""
        if not self.accept_word(word):
            self.unexpected(f"'{word}'")

    def integer(self) -> int:
        """Reads an integer."""
        match = self.match(_INTEGER)
        if match is None:
            self.unexpected("an integer")
        if len(match[1]) > 1000:
            self.error("an integer of more than 1,000 digits", match.start(1))
        value = int(match[1], 0) if "x" in match[1] else int(match[1])
        if not -(1 << 63) <= value < 1 << 64:
            self.error("an integer of more than 64 bits", match.start(1))
        return value

    def decimal(self) -> float:
        """Reads a number, with or without a fraction and an exponent."""
        match = self.match(_DECIMAL)
        if match is None:
            self.unexpected("a number")
        return float(match[1])

    def size(self, text: str, start: int) -> Dim:
        """Parses a length such as ``(2*d0+1)``."""
        try:
            return parse_size(text)
        except ValueError as error:
            self.error(str(error), start)

    def accept_size(self) -> Size | None:
        """Reads a call-dependent length, if present."""
        match = self.match(_SIZE)
        if match is None:
            return None
        size = self.size(match[1], match.start(1))
        if isinstance(size, int):
            self.error(f"expected symbols such as d0 in {match[1]}", match.start(1))
        return size

    def length(self) -> Dim:
        """Reads an integer, or a call-dependent length."""
        size = self.accept_size()
        return self.integer() if size is None else size

    def accept_string(self) -> str | None:
        """Reads a quoted string, if present."""
        match = self.match(_STRING)
        return None if match is None else unescaped(match[1])

    def string(self) -> str:
        """Reads a quoted string."""
        value = self.accept_string()
        if value is None:
            self.unexpected("a quoted string")
        return value

    def symbol(self) -> str:
        """Reads a symbol's name, which may consist of several names joined by ``::@``."""
        names = []
        while True:
            match = self.match(_SYMBOL)
            if match is None:
                self.unexpected("a symbol such as @main")
            names.append(match[1] if match[2] is None else unescaped(match[2]))
            if not self.at("::@"):
                return "::@".join(names)
            self.expect("::")

    def balanced(self, closing: str) -> str:
        """Reads up to the bracket that matches the one just read; returns the text without it.

        Quoted strings are skipped, and ``->`` closes no bracket.
        """
        start = self.position
        expected = [closing]
        for match in _BRACKET.finditer(self.text, start):
            token = match[0]
            if token in _CLOSING:
                expected.append(_CLOSING[token])
            elif len(token) == 1:
                if token != expected.pop():
                    self.error(f"expected '{closing}', got {token}", match.start())
                if not expected:
                    self.position = match.end()
                    return self.text[start : match.start()]
        raise self.source.error(start, f"'{closing}' is missing")


_CLOSING: Final = {"<": ">", "(": ")", "[": "]", "{": "}"}
_BRACKET: Final = re.compile(r'"(?:[^"\\\n]++|\\[^\n])*+"|->|[<>()\[\]{}]')


def unescaped(text: str) -> str:
    """Replaces the escapes in a string: two hexadecimal digits, or a character that stands for itself."""
    if "\\" not in text:
        return text

    def byte(match: re.Match[bytes]) -> bytes:
        escape = match[1]
        return bytes([int(escape, 16)]) if len(escape) == 2 else _SIMPLE_ESCAPES.get(escape, escape)

    return _ESCAPE.sub(byte, text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
