"""Sessions with programs that IREE's compiler made: what it says of arguments, and what the device then gets."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np
import pytest
from support.peer import compile_module
from support.runtime.sessions import elements

import pumice
from pumice.hal_vulkan import BufferView, ElementType, Fence
from pumice.status import IncompatibleError, InvalidArgumentError, PumiceError

pytestmark = [pytest.mark.vulkan, pytest.mark.peer]

X = np.arange(4, dtype=np.float32) + 1


NAMED = """
module @model {
  func.func @predict(%image: tensor<4xf32> {iree.abi.name = "image"}, %scale: f32 {iree.abi.name = "scale"})
      -> tensor<4xf32> {
    %empty = tensor.empty() : tensor<4xf32>
    %s = linalg.fill ins(%scale : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
    %0 = arith.mulf %image, %s : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @unnamed(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.subf %a, %b : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


def test_arguments_by_the_names_of_the_source(session: pumice.Session) -> None:
    session.load(compile_module(NAMED))
    predict = session.lookup("model.predict")
    assert str(predict.signature) == "model.predict(image: tensor<4xf32>, scale: f32) -> (output0: tensor<4xf32>)"
    for y in (predict(X, 2), predict(X, scale=2.0), predict(scale=np.float64(2), image=session.device.asarray(X))):
        np.testing.assert_array_equal(y.numpy(), X * 2)
    # What the compiler called them, where the author did not.
    np.testing.assert_array_equal(session.call("model.unnamed", input1=X, input0=2 * X).numpy(), X)
    assert [one.name for one in session.functions()] == ["model.predict", "model.unnamed"]


def test_parts_of_arrays_reach_the_device(session: pumice.Session) -> None:
    session.load(compile_module(NAMED))
    whole = np.arange(256, dtype=np.float32)
    x = session.device.asarray(whole)
    for start in (0, 1, 2, 63, 64, 252):
        y = session.call("model.unnamed", x[start : start + 4], x[:4])
        np.testing.assert_array_equal(y.numpy(), whole[start : start + 4] - whole[:4])
    grid = whole.reshape(16, 16)
    np.testing.assert_array_equal(
        session.call("model.unnamed", grid[:4, 3], grid[3, ::4]).numpy(), grid[:4, 3] - grid[3, ::4]
    )


DEMOTED = """
module @demoted {
  func.func @double(%x: tensor<4xf64>, %s: f64) -> (tensor<4xf64>, f64) {
    %0 = arith.addf %x, %x : tensor<4xf64>
    %1 = arith.addf %s, %s : f64
    return %0, %1 : tensor<4xf64>, f64
  }
}
"""


def test_f64_that_became_f32_says_so(session: pumice.Session) -> None:
    session.load(compile_module(DEMOTED))
    with pytest.raises(InvalidArgumentError, match=r"expected dtype float32 \(that is NumPy's default, and"):
        session.call("demoted.double", X.astype(np.float64), 1.5)
    y, s = session.call("demoted.double", X.astype(np.float64).astype(np.float32), 1.5)
    assert (y.dtype, s) == (np.float32, 3.0)
    np.testing.assert_array_equal(y.numpy(), 2 * X)


SCALARS = """
module @scalars {
  func.func @same(%a: f16, %b: bf16, %c: f32, %d: i1, %e: i8, %f: i16, %g: i32, %h: i64, %i: index, %j: ui8, %k: si8)
      -> (f16, bf16, f32, i1, i8, i16, i32, i64, index, ui8, si8) {
    return %a, %b, %c, %d, %e, %f, %g, %h, %i, %j, %k : f16, bf16, f32, i1, i8, i16, i32, i64, index, ui8, si8
  }
  func.func @i8(%a: i8, %b: i8) -> (i8, i1, i1, i32, i32) {
    %0 = arith.addi %a, %b : i8
    %1 = arith.cmpi slt, %a, %b : i8
    %2 = arith.cmpi ult, %a, %b : i8
    %3 = arith.extsi %a : i8 to i32
    %4 = arith.extui %a : i8 to i32
    return %0, %1, %2, %3, %4 : i8, i1, i1, i32, i32
  }
}
"""


def test_scalars_of_every_type(session: pumice.Session) -> None:
    session.load(compile_module(SCALARS))
    values = (0.1, 0.1, 0.1, True, -128, -(1 << 15), -(1 << 31), -(1 << 63), 5, 255, -128)
    got = session.call("scalars.same", *values)
    assert got == (
        float(np.float16(0.1)), float(ml_dtypes.bfloat16(0.1)), float(np.float32(0.1)), True, -128, -(1 << 15),
        -(1 << 31), -(1 << 63), 5, 255, -128
    )  # fmt: skip
    with pytest.raises(
        InvalidArgumentError, match=r"argument 9 \(input9: ui8\) got int -1; expected an int from 0 to 255"
    ):
        session.call("scalars.same", *values[:9], -1, 0)


@pytest.mark.parametrize(("a", "b"), [(100, 100), (-1, 1), (255, 1), (200, 100), (-128, 127), (0, 0)])
def test_narrow_integers_compute_as_numpys(session: pumice.Session, a: int, b: int) -> None:
    session.load(compile_module(SCALARS))
    x, y = (np.array([value & 0xFF], np.uint8) for value in (a, b))
    signed_x, signed_y = x.view(np.int8), y.view(np.int8)
    assert session.call("scalars.i8", a, b) == (
        int((signed_x + signed_y)[0]),
        bool(signed_x[0] < signed_y[0]),
        bool(x[0] < y[0]),
        int(signed_x[0]),
        int(x[0]),
    )


STATE = """
module @state {
  util.global private mutable @value = dense<0.0> : tensor<4xf32>
  func.func @set(%x: tensor<4xf32>) {
    util.global.store %x, @value : tensor<4xf32>
    return
  }
  func.func @get() -> tensor<4xf32> {
    %0 = util.global.load @value : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @constant() -> tensor<4xf32> {
    %0 = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


def test_what_callers_do_to_results_does_not_reach_the_program(session: pumice.Session) -> None:
    session.load(compile_module(STATE))
    x = session.device.asarray(X)
    session.call("state.set", x)
    x.copy_from(np.zeros(4, np.float32))
    x.close()
    first = session.call("state.get")
    np.testing.assert_array_equal(first.numpy(), X)
    first.copy_from(np.zeros(4, np.float32))
    first.close()
    np.testing.assert_array_equal(session.call("state.get").numpy(), X)
    constant = session.call("state.constant")
    constant.copy_from(np.zeros(4, np.float32))
    constant.close()
    np.testing.assert_array_equal(session.call("state.constant").numpy(), X)


@pytest.mark.parametrize("way", ["host", "device", "mapped"])
def test_an_array_is_overwritten_behind_the_work_that_reads_it(session: pumice.Session, way: str) -> None:
    """A call without results may return before its work is done."""
    if way == "mapped" and session.device.staging:
        pytest.skip("needs memory that the host sees")
    session.load(compile_module(STATE))
    zeros = session.device.asarray(np.zeros(4, np.float32))
    for step in range(30):
        x = session.device.asarray(X + step)
        session.call("state.set", x)
        if way == "mapped":
            x.map()[:] = 0
        else:
            x.copy_from(zeros if way == "device" else np.zeros(4, np.float32))
        np.testing.assert_array_equal(session.call("state.get").numpy(), X + step)


def test_state_is_the_sessions_own(session: pumice.Session) -> None:
    module = session.load(compile_module(STATE))
    with pumice.Session(session.device) as other:
        other.append_module(module)
        session.call("state.set", X)
        other.call("state.set", 2 * X)
        np.testing.assert_array_equal(session.call("state.get").numpy(), X)
        np.testing.assert_array_equal(other.call("state.get").numpy(), 2 * X)


ASYNC = """
module @later {
  func.func @mul(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.mulf %a, %b : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


def test_work_that_waits_for_the_callers_fence(session: pumice.Session) -> None:
    if session.device.staging:
        pytest.skip("needs memory that the host sees")
    session.load(compile_module(ASYNC, "--iree-execution-model=async-external"))
    np.testing.assert_array_equal(session.call("later.mul", X, X, timeout=60).numpy(), X * X)
    hal = session.device.hal
    with hal.create_semaphore(0, "mine") as mine:
        a = session.device.asarray(np.zeros(4, np.float32))
        before, after = Fence([(mine, 1)]), Fence([(mine, 2)])
        y = session.call("later.mul", a, X, wait=before, signal=after)
        z = session.call("later.mul", y, X, wait=after, signal=(last := Fence([(mine, 3)])))
        assert not after.query() and mine.query() == 0
        a.map()[:] = 3 * X
        threading.Timer(0.02, lambda: mine.signal(1)).start()
        session.await_fence(last, 60)
        np.testing.assert_array_equal(y.numpy(), 3 * X * X)
        np.testing.assert_array_equal(z.numpy(), 3 * X * X * X)


NARROW = """
module @narrow {
  func.func @double(%x: tensor<8xi4>) -> tensor<8xi4> {
    %0 = arith.addi %x, %x : tensor<8xi4>
    return %0 : tensor<8xi4>
  }
}
"""


def test_four_bit_integers(session: pumice.Session) -> None:
    session.load(compile_module(NARROW))
    x = np.array([-4, -3, -2, -1, 0, 1, 2, 3]).astype(ml_dtypes.int4)
    y = session.call("narrow.double", x)
    assert isinstance(y, BufferView) and y.element_type is ElementType.INT_4
    np.testing.assert_array_equal(elements(session, y).astype(int), x.astype(int) * 2)


FAILS = """
module @fails {
  func.func @check(%x: i32) -> i32 {
    %ten = arith.constant 10 : i32
    %ok = arith.cmpi slt, %x, %ten : i32
    cf.assert %ok, "x is too large"
    return %x : i32
  }
}
"""


def test_errors_have_the_place_in_the_source(session: pumice.Session) -> None:
    session.load(compile_module(FAILS))
    assert session.call("fails.check", 9) == 9
    with pytest.raises(PumiceError, match="x is too large") as caught:
        session.call("fails.check", 10)
    line = next(n for n, text in enumerate(FAILS.splitlines(), 1) if "cf.assert" in text)
    assert caught.value.location is not None
    assert caught.value.location.startswith("fails.check pc ") and f":{line}:" in caught.value.location


TWO = """
module @two {
  func.func @f(%x: tensor<4xf32> {iree.abi.affinity = #hal.device.promise<@device_a>},
               %y: tensor<4xf32> {iree.abi.affinity = #hal.device.promise<@device_b>})
      -> (tensor<4xf32> {iree.abi.affinity = #hal.device.promise<@device_a>},
          tensor<4xf32> {iree.abi.affinity = #hal.device.promise<@device_b>}) {
    %a = arith.addf %x, %x : tensor<4xf32>
    %b = arith.mulf %y, %y : tensor<4xf32>
    %moved = flow.tensor.transfer %a : tensor<4xf32> to #hal.device.promise<@device_b>
    %c = arith.addf %moved, %b : tensor<4xf32>
    return %a, %c : tensor<4xf32>, tensor<4xf32>
  }
}
"""
TWO_FLAGS = ("--iree-hal-target-device=device_a=vulkan[0]", "--iree-hal-target-device=device_b=vulkan[1]")


def test_a_program_for_two_devices() -> None:
    path = compile_module(TWO, *TWO_FLAGS, device=())
    with pumice.open_device() as first, pumice.open_device() as second:
        with pumice.Session([first, second]) as session:
            session.load(path)
            a, b = session.call("two.f", first.asarray(X), second.asarray(X))
            assert (a.device, b.device) == (first, second)
            np.testing.assert_array_equal(a.numpy(), X + X)
            np.testing.assert_array_equal(b.numpy(), X + X + X * X)
        with pumice.Session(first) as session, pytest.raises(IncompatibleError, match="device_b"):
            session.load(path)
    # The same device twice stands in for two.
    with pumice.Session(["vulkan://0", "vulkan://0"]) as session:
        session.load(path)
        a, b = session.call("two.f", X, X)
        np.testing.assert_array_equal(a.numpy(), X + X)
        np.testing.assert_array_equal(b.numpy(), X + X + X * X)


ENCODER = """
module @encoder {
  func.func @encode(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.addf %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


def test_arrays_go_from_program_to_program_and_to_kernels(session: pumice.Session) -> None:
    session.load(compile_module(ENCODER))
    session.load(compile_module(NAMED))
    encoded = session.call("encoder.encode", X)
    predicted = session.call("model.predict", encoded, 3)
    from pumice import shaders

    kernel = session.device.load_kernel(shaders.path("mul"))
    product = kernel(predicted, encoded, pumice.empty(4))
    # A kernel's result that may still be under way is an argument like any other.
    np.testing.assert_array_equal(session.call("encoder.encode", product).numpy(), 2 * (6 * X) * (2 * X))
