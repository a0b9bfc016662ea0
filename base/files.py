"""Files on disk: written completely or not at all, with pumice's errors."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from ..status import (
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    PumiceError,
    ResourceExhaustedError,
    UnavailableError,
    shorten,
)

# Links are not followed, and opening a pipe does not block.
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
READ_FLAGS: Final = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
)


def read_regular(path: str | os.PathLike[str], most: int) -> tuple[bytes, os.stat_result]:
    """Reads a file that another program may have replaced; returns its content and its status.

    Raises:
        OSError: there is no file; it is a link, a pipe or another special file, or longer than ``most`` bytes.
    """
    descriptor = os.open(path, READ_FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            raise PermissionError(errno.EPERM, f"expected a regular file of at most {most} bytes", str(path))
        parts = []
        while part := os.read(descriptor, most + 1):
            parts.append(part)
    finally:
        os.close(descriptor)
    return parts[0] if len(parts) == 1 else b"".join(parts), status


def stamp(status: os.stat_result) -> tuple[int, ...]:
    """Returns a stamp of a file, for cache keys: it changes whenever the file's content changes.

    Size and time of modification are not enough: packages of reproducible builds have the same time for all files, and
    programs that copy files set it back. ``st_ctime`` cannot be set back.
    """
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


_LOCK_SECONDS: Final = 10.0


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Locks a file against changes by other processes and threads. The lock is a second file, which is kept.

    Raises:
        OSError: the folder is not writable, or the lock's name is not that of a file.
        UnavailableError: the lock was not free for ten seconds.
    """
    name = path.with_name(f".{path.name[:200]}.lock")
    descriptor = os.open(name, READ_FLAGS | os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileExistsError(errno.EEXIST, "expected a file, or nothing", str(name))
        deadline = time.monotonic() + _LOCK_SECONDS
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise UnavailableError(f"{shorten(str(path))} is being changed: {shorten(str(name))} is locked")
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)  # this unlocks it


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True  # a file system without locks
    return True


@contextlib.contextmanager
def replacing(path: Path, *, sync: bool = False) -> Iterator[BinaryIO]:
    """Opens a temporary file that replaces ``path`` when the block ends; if the block raises, the old file stays.

    Follows a symbolic link. With ``sync`` the content is on disk before the file is renamed.
    """
    target = Path(os.path.realpath(path))
    before = _mode(target)
    if before is not None and stat.S_ISDIR(before):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if before is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    part = target.with_name(f".{target.name[:200]}.{os.urandom(4).hex()}.part")
    # The temporary file has the same permissions, so that others cannot read it either.
    rights = 0o666 if before is None else 0o600
    try:
        with open(os.open(part, _CREATE_FLAGS, rights), "wb") as file:  # noqa: PTH123  its mode is set from the start
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
    """Writes a file that gets its name once its content is on disk; pipes and devices are written directly.

    Raises:
        NotFoundError: the folder does not exist.
        PermissionDeniedError: the file is not writable, or is a folder.
        ResourceExhaustedError: the disk is full; the old file is unchanged.
        InvalidArgumentError: the path contains a NUL character.
        UnavailableError: any other error of the operating system.
    """
    target = Path(path)
    with writing_errors(target), _opened(target) as file:
        write(file)


def write_all(files: Mapping[Path, bytes]) -> None:
    """Writes several files like `write_whole`; they get their names once the content of all is on disk."""
    with contextlib.ExitStack() as stack:
        for path, content in files.items():
            stack.enter_context(writing_errors(path))
            file = stack.enter_context(_opened(path))
            file.write(content)
            file.flush()


def _opened(target: Path) -> contextlib.AbstractContextManager[BinaryIO]:
    """Opens a temporary file for a regular file, and the pipe or device itself otherwise."""
    mode = _mode(target)
    direct = mode is not None and not stat.S_ISREG(mode)
    return target.open("wb") if direct else replacing(target, sync=True)


@contextlib.contextmanager
def writing_errors(path: Path) -> Iterator[None]:
    """Turns errors of the operating system within the block into those of `write_whole`."""
    shown = shorten(str(path))
    try:
        yield
    except PumiceError:  # some are also OSErrors
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
    """Turns errors of reading within the block into NotFoundError, PermissionDeniedError or UnavailableError."""
    shown = shorten(str(path))
    try:
        yield
    except PumiceError:  # some are also OSErrors or ValueErrors
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
