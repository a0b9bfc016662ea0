"""Parameter archives: read what IREE's tools write, written so that they read it, and no forged one does harm."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from pumice.runtime.parameters.entry import ParameterEntry
from pumice.runtime.parameters.index import ParameterIndex
from pumice.runtime.parameters.irpa import read_parameter_archive, write_parameter_archive
from pumice.status import (
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    IncompatibleError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    PumiceError,
    UnimplementedError,
)

# Field offsets in the header and in an entry, by the format's packed structures.
MAJOR, MINOR, HEADER_SIZE, NEXT, COUNT = 4, 6, 8, 16, 32
TABLE, NAMES, STORAGE = 40, 56, 72
ENTRY_SIZE, ENTRY_TYPE, ENTRY_NAME, ENTRY_METADATA = 0, 8, 20, 36
HEADER, ENTRY = 88, 60


def iree_tool(name: str) -> Callable[..., str]:
    """A command line tool of the IREE wheels, which lie beside the interpreter or on the path."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed; it comes with the `peer` extra")

    def run(*arguments: object) -> str:
        done = subprocess.run([found, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def data_entry(name: str, data: bytes, metadata: bytes = b"") -> ParameterEntry:
    return ParameterEntry.of_data(name, memoryview(data), metadata=metadata)


def archive(tmp_path: Path, entries: Sequence[ParameterEntry]) -> bytearray:
    path = tmp_path / "made.irpa"
    write_parameter_archive(path, entries)
    return bytearray(path.read_bytes())


SAMPLE = (
    data_entry("first", bytes(range(100)), b"about first"),
    ParameterEntry.of_splat("pattern", b"\x01\x02\x03\x04\x05\x06\x07\x08", 4096, metadata=b"m"),
    data_entry("empty", b""),
    data_entry("nämé", b"\xff" * 7),
)


def contents(entries: Sequence[ParameterEntry]) -> list[tuple[str, bytes | None, bytes | None, int, bytes]]:
    return [(e.name, e.splat, None if e.splat is not None else bytes(e.view()), e.length, e.metadata) for e in entries]


# -- with IREE's tools -------------------------------------------------------------------------------


@pytest.mark.peer
def test_reads_what_iree_creates(tmp_path: Path) -> None:
    path = tmp_path / "a.irpa"
    iree_tool("iree-create-parameters")(
        "--data=zeros=64xi16",
        "--splat=s1=1024xi8=7",
        "--splat=s4=16xf32=4.1",
        "--splat=s8=4xi64=81985529216486895",
        f"--output={path}",
    )
    index = ParameterIndex.from_file(path)
    assert set(index) == {"zeros", "s1", "s4", "s8"}
    np.testing.assert_array_equal(np.frombuffer(index["zeros"].view(), np.int16), np.zeros(64, np.int16))
    assert (index["s1"].splat, index["s1"].length) == (np.int8(7).tobytes(), 1024)
    assert (index["s4"].splat, index["s4"].length) == (np.float32(4.1).tobytes(), 64)
    assert (index["s8"].splat, index["s8"].length) == (np.int64(81985529216486895).tobytes(), 32)
    assert index["s1"].dtype is None and index["s1"].shape is None


@pytest.mark.peer
def test_reads_what_iree_converts(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    arrays = {f"layer.{i}": rng.standard_normal((3, i + 1), np.float32) for i in range(4)}
    save_file(arrays, tmp_path / "model.safetensors")
    path = tmp_path / "model.irpa"
    iree_tool("iree-convert-parameters")(
        f"--parameters={tmp_path / 'model.safetensors'}", "--splat=layer.2=f32=4.5", f"--output={path}"
    )
    index = ParameterIndex.from_file(path)
    assert set(index) == set(arrays)
    assert (index["layer.2"].splat, index["layer.2"].length) == (np.float32(4.5).tobytes(), arrays["layer.2"].nbytes)
    for name in arrays.keys() - {"layer.2"}:
        assert index[name].view() == arrays[name].tobytes()


@pytest.mark.peer
def test_iree_reads_what_is_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    arrays = {f"layer.{i}": rng.integers(0, 256, 1 + 37 * i, np.uint8) for i in range(5)}
    path = tmp_path / "b.irpa"
    entries = [*ParameterIndex.from_arrays(arrays).values(), ParameterEntry.of_splat("splat", b"\x01\x02", 10)]
    write_parameter_archive(path, entries)
    extracts = [f"--extract=m::{name}={tmp_path / name}.bin" for name in arrays]
    listing = iree_tool("iree-dump-parameters")(f"--parameters=m={path}", "--parameter_mode=preload", *extracts)
    assert "6 entries" in listing and "`splat`" in listing
    for name, array in arrays.items():
        assert (tmp_path / f"{name}.bin").read_bytes() == array.tobytes()


@pytest.mark.peer
def test_survives_a_conversion_by_iree(tmp_path: Path) -> None:
    made, converted = tmp_path / "made.irpa", tmp_path / "converted.irpa"
    entries = [entry for entry in SAMPLE if entry.length]  # the tool refuses to write no bytes
    write_parameter_archive(made, entries)
    iree_tool("iree-convert-parameters")(f"--parameters={made}", f"--output={converted}")
    again = ParameterIndex.from_file(converted)
    assert sorted(contents(list(again.values()))) == sorted(contents(entries))


# -- the writer --------------------------------------------------------------------------------------


def test_round_trip(tmp_path: Path) -> None:
    data = archive(tmp_path, SAMPLE)
    assert contents(read_parameter_archive(memoryview(data))) == contents(SAMPLE)
    assert len(data) % 4096 == 0
    storage = struct.unpack_from("<Q", data, STORAGE)[0]
    assert storage % 64 == 0


def test_no_entries(tmp_path: Path) -> None:
    assert read_parameter_archive(memoryview(archive(tmp_path, ()))) == []


def test_data_is_viewed_in_place(tmp_path: Path) -> None:
    data = archive(tmp_path, SAMPLE)
    entry = read_parameter_archive(memoryview(data))[0]
    view = entry.view()
    where = data.find(bytes(range(100)))
    data[where] = 77
    assert view[0] == 77 and view.readonly and entry.writable
    entry.writable_view()[1] = 78
    assert data[where + 1] == 78


def test_replaces_the_file_it_reads_from(tmp_path: Path) -> None:
    path = tmp_path / "same.irpa"
    write_parameter_archive(path, SAMPLE)
    index = ParameterIndex.from_file(path)
    index.save(path)
    assert contents(list(ParameterIndex.from_file(path).values())) == contents(SAMPLE) == contents(list(index.values()))
    assert list(tmp_path.iterdir()) == [path]


def test_refuses_to_write(tmp_path: Path) -> None:
    path = tmp_path / "x.irpa"
    with pytest.raises(AlreadyExistsError, match="'first'"):
        write_parameter_archive(path, [SAMPLE[0], SAMPLE[0]])
    with pytest.raises(InvalidArgumentError, match="UTF-8"):
        write_parameter_archive(path, [data_entry("\ud800", b"x")])
    with pytest.raises(NotFoundError, match="cannot be written"):
        write_parameter_archive(tmp_path / "missing" / "x.irpa", SAMPLE)
    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        write_parameter_archive(f"{tmp_path}/nul\0.irpa", SAMPLE)
    assert list(tmp_path.iterdir()) == []


def test_entries_say_what_they_are() -> None:
    splat = SAMPLE[1]
    with pytest.raises(FailedPreconditionError, match="splat of 4096 bytes"):
        splat.view()
    with pytest.raises(PermissionDeniedError, match="writable=True"):
        SAMPLE[0].writable_view()
    with pytest.raises(InvalidArgumentError, match="1, 2, 4, 8 or 16"):
        ParameterEntry.of_splat("s", b"abc", 6)
    with pytest.raises(InvalidArgumentError, match="multiple of its 4-byte pattern"):
        ParameterEntry.of_splat("s", b"abcd", 6)


# -- several headers ---------------------------------------------------------------------------------


def test_headers_are_linked_and_count_from_themselves(tmp_path: Path) -> None:
    first = archive(tmp_path, SAMPLE[:2])
    second = archive(tmp_path, SAMPLE[2:])
    struct.pack_into("<Q", first, NEXT, len(first))
    assert contents(read_parameter_archive(memoryview(first + second))) == contents(SAMPLE)


@pytest.mark.parametrize("offset", [8, 80, 88, 4096 + 8])
def test_next_header_lies_behind_this_one(tmp_path: Path, offset: int) -> None:
    data = archive(tmp_path, SAMPLE) * 2
    struct.pack_into("<Q", data, NEXT, offset)
    with pytest.raises((InvalidArgumentError, DataLossError)):
        read_parameter_archive(memoryview(data))


def test_linked_headers_may_not_multiply_one_table(tmp_path: Path) -> None:
    """A thousand headers that share one table of a thousand entries would take a million steps in a small file."""
    headers, entries = 1000, 1000
    size = 96 * headers
    record = bytearray(64)
    struct.pack_into("<QI", record, 0, ENTRY, 0)  # skipped entries: no names that could be there twice
    data = bytearray()
    for i in range(headers):
        prefix = struct.pack("<4sHHQQQ", b"IRPA", 0, 0, HEADER, 96 if i + 1 < headers else 0, 0)
        table = struct.pack("<QQQQQQQ", entries, size - 96 * i, 64 * entries, 0, 0, 0, 0)
        data += prefix + table + bytes(8)
    data += bytes(record) * entries
    with pytest.raises(InvalidArgumentError, match="take more bytes than the file has"):
        read_parameter_archive(memoryview(data))


def test_names_may_not_multiply(tmp_path: Path) -> None:
    entries = [data_entry(f"{i:04}", b"") for i in range(500)]
    data = archive(tmp_path, [*entries, data_entry("x" * 60_000, b"")])
    table = struct.unpack_from("<Q", data, TABLE)[0]
    for i in range(500):  # every name one byte later and 50,000 long
        struct.pack_into("<QQ", data, table + 80 * i + ENTRY_NAME, 2000 + i, 50_000)
    with pytest.raises(InvalidArgumentError, match="take more bytes than the file has"):
        read_parameter_archive(memoryview(data))


# -- forged and damaged ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "form", "value", "error", "message"),
    [
        (0, "<I", 0, InvalidArgumentError, "expected the bytes b'IRPA'"),
        (MAJOR, "<H", 1, IncompatibleError, "version is 1.0"),
        (MINOR, "<H", 3, IncompatibleError, "version is 0.3"),
        (HEADER_SIZE, "<Q", 96, InvalidArgumentError, "has 88 bytes, this one says 96"),
        (NEXT, "<Q", 2**63, DataLossError, "header at byte"),
        (COUNT, "<Q", 2**64 - 1, DataLossError, "entry 4 of"),
        (TABLE, "<Q", 2**64 - 1, DataLossError, "entry segment"),
        (TABLE + 8, "<Q", 2**63, DataLossError, "entry segment"),
        (NAMES + 8, "<Q", 2**40, DataLossError, "metadata segment"),
        (STORAGE, "<Q", 2**33, DataLossError, "storage segment"),
        (HEADER + 8 + ENTRY_SIZE, "<Q", 0, InvalidArgumentError, "size of 60 bytes or more"),
        (HEADER + 8 + ENTRY_SIZE, "<Q", 2**63, DataLossError, "entry 0 of 4"),
        (HEADER + 8 + ENTRY_SIZE, "<Q", ENTRY, DataLossError, "entry 0 of 4, 'first'"),
        (HEADER + 8 + ENTRY_TYPE, "<I", 3, UnimplementedError, "in another file"),
        (HEADER + 8 + ENTRY_TYPE, "<I", 9, UnimplementedError, "entry type 9"),
        (HEADER + 8 + ENTRY_NAME + 8, "<Q", 2**50, DataLossError, "entry 0 of 4, name"),
        (HEADER + 8 + ENTRY_NAME, "<Q", 2**50, DataLossError, "entry 0 of 4, name"),
        (HEADER + 8 + ENTRY_METADATA + 8, "<Q", 2**50, DataLossError, "'first', metadata"),
        (HEADER + 8 + ENTRY + 8, "<Q", 2**62, DataLossError, "'first', data"),
        (HEADER + 8 + 80 + ENTRY + 24, "<B", 17, InvalidArgumentError, "got 17"),
        (HEADER + 8 + 80 + ENTRY + 24, "<B", 0, InvalidArgumentError, "got 0"),
        (HEADER + 8 + 80 + ENTRY, "<Q", 4097, InvalidArgumentError, "multiple of its 8-byte pattern"),
    ],
)
def test_forged_fields(
    tmp_path: Path, offset: int, form: str, value: int, error: type[PumiceError], message: str
) -> None:
    data = archive(tmp_path, SAMPLE)
    struct.pack_into(form, data, offset, value)
    with pytest.raises(error, match=message):
        read_parameter_archive(memoryview(data))


def test_erased_entries_are_skipped(tmp_path: Path) -> None:
    data = archive(tmp_path, SAMPLE)
    struct.pack_into("<I", data, HEADER + 8 + ENTRY_TYPE, 0)
    assert contents(read_parameter_archive(memoryview(data))) == contents(SAMPLE[1:])


def test_truncated_at_every_byte(tmp_path: Path) -> None:
    data = bytes(archive(tmp_path, SAMPLE))
    used = sum(struct.unpack_from("<QQ", data, STORAGE))
    assert contents(read_parameter_archive(memoryview(data[:used]))) == contents(SAMPLE)
    for size in range(used):
        with pytest.raises((DataLossError, InvalidArgumentError)):
            read_parameter_archive(memoryview(data[:size]))


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 460), st.sampled_from("BHIQ"), st.integers(0, 2**64 - 1) | st.integers(0, 300)),
        min_size=1,
        max_size=4,
    )
)
def test_mutated_headers_fail_as_they_should(
    tmp_path_factory: pytest.TempPathFactory, mutations: list[tuple[int, str, int]]
) -> None:
    data = bytearray(_sample_bytes(tmp_path_factory))
    for offset, form, value in mutations:
        struct.pack_into(f"<{form}", data, offset, value % (1 << 8 * struct.calcsize(form)))
    try:
        entries = read_parameter_archive(memoryview(data))
    except PumiceError:
        return
    assert all(entry.splat is not None or len(entry.view()) == entry.length for entry in entries)


_made: dict[str, bytes] = {}


def _sample_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    if "sample" not in _made:
        _made["sample"] = bytes(archive(tmp_path_factory.mktemp("archive"), SAMPLE))
    return _made["sample"]
