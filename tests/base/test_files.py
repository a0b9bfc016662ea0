"""Files are written whole or not at all, and never in place of what they must not replace."""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from pumice.base import files
from pumice.base.files import locked, replacing, stamp, write_all, write_whole
from pumice.status import (
    DeadlineExceededError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    PumiceError,
    ResourceExhaustedError,
    UnavailableError,
)

posix = pytest.mark.skipif(sys.platform == "win32", reason="pipes, links and modes as POSIX has them")


def content(data: bytes = b"new"):  # type: ignore[no-untyped-def]
    return lambda file: file.write(data)


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "result.bin"
    for data in (b"old", b"new"):
        write_whole(path, content(data))
        assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("wrong"), DeadlineExceededError("late")])
def test_what_fails_half_way_leaves_what_was_there(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "result.bin"
    path.write_bytes(b"old")

    def write(file: BinaryIO) -> None:
        file.write(b"half")
        raise error

    with pytest.raises(type(error)):
        write_whole(path, write)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_several_files_are_written_or_none(tmp_path: Path) -> None:
    one, two, folder = (tmp_path / name for name in ("one", "two", "folder"))
    write_all({one: b"old", two: b"old"})
    folder.mkdir()
    with pytest.raises(PermissionDeniedError, match=r"folder cannot be written: Is a directory"):
        write_all({one: b"new", folder: b"new", two: b"new"})
    with pytest.raises(NotFoundError, match="there is no folder"):
        write_all({one: b"new", tmp_path / "none" / "file": b"new"})
    assert one.read_bytes() == two.read_bytes() == b"old"
    assert sorted(tmp_path.iterdir()) == [folder, one, two]


@pytest.mark.parametrize(
    ("number", "expected"),
    [(errno.ENOSPC, ResourceExhaustedError), (errno.EIO, UnavailableError), (errno.EACCES, PermissionDeniedError)],
)
def test_errors_of_the_operating_system(tmp_path: Path, number: int, expected: type[PumiceError]) -> None:
    def write(file: BinaryIO) -> None:
        raise OSError(number, os.strerror(number))

    with pytest.raises(expected, match=f"result.bin cannot be written: {os.strerror(number)}"):
        write_whole(tmp_path / "result.bin", write)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no folder"):
        write_whole(tmp_path / "missing" / "x", content())
    with pytest.raises(PermissionDeniedError, match="directory"):
        write_whole(tmp_path, content())
    with pytest.raises(InvalidArgumentError, match="null"):
        write_whole(tmp_path / "a\0b", content())
    with pytest.raises(UnavailableError, match="too long") as info:
        write_whole(tmp_path / ("x" * 5000), content())
    assert len(info.value.message) < 500


@posix
@pytest.mark.parametrize(
    "write",
    [lambda path: write_whole(path, content(b"through")), lambda path: write_all({path: b"through"})],
    ids=["write_whole", "write_all"],
)
def test_a_pipe_is_written_to(tmp_path: Path, write: Callable[[Path], object]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write(pipe)
    reader.join(10)
    assert got == [b"through"]
    assert pipe.is_fifo()


@posix
def test_links_and_modes_stay(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(target)
    write_whole(link, content())
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640


@posix
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "result.bin"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # the superuser may write everything
    with pytest.raises(PermissionDeniedError):
        write_whole(path, content())
    assert path.read_bytes() == b"old"


def test_the_longest_name(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    with replacing(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


@posix
@pytest.mark.parametrize("rights", [0o600, 0o640, 0o644, None])
def test_rights_are_never_more_than_those_of_the_file(tmp_path: Path, rights: int | None) -> None:
    path = tmp_path / "secret"
    if rights is not None:
        path.touch()
        path.chmod(rights)
    before = os.umask(0o022)
    try:
        with replacing(path) as file:
            file.write(b"new")
            (part,) = [other for other in tmp_path.iterdir() if other != path]
            assert stat.S_IMODE(part.stat().st_mode) == (0o644 if rights is None else 0o600)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == (0o644 if rights is None else rights)


@posix
def test_a_stamp_tells_contents_of_one_size_and_time_apart(tmp_path: Path) -> None:
    path = tmp_path / "tool"
    path.write_bytes(b"old")
    before = path.stat()
    time.sleep(0.02)  # longer than the clock of file systems takes for a tick
    path.write_bytes(b"new")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert stamp(after) != stamp(before) and stamp(after) == stamp(path.stat())


def test_a_lock_is_of_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, entered = tmp_path / "file", threading.Event()

    def hold() -> None:
        with locked(path):
            entered.set()
            time.sleep(0.3)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(10)
    monkeypatch.setattr(files, "_LOCK_SECONDS", 0.05)
    with pytest.raises(UnavailableError, match="file is being changed"), locked(path):
        pass
    monkeypatch.setattr(files, "_LOCK_SECONDS", 10.0)
    with locked(path):
        assert not thread.is_alive() or thread.join(5) is None
    assert not path.exists()


@posix
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_lock_that_somebody_planted_is_refused(tmp_path: Path, kind: str) -> None:
    lock, target = tmp_path / ".file.lock", tmp_path / "target"
    {"link": lambda: lock.symlink_to(target), "pipe": lambda: os.mkfifo(lock), "folder": lock.mkdir}[kind]()
    with pytest.raises(OSError), locked(tmp_path / "file"):
        pass
    assert not target.exists()
