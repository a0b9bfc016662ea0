"""The kind of an input file, by its content, or otherwise by its name."""

from __future__ import annotations

import enum
import sys
from pathlib import Path
from typing import Final

from ..base.files import reading_errors
from ..spirv.sources.language import described_languages, language_of
from ..status import InvalidArgumentError, UnavailableError, shorten

_SPIRV: Final = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")  # in either byte order
_HEAD: Final = 16
PROGRAM_SUFFIXES: Final = (".mlir", ".pb", ".pbtxt")
"""Suffixes of files that are compiled before they run."""
SCRIPT_SUFFIXES: Final = (".amber", ".vkscript")


class FileKind(enum.Enum):
    """The kind of a file; the value is its name in messages."""

    SOURCE = "shader source"
    SPIRV = "SPIR-V module"
    EXECUTABLE = "Vulkan executable (VKE1)"
    MODULE = "bytecode module"
    PROGRAM = "tensor program"
    SCRIPT = "Amber script"


def file_kind(path: Path, language: str | None = None) -> FileKind:
    """Returns the kind of a file; a text is a source if its ``language`` is specified."""
    head = read_file(path, _HEAD)
    if head[:4] in _SPIRV or path.suffix == ".spv":
        return FileKind.SPIRV
    if head[:4] == b"VKE1":
        return FileKind.EXECUTABLE
    if is_module(head):
        return FileKind.MODULE
    if head[:7] == b"#!amber" or path.suffix in SCRIPT_SUFFIXES:
        return FileKind.SCRIPT
    if language is not None or language_of(path) is not None:
        return FileKind.SOURCE
    if path.suffix in PROGRAM_SUFFIXES:
        return FileKind.PROGRAM
    raise InvalidArgumentError(
        f"{shorten(str(path))}: expected SPIR-V (.spv), {described_languages()}, StableHLO (.mlir), a GraphDef (.pb, "
        ".pbtxt), Amber (.amber), a compiled module or a Vulkan executable; its name and content are those of none"
        + ("" if head else ", it is empty")
    )


def is_module(head: bytes) -> bool:
    """Whether bytes begin a module: a FlatBuffer with a size prefix and the identifier ``IREE``, or a ZIP archive."""
    return head[:4] == b"PK\x03\x04" or head[8:12] == b"IREE"


def read_file(path: Path, size: int = -1) -> bytes:
    """Returns the file's bytes, or the first ``size`` bytes if ``size`` is not negative."""
    with reading_errors(path), path.open("rb") as file:
        return file.read(size)


def read_stdin() -> bytes:
    """Returns the program on stdin."""
    if sys.stdin is None:
        raise UnavailableError("expected a program on stdin, which is closed")
    return sys.stdin.buffer.read()
