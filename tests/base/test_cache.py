"""The cache on disk: what is whole and this user's own is found again, everything else is a miss and no error."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pumice.base import cache
from pumice.base.cache import CachedFile, cache_directory, unavailable_reason, usage
from pumice.status import InvalidArgumentError

posix = pytest.mark.skipif(sys.platform == "win32", reason="owners, links and modes as POSIX has them")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache and a secret of the test's own."""
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("PUMICE_CACHE", raising=False)
    cache._found_place.cache_clear()
    yield tmp_path
    cache._found_place.cache_clear()


def files(folder: Path) -> list[Path]:
    """Returns the files below a folder, but for the cache's marker."""
    return sorted(path for path in folder.rglob("*") if not path.is_dir() and path.name != cache._MARKER_FILE)


def secret(place: Path) -> Path:
    return place / "state" / "pumice" / "cache-secret"


def stored(place: Path, room: str = "room", key: object = "key", content: bytes = b"content") -> Path:
    """Stores an entry, and its file."""
    before = set(files(place / "cache"))
    assert CachedFile(room, key).store(content)
    (path,) = set(files(place / "cache")) - before
    return path


def test_what_is_stored_is_found_under_its_key(place: Path) -> None:
    assert CachedFile("room", "key").load() is None
    assert not (place / "cache").exists() and not (place / "state").exists(), "a look-up makes nothing"
    stored(place)
    stored(place, key=b"bytes", content=b"")
    assert CachedFile("room", "key").load() == b"content"
    assert CachedFile("room", b"bytes").load() == b""
    for other in (CachedFile("room", "yek"), CachedFile("other", "key"), CachedFile("room", ("key",))):
        assert other.load() is None
    assert CachedFile("room", "key").store(b"new") and CachedFile("room", "key").load() == b"new"
    assert usage() == [("room", 2, 2 * 47 + 3)]
    cache.clear()
    assert usage() == [] and CachedFile("room", "key").load() is None


def test_another_process_finds_it(place: Path) -> None:
    stored(place)
    code = (
        "import sys; from pumice.base.cache import CachedFile; "
        "sys.stdout.buffer.write(CachedFile('room', 'key').load())"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"content"


@posix
def test_nobody_else_may_read_or_write_it(place: Path) -> None:
    before = os.umask(0)
    try:
        path = stored(place)
    finally:
        os.umask(before)
    for folder in (place / "cache" / "entries-2", secret(place).parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(secret(place).stat().st_mode) == 0o600


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda raw: b"",
    "short": lambda raw: raw[:20],
    "checksum alone": lambda raw: raw[:32],
    "one byte less": lambda raw: raw[:-1],
    "one byte more": lambda raw: raw + b"\0",
    "a bit of the checksum": lambda raw: bytes([raw[0] ^ 1]) + raw[1:],
    "a bit of the content": lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]),
    "foreign": lambda raw: os.urandom(500),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_entry_is_a_miss_and_is_replaced(place: Path, kind: str) -> None:
    path = stored(place)
    path.write_bytes(DAMAGE[kind](path.read_bytes()))
    assert CachedFile("room", "key").load() is None
    assert CachedFile("room", "key").store(b"again") and CachedFile("room", "key").load() == b"again"


def test_an_entry_under_another_key_is_a_miss(place: Path) -> None:
    one, two = stored(place, key=1, content=b"one"), stored(place, key=2, content=b"two")
    two.write_bytes(one.read_bytes())
    assert CachedFile("room", 1).load() == b"one" and CachedFile("room", 2).load() is None


def test_a_cache_that_was_brought_from_elsewhere_is_empty(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole and under the right names, but made with another user's secret."""
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "another's"))
    stored(place)
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "state"))
    assert CachedFile("room", "key").load() is None
    assert CachedFile("room", "key").store(b"own") and CachedFile("room", "key").load() == b"own"


@posix
def test_links_and_pipes_are_no_entries(place: Path) -> None:
    path = stored(place)
    precious = place / "precious"
    shutil.copy(path, precious)
    whole = precious.read_bytes()
    path.unlink()
    path.symlink_to(precious)
    assert CachedFile("room", "key").load() is None
    assert CachedFile("room", "key").store(b"new"), "the link is replaced, not followed"
    assert precious.read_bytes() == whole and not path.is_symlink()
    path.unlink()
    os.mkfifo(path)
    assert CachedFile("room", "key").load() is None, "and nobody waits for a writer"
    path.unlink()
    path.mkdir()
    assert CachedFile("room", "key").load() is None and not CachedFile("room", "key").store(b"new")


@posix
@pytest.mark.parametrize("what", ["entries", "state", "secret", "entry"])
def test_what_belongs_to_somebody_else_is_not_believed(place: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(place)
    theirs = {
        "entries": place / "cache" / "entries-2",
        "state": secret(place).parent,
        "secret": secret(place),
        "entry": path,
    }[what].stat()
    cache._found_place.cache_clear()
    real = cache._belongs

    def belongs(status: os.stat_result, forbidden: int) -> bool:
        return status.st_ino != theirs.st_ino and real(status, forbidden)

    monkeypatch.setattr(cache, "_belongs", belongs)
    assert CachedFile("room", "key").load() is None


@posix
def test_another_user_with_this_home_keeps_nothing_there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with sudo, which leaves files behind that the home's owner cannot use."""
    home = place / "home"
    home.mkdir()
    for variable in ("PUMICE_CACHE_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(home))
    if sys.platform == "linux":
        assert cache_directory() == home / ".cache" / "pumice"
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert not CachedFile("room", "key").store(b"content")
    assert list(home.iterdir()) == []


@posix
def test_a_folder_that_others_could_write_is_closed_to_them(place: Path) -> None:
    (place / "cache" / "entries-2").mkdir(parents=True)
    (place / "cache" / "entries-2").chmod(0o777)
    (place / "cache").chmod(0o777)
    secret(place).parent.mkdir(parents=True)
    secret(place).parent.chmod(0o777)
    secret(place).write_bytes(bytes(32))
    secret(place).chmod(0o666)
    assert CachedFile("room", "key").load() is None
    stored(place)
    assert CachedFile("room", "key").load() == b"content"
    assert secret(place).read_bytes() != bytes(32), "a secret that others knew is none"
    assert stat.S_IMODE((place / "cache").stat().st_mode) == 0o777, "what the user named is left as it is"
    for path in (place / "cache" / "entries-2", secret(place).parent, secret(place)):
        assert not path.stat().st_mode & 0o022


@pytest.mark.parametrize("damage", [b"", bytes(31), bytes(33)])
def test_a_damaged_secret_is_made_anew(place: Path, damage: bytes) -> None:
    stored(place)
    secret(place).write_bytes(damage)
    cache._found_place.cache_clear()
    assert CachedFile("room", "key").load() is None
    assert CachedFile("room", "key").store(b"new") and CachedFile("room", "key").load() == b"new"
    assert len(secret(place).read_bytes()) == 32
    assert files(place / "state") == [secret(place)]


# -- other people's files ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["entries", "entries-2"])
def test_a_folder_with_somebody_elses_files_is_left_as_it_is(place: Path, name: str) -> None:
    theirs = place / "cache" / name / "room" / "ab" / f"{'ab' * 32}.entry"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"hello")
    before = theirs.parents[2].stat().st_mode
    assert CachedFile("room", "key").store(b"content") == (name == "entries")
    cache._trim(place / "cache" / name)
    cache.clear()
    assert theirs.read_bytes() == b"hello" and theirs.parents[2].stat().st_mode == before
    reason = unavailable_reason()
    assert (reason is None) == (name == "entries")
    assert reason is None or f"without pumice's {cache._MARKER_FILE}" in reason


@posix
@pytest.mark.parametrize("is_full", [False, True])
def test_only_entries_are_counted_and_deleted(place: Path, is_full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their place, name, header and kind: all four."""
    entry = stored(place)
    content, root = entry.read_bytes(), place / "cache" / "entries-2"
    elsewhere = place / "elsewhere" / entry.parent.name
    elsewhere.mkdir(parents=True)
    theirs = [
        root / "notes.txt",
        root / "room" / entry.name,
        entry.with_name("notes.txt"),
        entry.with_suffix(""),
        entry.with_name(f"{'0' * 64}.entry") if not entry.name.startswith("00") else entry.with_name("f" * 64),
        entry.with_name(f"{entry.name[:-7]}x.entry"),
        elsewhere / entry.name,
    ]
    for path in theirs:
        path.write_bytes(content)
    plain = entry.with_name(f"{entry.name[:2]}{'1' * 62}.entry")
    plain.write_bytes(b"no header")
    (root / "linked").symlink_to(elsewhere.parent)
    (root / "room" / "ff").symlink_to(elsewhere) if entry.parent.name != "ff" else None
    link = entry.with_name(f"{entry.name[:2]}{'2' * 62}.entry")
    link.symlink_to(elsewhere / entry.name)
    pipe = entry.with_name(f"{entry.name[:2]}{'3' * 62}.entry")
    os.mkfifo(pipe)
    if is_full:
        monkeypatch.setattr(cache, "MAX_BYTES", 0)
        cache._trim(root)
    else:
        cache.clear()
    assert not entry.exists()
    assert all(path.exists() for path in (*theirs, plain, link, pipe, root / cache._MARKER_FILE))


@posix
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_links_in_place_of_folders_are_refused(place: Path, depth: int) -> None:
    entry = stored(place)
    folder = entry.parents[2 - depth]
    moved = folder.rename(place / "moved")
    folder.symlink_to(moved)
    cache._found_place.cache_clear()
    before = files(place / "moved")
    assert not CachedFile("room", "key").store(b"other")
    cache.clear()
    assert usage() == [] and files(place / "moved") == before


def test_a_cache_that_was_deleted_meanwhile_is_made_again(place: Path) -> None:
    stored(place)
    shutil.rmtree(place / "cache")
    assert CachedFile("room", "key").load() is None
    CachedFile("room", "key").store(b"lost")
    assert CachedFile("room", "key").store(b"content") and CachedFile("room", "key").load() == b"content"
    assert unavailable_reason() is None


# -- where nothing can be kept -------------------------------------------------------------------------


def test_where_entries_are_kept_there_is_no_reason_against(place: Path) -> None:
    assert unavailable_reason() is None
    stored(place)
    assert unavailable_reason() is None


@pytest.mark.parametrize("value", ["maybe", "2", "O"])
def test_a_wrong_switch_is_an_error(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_CACHE", value)
    for action in (cache_directory, usage, CachedFile("room", "key").load, unavailable_reason):
        with pytest.raises(InvalidArgumentError, match=f"PUMICE_CACHE is '{value}'; expected one of 1, true"):
            action()


def _file_for_folder(place: Path, patch: pytest.MonkeyPatch) -> None:
    (place / "cache").write_text("a file where the folder should be")


def _no_state(place: Path, patch: pytest.MonkeyPatch) -> None:
    (place / "state").write_text("a file where the folder should be")


def _no_home(place: Path, patch: pytest.MonkeyPatch) -> None:
    for variable in ("PUMICE_CACHE_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        patch.delenv(variable, raising=False)
    patch.setenv("HOME", "/nonexistent")
    patch.setattr(sys, "platform", "linux")
    assert cache_directory() is None


def _relative_home(place: Path, patch: pytest.MonkeyPatch) -> None:
    _no_home(place, patch)
    patch.chdir(place)
    patch.setenv("HOME", ".")


def _switched_off(place: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("PUMICE_CACHE", "0")
    assert cache_directory() is None


def _no_path(place: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cache, "cache_directory", lambda: Path("\ud800"))


def _full_disk(place: Path, patch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, *arguments: object) -> object:
        os.close(descriptor)
        raise OSError(errno.ENOSPC, "No space left on device")

    patch.setattr(cache, "open", full, raising=False)


def _read_only(place: Path, patch: pytest.MonkeyPatch) -> None:
    def refuse(path: object, *arguments: object, **options: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    patch.setattr(os, "mkdir", refuse)


@pytest.mark.parametrize(
    "obstacle", [_file_for_folder, _no_state, _no_home, _relative_home, _switched_off, _no_path, _full_disk, _read_only]
)
def test_where_nothing_can_be_kept_nothing_fails(
    place: Path, obstacle: Callable[[Path, pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    obstacle(place, monkeypatch)
    assert not CachedFile("room", "key").store(b"content")
    assert CachedFile("room", "key").load() is None
    assert usage() == []
    assert unavailable_reason()
    cache.clear()
    assert not [path for path in files(place) if path.name.endswith(".part")]


# -- size ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "value"), [("MAX_BYTES", 5 * (1000 + 47)), ("MAX_ENTRIES", 5)])
def test_entries_that_were_not_used_for_longest_make_room(
    place: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    paths = [stored(place, key=number, content=bytes(1000)) for number in range(10)]
    left = paths[0].with_name(f".{paths[0].name}.01234567.part")
    left.touch()
    for age, path in enumerate([left, *paths]):
        os.utime(path, (1e9 + age, 1e9 + age))
    assert CachedFile("room", 0).load() is not None, "which is a use"
    monkeypatch.setattr(cache, limit, value)
    monkeypatch.setattr(cache, "_STORES_A_TRIM", 1)
    stored(place, key=10, content=bytes(1000))
    kept = [number for number in range(11) if CachedFile("room", number).load() is not None]
    assert kept == [0, 7, 8, 9, 10] and not left.exists()


def test_an_entry_beyond_the_most_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_ENTRY_BYTES", 1000)
    assert not CachedFile("room", "key").store(bytes(1001))
    assert CachedFile("room", "key").store(bytes(1000)) and CachedFile("room", "key").load() == bytes(1000)


# -- at once -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_processes_at_once_find_whole_entries(place: Path) -> None:
    """Four start on an empty state: they agree on one secret, and no reader ever sees part of an entry."""
    code = """
from pumice.base.cache import CachedFile
entry = CachedFile("room", "key")
for size in range(0, 100_000, 1000):
    assert entry.store(bytes(size))
    assert entry.load() is not None
"""
    runs = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(4)]
    for run in runs:
        _, said = run.communicate()
        assert run.returncode == 0, said.decode()
    assert CachedFile("room", "key").load() == bytes(99_000)
    assert len(files(place / "cache")) == 1 and files(place / "state") == [secret(place)]
