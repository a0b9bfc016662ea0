"""CHLO's scans, ragged contractions and upper halves of products, against NumPy and Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.evaluation import evaluated

from pumice.compiler.dialects.syntax.text import parse, to_text
from pumice.compiler.ir.source import CompileError

RAGGED = """
func.func @main(%l: tensor<{left}xf32>, %r: tensor<{right}xf32>, %g: tensor<{sizes}xi64>) -> tensor<{result}xf32> {{
  %0 = "chlo.ragged_dot"(%l, %r, %g) {{
    ragged_dot_dimension_numbers = #chlo.ragged_dot<
      lhs_batching_dimensions = [0],
      rhs_batching_dimensions = [{batch}],
      lhs_contracting_dimensions = [2],
      rhs_contracting_dimensions = [{contract}],
      lhs_ragged_dimensions = [{ragged}],
      rhs_group_dimensions = [{group}]
    >
  }} : (tensor<{left}xf32>, tensor<{right}xf32>, tensor<{sizes}xi64>) -> tensor<{result}xf32>
  return %0 : tensor<{result}xf32>
}}
"""
SCAN = """
func.func @main(%x: tensor<3x4xf32>, %s: tensor<3xf32>) -> (tensor<3x4xf32>, tensor<4x3xf32>, tensor<3xf32>) {
  %0:2 = chlo.scan(%x) inits(%s) dimension=1 attributes {is_reverse = true} {
  ^bb0(%a: tensor<3xf32>, %b: tensor<3xf32>):
    %1 = stablehlo.multiply %a, %b : tensor<3xf32>
    %2 = stablehlo.add %1, %a : tensor<3xf32>
    stablehlo.return %2, %1 : tensor<3xf32>, tensor<3xf32>
  } : (tensor<3x4xf32>, tensor<3xf32>) -> (tensor<3x4xf32>, tensor<3xf32>)
  %3 = stablehlo.transpose %0#0, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
  return %0#0, %3, %0#1 : tensor<3x4xf32>, tensor<4x3xf32>, tensor<3xf32>
}
"""


def normal(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def test_a_scan_goes_backwards_and_gives_outputs_and_carries() -> None:
    x, start = normal(3, 4), normal(3)
    carry, outputs = start, np.zeros((3, 4), np.float32)
    for index in reversed(range(4)):
        carry = x[:, index] * carry
        outputs[:, index] = carry + x[:, index]
    found, turned, last = evaluated(SCAN, x, start)
    np.testing.assert_allclose(found, outputs, 1e-6)
    np.testing.assert_allclose(turned, outputs.T, 1e-6)
    np.testing.assert_allclose(last, carry, 1e-6)


def test_a_scan_prints_as_text_that_reads_the_same() -> None:
    printed = to_text(parse(SCAN))
    assert "dimension=1" in printed and to_text(parse(printed)) == printed


def test_each_group_of_rows_has_its_matrix() -> None:
    left, right, sizes = normal(2, 5, 3), normal(3, 2, 3, 4), np.array([[1, 0, 3], [2, 3, 0]], np.int64)
    text = RAGGED.format(
        left="2x5x3", right="3x2x3x4", sizes="2x3", result="2x5x4", batch=1, contract=2, ragged=1, group=0
    )
    expected = np.zeros((2, 5, 4), np.float32)
    for batch in range(2):
        groups = np.repeat(np.arange(3), sizes[batch])
        for row, group in enumerate(groups):
            expected[batch, row] = left[batch, row] @ right[group, batch]
    np.testing.assert_allclose(evaluated(text, left, right, sizes)[0], expected, 1e-5, 1e-6)


def test_each_group_of_a_contraction_has_its_result() -> None:
    left, right, sizes = normal(2, 3, 5), normal(2, 5, 4), np.array([[1, 0, 4], [2, 2, 1]], np.int64)
    text = RAGGED.format(
        left="2x3x5", right="2x5x4", sizes="2x3", result="3x2x3x4", batch=0, contract=1, ragged=2, group=""
    )
    ends = np.cumsum(sizes, 1)
    expected = np.zeros((3, 2, 3, 4), np.float32)
    for batch in range(2):
        for group in range(3):
            part = slice(ends[batch, group] - sizes[batch, group], ends[batch, group])
            expected[group, batch] = left[batch][:, part] @ right[batch][part]
    np.testing.assert_allclose(evaluated(text, left, right, sizes)[0], expected, 1e-5, 1e-6)


def test_batches_of_no_group_are_zero() -> None:
    left, right = normal(3, 2, 5), normal(3, 5, 4)
    text = RAGGED.format(
        left="3x2x5", right="3x5x4", sizes="2", result="3x2x4", batch=0, contract=1, ragged=0, group=""
    )
    expected = left @ right
    expected[2] = 0
    np.testing.assert_allclose(evaluated(text, left, right, np.array([1, 1], np.int64))[0], expected, 1e-5, 1e-6)


@pytest.mark.parametrize("name", ["i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64"])
def test_the_upper_half_of_a_product(name: str) -> None:
    bits = int(name.lstrip("ui"))
    dtype = np.dtype(f"{'u' if name.startswith('u') else ''}int{bits}")
    raw = np.random.default_rng(bits).integers(0, 256, (2, 500 * bits // 8), np.uint8)
    left, right = (np.ascontiguousarray(row).view(dtype) for row in raw)
    left[:2] = np.iinfo(dtype).min
    right[:1] = np.iinfo(dtype).min
    text = f"func.func @main(%a: tensor<500x{name}>, %b: tensor<500x{name}>) -> tensor<500x{name}> {{"
    text += f"%0 = chlo.mulhi %a, %b : tensor<500x{name}>, tensor<500x{name}> -> tensor<500x{name}>\n"
    text += f"return %0 : tensor<500x{name}> }}"
    expected = [int(a) * int(b) >> bits for a, b in zip(left.tolist(), right.tolist(), strict=True)]
    assert evaluated(text, left, right)[0].tolist() == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("dimension=1", "dimension=2"), "dimension to be different numbers"),
        (("%x: tensor<3x4xf32>", "%x: tensor<3x5xf32>"), "is of type"),
        (("multiply %a, %b", "multiply %x, %b"), "is not defined"),
        (("stablehlo.return %2, %1 : tensor<3xf32>, ", "stablehlo.return %2 : "), "results of types"),
    ],
)
def test_a_wrong_scan_is_refused(change: tuple[str, str], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        evaluated(SCAN.replace(*change), normal(3, 4), normal(3))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ragged": "0, 1"}, "one ragged dimension"),
        ({"group": ""}, "1 group dimensions"),
        ({"sizes": "2x4"}, "groups along dimension 0"),
        ({"sizes": "3x3"}, "group sizes for each index"),
        ({"contract": 7}, "right operand's batching and contracting"),
    ],
)
def test_a_wrong_ragged_contraction_is_refused(changes: dict[str, object], message: str) -> None:
    given = {"left": "2x5x3", "right": "3x2x3x4", "sizes": "2x3", "result": "2x5x4"}
    numbers = {"batch": 1, "contract": 2, "ragged": 1, "group": 0}
    with pytest.raises(CompileError, match=message):
        evaluated(RAGGED.format(**{**given, **numbers, **changes}), normal(1), normal(1), normal(1))
