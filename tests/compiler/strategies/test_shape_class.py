"""Classes of regions: what is alike and what is not; strategies as text."""

from __future__ import annotations

import pytest
from support.regions import EMULATED, function_of

from pumice.compiler.codegen.region import KernelRegion
from pumice.compiler.strategies.choice import candidates_of, strategy_from
from pumice.compiler.strategies.shape_class import class_of


def matmul(m: int, n: int, k: int, type: str = "f32", contracting: str = "[1] x [0]", then: str = "tanh") -> str:
    right = f"{k}x{n}" if contracting == "[1] x [0]" else f"{n}x{k}"
    return f"""
        func.func @main(%a: tensor<{m}x{k}x{type}>, %b: tensor<{right}x{type}>) -> tensor<{m}x{n}x{type}> {{
          %0 = stablehlo.dot_general %a, %b, contracting_dims = {contracting}
            : (tensor<{m}x{k}x{type}>, tensor<{right}x{type}>) -> tensor<{m}x{n}x{type}>
          %1 = stablehlo.{then} %0 : tensor<{m}x{n}x{type}>
          return %1 : tensor<{m}x{n}x{type}>
        }}
    """


def add(shape: str) -> str:
    return f"""
        func.func @main(%a: tensor<{shape}>) -> tensor<{shape}> {{
          %0 = stablehlo.add %a, %a : tensor<{shape}>
          return %0 : tensor<{shape}>
        }}
    """


def region(text: str) -> KernelRegion:
    return KernelRegion(function_of(text).regions[0].block, "main", EMULATED)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (matmul(128, 128, 128), matmul(128, 128, 128, then="negate"), True),
        (matmul(128, 128, 128), matmul(112, 128, 80), False),  # other divisors
        (matmul(128, 64, 192), matmul(128, 64, 256), True),
        (matmul(100, 100, 100), matmul(116, 108, 124), True),
        (matmul(100, 100, 100), matmul(101, 100, 100), False),
        (matmul(128, 128, 128), matmul(128, 128, 256), False),
        (matmul(128, 128, 128), matmul(128, 128, 128, "f16"), False),
        (matmul(128, 128, 128), matmul(128, 128, 128, contracting="[1] x [1]"), False),
        (matmul(7, 128, 128), matmul(8, 128, 128), False),
        (add("1024xf32"), add("960xf32"), True),
        (add("1024xf32"), add("1024xi32"), False),
    ],
)
def test_what_is_alike(one: str, other: str, alike: bool) -> None:
    assert (class_of(region(one)) == class_of(region(other))) is alike
    assert "\n" not in class_of(region(one))


def test_every_candidate_is_read_from_its_text() -> None:
    found = candidates_of(region(matmul(128, 128, 128)))
    assert len(found) > 1
    assert [strategy_from(each.text()) for each in found] == found
