"""Classes of regions: which are equal and which differ; strategies as text."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from support.compiler.regions import EMULATED, region_of
from support.profiles import PROFILE_NAMES, recorded_profile

from pumice.compiler.kernels.scalars.device_target import FAMILY_NAMES, target_of
from pumice.compiler.strategies.choice import (
    SHIPPED,
    candidates_of,
    class_of,
    compile_region,
    strategy_from,
    tuned_strategy,
)
from pumice.compiler.strategies.movement.elements import Elements


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


@pytest.mark.parametrize(
    ("left", "other", "alike"),
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
def test_what_is_alike(left: str, other: str, alike: bool) -> None:
    assert (class_of(region_of(left)) == class_of(region_of(other))) is alike
    assert "\n" not in class_of(region_of(left))


def test_every_candidate_is_read_from_its_text() -> None:
    candidates = candidates_of(region_of(matmul(128, 128, 128)))
    assert len(candidates) > 1
    assert [strategy_from(value.text()) for value in candidates] == candidates


def test_what_is_shipped_is_taken() -> None:
    for family, entries in SHIPPED.items():
        assert family in FAMILY_NAMES
        for pattern, strategy in entries:
            assert strategy_from(strategy.text()) == strategy and "[" not in pattern
    cpu = target_of(recorded_profile("lavapipe_mesa_22_3_6"))
    rows_of_eight = replace(region_of(matmul(8, 512, 128)), target=cpu)
    assert tuned_strategy(rows_of_eight) == SHIPPED["cpu"][0][1]
    actual = Elements()
    tuned = replace(cpu, tuned=((class_of(rows_of_eight), actual.text()),))
    assert tuned_strategy(replace(rows_of_eight, target=tuned)) == actual  # findings on the device take precedence
    assert tuned_strategy(replace(rows_of_eight, target=EMULATED)) is None


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", PROFILE_NAMES)
@pytest.mark.parametrize("type", ["f32", "f16"])
def test_contractions_compile_for_every_recorded_device(name: str, type: str) -> None:
    target = target_of(recorded_profile(name))
    compiled = compile_region(replace(region_of(matmul(128, 128, 128, type)), target=target))
    assert math.prod(compiled.workgroup_size) <= target.max_workgroup_invocations
