"""Decomposed operations, evaluated by the definitions of their parts, against their own definitions and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.compiler.analysis.reference_program import ProgramWriter
from pumice.compiler.dialects.syntax.text import parse
from pumice.compiler.ir.operation import Operation
from pumice.compiler.ir.source import SourceText
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.passes.decomposition.decompose import decompose
from pumice.compiler.passes.decomposition.sorts import BLOCK
from pumice.compiler.passes.decomposition.transforms import is_short
from pumice.compiler.passes.verification.verify import verify
from pumice.hal_reference.operations import evaluate
from pumice.hal_reference.program import Array


def both(body: str, arguments: str, *values: Array) -> tuple[list[Array], list[Array]]:
    """Results before and after decomposing."""
    text = f"func.func @main({arguments}) -> ({body.rpartition(' : ')[2]}) {{ {body} }}"
    (function,) = parse(text)
    verify({"main": function}, SourceText(text, "x"))
    before = evaluate(ProgramWriter({"main": function}).function("main"), values)
    names = {operation.name for operation in function.walk()}
    decompose(function.regions[0].block, Target())
    verify({"main": function}, SourceText(text, "x"))
    assert not names & {operation.name for operation in function.walk() if operation.name in DECOMPOSED}
    return before, evaluate(ProgramWriter({"main": function}).function("main"), values)


def decomposed(body: str, arguments: str) -> list[Operation]:
    """All operations after decomposing."""
    (function,) = parse(f"func.func @main({arguments}) -> ({body.rpartition(' : ')[2]}) {{ {body} }}")
    decompose(function.regions[0].block, Target())
    return list(function.walk())


DECOMPOSED = {f"stablehlo.{name}" for name in ("cholesky", "triangular_solve", "rng", "rng_bit_generator")}


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (64,), (100,), (3, 5), (0,), (600,), (2, 513)])
def test_sorts_of_two_operands_are_stable(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 5, shape).astype(np.int32)
    values = np.arange(keys.size, dtype=np.float32).reshape(shape)
    dims = "x".join(map(str, shape))
    body = f"""
    %0:2 = "stablehlo.sort"(%k, %v) <{{dimension = {len(shape) - 1} : i64, is_stable = true}}> ({{
      ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<f32>):
        %1 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
    }}) : (tensor<{dims}xi32>, tensor<{dims}xf32>) -> (tensor<{dims}xi32>, tensor<{dims}xf32>)
    return %0#0, %0#1 : tensor<{dims}xi32>, tensor<{dims}xf32>"""
    before, after = both(body, f"%k: tensor<{dims}xi32>, %v: tensor<{dims}xf32>", keys, values)
    assert all(
        each.integer("block", shape[-1]) <= BLOCK or each.integer("block") == 2 * each.integer("runs")
        for each in decomposed(body, f"%k: tensor<{dims}xi32>, %v: tensor<{dims}xf32>")
        if each.name == "stablehlo.sort"
    )
    order = np.argsort(keys, -1, kind="stable")
    for found in (before, after):
        np.testing.assert_array_equal(found[0], np.take_along_axis(keys, order, -1))
        np.testing.assert_array_equal(found[1], np.take_along_axis(values, order, -1))


@pytest.mark.parametrize("length", [1, 2, 5, 64, 96, 100, 101, 128, 257, 1038])
@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
def test_transforms_of_every_length(kind: str, length: int) -> None:
    rng = np.random.default_rng(1)
    half = length // 2 + 1
    taken = {"RFFT": f"3x{length}xf64", "IRFFT": f"3x{half}xcomplex<f64>"}.get(kind, f"3x{length}xcomplex<f64>")
    given = {"RFFT": f"3x{half}xcomplex<f64>", "IRFFT": f"3x{length}xf64"}.get(kind, taken)
    count = half if kind == "IRFFT" else length
    value = rng.normal(size=(3, count)) + (0 if kind == "RFFT" else 1j * rng.normal(size=(3, count)))
    if kind == "IRFFT":
        value = np.fft.rfft(rng.normal(size=(3, length)))
    types = f"(tensor<{taken}>) -> tensor<{given}>"
    body = f"%0 = stablehlo.fft %x, type = {kind}, length = [{length}] : {types}\nreturn %0 : tensor<{given}>"
    before, after = both(body, f"%x: tensor<{taken}>", value)
    np.testing.assert_allclose(after[0], before[0], 1e-11, 1e-11)
    left = [each for each in decomposed(body, f"%x: tensor<{taken}>") if each.name == "stablehlo.fft"]
    assert all(is_short(each) for each in left)


def test_a_transform_of_three_dimensions() -> None:
    rng = np.random.default_rng(2)
    value = rng.normal(size=(2, 4, 6, 10))
    types = "(tensor<2x4x6x10xf64>) -> tensor<2x4x6x6xcomplex<f64>>"
    body = f"""%0 = stablehlo.fft %x, type = RFFT, length = [4, 6, 10] : {types}
    %1 = stablehlo.fft %0, type = IRFFT, length = [4, 6, 10] : (tensor<2x4x6x6xcomplex<f64>>) -> tensor<2x4x6x10xf64>
    return %0, %1 : tensor<2x4x6x6xcomplex<f64>>, tensor<2x4x6x10xf64>"""
    before, after = both(body, "%x: tensor<2x4x6x10xf64>", value)
    np.testing.assert_allclose(after[0], before[0], 1e-10, 1e-10)
    np.testing.assert_allclose(after[1], value, 1e-10, 1e-10)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", ["f64", "complex<f64>"])
@pytest.mark.parametrize("size", [5, 16, 35])
def test_cholesky_factors(size: int, dtype: str, lower: bool) -> None:
    rng = np.random.default_rng(3)
    shape = (2, size, size)
    root = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype != "f64" else 0)
    matrix = root @ np.conj(np.swapaxes(root, -1, -2)) + np.eye(size)
    matrix[1] = -matrix[1]
    type = f"tensor<2x{size}x{size}x{dtype}>"
    body = f"%0 = stablehlo.cholesky %x, lower = {str(lower).lower()} : {type}\nreturn %0 : {type}"
    before, after = both(body, f"%x: {type}", matrix)
    triangle = np.tril if lower else np.triu
    np.testing.assert_allclose(triangle(after[0][0]), triangle(before[0][0]), 1e-9, 1e-12)
    assert np.isnan(triangle(after[0][1])[np.diag_indices(size)]).any() and np.isnan(before[0][1]).any()


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("mode", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
@pytest.mark.parametrize("size", [4, 37])
def test_triangular_systems(size: int, left: bool, lower: bool, unit: bool, mode: str) -> None:
    rng = np.random.default_rng(4)
    a = (rng.normal(size=(2, size, size)) + 1j * rng.normal(size=(2, size, size))) / size + 3 * np.eye(size)
    # The other triangle is not read.
    other = np.triu(np.ones((size, size), bool), 1)
    a[:, other if lower else other.T] = np.nan
    b = rng.normal(size=(2, size, 3) if left else (2, 3, size)) + 0j
    shape = "x".join(map(str, b.shape))
    flags = f"left_side = {str(left).lower()}, lower = {str(lower).lower()}, unit_diagonal = {str(unit).lower()}"
    types = f"(tensor<2x{size}x{size}xcomplex<f64>>, tensor<{shape}xcomplex<f64>>) -> tensor<{shape}xcomplex<f64>>"
    body = f"""%0 = "stablehlo.triangular_solve"(%a, %b)
      <{{{flags}, transpose_a = #stablehlo<transpose {mode}>}}> : {types}
    return %0 : tensor<{shape}xcomplex<f64>>"""
    before, after = both(body, f"%a: tensor<2x{size}x{size}xcomplex<f64>>, %b: tensor<{shape}xcomplex<f64>>", a, b)
    np.testing.assert_allclose(after[0], before[0], 1e-10, 1e-10)


@pytest.mark.parametrize("algorithm", ["THREE_FRY", "PHILOX"])
@pytest.mark.parametrize("type", ["7xui32", "3x3xui64", "10xui8", "5xi16", "0xui32"])
def test_random_bits_are_those_of_the_definition(algorithm: str, type: str) -> None:
    state = np.array([0x0123456789ABCDEF, 2**64 - 2], np.uint64)
    types = f"(tensor<2xui64>) -> (tensor<2xui64>, tensor<{type}>)"
    body = f"""%0, %1 = stablehlo.rng_bit_generator %s, algorithm = {algorithm} : {types}
    return %0, %1 : tensor<2xui64>, tensor<{type}>"""
    before, after = both(body, "%s: tensor<2xui64>", state)
    np.testing.assert_array_equal(after[0], before[0])
    np.testing.assert_array_equal(after[1], before[1])


def test_uniform_and_normal_numbers_have_their_moments() -> None:
    body = """
    %low = stablehlo.constant dense<2.0> : tensor<f32>
    %high = stablehlo.constant dense<5.0> : tensor<f32>
    %shape = stablehlo.constant dense<[20000]> : tensor<1xi64>
    %0 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM
      : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<20000xf32>
    %1 = stablehlo.rng %low, %high, %shape, distribution = NORMAL
      : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<20000xf32>
    return %0, %1 : tensor<20000xf32>, tensor<20000xf32>"""
    _, (uniform, normal) = both(body, "")
    assert uniform.min() >= 2 and uniform.max() < 5 and abs(uniform.mean() - 3.5) < 0.03
    assert abs(normal.mean() - 2) < 0.15 and abs(normal.std() - 5) < 0.1
