"""Programs to run in each way that a compiled module can run: their sources, and the calls of each.

Programs of JAX are StableHLO that JAX prints when the test runs; those of the corpus, of the compiler's tests and of
this file are text that is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from support.compiler import graphdefs, tensor_programs, varied_programs
from support.soak import SOAK

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class ModuleCase:
    """A program and its calls, in order.

    Attributes:
        name: unique.
        text: makes the source; a graph's where ``file_name`` says so.
        calls: the function and the arguments of each call.
        file_name: by whose ending the compiler knows a graph.
        tolerance: relative and absolute, by which two devices may differ; ``None`` is that of the type.
    """

    name: str
    text: Callable[[], str]
    calls: tuple[tuple[str, tuple[Array, ...]], ...]
    file_name: str = ""
    tolerance: tuple[float, float] | None = None


def _values(*shape: int, dtype: npt.DTypeLike = np.float32) -> Array:
    """Normal numbers, the same for the same shape."""
    return np.random.default_rng(sum(shape) + 1).normal(size=shape).astype(dtype)


def _number(value: int) -> Array:
    return np.array(value, np.int32)


NEWTON = """
func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%guess = %x, %count = %zero) : tensor<f32>, tensor<i32>
  cond {
    %close = stablehlo.constant dense<1.0e-5> : tensor<f32>
    %limit = stablehlo.constant dense<100> : tensor<i32>
    %1 = stablehlo.multiply %guess, %guess : tensor<f32>
    %2 = stablehlo.subtract %1, %x : tensor<f32>
    %3 = stablehlo.abs %2 : tensor<f32>
    %4 = stablehlo.multiply %close, %x : tensor<f32>
    %5 = stablehlo.compare GT, %3, %4 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %6 = stablehlo.compare LT, %count, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = stablehlo.and %5, %6 : tensor<i1>
    stablehlo.return %7 : tensor<i1>
  } do {
    %half = stablehlo.constant dense<0.5> : tensor<f32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.divide %x, %guess : tensor<f32>
    %2 = stablehlo.add %guess, %1 : tensor<f32>
    %3 = stablehlo.multiply %2, %half : tensor<f32>
    %4 = stablehlo.add %count, %one : tensor<i32>
    stablehlo.return %3, %4 : tensor<f32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<f32>, tensor<i32>
}
"""
ALIASES = """
func.func @main(%x: tensor<3xf32>, %n: tensor<2xi64>) -> (tensor<3xf32>, tensor<2xf32>, tensor<3xf32>, tensor<2xi64>) {
  %c = stablehlo.constant dense<[1.5, -2.0]> : tensor<2xf32>
  %0 = stablehlo.add %x, %x : tensor<3xf32>
  return %x, %c, %0, %n : tensor<3xf32>, tensor<2xf32>, tensor<3xf32>, tensor<2xi64>
}
"""
REPEATED = """
func.func @main(%x: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) {
  %0 = stablehlo.multiply %x, %x : tensor<5xf32>
  return %0, %x, %0 : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
}
"""
EMPTY = """
func.func @main(%x: tensor<0x3xf32>, %y: tensor<2x3xf32>) -> (tensor<0x3xf32>, tensor<2x3xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %x, %x : tensor<0x3xf32>
  %1 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<0x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<0x3xf32>, tensor<f32>) -> tensor<f32>
  return %0, %1, %2 : tensor<0x3xf32>, tensor<2x3xf32>, tensor<f32>
}
"""
NOTHING = """
func.func @main() -> (tensor<3xi32>, tensor<f64>) {
  %0 = stablehlo.iota dim = 0 : tensor<3xi32>
  %1 = stablehlo.constant dense<2.5> : tensor<f64>
  return %0, %1 : tensor<3xi32>, tensor<f64>
}
"""
DOUBLES = """
func.func @main(%x: tensor<4x4xf64>, %n: tensor<4xi64>, %b: tensor<4xi1>)
    -> (tensor<4xf64>, tensor<4xi64>, tensor<4xi1>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f64>
  %k = stablehlo.constant dense<4000000000> : tensor<4xi64>
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
    : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<4x4xf64>, tensor<f64>) -> tensor<4xf64>
  %2 = stablehlo.multiply %n, %k : tensor<4xi64>
  %3 = stablehlo.divide %2, %n : tensor<4xi64>
  %4 = stablehlo.select %b, %2, %3 : tensor<4xi1>, tensor<4xi64>
  %5 = stablehlo.not %b : tensor<4xi1>
  return %1, %4, %5 : tensor<4xf64>, tensor<4xi64>, tensor<4xi1>
}
"""
NESTED = """
func.func @main(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = stablehlo.while(%v = %x, %n = %zero) : tensor<6xf32>, tensor<i32>
  cond {
    %limit = stablehlo.constant dense<100.0> : tensor<f32>
    %1 = stablehlo.reduce(%v init: %none) applies stablehlo.add across dimensions = [0]
      : (tensor<6xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.compare LT, %1, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %1:2 = stablehlo.while(%i = %zero, %w = %v) : tensor<i32>, tensor<6xf32>
    cond {
      %2 = stablehlo.compare LE, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %small = stablehlo.constant dense<0.25> : tensor<6xf32>
      %2 = stablehlo.add %w, %small : tensor<6xf32>
      %3 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %3, %2 : tensor<i32>, tensor<6xf32>
    }
    %two = stablehlo.constant dense<2> : tensor<i32>
    %4 = stablehlo.remainder %n, %two : tensor<i32>
    %5 = stablehlo.compare EQ, %4, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %6 = "stablehlo.if"(%5) ({
      %7 = stablehlo.add %1#1, %1#1 : tensor<6xf32>
      stablehlo.return %7 : tensor<6xf32>
    }, {
      stablehlo.return %1#1 : tensor<6xf32>
    }) : (tensor<i1>) -> tensor<6xf32>
    %8 = stablehlo.add %n, %one : tensor<i32>
    stablehlo.return %6, %8 : tensor<6xf32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<6xf32>, tensor<i32>
}
"""
LENGTHS = """
func.func @main(%x: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xi32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0]
    : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  %n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %m = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %3 = stablehlo.dynamic_iota %m, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  return %1, %2, %3 : tensor<?x?xf32>, tensor<?xf32>, tensor<?xi32>
}
"""
TWO_FUNCTIONS = """
module @two {
  func.func public @scale(%x: tensor<4xf16>, %k: tensor<f16>) -> tensor<4xf16> {
    %0 = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<f16>) -> tensor<4xf16>
    %1 = stablehlo.multiply %x, %0 : tensor<4xf16>
    return %1 : tensor<4xf16>
  }
  func.func public @parts(%x: tensor<3xcomplex<f32>>) -> (tensor<3xf32>, tensor<3xf32>) {
    %0 = stablehlo.real %x : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    %1 = stablehlo.imag %x : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
    return %0, %1 : tensor<3xf32>, tensor<3xf32>
  }
}
"""
GRAPH = (
    graphdefs.placeholder("x", 2, 4)
    + graphdefs.const("w", _values(4, 3))
    + graphdefs.const("b", [0.5, -1.0, 2.0])
    + graphdefs.node("product", "MatMul", "x", "w", T="DT_FLOAT")
    + graphdefs.node("sum", "BiasAdd", "product", "b", T="DT_FLOAT")
    + graphdefs.node("out", "Softmax", "sum", T="DT_FLOAT")
)


def _case(name: str, text: str, *calls: tuple[Array, ...], function: str = "main") -> ModuleCase:
    return ModuleCase(name, lambda: text, tuple((function, call) for call in calls))


def _varied() -> list[ModuleCase]:
    """The compiler's programs that have every syntax between them."""
    import ml_dtypes

    truth = np.array(True)
    arguments: dict[str, tuple[Array, ...]] = {
        "CALLS": (_values(2, 3), truth),
        "INDEXING": (_values(4, 6), np.array([[1], [3], [1]], np.int32), _values(3, 6)),
        "WINDOWS": (_values(1, 8, 8, 3), _values(3, 3, 3, 4)),
        "ORDERS": (_values(3, 5), np.array([1, 2], np.uint64)),
        "TYPES": (
            _values(4).astype(ml_dtypes.bfloat16),
            # The program takes bits of a sum apart: it is exact of these, in whatever order.
            np.array([1 + 2j, -3j, 2, -1 + 1j], np.complex64),
            np.array([0, 1, 2, 3], np.uint8),
        ),
        "LOOP": (_values(5, 2),),
    }
    return [_case(name.lower(), getattr(varied_programs, name), call) for name, call in arguments.items()]


STORED: tuple[ModuleCase, ...] = (
    _case(
        "simple_mul",
        tensor_programs.SIMPLE_MUL,
        (np.arange(4, dtype=np.float32), _values(4)),
        (_values(4), _values(4)),
        function="simple_mul",
    ),
    _case("layer", tensor_programs.LAYER, (_values(4, 8), _values(8, 3))),
    _case("powers", tensor_programs.POWERS, *((_values(4), _number(n)) for n in (3, 0, 17, -2))),
    _case("choice", tensor_programs.CHOICE, *((_number(n), _values(2)) for n in (0, 1, 2, 7, -1))),
    _case("batch", tensor_programs.BATCH, *((_values(n, 4), _values(4, 4)) for n in (1, 5, 64, 2))),
    _case("newton", NEWTON, *((np.array(x, np.float32),) for x in (2.0, 1.0, 12345.0, 0.0))),
    _case("results_that_are_arguments", ALIASES, (_values(3), np.array([2**40, -5]))),
    _case("results_that_are_equal", REPEATED, (_values(5),)),
    _case("empty", EMPTY, (np.zeros((0, 3), np.float32), _values(2, 3))),
    _case("no_arguments", NOTHING, ()),
    _case(
        "doubles_and_long_integers",
        DOUBLES,
        (_values(4, 4, dtype=np.float64), np.array([1, -2, 3, 2**30]), np.array([True, False, True, False])),
    ),
    _case("nested_loops", NESTED, (_values(6),), (np.full(6, 200, np.float32),)),
    _case("unknown_lengths", LENGTHS, *((_values(*shape),) for shape in ((3, 2), (1, 7), (16, 16)))),
    ModuleCase(
        "two_functions",
        lambda: TWO_FUNCTIONS,
        (
            ("scale", (_values(4, dtype=np.float16), np.array(1.5, np.float16))),
            ("parts", ((_values(3) + 1j).astype(np.complex64),)),
        ),
    ),
    ModuleCase("graph", lambda: GRAPH, (("graph", (_values(2, 4),)),), "graph.pbtxt"),
    *_varied(),
)

_LONG: Sequence[str] = ("argsort", "gcd_of_integers", "hessian", "permutation", "rfft2", "transformer_gradient")
JAX_NAMES: Sequence[str] = (
    "mlp", "cnn", "lstm", "transformer", "unet_step", "attention", "mlp_gradient", "max_pool_gradient",
    "layer_norm", "scan", "fori_loop", "while_loop", "cond", "switch", "cumsum", "top_k", "bincount",
    "scatter_add", "fft", "cholesky", "uniform", "normal", "booleans", "var_of_rows", "erfinv",
    "products_in_float16", "products_in_uint16", *(_LONG if SOAK else ()),
)  # fmt: skip
"""Functions of ``conformance.jax.functions.FUNCTIONS``."""


def jax_case(name: str) -> ModuleCase:
    """A function of JAX, which prints its program when this is called."""
    import jax
    from conformance.jax import functions as jax_functions

    function, arguments = jax_functions.FUNCTIONS[name]
    text = jax.jit(function).lower(*arguments).as_text()
    return ModuleCase(name, lambda: text, (("main", tuple(np.asarray(each) for each in arguments)),))
