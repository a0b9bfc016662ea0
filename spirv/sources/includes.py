"""The files that a source can include or import, found without evaluating conditions.

A file that an inactive ``#if`` includes counts, and if a name exists in several search folders, each of these files
counts. A name that is found nowhere is left to the compiler.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

from ...status import InvalidArgumentError, NotFoundError, shorten, shown
from .language import Language

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
"""Some editors start a file with it; compilers reject it."""

# A comment may contain text that looks like a directive, and a directive may be split by a line continuation.
_COMMENT: Final = re.compile(rb"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_CONTINUATION: Final = re.compile(rb"\\\r?\n")
_INCLUDE: Final = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*(?:\"([^\"\n]+)\"|<([^>\n]+)>)", re.MULTILINE)
_DIRECTIVE: Final = re.compile(rb"^[ \t]*#[ \t]*include\b", re.MULTILINE)
_VERSION: Final = re.compile(rb"^[ \t]*#[ \t]*version[ \t]+(\d{1,9})([ \t]+es)?[^\n]*\n", re.MULTILINE)
_GUARD: Final = re.compile(rb"\s*#[ \t]*ifndef[ \t]+(\w+)\s*#[ \t]*define[ \t]+\1\b")
_ONCE: Final = re.compile(rb"^[ \t]*#[ \t]*pragma[ \t]+once\b", re.MULTILINE)
# Slang's modules: `import a.b;` is the file a/b.slang, where an underscore may be a hyphen in the file's name.
_IMPORT: Final = re.compile(
    rb"(?:^|[;\s])(?:import|__include|implementing|module)\s+(?:\"([^\"\n]+)\"|([A-Za-z_][\w.]*))\s*;", re.MULTILINE
)


def absolute(path: str | Path) -> Path:
    """Returns the absolute path with symbolic links kept: compilers look for neighbours in a link's own folder."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def without_comments(text: bytes) -> bytes:
    """Returns the text without comments and line continuations."""
    return _COMMENT.sub(b" ", _CONTINUATION.sub(b"", text.removeprefix(BYTE_ORDER_MARK)))


def without_comments_in_place(text: bytes) -> bytes:
    """Returns the text with blanks for its comments, so that offsets and lines stay the same."""
    return _COMMENT.sub(lambda comment: re.sub(rb"[^\n]", b" ", comment[0]), text)


def _include_names(text: bytes) -> list[str]:
    return [os.fsdecode(local or system) for local, system in _INCLUDE.findall(without_comments(text))]


def _imported_names(text: bytes) -> list[str]:
    """Returns the possible file names of imported modules."""
    names = []
    for quoted, module in _IMPORT.findall(without_comments(text)):
        path = os.fsdecode(quoted) if quoted else module.decode().replace(".", "/")
        paths = {path} if path.endswith(".slang") else {path + ".slang", path.replace("_", "-") + ".slang"}
        names += [*sorted(paths), *(source_path + "-module" for source_path in sorted(paths))]
    return names


def read_source(source: str | Path, language: Language = Language.GLSL) -> bytes:
    """Returns the bytes of a text or file."""
    title = language.title
    if isinstance(source, str):
        try:
            return source.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(f"expected {title} text that UTF-8 can hold: {error}") from error
    try:
        return source.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(
            f"there is no {title} file {shown(str(source))}; to compile a text pass it as a str"
        ) from None
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(
            f"expected a readable {title} file, got {shown(str(source))}: {shorten(str(error))}"
        ) from error


def enable_includes(text: bytes, name: Path | None) -> bytes:
    """Returns the text with ``GL_GOOGLE_include_directive`` enabled, if it has a ``#include``; line numbers stay the
    same.

    Args:
        text: the GLSL source, without a byte order mark.
        name: the file's name, for debug information; ``None`` keeps the compiler's name.
    """
    bare = without_comments_in_place(text)
    version = _VERSION.search(bare)
    if version is None or not _DIRECTIVE.search(_CONTINUATION.sub(b"", bare)):
        return text
    head, rest = text[: version.end()], text[version.end() :]
    line = head.count(b"\n") + 1
    # The number in a #line is that of the next line in GLSL 3.30 and later and in GLSL ES; of its own line in older
    # GLSL.
    line -= not version[2] and int(version[1]) < 330
    directive = b"#line %d" % line
    if name is not None and '"' not in str(name) and "\\" not in str(name):
        directive += b' "%s"' % os.fsencode(name)
    return head + b"#extension GL_GOOGLE_include_directive : require\n" + directive + b"\n" + rest


def included_files(
    source: str | Path,
    include_dirs: Iterable[str | Path] = (),
    *,
    text: bytes | None = None,
    language: Language = Language.GLSL,
) -> dict[Path, bytes]:
    """Returns every file that can take part in a compilation through ``#include`` or, in Slang, ``import``.

    Args:
        source: the text (``str``) or the file (``Path``).
        include_dirs: the folders searched after the including file's own.
        text: the content of ``source``, where it was read before.

    Returns:
        The content by absolute path, in sorted order, without ``source`` unless it is included, too.

    Raises:
        InvalidArgumentError: files include each other in a cycle without an include guard, which no compiler
            survives, or a file cannot be read.
        NotFoundError: ``source`` is a path that does not exist.
    """
    text = (read_source(source, language) if text is None else text).removeprefix(BYTE_ORDER_MARK)
    is_slang = language is Language.SLANG
    root = absolute(source) if isinstance(source, Path) else None
    folders = list(dict.fromkeys([*([root.parent] if root else []), *map(absolute, include_dirs)]))
    wanted = {root: _include_names(text)} if root else {}
    names = dict.fromkeys([*_include_names(text), *(_imported_names(text) if is_slang else ())])
    files: dict[Path, bytes] = {}
    tried: set[Path] = set()
    # glslang searches the folders of all files on its include stack, so the folder of a new file can resolve a known
    # name differently: repeat until no file is new.
    while new := [p for f in folders for n in names if (p := absolute(f / n)) not in tried]:
        for path in new:
            tried.add(path)
            try:
                if path in files or not path.is_file():
                    continue
                content = path.read_bytes()
            except (OSError, ValueError) as error:
                raise InvalidArgumentError(
                    f"the included file {shown(str(path))} cannot be read: {shorten(str(error))}"
                ) from error
            files[path] = content
            bare = _COMMENT.sub(b" ", content.removeprefix(BYTE_ORDER_MARK))
            is_guarded = _GUARD.match(bare) or (language is not Language.GLSL and _ONCE.search(bare))
            wanted[path] = [] if is_guarded else _include_names(content)
            names.update(dict.fromkeys([*_include_names(content), *(_imported_names(content) if is_slang else ())]))
            if path.parent not in folders:
                folders.append(path.parent)
    _refuse_rings(wanted, folders)
    return dict(sorted(files.items()))


def _refuse_rings(wanted: Mapping[Path, Sequence[str]], folders: Sequence[Path]) -> None:
    def includes(path: Path) -> set[Path]:
        paths = (
            next((p for f in (path.parent, *folders) if (p := absolute(f / n)) in wanted), None) for n in wanted[path]
        )
        return {p for p in paths if p is not None}

    try:
        TopologicalSorter({path: includes(path) for path in wanted}).prepare()
    except CycleError as error:
        ring = ", ".join(str(path) for path in sorted(set(error.args[1])))
        raise InvalidArgumentError(
            f"these files include each other without end: {ring}; start one of them with an include guard "
            "(#ifndef NAME, #define NAME, at the end #endif)"
        ) from None
