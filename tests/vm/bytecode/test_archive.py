"""Module archives: both forms, views without copies, and files that are no modules."""

from __future__ import annotations

import gc
import os
import struct
import sys
import tracemalloc
from pathlib import Path

import psutil
import pytest

from pumice.status import (
    ClosedError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    PumiceError,
)
from pumice.vm.bytecode.archive import ModuleArchive
from pumice.vm.bytecode.module_def import ModuleDef
from pumice.vm.bytecode.reader import read_module
from pumice.vm.bytecode.writer import write_module

RODATA = bytes(range(256)) * 20


def _file(*, polyglot: bool = False) -> bytes:
    return write_module(ModuleDef("m", rodata=(memoryview(b"small"), memoryview(RODATA))), polyglot=polyglot)


@pytest.mark.parametrize("polyglot", [False, True])
def test_both_forms_from_file_and_memory(tmp_path: Path, polyglot: bool) -> None:
    data = _file(polyglot=polyglot)
    path = tmp_path / "m.vmfb"
    path.write_bytes(data)
    for archive in (
        ModuleArchive.open(path),
        ModuleArchive.from_bytes(data),
        ModuleArchive.from_bytes(bytearray(data)),
    ):
        with archive:
            assert archive.data == data
            assert archive.data.readonly and archive.flatbuffer.readonly
            assert archive.flatbuffer[4:8] == b"IREE"
            assert archive.rodata_base % 64 == 0
            module = read_module(archive)
            assert module.rodata == (b"small", RODATA)
            assert all(data.readonly for data in module.rodata)
        assert archive.closed


@pytest.mark.slow
def test_views_outlive_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "m.vmfb"
    path.write_bytes(_file())
    archive = ModuleArchive.open(path)
    module = read_module(archive)
    archive.close()
    archive.close()
    del archive
    gc.collect()
    assert module.rodata[1] == RODATA
    if sys.platform == "linux":
        assert str(path) in Path("/proc/self/maps").read_text()
        del module
        gc.collect()
        assert str(path) not in Path("/proc/self/maps").read_text()


def test_close_unmaps_at_once_without_views(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("reads /proc/self/maps")
    path = tmp_path / "m.vmfb"
    path.write_bytes(_file())
    archive = ModuleArchive.open(path)
    assert str(path) in Path("/proc/self/maps").read_text()
    archive.close()
    assert str(path) not in Path("/proc/self/maps").read_text()


def test_a_closed_archive_says_so() -> None:
    archive = ModuleArchive.from_bytes(_file())
    archive.close()
    for use in (
        lambda: archive.data,
        lambda: archive.flatbuffer,
        lambda: archive.external(0, 0),
        lambda: read_module(archive),
    ):
        with pytest.raises(ClosedError):
            use()


@pytest.mark.slow
def test_a_gigabyte_of_constants_is_neither_read_nor_copied(tmp_path: Path) -> None:
    size = 1 << 30
    data = bytearray(_file())
    length = struct.pack("<Q", len(RODATA))
    assert data.count(length) == 1
    at = data.index(length)
    data[at : at + 8] = struct.pack("<Q", size)
    path = tmp_path / "large.vmfb"
    path.write_bytes(data)
    os.truncate(path, len(data) - len(RODATA) + size)
    process = psutil.Process()
    gc.collect()
    before = process.memory_info().rss
    tracemalloc.start()
    try:
        with ModuleArchive.open(path) as archive:
            view = read_module(archive).rodata[1]
            assert len(view) == size
            assert view[: len(RODATA)] == RODATA
            assert view[-1] == 0
            grown = process.memory_info().rss - before
            peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert grown < 16 << 20
    assert peak < 1 << 20


def test_external_ranges_are_checked() -> None:
    with ModuleArchive.from_bytes(_file()) as archive:
        room = len(archive.data) - archive.rodata_base
        assert len(archive.external(0, room)) == room
        assert len(archive.external(room, 0)) == 0
        for offset, length in [(0, room + 1), (room, 1), (-1, 1), (0, -1), (1 << 64, 0), ((1 << 64) - 1, 1)]:
            with pytest.raises(OutOfRangeError, match="cut short or damaged"):
                archive.external(offset, length)


@pytest.mark.parametrize("polyglot", [False, True])
def test_every_truncation_is_found(polyglot: bool) -> None:
    data = _file(polyglot=polyglot)
    with ModuleArchive.from_bytes(data) as archive:
        needed = archive.rodata_base + len(RODATA) + (64 if polyglot else 0)
    for size in [*range(200), *range(200, needed, 37), needed - 1]:
        with pytest.raises(InvalidArgumentError):
            read_module(ModuleArchive.from_bytes(data[:size]))
    read_module(ModuleArchive.from_bytes(data[:needed]))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "got 0"),
        (b"\x7fELF" + bytes(100), "b'IREE' at byte 8"),
        (b"PK\x03\x04" + b"\xff" * 26, "of 131112 bytes at least"),
        (b"PK\x03\x04" + bytes(100), "b'IREE' at byte 38"),
        (struct.pack("<II4s", 0xFFFFFFFF, 8, b"IREE"), "got one of 4294967295"),
        (struct.pack("<II4s", 7, 8, b"IREE"), "got one of 7"),
    ],
)
def test_other_data_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        ModuleArchive.from_bytes(data)


def test_a_strided_view_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="contiguous"):
        ModuleArchive.from_bytes(memoryview(_file())[::2])


def test_paths_that_are_no_module_files(tmp_path: Path) -> None:
    empty = tmp_path / "empty.vmfb"
    empty.touch()
    text = tmp_path / "text.vmfb"
    text.write_text("func.func @main() { return }")
    cases: list[tuple[Path | str, type[PumiceError], str]] = [
        (tmp_path / "missing.vmfb", NotFoundError, "there is none"),
        (empty / "below.vmfb", NotFoundError, "there is none"),
        (tmp_path, InvalidArgumentError, "a directory"),
        (empty, InvalidArgumentError, "an empty file"),
        (text, InvalidArgumentError, "name the output of `pumice compile` or iree-compile"),
        ("a\0b", InvalidArgumentError, "expected a path"),
        (tmp_path / ("n" * 5000), PumiceError, "cannot map"),
    ]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        cases.append((tmp_path / "pipe", InvalidArgumentError, "neither a file"))
    for path, kind, message in cases:
        with pytest.raises(kind, match=message):
            ModuleArchive.open(path)


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        pytest.skip("the superuser may read everything")
    path = tmp_path / "m.vmfb"
    path.write_bytes(_file())
    path.chmod(0)
    with pytest.raises(PermissionDeniedError, match="readable"):
        ModuleArchive.open(path)
