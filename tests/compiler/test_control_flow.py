"""Loops and branches: decisions of the host and of the device, with results equal to the definitions'."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from support.compiler.modules import BOTH, load_main, peer_shows
from support.compiler.tensor_programs import CHOICE, POWERS
from support.devices.features import require_types

import pumice
from pumice.compiler.ir.types import ScalarType
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.passes.sequencing import predicate
from pumice.compiler.pipeline import compile_text

COLLATZ = """
func.func @main(%n: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%v = %n, %k = %c) : tensor<i32>, tensor<i32>
  cond {
    %1 = stablehlo.compare NE, %v, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %r = stablehlo.remainder %v, %two : tensor<i32>
    %even = stablehlo.compare EQ, %r, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %w = "stablehlo.if"(%even) ({
      %h = stablehlo.divide %v, %two : tensor<i32>
      stablehlo.return %h : tensor<i32>
    }, {
      %m = stablehlo.multiply %v, %three : tensor<i32>
      %a = stablehlo.add %m, %one : tensor<i32>
      stablehlo.return %a : tensor<i32>
    }) : (tensor<i1>) -> tensor<i32>
    %kk = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %w, %kk : tensor<i32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<i32>, tensor<i32>
}
"""
COUNTED = """
func.func @main(%x: tensor<3xi32>) -> (tensor<3xi32>, tensor<i8>) {
  %start = stablehlo.constant dense<START> : tensor<i8>
  %0:2 = stablehlo.while(%i = %start, %v = %x) : tensor<i8>, tensor<3xi32>
  cond {
    %limit = stablehlo.constant dense<LIMIT> : tensor<i8>
    %1 = stablehlo.compare WAY, %i, %limit : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %step = stablehlo.constant dense<STEP> : tensor<i8>
    %2 = stablehlo.add %i, %step : tensor<i8>
    %3 = stablehlo.convert %i : (tensor<i8>) -> tensor<i32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %5 = stablehlo.add %v, %4 : tensor<3xi32>
    stablehlo.return %2, %5 : tensor<i8>, tensor<3xi32>
  }
  return %0#1, %0#0 : tensor<3xi32>, tensor<i8>
}
"""
NESTED = """
func.func @main(%x: tensor<2xi32>, %n: tensor<i32>) -> (tensor<2xi32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %big = stablehlo.constant dense<700> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %v = %x, %same = %n) : tensor<i32>, tensor<2xi32>, tensor<i32>
  cond {
    %1 = stablehlo.compare GT, %same, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2:2 = stablehlo.while(%j = %zero, %w = %v) : tensor<i32>, tensor<2xi32>
    cond {
      %3 = stablehlo.compare LT, %j, %big : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %4 = stablehlo.add %j, %one : tensor<i32>
      %5 = stablehlo.broadcast_in_dim %j, dims = [] : (tensor<i32>) -> tensor<2xi32>
      %6 = stablehlo.xor %w, %5 : tensor<2xi32>
      %7 = stablehlo.add %6, %5 : tensor<2xi32>
      stablehlo.return %4, %7 : tensor<i32>, tensor<2xi32>
    }
    %8 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %8, %2#1, %same : tensor<i32>, tensor<2xi32>, tensor<i32>
  }
  return %0#1, %0#0 : tensor<2xi32>, tensor<i32>
}
"""
VERLET = """
func.func @main(%x0: tensor<8xi32>, %v0: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %a0 = stablehlo.negate %x0 : tensor<8xi32>
  %0:4 = stablehlo.while(%i = %zero, %x = %x0, %v = %v0, %a = %a0)
    : tensor<i32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.add %i, %one : tensor<i32>
    %3 = stablehlo.add %v, %a : tensor<8xi32>
    %4 = stablehlo.add %x, %3 : tensor<8xi32>
    %5 = stablehlo.negate %4 : tensor<8xi32>
    %6 = stablehlo.add %3, %5 : tensor<8xi32>
    stablehlo.return %2, %4, %6, %5 : tensor<i32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>
  }
  return %0#1, %0#2 : tensor<8xi32>, tensor<8xi32>
}
"""


def compiled(text: str) -> tuple[bytes, str]:
    """Returns the module of a program, and its low-level sequence."""
    texts: dict[str, str] = {}
    module = compile_text(
        text,
        "x.mlir",
        Target(kinds=BOTH),
        reached=lambda stage, program: texts.update({stage: program.text()}),
    )
    return module.module, texts["ll_seq"]


def test_a_step_in_place_of_two_values_that_share_a_buffer(session: pumice.Session) -> None:
    """As in a velocity Verlet step: position, velocity and acceleration are carried round a loop."""
    x, v = np.arange(-4, 4, dtype=np.int32), np.arange(8, dtype=np.int32)
    found = load_main(session, compiled(VERLET)[0])(x, v)
    a = -x
    for _ in range(3):
        v = v + a
        x = x + v
        a = -x
        v = v + a
    np.testing.assert_array_equal(found[0], x)
    np.testing.assert_array_equal(found[1], v)


def collatz(number: int) -> int:
    steps = 0
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps


@pytest.mark.parametrize("most_guarded", [0, 64])
def test_a_loop_until_the_device_says_so(session: pumice.Session, most_guarded: int) -> None:
    with patch.object(predicate, "MAX_GUARDED", most_guarded):
        module, sequence = compiled(COLLATZ)
    assert ("guard_row" in sequence) == bool(most_guarded)
    main = load_main(session, module)
    for number in (1, 2, 27):
        end, steps = main(np.int32(number))
        assert (end, steps) == (1, collatz(number))


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("start", "way", "limit", "step", "trips"),
    [
        (0, "LT", 5, 1, 5),
        (0, "LT", 6, 4, 2),
        (3, "LE", 5, 2, 2),
        (5, "GT", -5, -3, 4),
        (5, "GE", 0, -5, 2),
        (-128, "NE", 127, 5, 51),
        (7, "LT", 7, 1, 0),
        (120, "LT", 127, 5, None),  # 125, -126: the counter wraps around
        (0, "NE", 5, 3, None),  # 126, -127: it wraps around
    ],
)
def test_trips_between_constants(
    session: pumice.Session, start: int, way: str, limit: int, step: int, trips: int | None
) -> None:
    text = COUNTED
    for name, value in {"START": start, "WAY": way, "LIMIT": limit, "STEP": step}.items():
        text = text.replace(name, str(value))
    module, sequence = compiled(text)
    assert ("alloc_flag" in sequence) == (trips is None)
    test = {"LT": int.__lt__, "LE": int.__le__, "GT": int.__gt__, "GE": int.__ge__, "NE": int.__ne__}[way]
    counter, total, count = start, 0, 0
    while test(counter, limit):
        total += counter
        counter = (counter + step + 128) % 256 - 128
        count += 1
    assert trips is None or count == trips
    sums, last = load_main(session, module)(np.array([1, 2, 3], np.int32))
    np.testing.assert_array_equal(sums, np.array([1, 2, 3]) + total)
    assert last == counter


@pytest.mark.parametrize("count", [-3, 0, 1, 9, 300])
def test_trips_that_an_argument_gives_are_read_once(session: pumice.Session, count: int) -> None:
    module, sequence = compiled(POWERS.replace("4.5", "1.0").replace("2.0, 3.0", "1.0, -1.0"))
    assert "iree_ll_seq.repeat %" in sequence
    found, steps = load_main(session, module)(np.ones(4, np.float32), np.int32(count))
    np.testing.assert_array_equal(found, [1, 1, -1 if count > 0 and count % 2 else 1, 1])
    assert steps == max(count, 0)


def test_more_rounds_than_one_command_buffer_holds(session: pumice.Session) -> None:
    module, _ = compiled(NESTED)
    found, rounds = load_main(session, module)(np.array([5, -9], np.int32), np.int32(3))
    expected = np.array([5, -9], np.int32)
    for _ in range(3):
        for number in range(700):
            expected = (expected ^ number) + number
    np.testing.assert_array_equal(found, expected)
    assert rounds == 3


@pytest.mark.sample(8)
@pytest.mark.parametrize("most_guarded", [0, 64])
@pytest.mark.parametrize(("index", "factor"), [(0, -1), (1, 2), (2, 1), (7, 1), (-1, 1)])
def test_a_case_has_its_last_branch_as_default(
    session: pumice.Session, index: int, factor: float, most_guarded: int
) -> None:
    x = np.array([1.5, -2], np.float32)
    with patch.object(predicate, "MAX_GUARDED", most_guarded):
        module, sequence = compiled(CHOICE)
    assert ("alloc_flag" in sequence) == (not most_guarded)
    np.testing.assert_array_equal(load_main(session, module)(np.int32(index), x)[0], x * factor)


@pytest.mark.peer
@pytest.mark.vulkan
@pytest.mark.parametrize(
    ("text", "inputs", "shown"),
    [
        (COLLATZ, ["i32=27"], ["i32=1", "i32=111"]),
        (POWERS, ["4xf32=1,1,1,1", "i32=11"], ["4xf32=1 2048 177147", "i32=11"]),
        (NESTED, ["2xi32=5,-9", "i32=0"], ["2xi32=5 -9", "i32=0"]),
        (CHOICE, ["i32=1", "2xf32=1.5,-2"], ["2xf32=3 -4"]),
    ],
    ids=["loop", "trips", "nested", "case"],
)
def test_the_peers_runtime_gives_the_same(tmp_path: Path, text: str, inputs: list[str], shown: list[str]) -> None:
    output = peer_shows(tmp_path, compiled(text)[0], inputs)
    assert all(value in output for value in shown), output


STACKED = """
func.func @main(%x: tensor<3x5xT>) -> (tensor<3x5xT>, tensor<4x3x5xT>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<3x5xT>) -> tensor<4x3x5xT>
  %1:3 = stablehlo.while(%i = %zero, %v = %x, %all = %0) : tensor<i32>, tensor<3x5xT>, tensor<4x3x5xT>
  cond {
    %limit = stablehlo.constant dense<3> : tensor<i32>
    %2 = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.add %i, %one : tensor<i32>
    %3 = stablehlo.reverse %v, dims = [1] : tensor<3x5xT>
    %4 = stablehlo.OP %3, %v : tensor<3x5xT>
    %5 = stablehlo.OP %v, %x : tensor<3x5xT>
    %6 = stablehlo.reshape %4 : (tensor<3x5xT>) -> tensor<1x3x5xT>
    %7 = stablehlo.dynamic_update_slice %all, %6, %2, %i, %zero
      : (tensor<4x3x5xT>, tensor<1x3x5xT>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x3x5xT>
    stablehlo.return %2, %5, %7 : tensor<i32>, tensor<3x5xT>, tensor<4x3x5xT>
  }
  return %1#1, %1#2 : tensor<3x5xT>, tensor<4x3x5xT>
}
"""


@pytest.mark.sample(7)
@pytest.mark.parametrize("type", ["f32", "f64", "i64", "i8", "f16", "bf16", "i1", "complex<f32>"])
def test_what_a_loop_carries_is_updated_in_place(session: pumice.Session, type: str) -> None:
    text = STACKED.replace("xT>", f"x{type}>").replace("OP", "xor" if type == "i1" else "add")
    require_types(session.device, text)
    module, sequence = compiled(text)
    body = sequence[sequence.index("iree_ll_seq.repeat") :]
    assert "iree_ll_seq.copy" not in body[: body.index("}")]
    dtype = ScalarType(type).dtype
    x = (np.arange(15).reshape(3, 5) % (2 if type == "i1" else 7)).astype(dtype)
    carried, stacked = x, np.broadcast_to(x, (4, 3, 5)).copy()
    add = np.logical_xor if type == "i1" else np.add
    for number in range(3):
        stacked[number + 1] = add(carried[:, ::-1], carried)
        carried = add(carried, x)
    for result, expected in zip(load_main(session, module)(x), (carried, stacked), strict=True):
        np.testing.assert_array_equal(result.astype(dtype), expected)
