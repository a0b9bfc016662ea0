"""The checked FlatBuffer reader against buffers that the flatbuffers library builds, whole and damaged."""

import struct
import time
from collections.abc import Callable, Iterator

import flatbuffers
import numpy as np
import pytest
from flatbuffers import number_types
from hypothesis import given
from hypothesis import strategies as st

from pumice.formats.flatbuffer import FlatBuffer, Table
from pumice.status import InvalidArgumentError, PumiceError

SCALARS = {
    "u8": (number_types.Uint8Flags, st.integers(0, 2**8 - 1)),
    "u32": (number_types.Uint32Flags, st.integers(0, 2**32 - 1)),
    "u64": (number_types.Uint64Flags, st.integers(0, 2**64 - 1)),
    "i32": (number_types.Int32Flags, st.integers(-(2**31), 2**31 - 1)),
}
ROW = struct.Struct("<HHI")


def strings_vector(builder: flatbuffers.Builder, texts: list[str]) -> int:
    offsets = [builder.CreateString(text) for text in texts]
    return offsets_vector(builder, offsets)


def offsets_vector(builder: flatbuffers.Builder, offsets: list[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def table(builder: flatbuffers.Builder, offsets: list[int]) -> int:
    builder.StartObject(len(offsets))
    for slot, offset in enumerate(offsets):
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    return int(builder.EndObject())


def finish(builder: flatbuffers.Builder, root: int) -> bytes:
    builder.Finish(root, file_identifier=b"TEST")
    return bytes(builder.Output())


def sample(names: list[str], payload: bytes) -> bytes:
    """Root: 0 string, 1 child table, 2 strings, 3 children, 4 bytes, 5 structs, 6 absent."""
    builder = flatbuffers.Builder(64)
    name = builder.CreateString("größe")
    child = table(builder, [builder.CreateString("child")])
    children = offsets_vector(builder, [table(builder, [builder.CreateString(item)]) for item in names])
    strings = strings_vector(builder, names)
    data = builder.CreateByteVector(payload)
    builder.StartVector(ROW.size, 2, 4)
    for row in ((4, 5, 6), (1, 2, 3)):
        builder.PrependUint32(row[2])
        builder.PrependUint16(row[1])
        builder.PrependUint16(row[0])
    rows = builder.EndVector()
    return finish(builder, table(builder, [name, child, strings, children, data, rows, 0]))


def read_sample(data: bytes) -> tuple[object, ...]:
    root = FlatBuffer(data, identifier=b"TEST", name="root").root()
    child = root.table(1, "child")
    return (
        root.string(0, "name"),
        child.string(0, "name") if child else None,
        tuple(item.string(0, "name") for item in root.tables(3, "children")),
        bytes(root.u8s(4, "data")),
        root.structs(5, "rows", ROW),
        root.string(6, "absent"),
    )


@pytest.mark.slow
@given(st.lists(st.text(), max_size=4), st.binary(max_size=40))
def test_reads_back_what_the_library_builds(names: list[str], payload: bytes) -> None:
    expected = ("größe", "child", tuple(names), payload, ((1, 2, 3), (4, 5, 6)), None)
    assert read_sample(sample(names, payload)) == expected


@pytest.mark.parametrize("kind", SCALARS)
@given(data=st.data())
def test_scalars_agree_with_the_library(kind: str, data: st.DataObject) -> None:
    flags, values = SCALARS[kind]
    value, default = data.draw(values), data.draw(values)
    builder = flatbuffers.Builder(16)
    builder.StartObject(3)
    getattr(builder, f"Prepend{flags.name.capitalize()}Slot")(1, value, default)
    blob = finish(builder, builder.EndObject())
    root = FlatBuffer(blob, identifier=b"TEST", name="root").root()
    read = getattr(root, kind)
    assert read(1, "value", default) == value
    assert read(0, "absent", default) == default
    assert read(99, "beyond", default) == default
    library = flatbuffers.table.Table(bytearray(blob), root.position)
    assert root.has(1) == (library.Offset(6) != 0)
    if root.has(1):
        assert library.Get(flags, library.Pos + library.Offset(6)) == value


def test_words() -> None:
    builder = flatbuffers.Builder(16)
    words = builder.CreateNumpyVector(np.arange(3, dtype="<u4"))
    root = FlatBuffer(finish(builder, table(builder, [words])), identifier=b"TEST", name="root").root()
    assert root.u32s(0, "words") == (0, 1, 2)
    view = root.vector_bytes(0, "words", 4)
    assert view is not None and view.readonly and bytes(view) == struct.pack("<III", 0, 1, 2)


def test_bytes_are_views_of_the_callers_memory() -> None:
    data = bytearray(sample([], b"payload"))
    view = FlatBuffer(data, identifier=b"TEST", name="root").root().u8s(4, "data")
    data[data.index(b"payload")] = ord("P")
    assert bytes(view) == b"Payload"


@pytest.mark.parametrize("size", range(9))
def test_too_short(size: int) -> None:
    with pytest.raises(InvalidArgumentError, match="root, byte"):
        FlatBuffer(sample([], b"")[:size], identifier=b"TEST", name="root").root()


def test_identifier_is_checked_and_optional() -> None:
    data = sample([], b"")
    with pytest.raises(InvalidArgumentError, match=r"b'OTHR'.*b'TEST'"):
        FlatBuffer(data, identifier=b"OTHR", name="root")
    assert FlatBuffer(data, identifier=None, name="root").root().string(0, "name") == "größe"


def test_error_names_the_field_and_the_byte() -> None:
    data = bytearray(sample(["a", "b", "c"], b""))
    root = FlatBuffer(data, identifier=b"TEST", name="root").root()
    second = root.tables(3, "children")[1]
    string = second.position + 4 + struct.unpack_from("<I", data, second.position + 4)[0]
    struct.pack_into("<I", data, string, 0xFFFFFFFF)
    with pytest.raises(InvalidArgumentError, match=rf"root\.children\[1\]\.name, byte {string}: .*4294967295"):
        second.string(0, "name")


def test_required_fields() -> None:
    root = FlatBuffer(sample([], b""), identifier=b"TEST", name="root").root()
    assert root.require_string(0, "name") == "größe"
    with pytest.raises(InvalidArgumentError, match=r"root\.absent, byte \d+: .*absent"):
        root.require_string(6, "absent")


def test_invalid_utf8_and_missing_nul() -> None:
    data = bytearray(sample([], b""))
    at = data.index("größe".encode())
    data[at + 2] = 0xFF
    with pytest.raises(InvalidArgumentError, match=rf"byte {at + 2}: expected UTF-8"):
        read_sample(bytes(data))
    data = bytearray(sample([], b""))
    data[at + len("größe".encode())] = 1
    with pytest.raises(InvalidArgumentError, match="NUL"):
        read_sample(bytes(data))


def shared_bomb(width: int, depth: int) -> bytes:
    """A tree of width**depth tables in a few hundred bytes: every entry of a vector is the same table."""
    builder = flatbuffers.Builder(1024)
    offset = table(builder, [])
    for _ in range(depth):
        offset = table(builder, [offsets_vector(builder, [offset] * width)])
    return finish(builder, offset)


def walk(root: Table) -> Iterator[Table]:
    pending = [root]
    while pending:
        item = pending.pop()
        yield item
        pending.extend(item.tables(0, "children"))


def test_shared_targets_run_out_of_budget() -> None:
    data = shared_bomb(16, 12)
    start = time.process_time()
    with pytest.raises(InvalidArgumentError, match="used a few times"):
        for _ in walk(FlatBuffer(data, identifier=b"TEST", name="bomb").root()):
            pass
    assert time.process_time() - start < 5


def test_modest_sharing_is_allowed() -> None:
    builder = flatbuffers.Builder(1024)
    shared = builder.CreateString("0rrIiiiICiDCiirIID_v")
    tables = [table(builder, [shared]) for _ in range(5000)]
    blob = finish(builder, table(builder, [offsets_vector(builder, tables)]))
    items = FlatBuffer(blob, identifier=b"TEST", name="root").root().tables(0, "signatures")
    assert {item.string(0, "convention") for item in items} == {"0rrIiiiICiDCiirIID_v"}


def outcome(read: Callable[[], object]) -> object:
    try:
        return read()
    except PumiceError as error:
        assert "root" in str(error)
        return None


BASE = sample(["alpha", "beta"], bytes(range(20)))


def test_every_truncation() -> None:
    whole = read_sample(BASE)
    for size in range(len(BASE)):
        assert outcome(lambda: read_sample(BASE[:size])) in (None, whole)


def test_every_bit_flip() -> None:
    refused = 0
    for bit in range(8 * len(BASE)):
        data = bytearray(BASE)
        data[bit // 8] ^= 1 << bit % 8
        refused += outcome(lambda: read_sample(bytes(data))) is None
    assert refused > len(BASE)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, len(BASE) - 4), st.sampled_from([0, 1, 4, 2**31, 2**32 - 1])), max_size=4))
def test_forged_words(patches: list[tuple[int, int]]) -> None:
    data = bytearray(BASE)
    for position, value in patches:
        struct.pack_into("<I", data, position, value)
    outcome(lambda: read_sample(bytes(data)))


@pytest.mark.slow
@given(st.binary(max_size=64))
def test_random_bytes(data: bytes) -> None:
    outcome(lambda: read_sample(b"\x08\0\0\0TEST" + data))
