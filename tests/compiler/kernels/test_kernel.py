"""Kernels of regions: fusion, shapes, memory, workgroups, loops, and what is refused."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import pytest
from support.compiler.regions import EMULATED, NATIVE, Array, by_definition, function_of, region_of, run_region

import pumice
from pumice.compiler.ir.source import CompileError
from pumice.compiler.ir.types import ScalarType
from pumice.compiler.kernels.scalars.target import NeedsSplitError, Target
from pumice.compiler.strategies.choice import compile_region
from pumice.status import InvalidArgumentError


def values(shape: Sequence[int], type: str = "f32", seed: int = 0) -> Array:
    """Returns small random numbers of a type, including extremes and zeros."""
    random = np.random.default_rng(seed)
    scalar = ScalarType(type)
    whole = random.integers(0 if scalar.kind in ("uint", "bool") else -2, 2, shape)
    if scalar.kind in ("float", "complex"):
        return (whole + random.standard_normal(shape)).astype(scalar.dtype)
    return whole.astype(scalar.dtype)


def agrees(
    gpu: pumice.Device, text: str, arguments: Sequence[Array], target: Target = EMULATED, rtol: float = 1e-6
) -> None:
    function = function_of(text)
    actual, expected = run_region(gpu, function, arguments, target), by_definition(function, arguments)
    for left, other in zip(actual, expected, strict=True):
        assert left.shape == other.shape
        if left.dtype.kind in "fc":
            np.testing.assert_allclose(left, other, rtol, 1e-6)
        else:
            np.testing.assert_array_equal(left, other)


@pytest.mark.vulkan
def test_a_chain_of_operations_is_one_expression(gpu: pumice.Device) -> None:
    text = """
        func.func @main(%a: tensor<5x7xf32>, %b: tensor<7xf32>) -> (tensor<7x5xf32>, tensor<5xf32>) {
          %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<7xf32>) -> tensor<5x7xf32>
          %1 = stablehlo.add %a, %0 : tensor<5x7xf32>
          %2 = stablehlo.exponential %1 : tensor<5x7xf32>
          %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<5x7xf32>) -> tensor<7x5xf32>
          %4 = stablehlo.multiply %3, %3 : tensor<7x5xf32>
          %5 = stablehlo.constant dense<0.0> : tensor<f32>
          %6 = stablehlo.reduce(%4 init: %5) applies stablehlo.add across dimensions = [0]
            : (tensor<7x5xf32>, tensor<f32>) -> tensor<5xf32>
          return %4, %6 : tensor<7x5xf32>, tensor<5xf32>
        }
    """
    agrees(gpu, text, [values((5, 7)), values((7,))], rtol=1e-5)


@pytest.mark.sample(24)
@pytest.mark.vulkan
@pytest.mark.parametrize(
    "shape", [(), (1,), (3,), (5, 1, 3), (2, 3, 4, 5), (1, 2, 1, 3, 2), (2, 1, 3, 2, 2, 3), (0, 4)]
)
@pytest.mark.parametrize("type", ["i1", "i2", "ui4", "i8", "f8E4M3FN", "bf16", "i16", "f32", "i64", "complex<f64>"])
def test_every_size_of_element_at_every_rank(gpu: pumice.Device, shape: tuple[int, ...], type: str) -> None:
    dims = "".join(f"{length}x" for length in shape)
    order = list(reversed(range(len(shape))))
    turned = "".join(f"{shape[axis]}x" for axis in order)
    wide = "f32" if type != "f32" else "i8"
    text = f"""
        func.func @main(%a: tensor<{dims}{type}>, %p: tensor<{dims}i1>, %b: tensor<{dims}{type}>)
            -> (tensor<{turned}{type}>, tensor<{turned}i1>, tensor<{turned}{wide}>) {{
          %0 = stablehlo.select %p, %a, %b : tensor<{dims}i1>, tensor<{dims}{type}>
          %1 = stablehlo.transpose %0, dims = {order} : (tensor<{dims}{type}>) -> tensor<{turned}{type}>
          %2 = stablehlo.reverse %1, dims = {order[:2]} : tensor<{turned}{type}>
          %3 = stablehlo.compare EQ, %1, %2 : (tensor<{turned}{type}>, tensor<{turned}{type}>) -> tensor<{turned}i1>
          %4 = stablehlo.convert %2 : (tensor<{turned}{type}>) -> tensor<{turned}{wide}>
          return %2, %3, %4 : tensor<{turned}{type}>, tensor<{turned}i1>, tensor<{turned}{wide}>
        }}
    """
    agrees(gpu, text, [values(shape, type, 1), values(shape, "i1", 2), values(shape, type, 3)])


@pytest.mark.sample(8)
@pytest.mark.vulkan
@pytest.mark.parametrize("target", [EMULATED, NATIVE], ids=["emulated", "native"])
@pytest.mark.parametrize("type", ["i8", "ui16", "i64", "f16", "f32", "f64", "complex<f32>", "i1"])
def test_elements_move(gpu: pumice.Device, type: str, target: Target) -> None:
    text = f"""
        func.func @main(%a: tensor<5x6x{type}>, %b: tensor<2x6x{type}>, %p: tensor<{type}>, %i: tensor<i64>,
            %j: tensor<ui8>, %n: tensor<4x1xi32>)
            -> (tensor<9x7x{type}>, tensor<7x6x{type}>, tensor<2x3x{type}>, tensor<5x6x{type}>, tensor<4x6x{type}>,
                tensor<3x2x{type}>, tensor<2x15x{type}>) {{
          %0 = stablehlo.pad %a, %p, low = [-1, 2], high = [2, -1], interior = [1, 0]
            : (tensor<5x6x{type}>, tensor<{type}>) -> tensor<9x7x{type}>
          %1 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<5x6x{type}>, tensor<2x6x{type}>) -> tensor<7x6x{type}>
          %2 = stablehlo.dynamic_slice %a, %i, %j, sizes = [2, 3]
            : (tensor<5x6x{type}>, tensor<i64>, tensor<ui8>) -> tensor<2x3x{type}>
          %3 = stablehlo.dynamic_update_slice %a, %b, %i, %j
            : (tensor<5x6x{type}>, tensor<2x6x{type}>, tensor<i64>, tensor<ui8>) -> tensor<5x6x{type}>
          %4 = "stablehlo.gather"(%a, %n) {{dimension_numbers = #stablehlo.gather<offset_dims = [1],
            collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
            slice_sizes = array<i64: 1, 6>}} : (tensor<5x6x{type}>, tensor<4x1xi32>) -> tensor<4x6x{type}>
          %5 = stablehlo.slice %a [0:5:2, 1:6:3] : (tensor<5x6x{type}>) -> tensor<3x2x{type}>
          %6 = stablehlo.reshape %a : (tensor<5x6x{type}>) -> tensor<2x15x{type}>
          return %0, %1, %2, %3, %4, %5, %6 : tensor<9x7x{type}>, tensor<7x6x{type}>, tensor<2x3x{type}>,
            tensor<5x6x{type}>, tensor<4x6x{type}>, tensor<3x2x{type}>, tensor<2x15x{type}>
        }}
    """
    for start in (-3, 1, 2**40):
        agrees(
            gpu,
            text,
            [
                *(values(shape, type, seed) for seed, shape in enumerate([(5, 6), (2, 6), ()])),
                *(np.array(start, np.int64), np.array(200, np.uint8), np.array([[2], [-1], [7], [4]], np.int32)),
            ],
            target,
        )


@pytest.mark.sample(12)
@pytest.mark.vulkan
@pytest.mark.parametrize("source", ["i8", "i16", "f32", "i64", "complex<f32>", "i4"])
@pytest.mark.parametrize("target", ["ui4", "i8", "f16", "f32", "f64", "complex<f64>"])
def test_bits_are_cast(gpu: pumice.Device, source: str, target: str) -> None:
    left, right = ScalarType(source).bits, ScalarType(target).bits
    if left < 8 and right > 64:
        return  # the definition has no such cast
    shape, result = (3, 2), (3, 2)
    if left < right:
        shape = (3, 2, right // left)  # type: ignore[assignment]
    elif left > right:
        result = (3, 2, left // right)  # type: ignore[assignment]
    dims, result_dims = ("x".join(map(str, lengths)) for lengths in (shape, result))
    text = f"""
        func.func @main(%a: tensor<{dims}x{source}>) -> tensor<{result_dims}x{target}> {{
          %0 = stablehlo.bitcast_convert %a : (tensor<{dims}x{source}>) -> tensor<{result_dims}x{target}>
          return %0 : tensor<{result_dims}x{target}>
        }}
    """
    arguments = [values(shape, source)]
    (actual,), (expected,) = run_region(gpu, text, arguments), by_definition(function_of(text), arguments)
    np.testing.assert_array_equal(actual.view(np.uint8), expected.view(np.uint8))


@pytest.mark.sample(3)
@pytest.mark.vulkan
@pytest.mark.parametrize("type", ["i8", "ui64", "f16", "f32", "f64", "complex<f32>", "i1"])
def test_products_and_windows(gpu: pumice.Device, type: str) -> None:
    text = f"""
        func.func @main(%a: tensor<3x4x5x{type}>, %b: tensor<3x5x7x{type}>, %x: tensor<2x9x8x4x{type}>,
            %k: tensor<3x2x2x6x{type}>, %z: tensor<{type}>)
            -> (tensor<3x4x7x{type}>, tensor<2x5x8x6x{type}>, tensor<2x5x4x4x{type}>, tensor<4x{type}>) {{
          %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]
            : (tensor<3x4x5x{type}>, tensor<3x5x7x{type}>) -> tensor<3x4x7x{type}>
          %1 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
            window = {{stride = [2, 1], pad = [[1, 1], [2, 0]], rhs_dilate = [1, 2], reverse = [true, false]}}
            {{batch_group_count = 1 : i64, feature_group_count = 2 : i64}}
            : (tensor<2x9x8x4x{type}>, tensor<3x2x2x6x{type}>) -> tensor<2x5x8x6x{type}>
          %2 = "stablehlo.reduce_window"(%x, %z) ({{
            ^bb0(%p: tensor<{type}>, %q: tensor<{type}>):
              %s = stablehlo.add %p, %q : tensor<{type}>
              stablehlo.return %s : tensor<{type}>
            }}) {{window_dimensions = array<i64: 1, 3, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>,
              padding = dense<[[0, 0], [1, 1], [0, 0], [0, 0]]> : tensor<4x2xi64>}}
            : (tensor<2x9x8x4x{type}>, tensor<{type}>) -> tensor<2x5x4x4x{type}>
          %3 = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [0, 1, 2]
            : (tensor<2x9x8x4x{type}>, tensor<{type}>) -> tensor<4x{type}>
          return %0, %1, %2, %3 : tensor<3x4x7x{type}>, tensor<2x5x8x6x{type}>, tensor<2x5x4x4x{type}>, tensor<4x{type}>
        }}
    """
    shapes = [(3, 4, 5), (3, 5, 7), (2, 9, 8, 4), (3, 2, 2, 6), ()]
    arguments = [values(shape, type, seed) for seed, shape in enumerate(shapes)]
    arguments[-1] = np.zeros_like(arguments[-1])
    agrees(gpu, text, arguments, rtol=1e-2 if type == "f16" else 1e-5)


@pytest.mark.vulkan
@pytest.mark.parametrize("type", ["i8", "f32", "i64"])
def test_reductions_of_several_operands(gpu: pumice.Device, type: str) -> None:
    """Reduces to the greatest element and its position: the body compares and selects."""
    text = f"""
        func.func @main(%a: tensor<6x40x{type}>) -> (tensor<6x{type}>, tensor<6xi32>) {{
          %i = stablehlo.iota dim = 1 : tensor<6x40xi32>
          %z = stablehlo.constant dense<-2> : tensor<{type}>
          %n = stablehlo.constant dense<0> : tensor<i32>
          %0:2 = stablehlo.reduce(%a init: %z), (%i init: %n) across dimensions = [1]
            : (tensor<6x40x{type}>, tensor<6x40xi32>, tensor<{type}>, tensor<i32>) -> (tensor<6x{type}>, tensor<6xi32>)
            reducer(%p: tensor<{type}>, %q: tensor<{type}>) (%x: tensor<i32>, %y: tensor<i32>) {{
              %1 = stablehlo.compare GE, %p, %q : (tensor<{type}>, tensor<{type}>) -> tensor<i1>
              %2 = stablehlo.select %1, %p, %q : tensor<i1>, tensor<{type}>
              %3 = stablehlo.select %1, %x, %y : tensor<i1>, tensor<i32>
              stablehlo.return %2, %3 : tensor<{type}>, tensor<i32>
            }}
          return %0#0, %0#1 : tensor<6x{type}>, tensor<6xi32>
        }}
    """.replace("dense<-2>", "dense<-2.0>" if type == "f32" else "dense<-2>")
    agrees(gpu, text, [values((6, 40), type)])


@pytest.mark.sample(3)
@pytest.mark.vulkan
@pytest.mark.parametrize("type", ["i8", "f32", "i64", "complex<f64>"])
@pytest.mark.parametrize("body", ["add", "multiply"])
def test_updates_are_scattered(gpu: pumice.Device, type: str, body: str) -> None:
    """Scatters with duplicates, and with windows that reach out of the operand."""
    text = f"""
        func.func @main(%a: tensor<2x6x5x{type}>, %i: tensor<2x7x2xi64>, %u: tensor<2x7x2x{type}>)
            -> tensor<2x6x5x{type}> {{
          %0 = "stablehlo.scatter"(%a, %i, %u) ({{
            ^bb0(%p: tensor<{type}>, %q: tensor<{type}>):
              %s = stablehlo.{body} %p, %q : tensor<{type}>
              stablehlo.return %s : tensor<{type}>
            }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1],
              input_batching_dims = [0], scatter_indices_batching_dims = [0],
              scatter_dims_to_operand_dims = [1, 2], index_vector_dim = 2>}}
            : (tensor<2x6x5x{type}>, tensor<2x7x2xi64>, tensor<2x7x2x{type}>) -> tensor<2x6x5x{type}>
          return %0 : tensor<2x6x5x{type}>
        }}
    """
    indices = np.random.default_rng(0).integers(-1, 6, (2, 7, 2))
    indices[0, 0] = (2**40, 1)
    agrees(gpu, text, [values((2, 6, 5), type), indices, values((2, 7, 2), type, 1)])


@pytest.mark.vulkan
@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("padding", [0, 1])
def test_windows_select_where_to_scatter(gpu: pumice.Device, stride: int, padding: int) -> None:
    count = [(length + 2 * padding - 3) // stride + 1 for length in (7, 5)]
    source_dims = "x".join(map(str, count))
    text = f"""
        func.func @main(%a: tensor<7x5xf32>, %s: tensor<{source_dims}xf32>, %z: tensor<f32>) -> tensor<7x5xf32> {{
          %0 = "stablehlo.select_and_scatter"(%a, %s, %z) ({{
            ^bb0(%p: tensor<f32>, %q: tensor<f32>):
              %1 = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
              stablehlo.return %1 : tensor<i1>
            }}, {{
            ^bb0(%p: tensor<f32>, %q: tensor<f32>):
              %1 = stablehlo.add %p, %q : tensor<f32>
              stablehlo.return %1 : tensor<f32>
            }}) {{window_dimensions = array<i64: 3, 3>, window_strides = array<i64: {stride}, {stride}>,
              padding = dense<{padding}> : tensor<2x2xi64>}}
            : (tensor<7x5xf32>, tensor<{source_dims}xf32>, tensor<f32>) -> tensor<7x5xf32>
          return %0 : tensor<7x5xf32>
        }}
    """
    agrees(gpu, text, [values((7, 5)), values(count, seed=1), np.zeros((), np.float32)])


@pytest.mark.vulkan
def test_bodies_may_use_what_is_around_them(gpu: pumice.Device) -> None:
    text = """
        func.func @main(%a: tensor<3x4xf32>, %b: tensor<3x4xf32>, %c: tensor<f32>) -> (tensor<3x4xf32>, tensor<3xf32>) {
          %k = stablehlo.multiply %c, %c : tensor<f32>
          %0 = "stablehlo.map"(%a, %b) ({
            ^bb0(%p: tensor<f32>, %q: tensor<f32>):
              %1 = stablehlo.multiply %p, %k : tensor<f32>
              %2 = stablehlo.maximum %1, %q : tensor<f32>
              stablehlo.return %2 : tensor<f32>
            }) {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
          %3 = stablehlo.reduce(%0 init: %c) across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
            reducer(%p: tensor<f32>, %q: tensor<f32>) {
              %4 = stablehlo.multiply %q, %k : tensor<f32>
              %5 = stablehlo.add %p, %4 : tensor<f32>
              stablehlo.return %5 : tensor<f32>
            }
          return %0, %3 : tensor<3x4xf32>, tensor<3xf32>
        }
    """
    agrees(gpu, text, [values((3, 4)), values((3, 4), seed=1), np.array(1.5, np.float32)])


@pytest.mark.vulkan
def test_constants_lie_in_the_kernel(gpu: pumice.Device) -> None:
    text = """
        func.func @main(%i: tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi8>, tensor<3xf64>) {
          %0 = stablehlo.constant dense<[3, 1, 4, 1, 5, -9, 2, 6, 5]> : tensor<9xi32>
          %1 = stablehlo.add %i, %0 : tensor<9xi32>
          %2 = stablehlo.constant dense<[3, 1, 4, 1, 5, -9, 2, 6, 5]> : tensor<9xi8>
          %3 = stablehlo.constant dense<[1.5, -0.0, 0x7FF0000000000000]> : tensor<3xf64>
          return %1, %2, %3 : tensor<9xi32>, tensor<9xi8>, tensor<3xf64>
        }
    """
    agrees(gpu, text, [values((9,), "i32")])


@pytest.mark.vulkan
@pytest.mark.slow
def test_more_workgroups_than_a_dimension_has(gpu: pumice.Device) -> None:
    count = 65_535 * 64 + 321
    text = f"""
        func.func @main(%a: tensor<{count}xi32>) -> tensor<{count}xi32> {{
          %0 = stablehlo.iota dim = 0 : tensor<{count}xi32>
          %1 = stablehlo.add %a, %0 : tensor<{count}xi32>
          return %1 : tensor<{count}xi32>
        }}
    """
    agrees(gpu, text, [np.arange(count, dtype=np.int32)])


def test_groups_beyond_two_dimensions() -> None:
    """Uses a small limit in place of the real one."""
    text = "func.func @main(%a: tensor<1000xi32>) -> tensor<1000xi32> { return %a : tensor<1000xi32> }"
    target = dataclasses.replace(EMULATED, max_groups=3, workgroup_size=32)
    kernel = compile_region(region_of(text, target))
    assert max(kernel.workgroup_count) <= 4 and math.prod(kernel.workgroup_count) * 32 >= 1000


@pytest.mark.vulkan
def test_groups_in_three_dimensions(gpu: pumice.Device) -> None:
    text = "func.func @main(%a: tensor<1000xi8>) -> tensor<1000xi8> { return %a : tensor<1000xi8> }"
    target = dataclasses.replace(EMULATED, max_groups=3, workgroup_size=16)
    kernel = compile_region(region_of(text, target))
    assert kernel.workgroup_count == (3, 3, 2)
    agrees(gpu, text, [values((1000,), "i8")], target)


def test_nothing_to_compute_takes_no_workgroup() -> None:
    text = "func.func @main(%a: tensor<0x4xf32>) -> tensor<0x4xf32> { return %a : tensor<0x4xf32> }"
    kernel = compile_region(region_of(text))
    assert 0 in kernel.workgroup_count
    assert [binding.size for binding in kernel.bindings] == [4, 4]


def test_inputs_that_are_not_needed_are_not_read() -> None:
    text = """
        func.func @main(%a: tensor<4xf32>, %b: tensor<3xf32>) -> tensor<4xf32> {
          %0 = stablehlo.negate %a : tensor<4xf32>
          return %0 : tensor<4xf32>
        }
    """
    kernel = compile_region(region_of(text))
    assert [(binding.is_read, binding.is_written) for binding in kernel.bindings] == [
        *((True, False), (False, False), (False, True))
    ]


@pytest.mark.slow
def test_long_chains_need_no_recursion() -> None:
    lines = ["%0 = stablehlo.add %a, %a : tensor<4xf32>"]
    lines += [f"%{i} = stablehlo.add %{i - 1}, %{i - 1} : tensor<4xf32>" for i in range(1, 3000)]
    body = "\n".join(lines)
    text = f"func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{\n{body}\nreturn %2999 : tensor<4xf32>\n}}"
    assert len(compile_region(region_of(text)).code) < 120_000


def _padded(depth: int) -> str:
    lines = [
        f"%{i + 1} = stablehlo.pad %{i}, %z, low = [1], high = [-1], interior = [0] "
        ": (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>"
        for i in range(depth)
    ]
    body = "\n".join(["%0 = stablehlo.negate %a : tensor<4xf32>", *lines])
    return f"""
        func.func @main(%a: tensor<4xf32>, %z: tensor<f32>) -> tensor<4xf32> {{
          {body}
          return %{depth} : tensor<4xf32>
        }}
    """


def test_branches_in_branches_are_bounded() -> None:
    compile_region(region_of(_padded(49)))
    with pytest.raises(NeedsSplitError, match="stablehlo.pad: nested more than 50 levels deep"):
        compile_region(region_of(_padded(80)))


@pytest.mark.slow
def test_the_size_of_a_kernel_is_bounded() -> None:
    lines = [f"%{i + 1} = stablehlo.tan %{i} : tensor<4xbf16>" for i in range(199)]
    body = "\n".join(["%0 = stablehlo.negate %a : tensor<4xbf16>", *lines])
    text = f"func.func @main(%a: tensor<4xbf16>) -> tensor<4xbf16> {{\n{body}\nreturn %199 : tensor<4xbf16>\n}}"
    with pytest.raises(NeedsSplitError, match="the kernel has more than 262144 words"):
        compile_region(region_of(text))


def test_targets_are_those_of_features() -> None:
    assert Target.of_features(["shaderInt64", "shaderFloat16"]) == Target(float64=False, int64=True)


def test_doubles_are_refused_by_name_where_the_device_has_none() -> None:
    text = "func.func @main(%a: tensor<4xf64>) -> tensor<4xf64> { return %a : tensor<4xf64> }"
    with pytest.raises(CompileError, match="tensor<4xf64> needs a device with shaderFloat64"):
        compile_region(region_of(text, Target(float64=False)))


def test_operations_without_code_are_refused() -> None:
    text = """
        func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
          %0 = "stablehlo.cholesky"(%a) : (tensor<4xf32>) -> tensor<4xf32>
          return %0 : tensor<4xf32>
        }
    """
    with pytest.raises(InvalidArgumentError, match="stablehlo.cholesky: no code is generated for it"):
        compile_region(region_of(text))


@pytest.mark.parametrize("type", ["tensor<?xf32>", "!stablehlo.token", "tensor<4xi33>"])
def test_only_tensors_of_known_shape_are_compiled(type: str) -> None:
    text = f"func.func @main(%a: {type}) -> {type} {{ return %a : {type} }}"
    with pytest.raises(CompileError, match="expected tensors of known shape|are not supported"):
        compile_region(region_of(text))


def _sum(length: int) -> str:
    return f"""
        func.func @main(%a: tensor<3x{length}xf32>) -> tensor<3xf32> {{
          %z = stablehlo.constant dense<0.0> : tensor<f32>
          %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1]
            : (tensor<3x{length}xf32>, tensor<f32>) -> tensor<3xf32>
          return %0 : tensor<3xf32>
        }}
    """


@pytest.mark.vulkan
@pytest.mark.parametrize("length", [1, 7, 8, 9, 17, 1000, 99_991])
def test_loops_of_any_length(gpu: pumice.Device, length: int) -> None:
    arguments = [np.random.default_rng(0).integers(-3, 3, (3, length)).astype(np.float32)]
    agrees(gpu, _sum(length), arguments)


@pytest.mark.sample(2)
@pytest.mark.vulkan
@pytest.mark.parametrize("type", ["f32", "bf16", "f16", "complex<f32>"])
def test_long_sums_keep_their_digits(gpu: pumice.Device, type: str) -> None:
    """Sums ones, which in order would add up to 256 in bf16."""
    zero = "(0.0, 0.0)" if type.startswith("complex") else "0.0"
    text = _sum(20_000).replace("f32", type).replace("dense<0.0>", f"dense<{zero}>")
    random = np.random.default_rng(0).uniform(0, 1, (3, 20_000))
    arguments = [random.astype(ScalarType(type).dtype)]
    (actual,) = run_region(gpu, text, arguments)
    exact = np.sum(arguments[0].astype(np.complex128), 1)
    assert np.max(np.abs(actual.astype(np.complex128) - exact) / np.abs(exact)) < {"bf16": 2**-8, "f16": 2**-11}.get(
        type, 2e-6
    )


def test_loops_that_are_too_long_are_refused() -> None:
    region = region_of(_sum(1_000_003))
    with pytest.raises(
        NeedsSplitError, match="^INVALID_ARGUMENT: stablehlo.reduce: an invocation would run 124992 it"
    ) as caught:
        compile_region(region)
    assert caught.value.operation.name == "stablehlo.reduce"


@pytest.mark.parametrize(
    ("type", "message"),
    [
        ("2147483648xi8", r"2\*\*31 elements or words"),
        ("65536x32768xi1", r"2\*\*31 elements or words"),
        ("1073741824xf64", r"2\*\*31 elements or words"),
        ("1073741824xf32", r"2\*\*32 bytes or more, which no device binds"),
    ],
)
def test_what_no_index_and_no_binding_reaches_is_refused(type: str, message: str) -> None:
    text = f"""func.func @main(%a: tensor<{type}>) -> tensor<{type}> {{
      %0 = stablehlo.add %a, %a : tensor<{type}>
      return %0 : tensor<{type}>
    }}"""
    with pytest.raises(CompileError, match=message):
        compile_region(region_of(text))


@pytest.mark.vulkan
def test_of_an_empty_constant_nothing_is_taken(gpu: pumice.Device) -> None:
    text = """
        func.func @main(%a: tensor<3x2xf32>) -> tensor<3x2xf32> {
          %0 = stablehlo.constant dense<> : tensor<3x0xf32>
          %1 = stablehlo.concatenate %a, %0, dim = 1 : (tensor<3x2xf32>, tensor<3x0xf32>) -> tensor<3x2xf32>
          return %1 : tensor<3x2xf32>
        }
    """
    agrees(gpu, text, [values((3, 2))])
