"""Transposes by tiles in registers and through shared memory, compared with the definitions in NumPy."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from support.compiler.regions import EMULATED, Array, by_definition, function, function_of, region_of, run_region
from support.profiles import recorded_profiles

import pumice
from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.kernels.strategy import Strategy
from pumice.compiler.strategies.choice import candidates_of, compile_region, ranked
from pumice.compiler.strategies.movement.shared_transpose import SharedTranspose
from pumice.compiler.strategies.movement.transpose_tile import TransposeTile

NATIVE_LONG = replace(EMULATED, int64=True)


def transposed(shape: tuple[int, ...], order: tuple[int, ...], element: str) -> str:
    """Returns a transpose alone."""
    source = "".join(f"{length}x" for length in shape) + element
    result = "".join(f"{shape[axis]}x" for axis in order) + element
    line = f"%r = stablehlo.transpose %a, dims = {list(order)} : (tensor<{source}>) -> tensor<{result}>"
    return function(f"%a: tensor<{source}>", result, line)


CASES = {
    **{
        f"{shape} {order} {element}": transposed(shape, order, element)
        for shape, order, element in (
            ((32, 48), (1, 0), "f32"),
            ((41, 37), (1, 0), "f32"),
            ((36, 52), (1, 0), "f16"),
            ((44, 35), (1, 0), "bf16"),
            ((36, 40), (1, 0), "i8"),
            ((52, 33), (1, 0), "i1"),
            ((33, 34), (1, 0), "i32"),
            ((33, 34), (1, 0), "i64"),
            ((35, 36), (1, 0), "f64"),
            ((20, 36), (1, 0), "complex<f32>"),
            ((3, 33, 36), (0, 2, 1), "f32"),
            ((2, 20, 18, 17), (0, 2, 3, 1), "f32"),
            ((2, 5, 8, 36), (0, 3, 1, 2), "f16"),
            ((18, 1, 20, 3), (2, 3, 1, 0), "f32"),
            ((5, 18, 6, 20), (3, 0, 2, 1), "i32"),
        )
    },
    "before and after": function(
        "%a: tensor<36x40xf32>, %b: tensor<36xf32>, %c: tensor<40x36xf32>",
        "40x36xf32",
        """%0 = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<36xf32>) -> tensor<36x40xf32>
        %1 = stablehlo.multiply %a, %0 : tensor<36x40xf32>
        %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<36x40xf32>) -> tensor<40x36xf32>
        %3 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<36xf32>) -> tensor<40x36xf32>
        %4 = stablehlo.add %2, %3 : tensor<40x36xf32>
        %r = stablehlo.maximum %4, %c : tensor<40x36xf32>""",
    ),
    "two of them": function(
        "%a: tensor<36x41xf16>, %b: tensor<36x41xi32>",
        "41x36xf16",
        """%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<36x41xf16>) -> tensor<41x36xf16>
        %1 = stablehlo.transpose %b, dims = [1, 0] : (tensor<36x41xi32>) -> tensor<41x36xi32>
        %2 = stablehlo.convert %1 : (tensor<41x36xi32>) -> tensor<41x36xf16>
        %r = stablehlo.subtract %0, %2 : tensor<41x36xf16>""",
    ),
    "reshaped": function(
        "%a: tensor<3x34x20xf32>",
        "20x102xf32",
        """%0 = stablehlo.transpose %a, dims = [2, 0, 1] : (tensor<3x34x20xf32>) -> tensor<20x3x34xf32>
        %1 = stablehlo.negate %0 : tensor<20x3x34xf32>
        %r = stablehlo.reshape %1 : (tensor<20x3x34xf32>) -> tensor<20x102xf32>""",
    ),
    "narrower": function(
        "%a: tensor<36x40xf32>",
        "40x36xi8",
        """%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<36x40xf32>) -> tensor<40x36xf32>
        %r = stablehlo.convert %0 : (tensor<40x36xf32>) -> tensor<40x36xi8>""",
    ),
    "a slice and its transpose": function(
        "%a: tensor<40x50xf32>, %b: tensor<33x32xf32>",
        "33x32xf32",
        """%0 = stablehlo.slice %a [3:35, 5:38] : (tensor<40x50xf32>) -> tensor<32x33xf32>
        %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<32x33xf32>) -> tensor<33x32xf32>
        %r = stablehlo.add %1, %b : tensor<33x32xf32>""",
    ),
}
STRATEGIES = (
    TransposeTile(8, 8, 2, 4),
    TransposeTile(4, 12, 1, 8),
    SharedTranspose(16, 16, 32, 4),
    SharedTranspose(16, 8, 32, 1),
)


def arguments_of(text: str) -> list[Array]:
    """Returns values of the arguments: all different if the type has enough."""
    random, arrays = np.random.default_rng(0), []
    for value in function_of(text).regions[0].block.arguments:
        shape, dtype = [int(str(length)) for length in value.tensor.lengths], value.tensor.scalar.dtype
        if dtype.kind in "iu":
            arrays.append(random.integers(-100, 100, shape).astype(dtype))
        elif dtype.kind == "b":
            arrays.append(random.integers(0, 2, shape).astype(dtype))
        elif dtype.kind == "c":
            arrays.append((random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype))
        else:
            arrays.append((20 * random.standard_normal(shape)).astype(dtype))
    return arrays


def taken(text: str, target: Target) -> list[Strategy]:
    """Returns the strategies for transposes that take a region."""
    region = region_of(text, target)
    return [strategy for strategy in STRATEGIES if strategy.takes(region)]


@pytest.mark.slow
@pytest.mark.sample(5)
@pytest.mark.parametrize("name", CASES)
def test_transposes_are_as_defined(gpu: pumice.Device, name: str) -> None:
    arguments = arguments_of(CASES[name])
    (expected,) = by_definition(function_of(CASES[name]), arguments)
    for target in (EMULATED, NATIVE_LONG)[: 1 + ("i64" in name)]:
        strategies = taken(CASES[name], target)
        assert {type(strategy) for strategy in strategies} == {TransposeTile, SharedTranspose}
        for strategy in strategies:
            (actual,) = run_region(gpu, CASES[name], arguments, target, strategy)
            assert actual.tobytes() == expected.tobytes(), strategy


@pytest.mark.slow
def test_what_a_tile_reads_is_left_alone_by_its_neighbours(gpu: pumice.Device) -> None:
    # The last tiles begin earlier, where others write: the sum's buffer is that of an operand.
    text = CASES["before and after"].replace("maximum", "add")
    arguments = arguments_of(text)
    (expected,) = by_definition(function_of(text), arguments)
    for strategy in STRATEGIES:
        kernel = compile_region(replace(region_of(text), in_place=[2]), strategy)
        words = arguments[2].view(np.uint32).reshape(-1).copy()
        with gpu.load_kernel(kernel.code) as shader:
            shared = gpu.asarray(words)
            inputs = [gpu.asarray(argument.view(np.uint32).reshape(-1)) for argument in arguments[:2]]
            shader(*inputs, shared, shared, groups=kernel.workgroup_count)
            actual = shared.numpy().view(np.float32).reshape(expected.shape)
        np.testing.assert_array_equal(actual, expected)


def test_other_moves_are_not_taken() -> None:
    kept = transposed((20, 24, 32), (1, 0, 2), "f32")
    ones = transposed((20, 1, 32), (1, 0, 2), "f32")
    small = transposed((64, 3), (1, 0), "f32")
    halves = transposed((33, 36), (1, 0), "f16")
    empty = transposed((0, 32), (1, 0), "f32")
    for text in (kept, ones, small, halves, empty):
        assert not taken(text, EMULATED)


def test_families_of_gpus_go_through_shared_memory() -> None:
    texts = [transposed((512, 512), (1, 0), element) for element in ("f32", "f16", "i8", "i64")]
    for (name, profile), text in itertools.product(recorded_profiles().items(), texts):
        target = target_of(profile)
        region = region_of(text, target)
        (_, best), *_ = ranked(region)
        assert isinstance(best, TransposeTile if target.family in ("cpu", "arm") else SharedTranspose), name
        assert any(isinstance(item, SharedTranspose) for item in candidates_of(region))


def test_tiles_of_short_sides_are_as_short() -> None:
    target = replace(EMULATED, family="cpu", max_workgroup_invocations=1024)
    for shape in ((1 << 16, 3), (3, 1 << 16), (2, 1 << 16)):
        region = region_of(transposed(shape, (1, 0), "f32"), target)
        (_, best), *_ = ranked(region)
        assert isinstance(best, TransposeTile) and best.takes(region)
        assert sorted((best.rows, best.columns))[0] == min(shape) and best.down * best.across >= 64
