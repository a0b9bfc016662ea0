"""Safetensors: every dtype as the reference package writes it, the same refusals, and mutations that do no harm."""

from __future__ import annotations

import ctypes
import json
import struct
from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save, save_file

from pumice.runtime.parameters.index import ParameterIndex
from pumice.runtime.parameters.safetensors import read_safetensors
from pumice.status import DataLossError, InvalidArgumentError, PumiceError, UnimplementedError

# Every type name of the format, by the name under which the package takes it.
TYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "C64": "complex64",
    "F64": "float64",
    "I64": "int64",
    "U64": "uint64",
}


def file_of(header: object, data: bytes = b"") -> memoryview:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return memoryview(struct.pack("<Q", len(text)) + text + data)


def tensor(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize("name", TYPES)
def test_every_dtype(name: str, tmp_path: Path) -> None:
    dtype = np.dtype(getattr(ml_dtypes, TYPES[name], None) or TYPES[name])
    raw = np.arange(6 * dtype.itemsize, dtype=np.uint8)
    spec = safetensors.TensorSpec(dtype=TYPES[name], shape=[2, 3], data_ptr=raw.ctypes.data, data_len=raw.nbytes)
    path = tmp_path / "t.safetensors"
    safetensors.serialize_file({"x": spec}, str(path))
    entry = ParameterIndex.from_file(path)["x"]
    assert (entry.type_name, entry.dtype, entry.shape) == (name, dtype, (2, 3))
    assert entry.view() == raw.tobytes()


@pytest.mark.parametrize(("name", "bits"), [("F4", 4), ("F6_E2M3", 6), ("F6_E3M2", 6)])
def test_packed_types_have_no_dtype(name: str, bits: int) -> None:
    size = 16 * bits // 8
    data = file_of({"x": tensor(name, [4, 4], 0, size)}, bytes(range(size)))
    assert safetensors.deserialize(bytes(data))[0][1]["dtype"] == name
    (entry,) = read_safetensors(data)
    assert (entry.type_name, entry.dtype, entry.shape, bytes(entry.view())) == (name, None, (4, 4), bytes(range(size)))


def test_a_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays: Mapping[str, np.ndarray] = {
        "scalar": np.array(2.5, np.float32),
        "empty": np.zeros((0, 7), np.int8),
        "matrix": rng.standard_normal((5, 3)),
        'näme with "quotes"': rng.integers(0, 9, 4, np.int64),
    }
    path = tmp_path / "model.safetensors"
    save_file(dict(arrays), path, metadata={"format": "np"})
    index = ParameterIndex.from_file(path)
    assert set(index) == set(arrays)
    for name, array in arrays.items():
        entry = index[name]
        assert (entry.dtype, entry.shape, entry.length) == (array.dtype, array.shape, array.nbytes)
        np.testing.assert_array_equal(np.frombuffer(entry.view(), array.dtype).reshape(array.shape), array)


def test_tensors_are_views_of_the_file() -> None:
    data = bytearray(save({"x": np.arange(4, dtype=np.int32)}))
    (entry,) = read_safetensors(memoryview(data))
    view = entry.view()
    data[-1] = 9
    assert view[-1] == 9
    address = ctypes.addressof(ctypes.c_char.from_buffer(data, len(data) - 16))
    assert np.frombuffer(view, np.uint8).ctypes.data == address


def test_no_tensors() -> None:
    assert read_safetensors(memoryview(save({}))) == []


@pytest.mark.parametrize(
    ("header", "data", "error", "message"),
    [
        (b"[]", b"", InvalidArgumentError, "got a list"),
        (b"{", b"", InvalidArgumentError, "got other text"),
        (b'{"a":\xff}', b"", InvalidArgumentError, "got other text"),
        (b"{" * 100_000, b"", InvalidArgumentError, "got other text"),
        (b'{"a":' * 100_000, b"", InvalidArgumentError, "got other text"),
        (b'{"a":{},"a":{}}', b"", InvalidArgumentError, "'a' is given twice"),
        (b'{"a":NaN}', b"", InvalidArgumentError, "NaN is not JSON"),
        (b'{"a":' + b"9" * 9999 + b"}", b"", InvalidArgumentError, "got other text"),
        ({"__metadata__": {"a": 1}}, b"", InvalidArgumentError, "object of strings"),
        ({"a": 5}, b"", InvalidArgumentError, "expected an object with"),
        ({"a": {"dtype": "U8", "shape": []}}, b"", InvalidArgumentError, "expected an object with"),
        ({"a": tensor("U8", [1], 0, -1)}, b"", InvalidArgumentError, "two integers"),
        ({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, True]}}, b"x", InvalidArgumentError, "two integers"),
        ({"a": tensor("U8", [-1], 0, 0)}, b"", InvalidArgumentError, "shape of integers"),
        ({"a": tensor("U8", [1], 1, 0)}, b"x", InvalidArgumentError, "holes and"),
        ({"a": tensor("U8", [1], 1, 2)}, b"xy", InvalidArgumentError, "holes and"),
        ({"a": tensor("U8", [2], 0, 2), "b": tensor("U8", [2], 1, 3)}, b"xyz", InvalidArgumentError, "holes and"),
        ({"a": tensor("U8", [1], 0, 1)}, b"xy", InvalidArgumentError, "take all 2 bytes"),
        ({"a": tensor("U8", [2], 0, 2)}, b"x", DataLossError, "truncated"),
        ({"a": tensor("U8", [2**40], 0, 2**40)}, b"x", DataLossError, "truncated"),
        ({"a": tensor("F32", [2], 0, 4)}, b"wxyz", InvalidArgumentError, "do not make the 4 bytes"),
        ({"a": tensor("U8", [2**32, 2**32], 0, 0)}, b"", InvalidArgumentError, "do not make the 0 bytes"),
        ({"a": tensor("F4", [3], 0, 2)}, b"xy", InvalidArgumentError, "do not make"),
        ({"\ud800": tensor("U8", [1], 0, 1)}, b"x", InvalidArgumentError, "no UTF-8 form"),
    ],
)  # fmt: skip
def test_refuses_what_the_reference_refuses(
    header: object, data: bytes, error: type[PumiceError], message: str
) -> None:
    whole = file_of(header, data)
    with pytest.raises(Exception, match=r"Error|error|invalid|Invalid|header"):
        safetensors.deserialize(bytes(whole))
    with pytest.raises(error, match=message):
        read_safetensors(whole)


def test_unknown_dtype() -> None:
    with pytest.raises(UnimplementedError, match="'Q3'"):
        read_safetensors(file_of({"a": tensor("Q3", [1], 0, 1)}, b"x"))


def test_header_lengths() -> None:
    with pytest.raises(DataLossError, match="header length"):
        read_safetensors(memoryview(b"1234567"))
    with pytest.raises(InvalidArgumentError, match="at most 100000000 bytes"):
        read_safetensors(memoryview(struct.pack("<Q", 2**63) + b"{}"))
    with pytest.raises(DataLossError, match="safetensors header"):
        read_safetensors(memoryview(struct.pack("<Q", 99_999_999) + b"{}"))


def test_dimensions_that_overflow_take_no_time() -> None:
    shape = [2**63] * 100_000
    with pytest.raises(InvalidArgumentError, match="do not make"):
        read_safetensors(file_of({"a": tensor("U8", shape, 0, 1)}, b"x"))
    (entry,) = read_safetensors(file_of({"a": tensor("U8", [2**63, 2**63, 0], 0, 0)}))
    assert entry.length == 0


SAMPLE = save({"a": np.arange(5, dtype=np.float32), "b": np.ones((2, 3), np.int8)}, metadata={"k": "v"})


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(SAMPLE) - 1), st.integers(0, 255)), min_size=1, max_size=3),
    st.integers(0, len(SAMPLE)) | st.none(),
)
def test_mutations_read_as_the_reference_does(mutations: list[tuple[int, int]], size: int | None) -> None:
    data = bytearray(SAMPLE)
    for offset, value in mutations:
        data[offset] = value
    data = data[:size]
    try:
        expected = {name: bytes(found["data"]) for name, found in safetensors.deserialize(bytes(data))}
    except Exception:
        expected = None
    try:
        found = {entry.name: bytes(entry.view()) for entry in read_safetensors(memoryview(data))}
    except PumiceError:
        assert expected is None
    else:
        assert found == expected
