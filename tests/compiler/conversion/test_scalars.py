"""Scalar operations of arith and math, as StableHLO defines them, against Python and NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from support.compiler.evaluation import evaluated, program

from pumice.hal_reference.program import Array

INTEGERS = np.array([0, 1, -1, 7, -7, 100, -128, 127, 5, -3], np.int8)
OTHERS = np.array([1, -1, 3, -2, 2, 7, 1, -1, 127, 4], np.int8)
FLOATS = np.array([0.5, -1.5, 2.5, math.nan, math.inf, -math.inf, -0.0, 3.0], np.float32)
RIGHT = np.array([0.5, 1.5, math.nan, 1.0, 2.0, -math.inf, 0.0, -4.0], np.float32)


def of_integers(name: str, result: str = "i8") -> Array:
    line = f"arith.{name} %a0, %a1 : tensor<10xi8>"
    text = program(line, f"tensor<10x{result}>", "tensor<10xi8>", "tensor<10xi8>")
    return evaluated(text, INTEGERS, OTHERS)[0]


def expected(function: Callable[[int, int], int]) -> list[int]:
    """Results of a function of unbounded integers, wrapped to 8 bits."""
    pairs = zip(INTEGERS.tolist(), OTHERS.tolist(), strict=True)
    return [(int(function(a, b)) + 128) % 256 - 128 for a, b in pairs]


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "andi": lambda a, b: a & b,
    "ceildivsi": lambda a, b: -(-a // b),
    "ceildivui": lambda a, b: -(-(a % 256) // (b % 256)),
    "divsi": _truncated,
    "divui": lambda a, b: (a % 256) // (b % 256),
    "floordivsi": lambda a, b: a // b,
    "maxsi": max,
    "maxui": lambda a, b: max(a % 256, b % 256),
    "minsi": min,
    "minui": lambda a, b: min(a % 256, b % 256),
    "muli": lambda a, b: a * b,
    "ori": lambda a, b: a | b,
    "remsi": lambda a, b: a - b * _truncated(a, b),
    "remui": lambda a, b: (a % 256) % (b % 256),
    "subi": lambda a, b: a - b,
    "xori": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("name", list(BINARY))
def test_arithmetic_of_integers(name: str) -> None:
    assert of_integers(name).tolist() == expected(BINARY[name])


COMPARED: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
    "ult": lambda a, b: a % 256 < b % 256,
    "ule": lambda a, b: a % 256 <= b % 256,
    "ugt": lambda a, b: a % 256 > b % 256,
    "uge": lambda a, b: a % 256 >= b % 256,
}


@pytest.mark.parametrize("name", list(COMPARED))
def test_comparisons_of_integers(name: str) -> None:
    pairs = zip(INTEGERS.tolist(), OTHERS.tolist(), strict=True)
    assert of_integers(f"cmpi {name},", "i1").tolist() == [COMPARED[name](a, b) for a, b in pairs]


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("oeq", np.equal),
        ("olt", np.less),
        ("oge", np.greater_equal),
        ("one", lambda a, b: (a < b) | (a > b)),
        ("ord", lambda a, b: ~(np.isnan(a) | np.isnan(b))),
        ("uno", lambda a, b: np.isnan(a) | np.isnan(b)),
        ("ult", lambda a, b: ~(a >= b)),
        ("ueq", lambda a, b: ~((a < b) | (a > b))),
        ("une", np.not_equal),
        ("true", lambda a, b: np.ones(a.shape, bool)),
    ],
)
def test_comparisons_of_floats(name: str, function: Callable[[Array, Array], Array]) -> None:
    text = program(f"arith.cmpf {name}, %a0, %a1 : tensor<8xf32>", "tensor<8xi1>", "tensor<8xf32>", "tensor<8xf32>")
    assert evaluated(text, FLOATS, RIGHT)[0].tolist() == function(FLOATS, RIGHT).tolist()


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("addf", np.add),
        ("divf", np.divide),
        ("maximumf", np.maximum),
        ("maxnumf", np.fmax),
        ("minimumf", np.minimum),
        ("minnumf", np.fmin),
        ("mulf", np.multiply),
        ("remf", np.fmod),
        ("subf", np.subtract),
    ],
)
def test_arithmetic_of_floats(name: str, function: Callable[[Array, Array], Array]) -> None:
    line = f"arith.{name} %a0, %a1 fastmath<nsz> : tensor<8xf32>"
    text = program(line, "tensor<8xf32>", "tensor<8xf32>", "tensor<8xf32>")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(evaluated(text, FLOATS, RIGHT)[0], function(FLOATS, RIGHT))


@pytest.mark.parametrize(
    ("name", "source", "target", "value", "found"),
    [
        ("extsi", "i1", "i32", True, -1),
        ("extsi", "i8", "i32", -3, -3),
        ("extui", "i8", "i32", -3, 253),
        ("extui", "i1", "i8", True, 1),
        ("trunci", "i32", "i8", 300, 44),
        ("trunci", "i32", "i1", 6, False),
        ("sitofp", "i1", "f32", True, -1.0),
        ("uitofp", "i8", "f32", -1, 255.0),
        ("fptosi", "f32", "i8", -3.7, -3),
        ("fptoui", "f32", "i8", 200.5, -56),
        ("truncf", "f32", "f16", 1.0002, 1.0),
        ("bitcast", "f32", "i32", 1.0, 0x3F800000),
        ("index_cast", "i32", "index", -5, -5),
        ("index_castui", "i8", "index", -1, 255),
    ],
)
def test_conversions(name: str, source: str, target: str, value: float, found: float) -> None:
    dtypes = {"i1": np.bool_, "i8": np.int8, "i32": np.int32, "f32": np.float32}
    text = program(f"arith.{name} %a0 : {source} to {target}", target, source)
    assert evaluated(text, np.asarray(value, dtypes[source]))[0].tolist() == found


def test_extended_arithmetic() -> None:
    text = """
      func.func @main(%a: tensor<10xi8>, %b: tensor<10xi8>)
          -> (tensor<10xi8>, tensor<10xi8>, tensor<10xi8>, tensor<10xi1>) {
        %0, %1 = arith.mulsi_extended %a, %b : tensor<10xi8>
        %2, %3 = arith.mului_extended %a, %b : tensor<10xi8>
        %4, %5 = arith.addui_extended %a, %b : tensor<10xi8>, tensor<10xi1>
        return %0, %1, %3, %5 : tensor<10xi8>, tensor<10xi8>, tensor<10xi8>, tensor<10xi1>
      }"""
    low, high, unsigned, carry = evaluated(text, INTEGERS, OTHERS)
    assert low.tolist() == expected(lambda a, b: a * b)
    assert high.tolist() == expected(lambda a, b: a * b >> 8)
    assert unsigned.tolist() == expected(lambda a, b: (a % 256) * (b % 256) >> 8)
    pairs = zip(INTEGERS.tolist(), OTHERS.tolist(), strict=True)
    assert carry.tolist() == [(a % 256) + (b % 256) > 255 for a, b in pairs]


UNARY: dict[str, Callable[[float], float]] = {
    **{name: getattr(math, name) for name in ("acos", "asin", "atan", "cos", "cosh", "erf", "erfc", "exp", "expm1")},
    **{name: getattr(math, name) for name in ("log", "log10", "log1p", "log2", "sin", "sinh", "sqrt", "tan", "tanh")},
    **{name: getattr(math, name) for name in ("asinh", "atanh", "cbrt", "exp2", "ceil", "floor", "trunc")},
    "absf": abs,
    "round": round,
    "roundeven": round,
    "rsqrt": lambda x: 1 / math.sqrt(x),
}


@pytest.mark.parametrize("name", list(UNARY))
def test_functions(name: str) -> None:
    text = program(f"math.{name} %a0 : f32", "f32", "f32")
    found = evaluated(text, np.float32(0.7))[0]
    np.testing.assert_allclose(found, UNARY[name](float(np.float32(0.7))), 1e-6)


@pytest.mark.parametrize(
    ("line", "types", "values", "found"),
    [
        ("math.atan2 %a0, %a1 : f32", "f32 f32", (1.0, -1.0), math.atan2(1, -1)),
        ("math.copysign %a0, %a1 : f32", "f32 f32", (1.5, -0.0), -1.5),
        ("math.powf %a0, %a1 : f32", "f32 f32", (2.0, 0.5), math.sqrt(2)),
        ("math.fpowi %a0, %a1 : f32, i32", "f32 i32", (2.0, -3), 0.125),
        ("math.ipowi %a0, %a1 : i32", "i32 i32", (3, 4), 81),
        ("math.fma %a0, %a1, %a2 : f32", "f32 f32 f32", (2.0, 3.0, 4.0), 10.0),
        ("math.ctlz %a0 : i32", "i32", (1,), 31),
        ("math.cttz %a0 : i32", "i32", (40,), 3),
        ("math.cttz %a0 : i32", "i32", (0,), 32),
        ("math.ctpop %a0 : i32", "i32", (-1,), 32),
        ("math.absi %a0 : i32", "i32", (-4,), 4),
    ],
)
def test_functions_of_several_and_of_integers(line: str, types: str, values: tuple[float, ...], found: float) -> None:
    kinds = types.split()
    text = program(line, kinds[0], *kinds)
    given = [
        np.asarray(value, {"f32": np.float32, "i32": np.int32}[kind]) for kind, value in zip(kinds, values, strict=True)
    ]
    np.testing.assert_allclose(evaluated(text, *given)[0], found, 1e-6)


@pytest.mark.parametrize(("name", "function"), [("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)])
def test_tests_of_floats(name: str, function: Callable[[Array], Array]) -> None:
    text = program(f"math.{name} %a0 : tensor<8xf32>", "tensor<8xi1>", "tensor<8xf32>")
    assert evaluated(text, FLOATS)[0].tolist() == function(FLOATS).tolist()
