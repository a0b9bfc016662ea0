"""Contractions of bytes by instructions that add four products, compared with the definitions in NumPy."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.compiler.regions import EMULATED, by_definition, function_of, region_of, run_kernel, shader_declarations

import pumice
from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.kernels.strategy import Strategy
from pumice.compiler.pipeline import compile_data
from pumice.compiler.strategies.choice import compile_region, ranked
from pumice.compiler.strategies.contraction.contraction_tile import ContractionTile
from pumice.compiler.strategies.contraction.cooperative_tile import CooperativeTile
from pumice.compiler.strategies.contraction.workgroup_tile import WorkgroupTile
from pumice.spirv.binary.grammar import Op
from pumice.spirv.binary.words import read_binary
from pumice.spirv.checks.matrix_shapes import MatrixProduct

DEVICE = dataclasses.replace(
    EMULATED,
    family="amd",
    subgroup_size=8,
    subgroup_operations=("basic", "shuffle"),
    int8_dot=True,
    shared_memory=1 << 15,
    max_workgroup_invocations=256,
)
PLAIN, TURNED = "contracting_dims = [1] x [0]", "contracting_dims = [0] x [1]"


def contraction(left: str, right: str, result: str, numbers: str) -> str:
    return f"""
        func.func @main(%a: tensor<{left}>, %b: tensor<{right}>) -> tensor<{result}> {{
          %0 = stablehlo.dot_general %a, %b, {numbers} : (tensor<{left}>, tensor<{right}>) -> tensor<{result}>
          return %0 : tensor<{result}>
        }}
    """


CASES = {
    "whole words": contraction("32x64xi8", "32x64xi8", "32x32xi32", "contracting_dims = [1] x [1]"),
    "columns": contraction("35x64xi8", "64x36xi8", "35x36xi32", PLAIN),
    "a rest": contraction("33x143xi8", "143x37xi8", "33x37xi32", PLAIN),
    "transposed": contraction("48x35xui8", "36x48xui8", "35x36xui32", TURNED),
    "wrapped": contraction("32x300xi8", "300x36xi8", "32x36xi8", PLAIN),
    "pictures": """
        func.func @main(%a: tensor<2x9x10x8xi8>, %b: tensor<3x3x8x32xi8>) -> tensor<2x9x10x32xi32> {
          %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
            window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
            : (tensor<2x9x10x8xi8>, tensor<3x3x8x32xi8>) -> tensor<2x9x10x32xi32>
          return %0 : tensor<2x9x10x32xi32>
        }
    """,
}
TILES: list[Strategy] = [
    ContractionTile(4, 4, 8, 8, 8, 0),
    ContractionTile(2, 4, 2, 4, 7, 0),
    ContractionTile(4, 4, 8, 1, 8, 1),
    ContractionTile(4, 4, 8, 1, 64, 1),
    WorkgroupTile(4, 4, 8, 8, 32),
]


@pytest.mark.sample(2)
@pytest.mark.vulkan
@pytest.mark.parametrize("name", CASES)
def test_products_of_bytes_agree_with_the_definitions(gpu: pumice.Device, name: str) -> None:
    function = function_of(CASES[name])
    region, random = region_of(function, DEVICE), np.random.default_rng(0)
    types = [value.tensor for value in region.block.arguments]
    # Includes the largest and the smallest byte.
    arguments = [random.integers(0, 256, type.shape).astype(np.uint8).view(type.scalar.dtype) for type in types]
    (wanted,) = by_definition(function, arguments)
    taken = [strategy for strategy in TILES if strategy.takes(region)]
    assert len(taken) >= 4
    for strategy in taken:
        kernel = compile_region(region, strategy)
        capabilities, extensions = shader_declarations(kernel.code)
        assert "DotProductInput4x8BitPacked" in capabilities and "SPV_KHR_integer_dot_product" in extensions
        (actual,) = run_kernel(gpu, kernel, region.block, arguments, region.target)
        np.testing.assert_array_equal(actual, wanted)


def test_bytes_that_lie_side_by_side_are_words_as_they_are_loaded() -> None:
    binary = read_binary(compile_region(region_of(CASES["whole words"], DEVICE), TILES[0]).code)
    made_by, factors = dict[int, int](), list[int]()
    for opcode, start, _ in binary:
        if opcode in (Op.Load, Op.CompositeExtract, Op.BitwiseOr, Op.Select):
            made_by[binary.words[start + 2]] = opcode
        if opcode == Op.SDot:
            factors += binary.words[start + 3 : start + 5]
    assert {made_by.get(factor) for factor in factors} <= {Op.Load, Op.CompositeExtract} and factors


def test_the_fastest_instruction_is_chosen() -> None:
    text = contraction("512x512xi8", "512x512xi8", "512x512xi32", PLAIN)
    matrix = MatrixProduct(16, 16, 16, "s8", "s8", "s32", "s32")
    matrices = dataclasses.replace(DEVICE, subgroup_size=32, cooperative_matrices=(matrix,))
    chosen = [type(ranked(region_of(text, target))[0][1]) for target in (matrices, DEVICE)]
    assert chosen == [CooperativeTile, WorkgroupTile]


@pytest.mark.vulkan
def test_modules_ask_for_the_feature(gpu: pumice.Device) -> None:
    text = contraction("64x64xi8", "64x64xi8", "64x64xi32", PLAIN)
    random = np.random.default_rng(1)
    left, right = (random.integers(-128, 128, (64, 64)).astype(np.int8) for _ in range(2))
    target = dataclasses.replace(target_of(gpu.profile), family="default")
    assert target.int8_dot
    module = compile_data(text.encode(), "program.mlir", target).module
    assert b"SPV_KHR_integer_dot_product" in module
    with pumice.Session(gpu) as session:
        session.load(module)
        actual = np.asarray(session.call("module.main", left, right))
    np.testing.assert_array_equal(actual, left.astype(np.int32) @ right.astype(np.int32))
