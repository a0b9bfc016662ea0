"""Files on disk: they are written whole or not at all, and what fails is said."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from ..status import (
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    PumiceError,
    ResourceExhaustedError,
    UnavailableError,
    shorten,
)


@contextlib.contextmanager
def replacing(path: Path, *, sync: bool = False) -> Iterator[BinaryIO]:
    """Opens a new file that takes the name when the block ends; if it raises, what had the name before stays.

    A symbolic link is followed. With ``sync`` the content is on the disk by then.
    """
    target = Path(os.path.realpath(path))
    before = _mode(target)
    if before is not None and stat.S_ISDIR(before):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if before is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    part = target.with_name(f".{target.name[:200]}.{os.urandom(4).hex()}.part")
    try:
        with part.open("xb") as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        if before is not None:
            part.chmod(stat.S_IMODE(before))
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_whole(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Writes a file that takes its name when all of it is on the disk; pipes and devices are written directly.

    Raises:
        NotFoundError: there is no such folder.
        PermissionDeniedError: it may not be written, or is a folder.
        ResourceExhaustedError: the disk is full; what was there before is still there.
        InvalidArgumentError: the path holds a NUL character.
        UnavailableError: the operating system failed in another way.
    """
    target = Path(path)
    with writing_errors(target), _opened(target) as file:
        write(file)


def write_all(files: Mapping[Path, bytes]) -> None:
    """Writes files that take their names when the content of all is on the disk, as `write_whole` does one."""
    with contextlib.ExitStack() as stack:
        for path, content in files.items():
            stack.enter_context(writing_errors(path))
            file = stack.enter_context(_opened(path))
            file.write(content)
            file.flush()


def _opened(target: Path) -> contextlib.AbstractContextManager[BinaryIO]:
    """A file that takes the name when it is written; the pipe or the device that has the name."""
    mode = _mode(target)
    direct = mode is not None and not stat.S_ISREG(mode)
    return target.open("wb") if direct else replacing(target, sync=True)


@contextlib.contextmanager
def writing_errors(path: Path) -> Iterator[None]:
    """Within it, errors of the operating system become those of `write_whole`."""
    shown = shorten(str(path))
    try:
        yield
    except PumiceError:  # some of them are OSErrors too
        raise
    except FileNotFoundError as error:
        folder = "" if path.parent.is_dir() else f": there is no folder {shorten(str(path.parent))}"
        raise NotFoundError(f"{shown} cannot be written{folder}") from error
    except FileExistsError as error:
        raise PermissionDeniedError(f"{shown} cannot be written: expected a folder, or a new name") from error
    except (PermissionError, IsADirectoryError, NotADirectoryError) as error:
        raise PermissionDeniedError(f"{shown} cannot be written: {error.strerror}") from error
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise ResourceExhaustedError(f"{shown} cannot be written: {why}; nothing of it was kept") from error
        raise UnavailableError(f"{shown} cannot be written: {why}") from error
    except ValueError as error:
        if "null" not in str(error):
            raise
        raise InvalidArgumentError(f"{shown!r} cannot be written: {error}") from error


@contextlib.contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """Within it, errors of reading a file become NotFoundError, PermissionDeniedError or UnavailableError."""
    shown = shorten(str(path))
    try:
        yield
    except PumiceError:  # some of them are OSErrors or ValueErrors too
        raise
    except FileNotFoundError:
        raise NotFoundError(f"no such file: {shown}") from None
    except PermissionError as error:
        raise PermissionDeniedError(f"{shown} cannot be read: {error.strerror}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or shorten(str(error))
        raise UnavailableError(f"{shown} cannot be read: {why}") from None


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None
