"""Files that are either whole or not there."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from ...status import NotFoundError, PermissionDeniedError, ResourceExhaustedError, UnavailableError

__all__ = ["write_whole"]


def write_whole(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Has a file written, which takes its name when all of it is on the disk; one that was there is replaced then.

    Args:
        path: of the file.
        write: given the open file.

    Raises:
        NotFoundError, PermissionDeniedError, ResourceExhaustedError, UnavailableError: there is no such folder, it cannot be written, the
            disk is full, or else.
    """
    target = Path(path)
    with _file_errors(target):
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        try:
            with part.open("xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} cannot be written: there is no folder {path.parent}") from error
    except (PermissionError, IsADirectoryError, NotADirectoryError) as error:
        raise PermissionDeniedError(f"{path} cannot be written: {error.strerror}") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise ResourceExhaustedError(
                f"{path} cannot be written: {error.strerror}; nothing of it was kept"
            ) from error
        raise UnavailableError(f"{path} cannot be written: {error}") from error
