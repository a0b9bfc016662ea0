"""Files that results are stored in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ..files import write_whole, writing_errors
from ..status import PumiceError


def store(path: Path, write: Callable[[BinaryIO], object], *, where: str, append: bool = False) -> None:
    """Writes a file, or appends to one.

    Args:
        path: of the file, which may exist.
        write: writes the content to the open file.
        where: the option that names the file, for messages.
        append: write at the end of what the file has.

    Raises:
        PumiceError: as `write_whole`; a file that was there before is as it was, unless it is appended to.
    """
    try:
        if append:
            with writing_errors(path), path.open("ab") as file:
                write(file)
        else:
            write_whole(path, write)
    except PumiceError as error:
        error.location = where
        raise
