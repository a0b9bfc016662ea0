"""Compilers' messages about a source as one error, with the place, the line and a caret for each mistake."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError

_SHOWN_ERRORS: Final = 10
_TOKEN: Final = re.compile(r"\w+|\S")
# An error with its source in a frame, as the compilers of Slang and naga write it.
_FRAMED: Final = re.compile(
    r"^(?:fatal )?error(?:\[(E\d+)\])?: ([^\n]*)\n"
    r" *(?:-->|\u250c\u2500) (.+?):(\d+):(\d+) *\n"
    r"((?:[ \d]*[|\u2502][^\n]*\n?)*)",
    re.MULTILINE,
)
_LABEL: Final = re.compile(r"\^+ +(\S[^\n]*)")
_QUOTED: Final = re.compile(r"^'([^']+)'")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake.

    Attributes:
        file: as the compiler names it.
        line: from 1.
        column: from 1, in characters; ``None`` where the compiler gives none.
    """

    file: str
    line: int
    column: int | None
    message: str


def framed_errors(said: str) -> Iterator[Diagnostic]:
    """Yields the errors of a compiler that shows the source in a frame, with a label at the caret."""
    for match in _FRAMED.finditer(said.replace("\r\n", "\n")):
        code, summary, file, line, column, frame = match.groups()
        label = _LABEL.search(frame)
        message = label[1].rstrip(". ") if label else summary
        if summary not in message and message not in summary:
            message = f"{summary}: {message}"
        yield Diagnostic(file, int(line), int(column), f"{message} [{code}]" if code else message)


def compile_error(
    diagnostics: Iterable[Diagnostic], names: Mapping[str, str], texts: Mapping[str, bytes], notes: Sequence[str]
) -> InvalidArgumentError | None:
    """Returns the error of a source that does not compile; ``None`` without diagnostics.

    Args:
        names: what to call files, by the compiler's names; others keep theirs.
        texts: the files' contents, by the compiler's names.
        notes: lines for the end of the message.
    """
    entries = []
    for diagnostic in diagnostics:
        name = names.get(diagnostic.file, diagnostic.file)
        location = f"{name}:{diagnostic.line}" + (f":{diagnostic.column}" if diagnostic.column is not None else "")
        entries.append((location, diagnostic.message, _excerpt(texts.get(diagnostic.file, b""), diagnostic)))
    entries = list(dict.fromkeys(entries))
    if not entries:
        return None
    parts = [entries[0][1] + entries[0][2]]
    parts += [f"{location}: {message}{excerpt}" for location, message, excerpt in entries[1:_SHOWN_ERRORS]]
    if len(entries) > _SHOWN_ERRORS:
        parts.append(f"... and {len(entries) - _SHOWN_ERRORS} more errors")
    return InvalidArgumentError("\n".join([*parts, *notes]), location=entries[0][0])


def _excerpt(text: bytes, diagnostic: Diagnostic) -> str:
    lines = text.decode("utf-8", "replace").splitlines()
    if not 0 < diagnostic.line <= len(lines):
        return ""
    line = lines[diagnostic.line - 1]
    content = line.expandtabs(4)[:200]
    excerpt = f"\n{diagnostic.line:6} | {content}"
    match = None
    if diagnostic.column is not None:
        start = len(line[: diagnostic.column - 1].expandtabs(4))
        match = _TOKEN.match(content, start)
        if match is None and start <= len(content):
            return f"{excerpt}\n       | {' ' * start}^"
    elif token := _QUOTED.match(diagnostic.message):  # without a column the quoted token says where to look
        match = re.search(rf"(?<!\w){re.escape(token[1])}(?!\w)", content)
    if match:
        excerpt += f"\n       | {' ' * match.start()}{'^' * len(match[0])}"
    return excerpt
