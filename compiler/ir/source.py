"""The text of a program, its positions, and errors that point into it."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from ...status import InvalidArgumentError

_MAX_LINE = 160
_MAX_MESSAGE = 1500


class CompileError(InvalidArgumentError):
    """A program that cannot be compiled. The message starts with the position and ends with the line and a caret.

    Attributes:
        file_name: the file name of the program.
        line: the line from 1.
        column: the column from 1, in characters.
        offset: the offset in the text while the position is not known; otherwise -1.
    """

    def __init__(self, message: str, file_name: str, line: int, column: int, offset: int = -1) -> None:
        super().__init__(message)
        self.offset = offset
        self.file_name = file_name
        self.line = line
        self.column = column


class SourceText:
    """A text and its file name in errors. Offsets count characters from 0."""

    def __init__(self, text: str, file_name: str) -> None:
        self.text = text
        self.file_name = file_name

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        find = self.text.find
        position = find("\n")
        while position >= 0:
            starts.append(position + 1)
            position = find("\n", position + 1)
        return starts

    def place(self, offset: int) -> tuple[int, int]:
        """Returns line and column of an offset, both from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """Returns the offset of a line and column, both from 1; the text's end for a line beyond it."""
        starts = self._line_starts
        return min(starts[line - 1] + column - 1 if line <= len(starts) else len(self.text), len(self.text))

    def located(self, error: CompileError) -> CompileError:
        """Adds the position to an error with only an offset, from a later stage; returns other errors unchanged."""
        return error if error.line or error.offset < 0 else self.error(error.offset, error.message)

    def error(self, offset: int, message: str) -> CompileError:
        """Creates an error at an offset, with the line (a section of a long line) and a caret."""
        if len(message) > _MAX_MESSAGE:
            message = message[:_MAX_MESSAGE] + "…"
        line, column = self.place(offset)
        start = self._line_starts[line - 1]
        end = self.text.find("\n", start)
        shown_start = max(start, offset - _MAX_LINE // 2)
        shown = self.text[shown_start : min(len(self.text) if end < 0 else end, shown_start + _MAX_LINE)]
        caret = "".join("\t" if char == "\t" else " " for char in shown[: offset - shown_start])
        text = f"{self.file_name}:{line}:{column}: {printable(message)}\n  {printable(shown)}\n  {caret}^"
        return CompileError(text, self.file_name, line, column)


def printable(text: str) -> str:
    """Replaces the characters that a terminal cannot show."""
    return (
        text
        if text.isprintable()
        else "".join(char if char.isprintable() or char in "\t\n" else "\ufffd" for char in text)
    )
