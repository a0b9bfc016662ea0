"""CHLO's functions, by their formulas on the reference device, against SciPy and NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.special as scipy_special

from pumice.compiler.analysis.reference_program import ProgramWriter
from pumice.compiler.dialects.builder import Builder
from pumice.compiler.ir.operation import Block, Operation
from pumice.compiler.ir.types import ScalarType, TensorType
from pumice.compiler.passes.formulas.expand import expand_chlo
from pumice.hal_reference.operations import evaluate
from pumice.hal_reference.program import Array

Function = Callable[..., Array]
NAMES = {
    "float32": "f32",
    "float64": "f64",
    "float16": "f16",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
}


def run(name: str, *operands: Array) -> Array:
    """Runs one CHLO operation."""
    types = [TensorType(value.shape, ScalarType(NAMES[value.dtype.name])) for value in operands]
    block = Block(types)
    made = block.append(Operation(f"chlo.{name}", block.arguments, types[:1]))
    block.append(Operation("func.return", made.results))
    expand_chlo(block)
    assert not any(operation.name.startswith("chlo.") for operation in block.operations)
    return evaluate(ProgramWriter({}).block(block), operands)[0]


def spread(count: int = 4_000) -> Array:
    return np.random.default_rng(7).normal(size=count)


REAL: dict[str, tuple[Function, Array, float, float]] = {
    "acos": (np.arccos, np.tanh(spread()), 3e-7, 1e-15),
    "acosh": (np.arccosh, 1 + np.abs(spread()) * 50, 3e-7, 1e-15),
    "asin": (np.arcsin, np.tanh(spread()), 3e-7, 1e-15),
    "asinh": (np.arcsinh, spread() * 50, 3e-7, 1e-15),
    "atan": (np.arctan, spread() * 5, 3e-7, 1e-15),
    "atanh": (np.arctanh, np.tanh(spread()), 3e-7, 1e-15),
    "bessel_i1e": (scipy_special.i1e, spread() * 8, 2e-6, 2e-13),
    "cosh": (np.cosh, spread() * 5, 5e-7, 2e-15),
    # Near the zeros of digamma and lgamma the error is one of the terms that cancel.
    "digamma": (scipy_special.digamma, np.abs(spread()) * 8 + 2, 2e-6, 1e-14),
    "erf": (scipy_special.erf, spread() * 2, 5e-7, 1e-15),
    "erf_inv": (scipy_special.erfinv, np.tanh(spread()), 1e-6, 5e-15),
    "erfc": (scipy_special.erfc, np.clip(spread() * 3, -8, 8), 2e-6, 1e-14),
    "lgamma": (scipy_special.gammaln, np.abs(spread()) * 8 + 3, 4e-6, 1e-14),
    "sinh": (np.sinh, spread() * 5, 5e-7, 2e-15),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", REAL)
def test_functions_of_real_numbers_are_those_of_scipy(name: str, dtype: str) -> None:
    function, values, single, double = REAL[name]
    x = values.astype(dtype)
    expected = function(x.astype(np.float64))
    np.testing.assert_allclose(run(name, x), expected, single if dtype == "float32" else double)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("erf", [np.inf, -np.inf, np.nan, -0.0], [1, -1, np.nan, -0.0]),
        ("erfc", [np.inf, -np.inf, np.nan, 0.0], [0, 2, np.nan, 1]),
        ("erf_inv", [1, -1, 2, 0], [np.inf, -np.inf, np.nan, 0]),
        ("lgamma", [np.inf, -np.inf, 0, -3, 1, 2], [np.inf, np.inf, np.inf, np.inf, 0, 0]),
        ("digamma", [0, -1, np.inf, np.nan], [np.nan, np.nan, np.inf, np.nan]),
        ("acosh", [0.5, 1, np.inf], [np.nan, 0, np.inf]),
        ("atanh", [1, -1, 1.5], [np.inf, -np.inf, np.nan]),
        ("asinh", [np.inf, -np.inf, -0.0, 1e300], [np.inf, -np.inf, -0.0, np.arcsinh(1e300)]),
        ("cosh", [710.0, -710.0, np.inf], [np.cosh(710.0), np.cosh(710.0), np.inf]),
        ("sinh", [710.0, -710.0, -np.inf, -0.0], [np.sinh(710.0), -np.sinh(710.0), -np.inf, -0.0]),
    ],
)
def test_special_values(name: str, values: list[float], expected: list[float]) -> None:
    found = run(name, np.array(values, np.float64))
    np.testing.assert_allclose(found, expected, 1e-14, 1e-14)
    zeros = np.equal(expected, 0) & np.signbit(expected)
    assert np.signbit(found[zeros]).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh"])
def test_functions_of_complex_numbers_are_numpys(name: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    scale = 10.0 ** rng.integers(-3, 2, 2_000)
    z = ((rng.normal(size=2_000) + 1j * rng.normal(size=2_000)) * scale).astype(dtype)
    numpy_name = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh"}.get(name)
    numpy_name = numpy_name or {"atan": "arctan", "atanh": "arctanh"}.get(name, name)
    expected = getattr(np, numpy_name)(z.astype(np.complex128))
    np.testing.assert_allclose(run(name, z), expected, 3e-6 if dtype == "complex64" else 1e-13)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_next_after_is_numpys(dtype: str) -> None:
    rng = np.random.default_rng(5)
    special = np.array([0.0, -0.0, np.inf, -np.inf, 1, np.nan, np.finfo(dtype).tiny, np.finfo(dtype).max], dtype)
    x, y = (np.concatenate([np.repeat(special, 8), rng.normal(size=500).astype(dtype)]) for _ in range(2))
    y[:64] = np.tile(special, 8)
    with np.errstate(all="ignore"):
        expected = np.nextafter(x, y)
    np.testing.assert_array_equal(run("next_after", x, y), expected)


def test_zeta_and_polygamma_are_scipys() -> None:
    rng = np.random.default_rng(1)
    x, q = rng.uniform(1.1, 10, 2_000), rng.uniform(0.1, 10, 2_000)
    np.testing.assert_allclose(run("zeta", x, q), scipy_special.zeta(x, q), 1e-14)
    n = rng.integers(0, 5, 2_000)
    expected = scipy_special.polygamma(n, q + 2)
    np.testing.assert_allclose(run("polygamma", n.astype(np.float64), q + 2), expected, 1e-12)


def test_a_builder_s_numbers_take_the_operand_s_type() -> None:
    block = Block([TensorType((2,), ScalarType("f16"))])
    found = Builder(block).elementwise("add", block.arguments[0], 1.5)
    assert str(found.type) == "tensor<2xf16>"
