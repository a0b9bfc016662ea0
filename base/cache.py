"""The disk cache: artifacts that are kept from one process to the next.

Only this user's pumice writes entries: an entry starts with a checksum over its key and its content, keyed with a
secret in the user's state folder, outside the cache (``docs/design/cache.md``). A damaged, moved, foreign or planted
entry is a miss. Without a home, space or the right to write, every look-up is a miss: a cache that does not work costs
time, but never changes a result.

The folder is the user's cache folder, or that of ``PUMICE_CACHE_DIR``; ``PUMICE_CACHE=0`` switches it off. Entries are
in a subfolder with a marker, and have names and a header of their own. Nothing else is read, changed or deleted.

Thread rule: any thread, and any number of processes at once.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from .files import READ_FLAGS, locked, read_regular, stamp
from .switches import switch

if TYPE_CHECKING:
    from hashlib import blake2b
else:
    try:  # importing hashlib loads OpenSSL, which takes longer than every hash computed here
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b

#: The total size of all entries, in bytes, above which the least recently used are deleted.
MAX_BYTES: Final = 512 << 20
#: The largest number of entries, so that listing them takes at most a tenth of a second.
MAX_ENTRIES: Final = 16_384
#: The size of the largest entry, in bytes.
MAX_ENTRY_BYTES: Final = MAX_BYTES // 4

_CHECKSUM_BYTES: Final = 32
_SECRET_BYTES: Final = 32
_SECRET_FILE: Final = "cache-secret"
# The start of each entry, with the format's version: entries of other versions are misses.
_FORM: Final = b"pumice-cache-2\n"
_CONTENT_AT: Final = len(_FORM) + _CHECKSUM_BYTES
# A separate subfolder, so that its mode can be set even in a folder that the user named.
_ENTRIES: Final = "entries-2"
_SUFFIX: Final = ".entry"
_PART: Final = ".part"
# The marker of the Cache Directory Tagging Specification, which also keeps the folder out of backups.
_MARKER_FILE: Final = "CACHEDIR.TAG"
_MARKER: Final = (
    b"Signature: 8a477f597d28d172789f06886806bc55\n# Entries of pumice's cache. `pumice cache --clear` deletes them.\n"
)
_HEXADECIMAL: Final = frozenset("0123456789abcdef")
_PRIVATE: Final = 0o700
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# One store in this many checks the total size, since that lists every file.
_STORES_A_TRIM: Final = 64
# The time of the last use is written at most once a day.
_USE_SECONDS: Final = 24 * 3600
# Errors of the operating system, and of paths that it cannot represent.
_FAILURES: Final = (OSError, ValueError)


def cache_directory() -> Path | None:
    """Returns pumice's cache folder; ``None`` without a home, or if ``PUMICE_CACHE=0`` switches it off.

    Raises:
        InvalidArgumentError: ``PUMICE_CACHE`` is neither on nor off.
    """
    if switch("PUMICE_CACHE") is False:
        return None
    chosen = os.environ.get("PUMICE_CACHE_DIR")
    return Path(chosen) if chosen else _user_folder("XDG_CACHE_HOME", ".cache", "user_cache_dir")


def digest(content: bytes | memoryview) -> bytes:
    """Returns a collision-free hash of 32 bytes, for keys."""
    return blake2b(content, digest_size=_CHECKSUM_BYTES).digest()


class CachedFile:
    """One entry of the cache."""

    def __init__(self, room: str, key: object) -> None:
        """Args:
        room: the kind of artifact; a folder's name. key: all inputs of the artifact, and the release that makes it:
        bytes, or a value whose ``repr`` is the same in every process.
        """
        text = key if isinstance(key, bytes) else repr(key).encode("utf-8", "surrogateescape")
        self._digest = digest(b"\0".join((_FORM, room.encode(), text)))
        name = self._digest.hex()
        self._folders = room, os.path.join(room, name[:2])  # noqa: PTH118  pathlib takes longer than the look-up
        self._place = f"{self._folders[1]}{os.sep}{name}{_SUFFIX}"

    def load(self) -> bytes | None:
        """Returns the content stored under this key by this user, or None."""
        location = _place()
        if location is None:
            return None
        path = f"{location.folder}{os.sep}{self._place}"
        try:
            entry = _read(path, MAX_ENTRY_BYTES + _CONTENT_AT)
        except _FAILURES:
            return None
        content = entry[_CONTENT_AT:]
        return content if entry[:_CONTENT_AT] == _FORM + self._checksum(location.secret, content) else None

    def store(self, content: bytes) -> bool:
        """Stores the content, and returns whether it was stored."""
        location = _place(make=True)
        if location is None or len(content) > MAX_ENTRY_BYTES:
            return False
        path = Path(location.folder, self._place)
        try:
            for folder in self._folders:
                _make_inner(Path(location.folder, folder))
            _write(path, _FORM + self._checksum(location.secret, content) + content)
            if os.urandom(1)[0] % _STORES_A_TRIM == 0:
                _trim(Path(location.folder))
        except FileNotFoundError:
            _found_place.cache_clear()  # the folder was deleted: the next store creates it
            return False
        except _FAILURES:
            return False
        return True

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Locks this entry against changes by other processes, if the cache can be written."""
        location = _place(make=True)
        with contextlib.ExitStack() as stack:
            if location is not None:
                with contextlib.suppress(*_FAILURES):
                    stack.enter_context(locked(Path(location.folder, self._digest.hex())))
            yield

    def _checksum(self, secret: bytes, content: bytes) -> bytes:
        checksum = blake2b(self._digest, key=secret, digest_size=_CHECKSUM_BYTES)
        checksum.update(content)
        return checksum.digest()


def folder_stamp(*folders: Path) -> bytes:
    """Returns a hash of the names and stamps of the Python files in folders and their subfolders.

    Keys of generated files contain it, since the release does not change during development.
    """
    stamps = []
    pending = list(map(str, folders))
    while pending:
        folder = pending.pop()
        with contextlib.suppress(*_FAILURES), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    stamps.append((entry.path, stamp(entry.stat())))
                elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
    return digest(repr(sorted(stamps)).encode("utf-8", "surrogateescape"))


class RoomUsage(NamedTuple):
    """The contents of one room of the cache."""

    room: str
    entries: int
    size: int


def usage() -> list[RoomUsage]:
    """Returns the contents of the cache by room."""
    held: dict[str, list[int]] = {}
    folder = _entries_folder()
    for path, status in _entries(folder):
        held.setdefault(path.parent.parent.name, []).append(status.st_size)
    return [RoomUsage(room, len(sizes), sum(sizes)) for room, sizes in sorted(held.items())]


def unavailable_reason() -> str | None:
    """Returns why entries stored now would not be found again, or None if they would."""
    if switch("PUMICE_CACHE") is False:
        return "PUMICE_CACHE switches it off"
    directory, state = cache_directory(), _state_folder()
    if directory is None or state is None:
        return "there is no home of this user's own to have it in"
    for folder, make, is_ours in ((directory / _ENTRIES, _make_cache, _is_cache), (state, _make_own, _is_own)):
        try:
            make(folder)
        except _FAILURES as error:
            return f"{folder} cannot be made: {getattr(error, 'strerror', None) or error}"
        if not is_ours(folder):
            return f"{folder} is not a folder of this user's own that nobody else may write in"
        if not os.access(folder, os.W_OK | os.X_OK):
            return f"{folder} is read-only"
    return None if _place(make=True) is not None else f"{state / _SECRET_FILE} cannot be written"


def clear() -> None:
    """Deletes every entry that can be deleted."""
    for path, _ in _entries(_entries_folder()):
        _delete(path)


# -- folders -------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    folder: str
    secret: bytes


def _entries_folder() -> Path | None:
    """Returns the folder of the entries if it exists and belongs to this user."""
    directory = cache_directory()
    folder = directory / _ENTRIES if directory is not None else None
    return folder if folder is not None and _is_cache(folder) else None


def _place(*, make: bool = False) -> _Place | None:
    """Returns the folder of the entries and the secret; with ``make``, creates them."""
    directory = cache_directory()
    state = _state_folder()
    if directory is None or state is None:
        return None
    location = _found_place(directory, state)
    if location is None and make:
        _found_place.cache_clear()
        with contextlib.suppress(*_FAILURES):
            _make_cache(directory / _ENTRIES)
            _make_own(state)
            if _secret(state) is None:
                _write_secret(state)
        location = _found_place(directory, state)
    return location


@functools.lru_cache(maxsize=4)
def _found_place(directory: Path, state: Path) -> _Place | None:
    folder = directory / _ENTRIES
    secret = _secret(state)
    return _Place(str(folder), secret) if secret is not None and _is_cache(folder) else None


def _state_folder() -> Path | None:
    """Returns the folder of the secret."""
    return _user_folder("XDG_STATE_HOME", ".local/state", "user_state_dir")


def _user_folder(variable: str, default: str, elsewhere: str) -> Path | None:
    """Returns pumice's folder of one kind, by the XDG Base Directory Specification or the system's own rules."""
    if sys.platform in ("win32", "darwin"):
        import platformdirs  # imported here, so that programs start sooner

        path = Path(getattr(platformdirs, elsewhere)("pumice", appauthor=False))
    else:
        path = Path(os.environ.get(variable, ""))
        if not path.is_absolute():
            home = os.path.expanduser("~")  # noqa: PTH111  pathlib raises without a home
            # Under sudo the home may belong to another user, who could not use files that root creates there.
            if not _is_own(Path(home), forbidden=0):
                return None
            path = Path(home, default)
        path /= "pumice"
    return path if path.is_absolute() else None


def _is_own(folder: Path, forbidden: int = _OTHERS_WRITE) -> bool:
    """Whether a folder belongs to this user and no other user can write in it."""
    try:
        status = folder.stat()
    except _FAILURES:
        return False
    return stat.S_ISDIR(status.st_mode) and _belongs(status, forbidden)


def _belongs(status: os.stat_result, forbidden: int) -> bool:
    """Whether a file belongs to this user and grants no forbidden rights; always true on Windows, which has its own."""
    return sys.platform == "win32" or (status.st_uid == os.geteuid() and not status.st_mode & forbidden)


def _is_cache(folder: Path, forbidden: int = _OTHERS_WRITE) -> bool:
    """Whether a folder belongs to this user alone, is no link, and has pumice's marker."""
    try:
        return (
            _is_own(folder, forbidden)
            and not folder.is_symlink()
            and _read(str(folder / _MARKER_FILE), len(_MARKER)) == _MARKER
        )
    except _FAILURES:
        return False


def _make_cache(folder: Path) -> None:
    """Creates the folder of the entries with its marker; an empty folder of that name is reused.

    Raises:
        OSError: it cannot be created, or the folder of that name has other content.
    """
    if _is_cache(folder):
        return
    if _is_cache(folder, forbidden=0):
        folder.chmod(_PRIVATE)
        return
    folder.parent.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    part = _part(folder)
    part.mkdir(mode=_PRIVATE)
    try:
        _write_new(part / _MARKER_FILE, _MARKER)
        if sys.platform == "win32" and folder.is_dir():
            folder.rmdir()
        part.rename(folder)  # replaces only an empty folder
    except OSError as error:
        (part / _MARKER_FILE).unlink(missing_ok=True)
        part.rmdir()
        if not _is_cache(folder):  # else another process was first
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise FileExistsError(
                    error.errno, f"there is something else of that name, without pumice's {_MARKER_FILE}"
                ) from error
            raise


def _make_inner(folder: Path) -> None:
    """Creates a folder within that of the entries.

    Raises:
        OSError: it cannot be made, or is a link.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=_PRIVATE)
    if folder.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "expected a folder, not a link", str(folder))


def _make_own(folder: Path) -> None:
    folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    if not _is_own(folder) and _is_own(folder, forbidden=0):
        folder.chmod(_PRIVATE)


def _secret(state: Path) -> bytes | None:
    """Returns the user's secret, unless another user may have read or written it."""
    try:
        secret = _read(str(state / _SECRET_FILE), _SECRET_BYTES, forbidden=stat.S_IRWXG | stat.S_IRWXO)
    except _FAILURES:
        return None
    return secret if len(secret) == _SECRET_BYTES and _is_own(state) else None


def _write_secret(state: Path) -> None:
    """Creates the user's secret; if two processes do so at once, the first secret stays."""
    path = state / _SECRET_FILE
    part = _part(path)
    try:
        _write_new(part, os.urandom(_SECRET_BYTES), sync=True)
        try:
            os.link(part, path)
        except FileExistsError:
            if _secret(state) is None:  # it is damaged, or others could read it
                part.replace(path)
    finally:
        part.unlink(missing_ok=True)


# -- files ---------------------------------------------------------------------------------------------


def _read(path: str, most: int, *, forbidden: int = _OTHERS_WRITE) -> bytes:
    """Reads a regular file of this user; raises OSError for any other kind of file."""
    content, status = read_regular(path, most)
    if not _belongs(status, forbidden):
        raise PermissionError(path)
    _note_use(path, status)
    return content


def _note_use(path: str, status: os.stat_result) -> None:
    """Updates the access time. `_trim` deletes the entries with the oldest first."""
    if time.time() - status.st_mtime > _USE_SECONDS:
        with contextlib.suppress(*_FAILURES):
            os.utime(path)


def _write(path: Path, data: bytes) -> None:
    """Writes a file under a temporary name and renames it; a symbolic link at the path is replaced, not followed."""
    part = _part(path)
    try:
        _write_new(part, data)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _write_new(path: Path, data: bytes, *, sync: bool = False) -> None:
    with open(os.open(path, _CREATE, 0o600), "wb") as file:  # noqa: PTH123  its mode is set from the start
        file.write(data)
        if sync:
            file.flush()
            os.fsync(file.fileno())


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.urandom(4).hex()}{_PART}")


def _entries(folder: Path | None) -> Iterator[tuple[Path, os.stat_result]]:
    """Yields regular files with names of entries, and files left by killed writers; follows no link."""
    for room in _folders(folder):
        for part in _folders(room):
            for entry in _listed(part):
                with contextlib.suppress(*_FAILURES):
                    if _is_name(entry.name, part.name) and entry.is_file(follow_symlinks=False):
                        yield Path(entry.path), entry.stat(follow_symlinks=False)


def _folders(folder: Path | None) -> list[Path]:
    listed = _listed(folder) if folder is not None else ()
    return [Path(entry.path) for entry in listed if entry.is_dir(follow_symlinks=False)]


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listed:
            return list(listed)
    except _FAILURES:
        return []


def _is_name(name: str, folder: str) -> bool:
    """Whether a file's name in a folder is that of an entry, or of a partly written entry."""
    if name.startswith(".") and name.endswith(_PART):
        name = name[1 : -len(_PART)].rpartition(".")[0]
    hashed = name.removesuffix(_SUFFIX)
    is_hash = len(hashed) == 2 * _CHECKSUM_BYTES and _HEXADECIMAL.issuperset(hashed)
    return is_hash and hashed != name and hashed.startswith(folder) and len(folder) == 2


def _delete(path: Path) -> bool:
    """Deletes a regular file of this user that has the header of entries, or is empty; returns whether it did."""
    try:
        descriptor = os.open(path, READ_FLAGS)
        try:
            status, start = os.fstat(descriptor), os.read(descriptor, len(_FORM))
        finally:
            os.close(descriptor)
        if not stat.S_ISREG(status.st_mode) or not _belongs(status, 0) or start not in (_FORM, b""):
            return False
        path.unlink()
    except _FAILURES:
        return False
    return True


def _trim(folder: Path) -> None:
    """Deletes the least recently used entries until the rest fits; files left by killed writers count as entries."""
    files = sorted(_entries(folder), key=lambda file: file[1].st_mtime)
    size, count = sum(status.st_size for _, status in files), len(files)
    for path, status in files:
        if size <= MAX_BYTES and count <= MAX_ENTRIES:
            break
        if _delete(path):
            size, count = size - status.st_size, count - 1
