"""C functions shared by programs; each program gets the functions that it uses.

They are in ``support/`` as real C, with ``NAME_`` for the program's prefix. A *chunk* is the text between two empty
lines: a function, a type or a macro, with the comment above it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

_FILES: Final = (
    "status.c",
    "tables.c",
    "memory.c",
    "bytes.c",
    "queue.c",
    "commands.c",
    "recordings.c",
    "submissions.c",
    "executables.c",
    "files.c",
    "views.c",
    "lists.c",
    "numbers.c",
    "data.c",
    "program.c",
    "device.c",
    "tensors.c",
)
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_DEFINED: Final = re.compile(
    r"^#define (\w+)|^(?:typedef )?(?:struct|enum|union) (\w+)[ ;]|^\} ?(\w+);|^typedef [^{};(]*?(\w+);"
    r"|^(?:static |inline |const )*[A-Za-z_][\w ]*?[ *]+(\w+)\((?!\*)|^ {4}([A-Z][A-Z_0-9]+) = |^enum \{ (\w+) =",
    re.MULTILINE,
)
_FUNCTION: Final = re.compile(r"^((?:static|int|void|const|uint\w+)[^;{}=]*\))\n\{", re.MULTILINE)
_PREFIX: Final = re.compile(r"\bNAME(_?)(?=(\w?))")
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Chunk:
    """A part of the support files.

    Attributes:
        text: the chunk's C code.
        defined: the names that it defines.
        used: all words in the chunk, except in comments.
        prototype: the prototype of a static function, without the semicolon.
        is_public: whether the header declares the function.
    """

    text: str
    defined: frozenset[str]
    used: frozenset[str]
    prototype: str
    is_public: bool


def template(name: str) -> str:
    """Reads a file of ``support/``."""
    return (files(__package__) / "support" / name).read_text("utf-8")


def filled(text: str, parts: Mapping[str, str]) -> str:
    """Replaces lines that consist of a part's name by the part's lines, possibly none."""
    lines = []
    for line in text.split("\n"):
        part = parts.get(line.strip())
        if part != "":
            lines.append(line if part is None else part)
    return "\n".join(lines)


def prefixed(text: str, prefix: str) -> str:
    """Replaces ``NAME`` by the program's prefix, in capitals before capitals."""

    def replaced(match: re.Match[str]) -> str:
        upper = match[1] and (match[2].isupper() or match[2].isdigit())
        return (prefix.upper() if upper else prefix) + match[1]

    return _PREFIX.sub(replaced, text)


@cache
def chunks() -> tuple[Chunk, ...]:
    """Returns all chunks in the order of the files; types and macros are defined before their uses."""
    chunks = []
    for name in _FILES:
        for text in template(name).strip().split("\n\n"):
            code = _COMMENT.sub("", text)
            defined = frozenset(group for match in _DEFINED.finditer(code) for group in match.groups() if group)
            header = _FUNCTION.search(code)
            is_static = header is not None and header[1].startswith("static")
            chunks.append(
                Chunk(
                    text,
                    defined,
                    frozenset(_WORD.findall(code)),
                    header[1] if header is not None and is_static else "",
                    header is not None and not is_static,
                )
            )
    return tuple(chunks)


@cache
def reserved() -> frozenset[str]:
    """Returns the names that generated code must not define."""
    return frozenset(word for chunk in chunks() for word in (*chunk.defined, *chunk.used))


def chosen(words: Collection[str]) -> list[Chunk]:
    """Returns the chunks that code with these words needs, and all public chunks, in order."""
    by_name: dict[str, list[Chunk]] = {}
    for chunk in chunks():
        for name in chunk.defined:
            by_name.setdefault(name, []).append(chunk)
    taken: set[Chunk] = {chunk for chunk in chunks() if chunk.is_public}
    pending = [*words, *(word for chunk in taken for word in chunk.used)]
    seen: set[str] = set()
    while pending:
        word = pending.pop()
        if word in seen:
            continue
        seen.add(word)
        for chunk in by_name.get(word, ()):
            if chunk not in taken:
                taken.add(chunk)
                pending += chunk.used
    return [chunk for chunk in chunks() if chunk in taken]


def arranged(taken: list[Chunk]) -> tuple[list[str], list[str]]:
    """Splits chunks into types and macros, and functions; adds prototypes of functions that are used before."""
    types = [chunk.text for chunk in taken if not _FUNCTION.search(chunk.text)]
    functions = [chunk for chunk in taken if _FUNCTION.search(chunk.text)]
    defined_at = {name: index for index, chunk in enumerate(functions) for name in chunk.defined}
    early = dict.fromkeys(
        name
        for index, chunk in enumerate(functions)
        for name in sorted(chunk.used)
        if defined_at.get(name, -1) > index and functions[defined_at[name]].prototype
    )
    prototypes = [functions[defined_at[name]].prototype + ";" for name in early]
    return types, [*(["\n".join(prototypes)] if prototypes else []), *(chunk.text for chunk in functions)]
