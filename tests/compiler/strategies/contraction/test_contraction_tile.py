"""Contractions and convolutions by tiles, compared with the element generator and the definitions in NumPy."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from support.compiler.regions import (
    EMULATED,
    arguments_of,
    by_definition,
    called,
    contraction,
    function_of,
    region_of,
    run_region,
)
from support.profiles import PROFILE_NAMES, recorded_profile

import pumice
from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.kernels.strategy import Strategy
from pumice.compiler.strategies.choice import candidates_of, compile_region
from pumice.compiler.strategies.contraction.contraction_tile import ContractionTile
from pumice.compiler.strategies.contraction.workgroup_tile import WorkgroupTile
from pumice.compiler.strategies.movement.elements import Elements


def convolution(left: str, right: str, result: str, window: str, groups: int = 1) -> str:
    """Returns a convolution of images."""
    return f"""
        func.func @main(%a: tensor<{left}xf32>, %b: tensor<{right}xf32>) -> tensor<{result}xf32> {{
          %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
            window = {{{window}}} {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}}
            : (tensor<{left}xf32>, tensor<{right}xf32>) -> tensor<{result}xf32>
          return %0 : tensor<{result}xf32>
        }}
    """


PLAIN = "contracting_dims = [1] x [0]"
CASES = {
    "whole tiles": contraction("32x48xf32", "48x64xf32", "32x64xf32", PLAIN),
    "runs and a rest": contraction("9x300xf32", "300x13xf32", "9x13xf32", PLAIN),
    "edges": contraction("35x17xf32", "17x37xf32", "35x37xf32", PLAIN),
    "transposed": contraction("17x35xf32", "37x17xf32", "35x37xf32", "contracting_dims = [0] x [1]"),
    "batched": contraction(
        "3x17x20xf32", "3x20x19xf32", "3x17x19xf32", "batching_dims = [0] x [0], contracting_dims = [2] x [1]"
    ),
    "a column": contraction("100x70xf32", "70x1xf32", "100x1xf32", PLAIN),
    "a row": contraction("1x70xf32", "70x100xf32", "1x100xf32", PLAIN),
    "halves": contraction("19x140xf16", "140x22xf16", "19x22xf16", PLAIN),
    "halves, odd": contraction("19x40xf16", "40x21xf16", "19x21xf16", PLAIN),
    "wide sums": contraction("19x40xbf16", "40x22xbf16", "19x22xf32", PLAIN),
    "bytes": contraction("19x40xi8", "40x24xi8", "19x24xi32", PLAIN),
    "long integers": contraction("19x40xi64", "40x22xi64", "19x22xi64", PLAIN),
    "doubles": contraction("19x40xf64", "40x22xf64", "19x22xf64", PLAIN),
    "outer": contraction("35xf32", "37xf32", "35x37xf32", "contracting_dims = [] x []"),
    "3x3": convolution("2x9x10x5", "3x3x5x7", "2x9x10x7", "pad = [[1, 1], [1, 1]]"),
    "strided": convolution("1x9x12x4", "3x2x4x8", "1x4x6x8", "stride = [2, 2]"),
    "dilated": convolution(
        "1x6x6x4", "2x2x4x8", "1x9x14x8", "pad = [[0, 0], [4, 4]], lhs_dilate = [2, 2], rhs_dilate = [2, 5]"
    ),
    "depthwise": convolution("1x9x10x8", "3x3x1x8", "1x9x10x8", "pad = [[1, 1], [1, 1]]", 8),
    "grouped": convolution("1x5x6x8", "3x3x4x6", "1x5x6x6", "pad = [[1, 1], [1, 1]]", 2),
    "1x1": convolution("1x5x6x300", "1x1x300x12", "1x5x6x12", "pad = [[0, 0], [0, 0]]"),
}
LAVAPIPE = dataclasses.replace(EMULATED, family="cpu", subgroup_size=8, subgroup_operations=("shuffle",))
VECTORS = {"a column", "a row"}
SHARING = {"depthwise", "grouped"}
STRATEGIES: dict[Strategy, set[str]] = {
    ContractionTile(4, 4, 8, 8, 4, 0): {*VECTORS, "halves, odd"},
    ContractionTile(1, 4, 16, 1, 7, 0): {"halves, odd"},
    ContractionTile(3, 8, 2, 4, 1, 0): {*VECTORS, "halves, odd", "3x3", "grouped"},
    ContractionTile(4, 4, 8, 1, 8, 1): {*VECTORS, "halves, odd"},
    ContractionTile(1, 1, 8, 1, 12, 1): {"halves, odd", "halves"},
    WorkgroupTile(2, 4, 4, 8, 16): {
        *VECTORS,
        *SHARING,
        "halves, odd",
        "3x3",
        "doubles",
        "long integers",
        "strided",
        "dilated",
        "1x1",
        "runs and a rest",
    },
    WorkgroupTile(4, 4, 2, 1, 4): {*VECTORS, *SHARING, "halves, odd", "doubles", "long integers", "3x3"},
}
"""The programs that each strategy refuses: tiles larger than the result, two rows in a word, unshared factors."""


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_what_a_strategy_takes(strategy: Strategy) -> None:
    refused = {name for name, text in CASES.items() if not strategy.takes(region_of(text, LAVAPIPE))}
    assert refused == STRATEGIES[strategy]


@pytest.mark.parametrize(("depth", "is_taken"), [(16, True), (48, False), (256, False)])
def test_runs_of_sums_are_whole_parts(depth: int, is_taken: bool) -> None:
    text = contraction("35x300xf32", "300x37xf32", "35x37xf32", PLAIN)
    region = region_of(text, dataclasses.replace(LAVAPIPE, shared_memory=1 << 20))
    assert WorkgroupTile(2, 4, 4, 8, depth).takes(region) == is_taken


@pytest.mark.parametrize(("family", "is_taken"), [("cpu", True), ("nvidia", True), ("intel", False), ("arm", False)])
def test_factors_are_shuffled_only_in_whole_subgroups(family: str, is_taken: bool) -> None:
    region = region_of(CASES["edges"], dataclasses.replace(LAVAPIPE, family=family))
    assert ContractionTile(4, 4, 8, 1, 8, 1).takes(region) == is_taken


@pytest.mark.sample(16)
@pytest.mark.vulkan
@pytest.mark.parametrize(
    ("name", "strategy"),
    [(name, strategy) for strategy, refused in STRATEGIES.items() for name in CASES if name not in refused],
    ids=str,
)
def test_tiles_agree_with_the_definitions(gpu: pumice.Device, name: str, strategy: Strategy) -> None:
    function = function_of(CASES[name])
    arguments = arguments_of(function, has_fractions=True)
    (actual,) = run_region(gpu, function, arguments, LAVAPIPE, strategy)
    (wanted,) = by_definition(function, arguments)
    narrow = {"float16": 2**-10, "bfloat16": 2**-7}.get(str(actual.dtype), 1e-5)
    np.testing.assert_allclose(actual.astype(np.float64), wanted.astype(np.float64), rtol=narrow, atol=narrow)


@pytest.mark.sample(4)
@pytest.mark.vulkan
@pytest.mark.parametrize("name", [name for name, text in CASES.items() if "dot_general" in text])
def test_tiles_add_in_the_order_of_elements(gpu: pumice.Device, name: str) -> None:
    function = function_of(CASES[name])
    arguments = arguments_of(function, has_fractions=True)
    strategies = [Elements(), *(value for value, refused in STRATEGIES.items() if name not in refused)]
    actual = [run_region(gpu, function, arguments, LAVAPIPE, strategy)[0].tobytes() for strategy in strategies]
    assert len(set(actual)) == 1


@pytest.mark.vulkan
def test_loads_of_256_bits_give_the_same(gpu: pumice.Device) -> None:
    text = contraction("512x256xf32", "256x1xf32", "512x1xf32", PLAIN)
    targets = target_of(gpu.profile), EMULATED
    if not targets[0].whole_vectors:
        pytest.skip(f"{gpu.name} loads nothing for eight invocations at once")
    codes = [compile_region(region_of(text, target)).code for target in targets]
    assert [b"input0_by_8" in code for code in codes] == [True, False]
    arguments = arguments_of(function_of(text), has_fractions=True)
    left, right = (called(gpu, text, *arguments, target=target)[0] for target in targets)
    assert left.tobytes() == right.tobytes()
    np.testing.assert_allclose(left, arguments[0] @ arguments[1] + arguments[2], rtol=1e-4, atol=1e-4)


PROGRAMS = {
    "matmul": """
        func.func @main(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>) -> tensor<512x512xf32> {
          %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
            : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
          return %0 : tensor<512x512xf32>
        }
    """,
    "batched halves": """
        func.func @main(%a: tensor<8x200x64xf16>, %b: tensor<8x200x64xf16>) -> tensor<8x200x200xf16> {
          %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2]
            : (tensor<8x200x64xf16>, tensor<8x200x64xf16>) -> tensor<8x200x200xf16>
          return %0 : tensor<8x200x200xf16>
        }
    """,
    "convolution": """
        func.func @main(%a: tensor<1x56x56x64xf32>, %b: tensor<3x3x64x64xf32>) -> tensor<1x56x56x64xf32> {
          %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
            window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
            : (tensor<1x56x56x64xf32>, tensor<3x3x64x64xf32>) -> tensor<1x56x56x64xf32>
          return %0 : tensor<1x56x56x64xf32>
        }
    """,
}


@pytest.mark.sample(17)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_a_kernel_keeps_to_the_limits_of_its_device(name: str, program: str) -> None:
    target = target_of(recorded_profile(name))
    region = region_of(PROGRAMS[program], target)
    (chosen, *_) = candidates_of(region)
    assert not isinstance(chosen, Elements)
    kernel = compile_region(region, chosen)
    assert math.prod(kernel.workgroup_size) <= target.max_workgroup_invocations


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nvidia_rtx_4060", WorkgroupTile),
        ("amd_rx_6600_windows", WorkgroupTile),
        ("apple_m2_moltenvk", ContractionTile),
        ("lavapipe_mesa_22_3_6", ContractionTile),
        ("swiftshader_chromium_156", ContractionTile),
    ],
)
def test_shared_memory_is_used_where_it_pays(name: str, kind: type) -> None:
    (chosen, *_) = candidates_of(region_of(PROGRAMS["matmul"], target_of(recorded_profile(name))))
    assert isinstance(chosen, kind)


@pytest.mark.parametrize(("name", "size"), [("lavapipe_mesa_22_3_6", 8), ("swiftshader_chromium_156", 4)])
def test_a_workgroup_of_shuffled_factors_is_a_subgroup(name: str, size: int) -> None:
    (chosen, *_) = candidates_of(region_of(PROGRAMS["matmul"], target_of(recorded_profile(name))))
    assert isinstance(chosen, ContractionTile) and (chosen.across, chosen.shuffled) == (size, 1)


def test_any_device_runs_what_is_made_for_none() -> None:
    (chosen, *_) = candidates_of(region_of(PROGRAMS["matmul"], Target()))
    assert isinstance(chosen, ContractionTile) and not chosen.shuffled
