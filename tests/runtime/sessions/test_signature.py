"""Signatures, and the conversions of scalars and references that need no device. Arrays are in test_session.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.runtime.sessions.binding import argument_binder, result_unbinder
from pumice.runtime.sessions.signature import Signature, make_signature
from pumice.status import InvalidArgumentError
from pumice.vm.bytecode.calling_convention import CallingConvention
from pumice.vm.bytecode.declaration import parse_declaration
from pumice.vm.types.buffer import VmBuffer
from pumice.vm.types.list import VmList

LETTERS = {"i64": "I", "index": "I", "ui64": "I", "f32": "f", "f64": "F"}


def signature(declaration: str, convention: str, attributes: dict[str, str] | None = None) -> Signature:
    return make_signature("m.f", CallingConvention.parse(convention), parse_declaration(declaration), attributes or {})


def no_device() -> NoReturn:
    raise AssertionError("a scalar needs no device")


def binder(kind: str, letter: str | None = None) -> Callable[[Any], Any]:
    """Returns the converter of an argument declared as a scalar of this kind."""
    letter = letter or LETTERS.get(kind, "i")
    made = signature(f"sync func @f(%x: {kind}) -> ()", f"0{letter}_v")
    assert made.arguments[0].declared is not None
    return argument_binder(made.arguments[0], "m.f", no_device)


def unbinder(kind: str) -> Callable[[Any], Any]:
    letter = LETTERS.get(kind, "i")
    made = signature(f"sync func @f() -> (%y: {kind})", f"0v_{letter}")
    assert made.results[0].declared is not None
    return result_unbinder(made.results[0], no_device, no_device)


# -- integers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@given(data=st.data())
def test_signless_integers_take_both_ranges_and_come_back_signed(bits: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(-(1 << (bits - 1)), (1 << bits) - 1))
    as_numpy = int(np.array(value & (1 << bits) - 1, f"u{bits // 8}").view(f"i{bits // 8}"))
    bound = binder(f"i{bits}")(value)
    assert bound == as_numpy
    # Programs compute in registers of 32 or 64 bits: what is above the declared width is no part of the value.
    assert unbinder(f"i{bits}")(bound) == as_numpy
    if bits < 32:
        assert unbinder(f"i{bits}")(bound + (1 << bits)) == as_numpy


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@given(data=st.data())
def test_unsigned_integers_come_back_unsigned(bits: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, (1 << bits) - 1))
    bound = binder(f"ui{bits}")(value)
    register = 64 if bits == 64 else 32
    assert -(1 << (register - 1)) <= bound < 1 << (register - 1)
    assert unbinder(f"ui{bits}")(bound) == value


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("i1", 0, 1),
        ("i8", -(1 << 7), (1 << 8) - 1),
        ("si8", -(1 << 7), (1 << 7) - 1),
        ("ui8", 0, (1 << 8) - 1),
        ("i16", -(1 << 15), (1 << 16) - 1),
        ("ui16", 0, (1 << 16) - 1),
        ("i32", -(1 << 31), (1 << 32) - 1),
        ("si32", -(1 << 31), (1 << 31) - 1),
        ("ui32", 0, (1 << 32) - 1),
        ("i64", -(1 << 63), (1 << 64) - 1),
        ("index", -(1 << 63), (1 << 64) - 1),
    ],
)
def test_integers_are_held_to_their_range(kind: str, low: int, high: int) -> None:
    bind = binder(kind)
    bind(low), bind(high)
    for value in (low - 1, high + 1, 1 << 200):
        with pytest.raises(
            InvalidArgumentError, match=rf"m\.f: argument 0 \(x: {kind}\) got int .*an int from {low} to {high}"
        ):
            bind(value)


def test_an_index_may_be_of_32_bits() -> None:
    assert binder("index", "i")((1 << 32) - 1) == -1
    with pytest.raises(InvalidArgumentError, match="an int from -2147483648 to 4294967295"):
        binder("index", "i")(1 << 32)


@pytest.mark.parametrize("value", [True, np.True_, np.int8(1), np.uint64(1), np.array(1, np.int16), np.array(True)])
def test_what_is_an_integer(value: object) -> None:
    for kind in ("i1", "i8", "i32", "i64", "ui8"):
        bound = binder(kind)(value)
        assert type(bound) is int and bound == 1


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        np.float32(1),
        "1",
        b"1",
        None,
        [1],
        np.array([1]),
        np.array([[1]]),
        1j,
        np.array(1.0),
        object(),
        np.datetime64(1, "s"),
    ],
)
def test_what_is_no_integer(value: object) -> None:
    for kind in ("i1", "i32", "i64"):
        with pytest.raises(InvalidArgumentError, match=r"argument 0 \(x: i\d+\) got .*; expected an int"):
            binder(kind)(value)


def test_booleans_come_back_as_bools() -> None:
    assert [unbinder("i1")(value) for value in (0, 1)] == [False, True]
    assert type(unbinder("i1")(1)) is bool


# -- floats ------------------------------------------------------------------------------------------

NARROW = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


@pytest.mark.parametrize("kind", NARROW)
@given(value=st.floats(-60000, 60000, width=32))
def test_narrow_floats_travel_as_bits(kind: str, value: float) -> None:
    as_numpy = np.asarray(value, NARROW[kind])
    bound = binder(kind)(value)
    assert bound & 0xFFFF == int(as_numpy.view(np.uint16))
    assert unbinder(kind)(bound) == float(as_numpy) == unbinder(kind)(bound & 0xFFFF)


@given(st.floats(-3e38, 3e38))
def test_f32_is_rounded_and_f64_is_not(value: float) -> None:
    assert binder("f32")(value) == float(np.float32(value))
    assert binder("f64")(value) == value


@pytest.mark.parametrize("kind", [*NARROW, "f32", "f64"])
def test_numbers_that_no_float_holds(kind: str) -> None:
    bind, unbind = binder(kind), unbinder(kind)
    assert math.isnan(unbind(bind(math.nan)))
    assert [unbind(bind(value)) for value in (math.inf, -math.inf)] == [math.inf, -math.inf]
    assert math.copysign(1, unbind(bind(-0.0))) == -1
    too_large = 10**400 if kind == "f64" else 1e300
    with pytest.raises(InvalidArgumentError, match=rf"\(x: {kind}\) got"):
        bind(too_large)


def test_f16_keeps_what_rounds_to_its_largest() -> None:
    largest = float(np.finfo(np.float16).max)
    assert unbinder("f16")(binder("f16")(largest + 15)) == largest
    with pytest.raises(InvalidArgumentError, match="it is too large for float16"):
        binder("f16")(largest + 16)


@pytest.mark.parametrize(
    "value", [2, True, np.float64(2), np.float16(2), np.int8(2), np.array(2.0), ml_dtypes.bfloat16(2)]
)
def test_what_is_a_float(value: object) -> None:
    for kind in (*NARROW, "f32", "f64"):
        assert unbinder(kind)(binder(kind)(value)) == float(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value", ["2", b"2", None, 2j, [2.0], np.array([2.0]), object(), np.complex64(2), np.array("2")]
)
def test_what_is_no_float(value: object) -> None:
    for kind in (*NARROW, "f32", "f64"):
        with pytest.raises(InvalidArgumentError, match="expected a float"):
            binder(kind)(value)


# -- references --------------------------------------------------------------------------------------


def test_references_are_held_to_a_known_type() -> None:
    made = signature("sync func @f(%x: !vm.buffer, %y: !vm.list<?>, %z: !custom.thing) -> ()", "0rrr_v")
    buffer, listed, thing = [argument_binder(one, "m.f", no_device) for one in made.arguments]
    some_buffer, some_list, some_thing = VmBuffer.allocate(4), VmList("i32"), object()
    assert (buffer(some_buffer), buffer(None), listed(some_list), thing(some_thing)) == (
        some_buffer,
        None,
        some_list,
        some_thing,
    )
    for bind, value, wanted in (
        (buffer, some_list, "!vm.buffer"),
        (listed, [1, 2], r"!vm\.list<\?>"),
        (buffer, b"bytes", "!vm.buffer"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"expected a {wanted}"):
            bind(value)


@pytest.mark.parametrize("value", [None, "text", b"bytes", object(), {}])
def test_a_tensor_is_no_such_thing(value: object) -> None:
    made = signature("sync func @f(%x: tensor<4xf32>) -> ()", "0r_v")
    with pytest.raises(InvalidArgumentError, match=r"m\.f: argument 0 \(x: tensor<4xf32>\) got .*; expected an array"):
        argument_binder(made.arguments[0], "m.f", no_device)(value)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (
            "4xf32",
            np.zeros(4),
            "dtype float32 .that is NumPy's default, and of programs in f64 iree-compile makes f32",
        ),
        ("4xf32", np.zeros(4, ">f4"), "expected dtype float32; convert"),
        ("4xf32", np.zeros(4, np.int32), "an array of shape .4,. and dtype int32; expected dtype float32; convert"),
        ("4xi32", np.zeros(4, np.int64), "expected dtype int32 or uint32"),
        ("4xui32", np.zeros(4, np.int32), "expected dtype uint32; convert"),
        ("4xi1", np.zeros(4, np.uint8), "expected dtype bool"),
        ("4xf8E4M3FN", np.zeros(4, np.uint8), "expected dtype float8_e4m3fn"),
        ("4xi4", np.zeros(4, np.int8), "expected dtype int4 or uint4"),
        ("4xf4E2M1FN", np.zeros(4, np.int8), "NumPy has no dtype for f4E2M1FN; give a buffer view"),
        ("4xf32", np.zeros(5, np.float32), "an array of shape .5,. and dtype float32; expected shape .4,.$"),
        ("4xf32", np.zeros((4, 1), np.float32), "expected shape .4,.$"),
        ("f32", np.zeros(1, np.float32), r"expected shape \(\)$"),
        ("?x4xf32", np.zeros((3, 5), np.float32), r"expected shape \(\?, 4\)$"),
        ("?xf32", np.float32(3), r"expected shape \(\?,\)$"),
        ("2xf32", [[1.0], [2.0]], r"got list \[\[1.0\], \[2.0\]\]|expected shape"),
        ("2xf32", [1, [2]], "got list"),
        ("2xf32", ["1", "2"], "expected numbers"),
        ("2xf32", [1, None], "got list"),
        ("2xi32", [1.5, 2], "numbers of dtype float64 do not convert to int32 without loss"),
        ("2xf32", [1j, 2], "numbers of dtype complex128 do not convert to float32 without loss"),
        ("2xi1", [1, 0], "numbers of dtype int64 do not convert to bool without loss"),
        ("2xi8", [1, 256], "from 1 to 256 does not fit int8 or uint8"),
        ("2xi8", [-1, 128], "does not fit int8 or uint8"),
        ("2xui8", [-1, 5], "does not fit uint8"),
        ("2xi4", [-9, 5], "does not fit int4 or uint4"),
        ("2xi64", [1 << 64, 1], "got list"),
        ("2xf32", [1e300, 1], "a number is too large for float32"),
        ("2xf16", [70000, 1], "a number is too large for float16"),
    ],
)
def test_arrays_are_exactly_what_is_declared(kind: str, value: object, message: str) -> None:
    made = signature(f"sync func @f(%x: tensor<{kind}>) -> ()", "0r_v")
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        argument_binder(made.arguments[0], "m.f", no_device)(value)
    assert f"m.f: argument 0 (x: tensor<{kind}>) got " in caught.value.message


def test_a_long_value_is_shown_in_short() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        binder("i32")([0] * 100_000)
    assert len(caught.value.message) < 200


# -- texts -------------------------------------------------------------------------------------------


def test_a_signature_reads_like_its_declaration() -> None:
    made = signature(
        "sync func @predict(%image: tensor<1x28x28xf32>, %scale: f32) -> (%label: i64)",
        "0rf_I",
        {"iree.reflection": "x"},
    )
    assert str(made) == "m.f(image: tensor<1x28x28xf32>, scale: f32) -> (label: i64)"
    assert repr(made) == f"<Signature {made}>"
    assert repr(made.arguments[0]) == "<Argument image: tensor<1x28x28xf32>>"
    assert repr(made.results[0]) == "<Result label: i64>"
    first = made.arguments[0]
    assert (first.shape, first.dtypes, first.is_tensor, first.position) == (
        (1, 28, 28),
        (np.dtype(np.float32),),
        True,
        0,
    )
    assert made.attributes == {"iree.reflection": "x"}


def test_without_a_declaration_the_registers_are_shown() -> None:
    made = make_signature("m.f", CallingConvention.parse("0iIfFr_ri"), None, {})
    assert str(made) == (
        "m.f(argument0: i32, argument1: i64, argument2: f32, argument3: f64, argument4: ref) -> "
        "(result0: ref, result1: i32)"
    )
    assert argument_binder(made.arguments[4], "m.f", no_device)("anything") == "anything"
    assert argument_binder(made.arguments[0], "m.f", no_device)((1 << 32) - 1) == -1


@pytest.mark.parametrize(
    "declaration",
    [
        "sync func @f(%x: tensor<4xf32>) -> ()",
        "sync func @f(%x: i32, %y: i32) -> ()",
        "anything at all",
        "sync func @f(%x: i64) -> ()",
    ],
)
def test_a_declaration_that_does_not_fit_says_nothing(declaration: str) -> None:
    made = signature(declaration, "0i_v")
    assert made.arguments[0].declared is None and str(made) == "m.f(argument0: i32) -> ()"


def test_asynchronous_functions_hide_their_fences() -> None:
    text = "async func @f(%x: tensor<4xf32>) -> (%y: tensor<4xf32>)"
    made = signature(text, "0rrr_r")
    assert made.is_async and len(made.arguments) == 1 and str(made).startswith("async m.f(x: tensor<4xf32>)")
    stripped = make_signature("m.f", CallingConvention.parse("0rrr_r"), None, {"iree.abi.model": "coarse-fences"})
    assert stripped.is_async and len(stripped.arguments) == 1
    # Without room for fences it is not.
    assert not make_signature(
        "m.f", CallingConvention.parse("0ri_r"), None, {"iree.abi.model": "coarse-fences"}
    ).is_async


def test_repeated_arguments_are_for_programs() -> None:
    with pytest.raises(InvalidArgumentError, match=r"m\.f takes a variable number of arguments \(0iCiD_v\)"):
        make_signature("m.f", CallingConvention.parse("0iCiD_v"), None, {})


# -- arguments by name -------------------------------------------------------------------------------

NAMED = signature("sync func @f(%image: i32, %scale: i32, %bias: i32) -> ()", "0iii_v")


@given(st.integers(0, 3), st.permutations(["image", "scale", "bias"]))
def test_arguments_by_position_and_by_name(by_position: int, order: list[str]) -> None:
    values = {"image": 1, "scale": 2, "bias": 3}
    given_ = tuple(list(values.values())[:by_position])
    named = {name: values[name] for name in order if values[name] > by_position}
    assert NAMED.place(given_, named) == (1, 2, 3)


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((), {}, r"takes 3 arguments, got 0"),
        ((1, 2, 3, 4), {}, r"takes 3 arguments, got 4"),
        ((1, 2, 3, 4), {"bias": 1}, r"takes 3 arguments, got 4"),
        ((1,), {"bias": 3}, r"takes 3 arguments; missing: scale: i32"),
        ((1, 2), {"image": 3}, "got argument 'image' twice"),
        ((1, 2), {"offset": 3}, "has no argument named 'offset'"),
        ((1, 2), {"argument2": 3}, "has no argument named 'argument2'"),
    ],
)
def test_arguments_that_do_not_match(arguments: tuple[object, ...], named: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        NAMED.place(arguments, named)
    assert caught.value.message.startswith("m.f(image: i32, scale: i32, bias: i32) -> ()")


def test_a_name_given_to_two_arguments_names_neither() -> None:
    made = signature("sync func @f(%x: i32, %x: i32) -> ()", "0ii_v")
    assert made.place((1, 2), {}) == (1, 2)
    with pytest.raises(InvalidArgumentError, match="has 2 arguments named 'x'; give it by position"):
        made.place((1,), {"x": 2})
    undeclared = make_signature("m.f", CallingConvention.parse("0i_v"), None, {})
    with pytest.raises(InvalidArgumentError, match="no argument named 'argument0'"):
        undeclared.place((), {"argument0": 1})
