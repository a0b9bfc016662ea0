"""Indices over NumPy files and arrays, formats told by content, and the messages of what is missing."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from pumice.runtime.parameters.entry import ParameterEntry
from pumice.runtime.parameters.index import ParameterIndex, find_scope
from pumice.runtime.parameters.numpy import read_npy
from pumice.status import (
    AlreadyExistsError,
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    PumiceError,
    UnimplementedError,
)


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def forged(text: str, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def forged_array(shape: str, dtype: str = "<f4", *, order: bool = False, data: bytes = b"") -> bytes:
    return forged(f"{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {shape}}}", data)


# -- NumPy's files -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(6, dtype=">i4").reshape(3, 2),
        np.asfortranarray(np.arange(6, dtype=">u2").reshape(3, 2)),
        np.array(7, np.int16),
        np.zeros((3, 0), np.complex64),
        np.array([True, False]),
        np.zeros(2, [("a", "<i4"), ("b", "u1")]),
        np.array([], "V0"),
    ],
    ids=str,
)
def test_npy(tmp_path: Path, array: np.ndarray) -> None:
    path = tmp_path / "weight.npy"
    np.save(path, array)
    index = ParameterIndex.from_file(path)
    assert list(index) == ["weight"]
    entry = index["weight"]
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    assert entry.view() == little.tobytes()
    assert (entry.shape, entry.dtype) == (array.shape, little.dtype)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"\x93NUMPY", InvalidArgumentError, "format 1.0 or 2.0"),
        (b"\x93NUMPY\x09\x00", InvalidArgumentError, "format 1.0 or 2.0"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", InvalidArgumentError, "format 1.0 or 2.0"),
        (forged("{" * 5000), InvalidArgumentError, "format 1.0 or 2.0"),
        (forged_array("(-1,)"), InvalidArgumentError, "integers of 0"),
        (forged_array("(True,)"), InvalidArgumentError, "integers of 0"),
        (forged_array("(2,)", data=b"1234567"), DataLossError, "truncated"),
        (forged_array(f"({1 << 60},)", order=True), DataLossError, "truncated"),
        (forged_array(f"({'9' * 99},)", order=True), InvalidArgumentError, "larger"),
        (forged_array(f"(0, {1 << 62}, 2)", order=True), InvalidArgumentError, "larger"),
        (forged_array(f"({'1,' * 70})", order=True, data=bytes(4)), InvalidArgumentError, "70 axes"),
        (forged_array(f"({'1,' * 70})", ">f4", data=bytes(4)), InvalidArgumentError, "70 axes"),
        (forged_array("(1,)", "|O", data=bytes(8)), InvalidArgumentError, "objects"),
    ],
)
def test_forged_npy(data: bytes, error: type[PumiceError], message: str) -> None:
    with pytest.raises(error, match=message):
        read_npy(memoryview(data), "x")


@pytest.mark.parametrize(
    ("descr", "shape"), [("'<f4'", "1L,"), ("'a4'", "1,"), ("'<f4'", "1if 1else 2,")], ids=["long", "alias", "digits"]
)
def test_warnings_of_the_parser_do_not_escape(descr: str, shape: str) -> None:
    data = forged(f"{{'descr': {descr}, 'fortran_order': False, 'shape': ({shape})}}", bytes(4))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            assert read_npy(memoryview(data), "x").shape == (1,)
        except InvalidArgumentError:
            assert "if" in shape
    assert caught == []


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(6, 140), st.integers(0, 255)), min_size=1, max_size=3))
def test_mutated_npy(mutations: list[tuple[int, int]]) -> None:
    data = bytearray(npy(np.arange(4, dtype=np.float32)))
    for offset, value in mutations:
        data[offset] = value
    try:
        entry = read_npy(memoryview(data), "x")
    except PumiceError:
        return
    assert len(entry.view()) == entry.length


def test_npz_members_are_mapped(tmp_path: Path) -> None:
    arrays = {"a": np.arange(5, dtype=np.int64), "b/c": np.ones((2, 2), np.float32), "empty": np.zeros(0)}
    path = tmp_path / "w.npz"
    np.savez(path, **arrays)
    index = ParameterIndex.from_file(path, writable=True)
    assert list(index) == list(arrays)
    for name, array in arrays.items():
        assert index[name].view() == array.tobytes() and index[name].shape == array.shape
    index["a"].writable_view()[:8] = np.int64(77).tobytes()
    assert path.read_bytes().find(np.int64(77).tobytes()) > 0


def test_npz_that_cannot_be_mapped(tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    np.savez_compressed(path, a=np.arange(5))
    with pytest.raises(UnimplementedError, match=r"numpy\.savez"):
        ParameterIndex.from_file(path)
    path.write_bytes(b"PK\x03\x04 and nothing more")
    with pytest.raises(InvalidArgumentError, match=r"expected a \.npz file"):
        ParameterIndex.from_file(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "no array")
    with pytest.raises(InvalidArgumentError, match="'readme.txt'"):
        ParameterIndex.from_file(path)


@pytest.mark.slow
@example([(1041, 0)])  # a member without a name
@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=4))
def test_mutated_npz(tmp_path_factory: pytest.TempPathFactory, mutations: list[tuple[int, int]]) -> None:
    file = io.BytesIO()
    np.savez(file, a=np.arange(4), b=np.ones(3, np.float32))
    data = bytearray(file.getvalue())
    for offset, value in mutations:
        data[offset % len(data)] = value
    path = tmp_path_factory.getbasetemp() / "mutated.npz"
    path.write_bytes(data)
    try:
        index = ParameterIndex.from_file(path)
    except PumiceError:
        return
    assert all(len(entry.view()) == entry.length for entry in index.values())


# -- arrays ------------------------------------------------------------------------------------------


def test_arrays_are_used_in_place() -> None:
    array = np.arange(4, dtype=np.int32)
    entry = ParameterIndex.from_arrays({"x": array})["x"]
    array[0] = 99
    assert entry.view() == array.tobytes()
    assert (entry.dtype, entry.shape, entry.writable) == (np.dtype(np.int32), (4,), False)
    entry = ParameterIndex.from_arrays({"x": array}, writable=True)["x"]
    entry.writable_view()[:4] = b"\x05\0\0\0"
    assert array[0] == 5


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12).reshape(3, 4)[:, ::2],
        np.arange(6).reshape(2, 3).T,
        np.array(1.5, ml_dtypes.bfloat16),
        np.zeros((0, 3)),
        [1, 2, 3],
        2.5,
    ],
    ids=str,
)
def test_arrays_of_any_layout(array: np.ndarray) -> None:
    entry = ParameterIndex.from_arrays({"x": array})["x"]
    assert entry.view() == np.asarray(array).tobytes()
    assert entry.shape == np.asarray(array).shape


def test_arrays_that_will_not_do() -> None:
    with pytest.raises(InvalidArgumentError, match="Python objects"):
        ParameterIndex.from_arrays({"x": np.array([None])})
    with pytest.raises(InvalidArgumentError, match="byte order"):
        ParameterIndex.from_arrays({"x": np.arange(3, dtype=">i4")})
    with pytest.raises(InvalidArgumentError, match="something that NumPy makes an array of"):
        ParameterIndex.from_arrays({"x": [[1, 2], [3]]})
    with pytest.raises(InvalidArgumentError, match="writeable C-contiguous"):
        ParameterIndex.from_arrays({"x": np.arange(6)[::2]}, writable=True)
    fixed = np.arange(3)
    fixed.flags.writeable = False
    with pytest.raises(InvalidArgumentError, match="writeable C-contiguous"):
        ParameterIndex.from_arrays({"x": fixed}, writable=True)


# -- files by content, and names ---------------------------------------------------------------------


def test_the_content_tells_the_format(tmp_path: Path) -> None:
    save_file({"x": np.arange(3)}, tmp_path / "x.bin")
    ParameterIndex.from_arrays({"x": np.arange(3)}).save(tmp_path / "x.gguf")
    (tmp_path / "x.irpa").write_bytes(npy(np.arange(3)))
    for name in ("x.bin", "x.gguf", "x.irpa"):
        assert ParameterIndex.from_file(tmp_path / name)["x"].view() == np.arange(3).tobytes()


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("hello")
    (tmp_path / "empty.irpa").touch()
    with pytest.raises(InvalidArgumentError, match="first bytes are b'hello'"):
        ParameterIndex.from_file(tmp_path / "x.txt")
    with pytest.raises(InvalidArgumentError, match="first bytes are b''"):
        ParameterIndex.from_file(tmp_path / "empty.irpa")
    with pytest.raises(NotFoundError, match="no such file"):
        ParameterIndex.from_file(tmp_path / "missing.irpa")
    with pytest.raises(InvalidArgumentError, match="regular file"):
        ParameterIndex.from_file(tmp_path)
    with pytest.raises(InvalidArgumentError, match="path of a file"):
        ParameterIndex.from_file("nul\0.irpa")
    if Path("/dev/null").is_char_device():
        with pytest.raises(InvalidArgumentError, match="regular file"):
            ParameterIndex.from_file("/dev/null")


def test_a_writable_file_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.irpa"
    ParameterIndex.from_arrays({"x": np.arange(4, dtype=np.uint8)}).save(path)
    ParameterIndex.from_file(path, writable=True)["x"].writable_view()[2] = 50
    index = ParameterIndex.from_file(path)
    assert bytes(index["x"].view()) == bytes([0, 1, 50, 3])
    with pytest.raises(PermissionDeniedError, match="'x' is read-only"):
        index["x"].writable_view()


def test_a_model_split_over_files(tmp_path: Path) -> None:
    ParameterIndex.from_arrays({"a": np.arange(2)}).save(tmp_path / "1.irpa")
    ParameterIndex.from_arrays({"b": np.arange(3)}).save(tmp_path / "2.irpa")
    index = ParameterIndex.from_file(tmp_path / "1.irpa", tmp_path / "2.irpa")
    assert list(index.keys()) == ["a", "b"] and "a" in index and "c" not in index and len(index) == 2
    with pytest.raises(AlreadyExistsError, match="named 'a'"):
        ParameterIndex.from_file(tmp_path / "1.irpa", tmp_path / "1.irpa")


def test_missing_names_name_the_closest() -> None:
    index = ParameterIndex.from_arrays({f"layers.{i}.weight": np.zeros(1) for i in range(20)})
    with pytest.raises(NotFoundError, match=r"'layers\.3\.wieght'; the closest parameters: 'layers\.3\.weight'"):
        index["layers.3.wieght"]
    with pytest.raises(NotFoundError, match=r"the first parameters: 'layers\.0\.weight'"):
        index["zzzz"]
    with pytest.raises(NotFoundError, match="no parameters at all"):
        ParameterIndex()["x"]
    assert index.get("zzzz") is None and index.get("layers.3.weight") is index["layers.3.weight"]
    with pytest.raises(NotFoundError, match="scope 'modle'; the closest scopes: 'model'"):
        find_scope({"model": index}, "modle")
    with pytest.raises(NotFoundError, match="scope ''"):
        find_scope({"model": index}, "")
    assert find_scope({"": index}, "") is index


def test_names_in_messages_are_short() -> None:
    entry = ParameterEntry.of_data("x" * 10_000, memoryview(b""))
    with pytest.raises(PermissionDeniedError) as caught:
        entry.writable_view()
    assert len(caught.value.message) < 300


@pytest.mark.slow
def test_readers_of_formats_are_loaded_with_the_first_file(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(2))
    code = (
        "import sys, pumice, pumice.runtime.modules.parameters.module\n"
        "formats = ('gguf', 'irpa', 'numpy', 'safetensors')\n"
        "loaded = lambda: sorted(one for one in formats if f'pumice.runtime.parameters.{one}' in sys.modules)\n"
        "pumice.SessionOptions(parameters={'': {'x': [1.0]}})\n"
        "print(loaded())\n"
        f"pumice.ParameterIndex.from_file({str(tmp_path / 'x.npy')!r})\n"
        "print(loaded())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = done.stdout.splitlines()
    assert before == "[]" and "numpy" in after
