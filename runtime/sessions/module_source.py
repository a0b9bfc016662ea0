"""Where a session loads modules from: a file, standard input, memory, or an open binary file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO, TypeAlias

from ...status import InvalidArgumentError, UnavailableError
from ...vm.execution.bytecode_module import BytecodeModule

ModuleSource: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO"


def open_module(source: ModuleSource) -> BytecodeModule:
    """The module that a source has; see ``Session.load``."""
    if isinstance(source, str) and source == "-":
        stdin = getattr(sys.stdin, "buffer", None)
        if stdin is None:
            raise UnavailableError("standard input is closed, or has no bytes; give the module as a path or bytes")
        return BytecodeModule.from_bytes(stdin.read(), "<stdin>")
    if isinstance(source, (str, os.PathLike)):
        return BytecodeModule.open(Path(source))
    name = getattr(source, "name", None)
    name = str(name) if isinstance(name, (str, os.PathLike)) else "<memory>"
    return BytecodeModule.from_bytes(_bytes_of(source), name)


def _bytes_of(source: object) -> bytes | bytearray | memoryview:
    """The bytes of a buffer in place, or the rest of a file."""
    if isinstance(source, (bytes, bytearray)):
        return source
    try:
        view = memoryview(source)  # type: ignore[arg-type]  # what has no buffer raises
    except TypeError:
        read = getattr(source, "read", None)
        if read is None:
            raise InvalidArgumentError(
                f"load takes a path, bytes or a binary file, got {type(source).__name__}"
            ) from None
        data = read()
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise InvalidArgumentError("load takes a file opened in binary mode, got one in text mode") from None
        return data
    if not view.c_contiguous:
        raise InvalidArgumentError("load takes contiguous bytes; copy them with bytes(…)")
    return view.cast("B") if view.nbytes else b""
