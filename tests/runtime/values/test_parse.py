"""Values as text: NumPy checks their meaning, iree-run-module their syntax and printing."""

import math
import os
import struct
import subprocess
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.peer import compile_module, run_peer

from pumice.formats.element_type import ElementType
from pumice.runtime.values.format import format_scalar, format_value
from pumice.runtime.values.parse import parse_buffer_spec, parse_scalar, parse_value, parse_values
from pumice.status import InvalidArgumentError, NotFoundError, PumiceError, ResourceExhaustedError


def assert_same(text: str, expected: np.ndarray) -> None:
    value = parse_value(text)
    assert isinstance(value, np.ndarray)
    assert value.dtype == expected.dtype and value.shape == expected.shape
    assert value.tobytes() == expected.tobytes()
    assert value.flags.writeable and value.flags.c_contiguous


@pytest.mark.parametrize(
    "data", ["1 2 3 4 5 6", "1,2,3,4,5,6", "[1 2 3][4 5 6]", "[[1 2 3],[4 5 6]]", " [1\t2, 3]\n[4 5 6] "]
)
def test_separators_and_brackets(data: str) -> None:
    assert_same(f"2x3xf32={data}", np.array([[1, 2, 3], [4, 5, 6]], np.float32))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4xf32=7", np.full(4, 7, np.float32)),
        ("2x2xi8=[-1]", np.full((2, 2), -1, np.int8)),
        ("4xf32", np.zeros(4, np.float32)),
        ("4xf32=", np.zeros(4, np.float32)),
        ("f32=2.5", np.array(2.5, np.float32)),
        ("i64", np.array(0, np.int64)),
        ("0xf32", np.zeros(0, np.float32)),
        ("0xf32=", np.zeros(0, np.float32)),
        ("2x0xf32=[][]", np.zeros((2, 0), np.float32)),
        ('"2xi16=1 2"', np.array([1, 2], np.int16)),
        (" 2xi16 = 1 2 ", np.array([1, 2], np.int16)),
        ("&2xi16", np.zeros(2, np.int16)),
        ("4xi32=0x10 010 -0x10 +7", np.array([16, 8, -16, 7], np.int32)),
        ("2xi32=4294967295 -2147483648", np.array([-1, -(2**31)], np.int32)),
        ("2xui64=18446744073709551615 0", np.array([2**64 - 1, 0], np.uint64)),
        ("6xi1=1 0 01 00 TRUE false", np.array([1, 0, 1, 0, 1, 0], bool)),
        ("4xi4=7 -8 15 -1", np.array([7, -8, -1, -1], ml_dtypes.int4)),
        ("2xui4=15 0", np.array([15, 0], ml_dtypes.uint4)),
        ("2xbf16=1.5 -0", np.array([1.5, -0.0], ml_dtypes.bfloat16)),
        ("2xf8E4M3FN=448 nan", np.array([448, np.nan], ml_dtypes.float8_e4m3fn)),
        ("3xf16=65504 1e30 -inf", np.array([65504, np.inf, -np.inf], np.float16)),
        ("3xf64=0x1.8p3 1e400 -0", np.array([12, np.inf, -0.0])),
        ("4xcf64=1+2j 3 -1i 1e-3-2.5e+2i", np.array([1 + 2j, 3, complex(0, -1), 1e-3 - 2.5e2j], np.complex64)),
        ("2xcf128=i (null)"[:10], np.full(2, 1j)),
        ("cf64=0000803F00000040", np.array(1 + 2j, np.complex64)),
        ("2x*16=0102 aBfF", np.frombuffer(b"\1\2\xab\xff", "V2")),
        ("2xcomplex<f32>=2", np.full(2, 2, np.complex64)),
    ],
)
def test_meaning(text: str, expected: np.ndarray) -> None:
    assert_same(text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5", 5), ("-5", -5), ("0x1F", 31), ("2.5", 2.5), (" 1e3 ", 1000.0), ("inf", math.inf), ("(null)", None)],
)
def test_bare_values(text: str, expected: object) -> None:
    value = parse_value(text)
    assert value == expected and type(value) is type(expected)


def test_scalars_of_a_known_type() -> None:
    assert parse_scalar("0xf32", ElementType.INT_32) == 0xF32
    assert parse_scalar("4294967295", ElementType.INT_32) == -1
    assert parse_scalar("18446744073709551615", ElementType.UINT_64) == 2**64 - 1
    assert parse_scalar("0.1", ElementType.FLOAT_32) == float(np.float32(0.1))
    assert parse_scalar("7", ElementType.INT_4) == 7
    for text, element_type in [("1 2", "i32"), ("", "i32"), ("4294967296", "i32"), ("x", "f32"), ("1", "cf64")]:
        with pytest.raises(InvalidArgumentError):
            parse_scalar(text, ElementType.parse(element_type))


def test_spec_without_data_has_none() -> None:
    assert parse_buffer_spec("2x3xbf16") == ((2, 3), ElementType.BFLOAT_16, None)
    shape, element_type, data = parse_buffer_spec("2xsi32=1 2")
    assert (shape, element_type) == ((2,), ElementType.SINT_32)
    assert data is not None and data.tolist() == [1, 2]


def test_singles_are_rounded_once() -> None:
    # Just above the midpoint of 1 and its successor, by less than a binary64 can tell.
    tie = Fraction(1) + Fraction(1, 2**24)
    above, below = f"{float(tie):.60f}"[:-10] + "1", "1.00000005960464477538"
    assert Fraction(below) < tie < Fraction(above)
    assert float(above) == float(below) == float(tie)
    successor = np.nextafter(np.float32(1), np.float32(2))
    assert_same(f"3xf32={above} {below} {float(tie):.30f}", np.array([successor, 1, 1], np.float32))
    # The same at the edge to infinity.
    largest, edge = np.finfo(np.float32).max, 2**128 - 2**103
    assert_same(f"3xf32={edge - 1} {edge} {-edge + 1}", np.array([largest, np.inf, -largest], np.float32))


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_singles_are_the_nearest(value: object) -> None:
    text = str(value)
    got = parse_value(f"f32={text}")
    assert isinstance(got, np.ndarray)
    nearest = got[()]
    if not np.isfinite(nearest):
        assert abs(float(text)) > 3.4e38
    elif abs(float(text)) > 1e-300:
        exact = Fraction(text)
        for toward in (np.float32(-np.inf), np.float32(np.inf)):
            neighbour = np.nextafter(nearest, toward)
            if np.isfinite(neighbour):
                assert abs(Fraction(float(nearest)) - exact) <= abs(Fraction(float(neighbour)) - exact)


@pytest.mark.parametrize(
    ("text", "says", "caret_at"),
    [
        ("4xf32=1 2 3", r"expected 4 elements for 4xf32 \(or 1 for all\), got 3", 11),
        ("2xf32=1 2 3", "expected 2 elements.*got 3", 10),
        ("0xf32=1", "expected 0 elements", 6),
        ("f32=[]", "expected 1 elements for f32, got 0", 6),
        ("4xf32=1 2 x 4", r"element 2 of 4xf32: expected a number, inf or nan, got 'x'", 10),
        ("2xi32=1 2.5", "element 1 of 2xi32: expected an integer", 8),
        ("2xi32=1 12abc", "element 1", 8),
        ("i8=256", "integer of -128 to 255, got '256'", 3),
        ("si8=128", "integer of -128 to 127", 4),
        ("ui8=-1", "integer of 0 to 255", 4),
        ("i4=16", "integer of -8 to 15", 3),
        ("i1=2", "false or true", 3),
        ("cf64=1+", "complex number", 5),
        ("*16=123", "4 hexadecimal digits", 4),
        ("*16=zzzz", "4 hexadecimal digits", 4),
        ("2xf32=[1 2", "closing bracket", 6),
        ("2xf32=1] 2", "opening bracket", 7),
        ("2xf33=1 2", "f33", 2),
        ("2x-3xf32", "dimension 1", 2),
        ("f32=1_0", "expected a number", 4),
        ("", "shape and type", 0),
        ("&", "shape and type", 1),
        ("abc", "a number alone like 5", 0),
        ("9" * 100, "integer", 0),
        ("f32=٣", "expected a number", 4),
        ("i32=" + "1" * 10_000, "integer", 4),
    ],
)
def test_malformed(text: str, says: str, caret_at: int) -> None:
    with pytest.raises(InvalidArgumentError, match=says) as caught:
        parse_value(text)
    message = str(caught.value)
    assert f"at position {caret_at}:" in message
    assert len(message) < 1200
    *_, shown, caret = message.splitlines()
    column = caret.index("^")
    if caret_at < len(text):
        assert shown[column] == text[caret_at]


def test_too_large_for_memory() -> None:
    with pytest.raises(ResourceExhaustedError, match="4611686018427387904"):
        parse_value("1152921504606846976xf32")
    with pytest.raises(PumiceError):
        parse_value("9223372036854775807x9223372036854775807xf64=1")
    with pytest.raises(InvalidArgumentError, match="got 2"):
        parse_value("9223372036854775807xf64=1 2")


def test_files(tmp_path: Path) -> None:
    whole = np.arange(6, dtype=np.float32).reshape(2, 3)
    raw, npy = tmp_path / "data.bin", tmp_path / "data.npy"
    whole.tofile(raw)
    np.save(npy, whole)
    assert_same(f"2x3xf32=@{raw}", whole)
    assert_same(f"@{npy}", whole)
    np.save(npy, np.asfortranarray(whole))
    assert_same(f"@{npy}", whole)
    np.save(npy, whole.astype(">f4"))
    assert_same(f"@{npy}", whole)
    np.save(npy, np.zeros((2, 0), np.int8))
    assert_same(f"@{npy}", np.zeros((2, 0), np.int8))
    for text in (f"5xf32=@{raw}", f"7xf32=@{raw}", f"@{raw}"):
        with pytest.raises(InvalidArgumentError, match="expected"):
            parse_value(text)
    with pytest.raises(NotFoundError, match="missing"):
        parse_value("4xf32=@/missing.bin")
    with pytest.raises(InvalidArgumentError):
        parse_value(f"4xf32=@{tmp_path}")
    with pytest.raises(InvalidArgumentError):
        parse_value("4xf32=@a\0b")


def test_files_read_in_turn(tmp_path: Path) -> None:
    first, second = np.arange(3, dtype=np.int32), np.arange(4, dtype=np.float64)
    raw, npy = tmp_path / "data.bin", tmp_path / "data.npy"
    raw.write_bytes(first.tobytes() + second.tobytes())
    with npy.open("wb") as file:
        np.save(file, first)
        np.save(file, second)
    a, b, five, c, d, rest = parse_values(
        [f"3xi32=@{raw}", f"4xf64=+{raw}", "5", f"@{npy}", f"+{npy}", f"@{npy}"],
    )
    for got, expected in ((a, first), (b, second), (c, first), (d, second), (rest, first)):
        np.testing.assert_array_equal(got, expected, strict=True)
    assert five == 5
    assert len(parse_values([f"*{npy}"])) == 2
    assert parse_values([f"*{npy}", f"*{npy}"])[1].shape == (4,)  # type: ignore[union-attr]
    with pytest.raises(InvalidArgumentError, match="to be 12, got 44"):
        parse_values([f"3xi32=@{raw}"])
    with pytest.raises(InvalidArgumentError, match="one value"):
        parse_value(f"*{npy}")


@pytest.mark.skipif(os.name != "posix", reason="needs /dev/full-like special files")
def test_endless_file_is_bounded() -> None:
    with pytest.raises(InvalidArgumentError, match="got more"):
        parse_value("4xf32=@/dev/zero")


def npy_header(text: str) -> bytes:
    body = text.encode("latin1") + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY\x09\x00",
        npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}"),
        npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
        npy_header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}") + b"\x80\x04N.",
        npy_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}") + bytes(4),
        npy_header("{'descr': 5, 'fortran_order': False, 'shape': (1,)}"),
        npy_header("{'descr': ('<f4',), 'fortran_order': False, 'shape': (1,)}"),
        npy_header("(" * 3000),
        npy_header("__import__('os').getpid()"),
        npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': " + str((1,) * 100) + "}"),
        npy_header("{'descr': '<V2', 'fortran_order': True, 'shape': (True,)}") + bytes(2),
        npy_header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': (0, {2**63 - 1}, {2**63 - 1})}}"),
        npy_header(f"{{'descr': '<f4', 'fortran_order': True, 'shape': (0, {2**70})}}"),
        npy_header("{'descr': 'a4', 'fortran_order': False, 'shape': (1,)}") + bytes(4),
    ],
)
def test_bad_npy(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.npy"
    path.write_bytes(content)
    with pytest.raises(InvalidArgumentError):
        parse_value(f"@{path}")


ARRAYS = hnp.arrays(
    st.sampled_from(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", "c8", "c16"]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


@pytest.mark.slow
@given(ARRAYS)
def test_printed_exact_types_read_back(array: np.ndarray) -> None:
    assert_same(format_value(array), array)


@pytest.mark.slow
@given(hnp.arrays(np.float32, hnp.array_shapes(min_dims=0, max_dims=2, max_side=4)))
def test_printed_floats_read_back_to_six_digits(array: np.ndarray) -> None:
    back = parse_value(format_value(array))
    assert isinstance(back, np.ndarray)
    with np.errstate(invalid="ignore"):
        normal = (np.abs(array) > 1e-37) & (np.abs(array) < 3e38)
    np.testing.assert_allclose(back[normal], array[normal], rtol=1e-5)
    assert format_value(back) == format_value(array)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.text(alphabet='0123456789xfiu8bEM*<>-+.,=[]@&"() \tnaeps', max_size=24).filter(lambda text: "@" not in text))
def test_any_text_parses_or_is_refused(text: str) -> None:
    if sum(character.isdigit() for character in text.split("=")[0]) > 6:
        return
    try:
        value = parse_value(text)
    except PumiceError:
        return
    assert value is None or isinstance(value, (int, float)) or format_value(value)


def test_elements_past_the_limit_are_elided() -> None:
    array = np.ones((2, 2, 3), np.int32)
    assert format_value(array, max_elements=4) == "2x2x3xi32=[[1 1 1][1...]][[...][...]]"
    assert format_value(array, max_elements=None).count("1") == 12
    assert format_value(np.ones(1025, np.int32)).endswith(" 1...")
    with pytest.raises(InvalidArgumentError):
        format_value(array, max_elements=-1)


def test_printing_names_and_checks_the_type() -> None:
    array = np.array([1, -1], np.int32)
    assert format_value(array, element_type=ElementType.SINT_32) == "2xsi32=1 -1"
    with pytest.raises(InvalidArgumentError, match="float32"):
        format_value(array, element_type=ElementType.FLOAT_32)
    with pytest.raises(InvalidArgumentError, match="dtype"):
        format_value(np.array(["text"]))
    assert format_value(np.array([7, -8], ml_dtypes.int4)) == "2xi4=7 -8"


def test_scalar_widths() -> None:
    assert [format_value(value) for value in (2**31 - 1, 2**31, 0.5, 0.1, None)] == [
        f"i32={2**31 - 1}",
        f"i64={2**31}",
        "f32=0.5",
        "f64=0.1",
        "(null)",
    ]
    with pytest.raises(InvalidArgumentError):
        format_scalar(1, ElementType.BOOL_8)


# -- iree-run-module ---------------------------------------------------------------------------------

INTEGERS = ["i8", "si8", "ui8", "i16", "si16", "ui16", "i32", "si32", "ui32", "i64", "si64", "ui64"]
FLOATS = ["f16", "bf16", "f32", "f64", "f8E5M2", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ"]
PEER_TYPES = ["i1", *INTEGERS, *FLOATS, "f8E8M0FNU", "complex<f32>"]
SCALAR_TYPES = ["i32", "i64", "f32", "f64"]


class Peer:
    """A module that returns its argument, run by iree-run-module on the CPU."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        lines = [
            f"func.func @{self._function(name)}(%a: tensor<?x{name}>) -> tensor<?x{name}> "
            f"{{ return %a : tensor<?x{name}> }}"
            for name in PEER_TYPES
        ]
        for rank in (0, 2, 3):
            shape = "?x" * rank
            lines.append(
                f"func.func @rank{rank}(%a: tensor<{shape}f32>) -> tensor<{shape}f32> "
                f"{{ return %a : tensor<{shape}f32> }}"
            )
        lines += [f"func.func @scalar_{name}(%a: {name}) -> {name} {{ return %a : {name} }}" for name in SCALAR_TYPES]
        flags = ["--iree-hal-target-backends=vmvx", "--iree-input-demote-f64-to-f32=false"]
        self._module = compile_module("\n".join(lines), device=flags)

    @staticmethod
    def _function(name: str) -> str:
        return "vector_" + name.translate(str.maketrans("<>", "__"))

    def run(self, function: str, spec: str, *flags: str) -> subprocess.CompletedProcess[str]:
        call = [f"--module={self._module}", "--device=local-sync", f"--function={function}", f"--input={spec}", *flags]
        return run_peer("iree-run-module", *call, check=False)

    def printed(self, function: str, spec: str, *flags: str) -> str:
        done = self.run(function, spec, *flags)
        assert done.returncode == 0, done.stderr
        return done.stdout.rstrip("\n").splitlines()[-1].removeprefix("result[0]: ")

    def vector(self, element_type: str, spec: str, *flags: str) -> str:
        return self.printed(self._function(element_type), spec, *flags)

    def bytes_of(self, element_type: str, spec: str) -> bytes:
        target = self.folder / "out.bin"
        done = self.run(self._function(element_type), spec, f"--output=@{target}")
        assert done.returncode == 0, done.stderr
        return target.read_bytes()


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Peer:
    return Peer(tmp_path_factory.mktemp("peer"))


@pytest.mark.sample(10)
@pytest.mark.peer
@pytest.mark.parametrize("name", PEER_TYPES)
def test_prints_every_bit_pattern_as_the_peer(name: str, peer: Peer) -> None:
    element_type = ElementType.parse(name)
    if element_type.is_boolean:
        data = bytes([0, 1] * 8)
    elif element_type.byte_count <= 2:
        data = np.arange(2**element_type.bits, dtype=f"<u{element_type.byte_count}").tobytes()
    else:
        data = np.random.default_rng(0).bytes(4096 * element_type.byte_count)
        if element_type.is_float:
            special = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 5e-324, 1e-45, 1e-39, 1e20, 123456.5, 1e6, 1e5]
            with np.errstate(under="ignore"):
                data += np.array(special).astype(element_type.require_dtype()).tobytes()
    path = peer.folder / "in.bin"
    path.write_bytes(data)
    count = len(data) // element_type.byte_count
    spec = f"{count}x{element_type.short_name}=@{path}"
    value = parse_value(spec)
    assert isinstance(value, np.ndarray)
    mine = format_value(value, max_elements=None, element_type=element_type)
    assert mine == peer.vector(name, spec, "--output_max_element_count=100000")


@pytest.mark.peer
@pytest.mark.parametrize("name", INTEGERS)
def test_reads_integers_as_the_peer(name: str, peer: Peer) -> None:
    bits = ElementType.parse(name).bits
    low = 0 if name.startswith("u") else -(2 ** (bits - 1))
    high = 2 ** (bits - (0 if name.startswith("u") else 1)) - 1
    spec = f"6x{name}={low} {high} 0x1f, [+010] [0][1]"
    value = parse_value(spec)
    assert isinstance(value, np.ndarray)
    assert value.tobytes() == peer.bytes_of(name, spec)


@pytest.mark.peer
@pytest.mark.parametrize("name", FLOATS)
def test_reads_floats_as_the_peer(name: str, peer: Peer) -> None:
    element_type = ElementType.parse(name)
    dtype = element_type.require_dtype()
    smallest = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    source = np.random.default_rng(1)
    exponents = source.integers(-140, 120, 2000) if element_type.bits >= 32 else source.integers(-24, 20, 2000)
    values = np.ldexp(source.standard_normal(2000), exponents)
    # Below the smallest number the peer truncates to zero where the nearest value may be that number.
    texts = [repr(float(v)) for v in values if abs(v) >= smallest]
    texts += ["inf", "-inf", "-0", "0", "1e30", "-1e30", "0x1.8p3", "INFINITY", ".5", "5."]
    spec = f"{len(texts)}x{name}={' '.join(texts)}"
    mine = parse_value(spec)
    assert isinstance(mine, np.ndarray)
    theirs = np.frombuffer(peer.bytes_of(name, spec), dtype)
    not_nan = ~np.isnan(mine.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(theirs.astype(np.float64)), ~not_nan)
    assert mine[not_nan].tobytes() == theirs[not_nan].tobytes()


@pytest.mark.peer
@pytest.mark.parametrize(
    ("function", "spec"),
    [
        ("rank0", "f32=2.5"),
        ("rank0", "f32="),
        ("rank0", "f32=nan"),
        ("rank2", "2x3xf32=[1 2 3][4 5 6]"),
        ("rank2", "2x0xf32=[][]"),
        ("rank2", "0x2xf32"),
        ("rank2", '"1x2xf32=1,2"'),
        ("rank3", "2x2x3xf32=[[1 2 3][4 5 6]],[[7 8 9][10 11 12]]"),
        ("rank3", "2x2x0xf32"),
        ("rank3", "2x0x2xf32"),
        ("rank3", "2x2x600xf32=-1.5"),
        ("rank2", "1x1024xf32=1"),
        ("rank2", "1x1025xf32=1"),
        ("rank2", "3x1024xf32=1"),
    ],
)
def test_shapes_and_elision_as_the_peer(function: str, spec: str, peer: Peer) -> None:
    value = parse_value(spec)
    assert isinstance(value, np.ndarray)
    assert format_value(value) == peer.printed(function, spec)


@pytest.mark.peer
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("i32", "5"),
        ("i32", "-0x10"),
        ("i32", "010"),
        ("i64", "123456789012345"),
        ("f32", "2.5"),
        ("f32", "inf"),
        ("f32", "-nan"),
        ("f32", "1e20"),
        ("f64", "1e300"),
        ("f64", "0.1"),
        ("f64", "123456789"),
    ],
)
def test_scalars_as_the_peer(name: str, text: str, peer: Peer) -> None:
    element_type = ElementType.parse(name)
    value = parse_scalar(text, element_type)
    printed = peer.printed(f"scalar_{name}", text)
    assert format_scalar(value, element_type) == printed
    assert format_value(element_type.require_dtype().type(value)) == printed


@pytest.mark.peer
@pytest.mark.parametrize("spec", ["4xf32=1 2", "2xf32=1 2 3", "0xf32=1", "2xf32=a b", "2xf32x=1 2", "-1xf32"])
def test_refuses_what_the_peer_refuses(spec: str, peer: Peer) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_value(spec)
    assert peer.run("vector_f32", spec).returncode != 0
