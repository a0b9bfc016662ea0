"""What GLSL compilers say of a source, as one error with file, line and the source line of each mistake."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..status import InvalidArgumentError
from .glsl_includes import BYTE_ORDER_MARK, absolute

_SHOWN_ERRORS: Final = 10
# The file part is lazy and ends at the first `:<digits>:`, so a drive letter stays part of it.
_GLSLANG_ERROR: Final = re.compile(r"^ERROR: (.+?):(\d+): (.*)$")
_GLSLC_ERROR: Final = re.compile(r"^(.+?):(\d+): error: (.*)$")
_QUOTED: Final = re.compile(r"^'([^']+)'")


def compile_error(
    version: str,
    is_glslc: bool,
    said: str,
    names: Mapping[str, str],
    texts: Mapping[str, bytes],
    cwd: Path,
    whole: str,
) -> InvalidArgumentError:
    """The error of a compile that failed.

    Args:
        version: the compiler's name and version.
        is_glslc: whether it is shaderc's ``glslc``.
        said: what it printed.
        names: how to call files that it names.
        texts: contents of files by the compiler's names for them, the source first.
        cwd: the folder that it ran in.
        whole: what to say where no line of the output is an error with a place.
    """
    pattern = _GLSLC_ERROR if is_glslc else _GLSLANG_ERROR
    entries = []
    for match in filter(None, map(pattern.match, said.splitlines())):
        file, line, message = match[1], int(match[2]), match[3].strip()
        if message.endswith("compilation terminated"):
            continue
        text = texts.get(file, texts.get(str(absolute(cwd / file)), b""))
        entries.append((f"{names.get(file, file)}:{line}", message, _excerpt(text, line, message)))
    hint = f"\n(compiled with {version})"
    source = next(iter(texts.values()))
    if b"\n" not in source and source.endswith((b".comp", b".glsl")):
        hint += "\nthe source looks like a file name: pass a file as a pathlib.Path"
    for marked in (name for name, text in texts.items() if text.startswith(BYTE_ORDER_MARK)):
        hint += f"\n{marked} starts with a byte order mark, which the compiler refuses: save it as UTF-8 without one"
    if not entries:
        return InvalidArgumentError(f"GLSL does not compile: {whole}{hint}")
    parts = [entries[0][1] + entries[0][2]]
    parts += [f"{where}: {message}{excerpt}" for where, message, excerpt in entries[1:_SHOWN_ERRORS]]
    if len(entries) > _SHOWN_ERRORS:
        parts.append(f"... and {len(entries) - _SHOWN_ERRORS} more errors")
    return InvalidArgumentError("\n".join(parts) + hint, location=entries[0][0])


def _excerpt(text: bytes, line: int, message: str) -> str:
    lines = text.decode("utf-8", "replace").splitlines()
    if not 0 < line <= len(lines):
        return ""
    content = lines[line - 1].expandtabs(4)[:200]
    excerpt = f"\n{line:6} | {content}"
    # The compilers give no column; the quoted token says where to look.
    if token := _QUOTED.match(message):
        found = re.search(rf"(?<!\w){re.escape(token[1])}(?!\w)", content)
        if found:
            excerpt += f"\n       | {' ' * found.start()}{'^' * len(found[0])}"
    return excerpt
