"""GGUF: every type as the gguf package writes it, and files that its reader trusts too far."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.constants import GGML_QUANT_SIZES
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.runtime.parameters.gguf import GGML_TYPES, read_gguf
from pumice.runtime.parameters.index import ParameterIndex
from pumice.status import DataLossError, IncompatibleError, InvalidArgumentError, PumiceError, UnimplementedError


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def header(tensors: int, pairs: int, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, pairs)


def description(name: str, shape: tuple[int, ...], code: int, offset: int) -> bytes:
    return string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, code, offset)


def write(path: Path, arrays: dict[str, np.ndarray], alignment: int | None = None) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    writer.add_uint32("answer", 42)
    writer.add_bool("flag", True)
    writer.add_array("tokenizer.tokens", ["a", "bcd", "", "é"])
    writer.add_array("numbers", [1, 2, 3])
    for name, array in arrays.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_types_are_the_packages() -> None:
    theirs = {int(kind): (kind.name, *sizes) for kind, sizes in GGML_QUANT_SIZES.items()}
    assert theirs.items() <= GGML_TYPES.items()


@pytest.mark.parametrize("alignment", [None, 8, 256])
def test_reads_what_the_package_writes(tmp_path: Path, alignment: int | None) -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "token_embd.weight": rng.standard_normal((7, 5), np.float32),
        "half": rng.standard_normal((3, 2, 4)).astype(np.float16),
        "bytes": rng.integers(-128, 127, 13, np.int8),
        "long": rng.integers(0, 99, (2, 2), np.int64),
    }
    path = tmp_path / "model.gguf"
    write(path, arrays, alignment)
    index = ParameterIndex.from_file(path)
    assert list(index) == list(arrays)
    for name, array in arrays.items():
        assert (index[name].dtype, index[name].shape) == (array.dtype, array.shape)
        assert index[name].view() == array.tobytes()


def test_quantised_tensors_are_their_blocks(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal((4, 64), np.float32)
    blocks = gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q8_0)
    path = tmp_path / "q.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("q", blocks, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    entry = ParameterIndex.from_file(path)["q"]
    assert (entry.type_name, entry.dtype, entry.shape) == ("Q8_0", None, (4, 64))
    assert entry.view() == blocks.tobytes()


@pytest.mark.parametrize("code", GGML_TYPES)
def test_every_type_has_its_length(code: int) -> None:
    name, elements, size = GGML_TYPES[code]
    data = header(1, 0) + description("t", (elements, 3), code, 0)
    data += bytes(-len(data) % 32)
    (entry,) = read_gguf(memoryview(data + bytes(3 * size)))
    assert (entry.type_name, entry.length, entry.shape) == (name, 3 * size, (3, elements))
    with pytest.raises(DataLossError, match="truncated"):
        read_gguf(memoryview(data + bytes(3 * size - 1)))


def test_tensors_are_views_of_the_file(tmp_path: Path) -> None:
    write(tmp_path / "x.gguf", {"x": np.arange(4, dtype=np.float32)})
    data = bytearray((tmp_path / "x.gguf").read_bytes())
    (entry,) = read_gguf(memoryview(data))
    data[data.rindex(np.float32(3).tobytes())] = 9
    assert entry.view()[12] == 9


def test_arrays_of_arrays_are_passed_over() -> None:
    nested = string("n") + struct.pack("<IIQ", 9, 9, 2)
    nested += struct.pack("<IQHH", 2, 2, 7, 7) + struct.pack("<IQ", 8, 1) + string("deep")
    data = header(1, 1) + nested + description("t", (4,), 24, 0)
    data += bytes(-len(data) % 32) + b"abcd"
    assert [bytes(e.view()) for e in read_gguf(memoryview(data))] == [b"abcd"]


ALIGNMENT = string("general.alignment")
NESTED = struct.pack("<IQ", 9, 1) * 99_999  # arrays in arrays


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", DataLossError, "magic"),
        (b"GGML" + bytes(20), InvalidArgumentError, "expected the bytes b'GGUF'"),
        (header(0, 0, version=1), IncompatibleError, "version is 1"),
        (header(0, 0, version=4), IncompatibleError, "version is 4"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), IncompatibleError, "big-endian"),
        (header(2**63, 0), DataLossError, "name of tensor 0"),
        (header(0, 2**63), DataLossError, "metadata key length"),
        (header(0, 1) + struct.pack("<Q", 2**63), DataLossError, "metadata key"),
        # An array that claims more than there is: fixed-size values, strings, arrays; this file hangs the package's
        # reader.
        (header(0, 1) + string("a") + struct.pack("<IIQ", 9, 0, 2**40), DataLossError, "value of 'a'"),
        (header(0, 1) + string("a") + struct.pack("<IIQ", 9, 8, 2**40), DataLossError, "string length"),
        (header(0, 1) + string("a") + struct.pack("<IIQ", 9, 9, 2**40), DataLossError, "array type"),
        (header(0, 1) + string("a") + struct.pack("<IIQ", 9, 9, 2**40) * 9999, InvalidArgumentError, "value type"),
        (header(0, 1) + string("a") + struct.pack("<I", 9) + NESTED, DataLossError, "array type"),
        (header(0, 1) + string("a") + struct.pack("<I", 13), InvalidArgumentError, "value type 13"),
        (header(0, 1) + ALIGNMENT + struct.pack("<IQ", 10, 64), InvalidArgumentError, "to be a uint32"),
        (header(0, 1) + ALIGNMENT + struct.pack("<II", 4, 0), InvalidArgumentError, "power of two, got 0"),
        (header(0, 1) + ALIGNMENT + struct.pack("<II", 4, 48), InvalidArgumentError, "power of two, got 48"),
        (header(1, 0) + string("t") + struct.pack("<I", 2**32 - 1), DataLossError, "shape of tensor 't'"),
        (header(1, 0) + description("t", (1,), 4, 0), UnimplementedError, "type 4 is not known"),
        (header(1, 0) + description("t", (33,), 2, 0), InvalidArgumentError, "blocks of 32"),
        (header(1, 0) + description("t", (), 2, 0), InvalidArgumentError, "blocks of 32"),
        (header(1, 0) + description("t", (2**63, 2**63), 0, 0), DataLossError, "truncated"),
        (header(1, 0) + description("t", (2**32, 2**32), 24, 2**63), DataLossError, "truncated"),
        (header(1, 0) + description("t", (0,), 0, 1), DataLossError, "truncated"),
        (header(1, 0) + description("t", (2**63,) * 100_000, 0, 0), DataLossError, "truncated"),
    ],
)  # fmt: skip
def test_forged_files(data: bytes, error: type[PumiceError], message: str) -> None:
    with pytest.raises(error, match=message):
        read_gguf(memoryview(data))


def _sample(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    if not _made:
        path = tmp_path_factory.mktemp("gguf") / "s.gguf"
        write(path, {"a": np.arange(5, dtype=np.float32), "b": np.ones((2, 3), np.int8)})
        _made.append(path.read_bytes())
    return _made[0]


_made: list[bytes] = []


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.data())
def test_mutations_do_no_harm(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    sample = bytearray(_sample(tmp_path_factory))
    for _ in range(data.draw(st.integers(1, 3))):
        form = data.draw(st.sampled_from("BIQ"))
        size = struct.calcsize(form)
        value = data.draw(st.integers(0, 300) | st.integers(0, 2**64 - 1))
        struct.pack_into(f"<{form}", sample, data.draw(st.integers(0, len(sample) - size)), value % (1 << 8 * size))
    del sample[data.draw(st.integers(len(sample) // 2, len(sample))) :]
    try:
        entries = read_gguf(memoryview(sample))
    except PumiceError:
        return
    assert all(len(entry.view()) == entry.length for entry in entries)
