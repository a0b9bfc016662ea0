"""Files that results are stored in, with the errors that storing meets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ..status import NotFoundError, PermissionDeniedError, UnavailableError, shorten

__all__ = ["store"]


def store(path: Path, write: Callable[[BinaryIO], object], *, where: str, append: bool = False) -> None:
    """Opens a file and has it written.

    Args:
        path: of the file, which is made or emptied first.
        write: given the open file.
        where: the option that names the file, for messages.
        append: write behind the end of what the file has.

    Raises:
        NotFoundError, PermissionDeniedError, UnavailableError: it cannot be written.
    """
    try:
        with path.open("ab" if append else "wb") as file:
            write(file)
    except FileNotFoundError as error:
        raise NotFoundError(f"{where}: {shorten(str(path))}: {error.strerror}") from None
    except PermissionError as error:
        raise PermissionDeniedError(f"{where}: {shorten(str(path))} cannot be written: {error.strerror}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UnavailableError(f"{where}: {shorten(str(path))} cannot be written: {why}") from error
