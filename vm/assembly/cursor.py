"""A position in a line of VM assembly, and errors that name the expected text."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager

from ...status import InvalidArgumentError
from .lexer import SourceText, Token, TokenKind
from .literals import LiteralError, float_bits, integer, string_bytes


class Cursor:
    """Reads the tokens of a line from left to right; each ``expect`` raises InvalidArgumentError for other tokens."""

    def __init__(self, source: SourceText, tokens: list[Token]) -> None:
        self._source = source
        self._tokens = tokens
        self._position = 0

    @property
    def next(self) -> Token:
        """The next token; the ``END`` token at the end of the line."""
        return self._tokens[self._position]

    @property
    def words(self) -> set[str]:
        """The texts of the remaining tokens."""
        return {token.text for token in self._tokens[self._position :]}

    def take(self) -> Token:
        """Takes the next token."""
        token = self.next
        if token.kind is not TokenKind.END:
            self._position += 1
        return token

    def accept(self, text: str) -> bool:
        """Whether the next token is ``text``; if so, it is taken."""
        token = self.next
        if token.text != text or token.kind in (TokenKind.STRING, TokenKind.END):
            return False
        self._position += 1
        return True

    def expect(self, text: str) -> Token:
        """Returns the next token, which must be ``text``."""
        token = self.next
        if not self.accept(text):
            raise self.unexpected(f"'{text}'")
        return token

    def expect_kind(self, kind: TokenKind, expected: str) -> Token:
        """Returns the next token, which must be of a kind; ``expected`` describes it in errors."""
        if self.next.kind is not kind:
            raise self.unexpected(expected)
        return self.take()

    def expect_end(self) -> None:
        """Checks that the line ends here."""
        if self.next.kind is not TokenKind.END:
            raise self.unexpected("the end of the line")

    def symbol(self, expected: str) -> Token:
        """Returns a name after ``@``, without an ordinal."""
        token = self.expect_kind(TokenKind.SYMBOL, f"{expected} such as @name")
        if token.ordinal is not None:
            raise self.error(token, f"expected {expected} such as @name, got an ordinal: {token}")
        return token

    def type_name(self) -> Token:
        """Returns a type: ``!vm.buffer``, or a word such as ``i32``."""
        if self.next.kind not in (TokenKind.TYPE, TokenKind.WORD):
            raise self.unexpected("a type such as i32 or !vm.buffer")
        return self.take()

    def integer(self, bits: int, *, signed: bool, noun: str) -> int:
        """Returns an integer, as an unsigned number of ``bits`` bits."""
        token = self.expect_kind(TokenKind.NUMBER, noun)
        with self._located(token, noun):
            return integer(token.text, bits, signed=signed)

    def float_bits(self, bits: int, noun: str) -> int:
        """Returns the bits of a floating-point number."""
        token = self.expect_kind(TokenKind.NUMBER, noun)
        with self._located(token, noun):
            return float_bits(token.text, bits)

    def string(self, noun: str) -> bytes:
        """Returns the bytes of a quoted string."""
        token = self.expect_kind(TokenKind.STRING, f"{noun}, a quoted string")
        with self._located(token, noun):
            return string_bytes(token.text)

    def text(self, noun: str) -> str:
        """Returns a quoted string that is UTF-8."""
        token = self.next
        try:
            return self.string(noun).decode()
        except UnicodeDecodeError:
            raise self.error(token, f"{noun}: expected UTF-8, got {token}") from None

    @contextmanager
    def _located(self, token: Token, noun: str) -> Iterator[None]:
        try:
            yield
        except LiteralError as error:
            raise self.error(token, f"{noun}: expected {error}, got {token}") from None

    def once(self, token: Token, noun: str, known: Container[str]) -> str:
        """Returns the name of a token, without a symbol's sigil; raises if the name is known."""
        name = token.name if token.kind is TokenKind.SYMBOL else token.text
        if name in known:
            raise self.error(token, f"expected each {noun} once, got {token} again")
        return name

    def unexpected(self, expected: str) -> InvalidArgumentError:
        """Returns the error for an unexpected token."""
        return self.error(self.next, f"expected {expected}, got {self.next}")

    def error(self, at: Token, message: str) -> InvalidArgumentError:
        """Returns an error at a token."""
        return self._source.error(at, message)
