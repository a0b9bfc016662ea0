"""Element types: codes against IREE's Python bindings, dtypes and packing against NumPy and ml_dtypes."""

import math
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.formats.element_type import (
    MAX_RANK,
    ElementType,
    EncodingType,
    format_shape,
    format_shape_and_type,
    parse_shape_and_type,
)
from pumice.status import InvalidArgumentError, PumiceError, UnimplementedError

TYPED = [member for member in ElementType if member.dtype is not None]
NAMED = [member for member in ElementType if member is not ElementType.NONE]


@pytest.mark.peer
def test_codes_are_those_of_the_peer() -> None:
    runtime = pytest.importorskip("iree.runtime", reason="needs the peer extra")
    theirs = {name: int(value) for name, value in runtime.HalElementType.__members__.items()}
    shared = set(theirs) & set(ElementType.__members__)
    assert len(shared) >= 30
    assert {name: int(ElementType[name]) for name in shared} == {name: theirs[name] for name in shared}


@pytest.mark.parametrize("member", NAMED)
def test_name_round_trips(member: ElementType) -> None:
    assert ElementType.parse(member.short_name) is member
    assert ElementType(int(member)) is member


@pytest.mark.parametrize("member", TYPED)
def test_dtype_agrees_with_kind_and_size(member: ElementType) -> None:
    dtype = member.dtype
    assert dtype is not None
    assert dtype.itemsize == member.byte_count
    assert ElementType.from_dtype(dtype).dtype == dtype
    kinds = [member.is_integer, member.is_float, member.is_boolean, member.is_complex, member.is_opaque]
    assert kinds.count(True) == 1
    if dtype.kind in "iufcb":
        assert [dtype.kind in "iu", dtype.kind == "f", dtype.kind == "b", dtype.kind == "c", False] == kinds
        assert member.is_unsigned == (dtype.kind == "u")


def test_from_dtype_prefers_signless_types() -> None:
    assert ElementType.from_dtype(np.int32) is ElementType.INT_32
    assert ElementType.from_dtype("uint8") is ElementType.UINT_8
    assert ElementType.from_dtype(ml_dtypes.bfloat16) is ElementType.BFLOAT_16
    assert ElementType.from_dtype(bool) is ElementType.BOOL_8


@pytest.mark.parametrize("dtype", ["S3", "O", "M8[s]", "V3", np.dtype(">f4"), "nonsense", [("a", "i4")]])
def test_from_dtype_lists_what_it_knows(dtype: object) -> None:
    with pytest.raises(InvalidArgumentError, match="dtype"):
        ElementType.from_dtype(dtype)  # type: ignore[arg-type]


def test_foreign_byte_order_says_what_to_do() -> None:
    with pytest.raises(InvalidArgumentError, match="native byte order"):
        ElementType.from_dtype(np.dtype("i4").newbyteorder("S"))


@pytest.mark.parametrize("code", [0x99000008, 0x10000007, -1, "f32", None])
def test_unknown_code(code: object) -> None:
    with pytest.raises(InvalidArgumentError, match="element type code"):
        ElementType(code)


@pytest.mark.parametrize("name", ["", "f", "i7", "float", "F32", "bf8", "f8", "*7", "complex<i32>", "x" * 100_000])
def test_unknown_name_lists_the_known(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="f8E4M3FN") as caught:
        ElementType.parse(name)
    assert len(str(caught.value)) < 1000


def test_storage_bytes_packs_nibbles() -> None:
    assert [ElementType.INT_4.storage_bytes(count) for count in range(5)] == [0, 1, 1, 2, 2]
    assert ElementType.COMPLEX_FLOAT_128.storage_bytes(3) == np.zeros(3, np.complex128).nbytes
    with pytest.raises(InvalidArgumentError):
        ElementType.INT_4.storage_bytes(-1)


@pytest.mark.parametrize("member", TYPED)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 5)])
def test_pack_and_unpack_are_inverse(member: ElementType, shape: tuple[int, ...]) -> None:
    size = member.storage_bytes(math.prod(shape))
    data = bytes(range(1, size + 1)) if not member.is_boolean else bytes(i % 2 for i in range(size))
    array = member.unpack(data, shape)
    assert array.shape == shape and array.dtype == member.dtype and array.flags.writeable
    packed = member.pack(array)
    if member.is_sub_byte and math.prod(shape) % 2:
        assert packed[:-1] == data[:-1] and packed[-1] == data[-1] & 0x0F
    else:
        assert packed == data


def test_nibbles_lie_low_first_with_sign() -> None:
    values = np.array([1, -2, 7, -8, -1], ml_dtypes.int4)
    packed = ElementType.INT_4.pack(values)
    assert packed == bytes([0xE1, 0x87, 0x0F])
    np.testing.assert_array_equal(ElementType.SINT_4.unpack(packed, (5,)).astype(int), values.astype(int))
    np.testing.assert_array_equal(ElementType.UINT_4.unpack(packed, (5,)).astype(int), values.astype(int) % 16)


def test_pack_and_unpack_check_what_they_get() -> None:
    with pytest.raises(InvalidArgumentError, match="dtype float32"):
        ElementType.FLOAT_32.pack(np.zeros(3))
    with pytest.raises(InvalidArgumentError, match="expected 12 bytes for 3xf32, got 11"):
        ElementType.FLOAT_32.unpack(bytes(11), (3,))
    with pytest.raises(UnimplementedError):
        ElementType.NONE.unpack(b"", ())


def test_encoding_codes() -> None:
    assert EncodingType.OPAQUE == 0
    assert EncodingType.DENSE_ROW_MAJOR == 1


@pytest.mark.slow
@given(st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**63 - 1)), max_size=6).map(tuple), st.sampled_from(NAMED))
def test_shape_and_type_round_trip(shape: tuple[int, ...], member: ElementType) -> None:
    assert parse_shape_and_type(format_shape_and_type(shape, member)) == (shape, member)
    assert format_shape_and_type(shape, member).startswith(format_shape(shape))


def test_mlir_complex_spelling_after_a_shape() -> None:
    assert parse_shape_and_type("2x3xcomplex<f32>") == ((2, 3), ElementType.COMPLEX_FLOAT_64)
    assert parse_shape_and_type("complex<f64>") == ((), ElementType.COMPLEX_FLOAT_128)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "element type"),
        ("2x", "element type"),
        ("2x3", "element type"),
        ("-1xf32", "dimension 0"),
        ("2x?xf32", "dimension 1"),
        ("2xx3xf32", "dimension 1"),
        ("9223372036854775808xf32", "dimension 0"),
        ("9" * 100_000 + "xf32", "dimension 0"),
        ("2x" * (MAX_RANK + 1) + "f32", "dimensions"),
        ("2x3xf33", "f33"),
        ("٣xf32", "element type"),
    ],
)
def test_bad_shape_and_type(text: str, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says) as caught:
        parse_shape_and_type(text)
    assert len(str(caught.value)) < 1000


@given(st.text(alphabet="0123456789xfiu8bEM*<>-? ", max_size=30))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        shape, member = parse_shape_and_type(text)
    except PumiceError:
        return
    assert parse_shape_and_type(format_shape_and_type(shape, member)) == (shape, member)


@pytest.mark.slow
def test_names_of_ml_dtypes_are_known_before_it_is_imported() -> None:
    code = """
import sys
from pumice.formats.element_type import ElementType, dtype_of
assert ElementType.FLOAT_32.dtype == ElementType.from_dtype("f4").dtype and "ml_dtypes" not in sys.modules
assert dtype_of("float8_e5m2").itemsize == 1
assert ElementType.from_dtype("bfloat16") is ElementType.BFLOAT_16
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
