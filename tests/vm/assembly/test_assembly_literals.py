"""Numbers of the assembly text against C's own readers of them."""

from __future__ import annotations

import ctypes
import math
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.vm.assembly.literals import LiteralError, float_bits, integer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="compares with the C library's strtof and strtod")


def peer_bits(text: str, bits: int) -> int:
    """Returns the bits that the C library reads."""
    library = ctypes.CDLL(None)
    reader, kind, layout = (
        (library.strtof, ctypes.c_float, "<f") if bits == 32 else (library.strtod, ctypes.c_double, "<d")
    )
    reader.restype = kind
    reader.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    return int.from_bytes(struct.pack(layout, reader(text.encode(), None)), "little")


# Text with many digits, of which some lie next to the midpoint of two f32 values.
DECIMALS = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"\A[+-]?[0-9]{1,12}\.?[0-9]{0,18}(?:e[+-]?[0-9]{1,2})?\Z"),
    st.from_regex(r"\A-?0x[0-9a-f]{1,6}(?:\.[0-9a-f]{1,6})?p[+-]?[0-9]{1,2}\Z"),
    st.integers(0x3F800000, 0x3F900000).map(
        lambda bits: f"{struct.unpack('<f', struct.pack('<I', bits))[0] + 2.0**-24:.40g}1"
    ),
)


@pytest.mark.slow
@given(DECIMALS, st.sampled_from([32, 64]))
def test_floats_are_those_of_the_c_library(text: str, bits: int) -> None:
    expected = peer_bits(text, bits)
    try:
        assert float_bits(text, bits) == expected
    except LiteralError:
        # Refused, as iree-as-module refuses what strtof sets ERANGE for: overflow, and all that rounds to 0.
        value = struct.unpack("<f" if bits == 32 else "<d", expected.to_bytes(bits // 8, "little"))[0]
        assert value == 0 or math.isinf(value)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(
    "text", ["0", "-0.0", "0x0p0", "inf", "-inf", "Infinity", "nan", "-nan", "NaN", "nan(0x123)", "nan(7)", "nan()"]
)
def test_special_floats(text: str, bits: int) -> None:
    assert float_bits(text, bits) == peer_bits(text, bits)


def test_rounding_once() -> None:
    # 1 + 2^-24 is the midpoint of 1 and its successor, and the text is above it by less than a double can tell.
    text = "1.00000005960464477539062500000000000001"
    assert struct.unpack("<f", struct.pack("<f", float(text)))[0] == 1.0
    assert float_bits(text, 32) == peer_bits(text, 32) == 0x3F800001


@given(st.integers(-(1 << 70), 1 << 70), st.sampled_from([16, 31, 32, 64]), st.booleans())
def test_integers(value: int, bits: int, signed: bool) -> None:
    low = -(1 << (bits - 1)) if signed else 0
    for text in (str(value), f"{'-' if value < 0 else ''}{abs(value):#x}"):
        if low <= value < 1 << bits:
            assert integer(text, bits, signed=signed) == value % (1 << bits)
        else:
            with pytest.raises(LiteralError):
                integer(text, bits, signed=signed)
