"""Element-wise chains by vectors of a subgroup, compared with the definitions, and their executables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.compiler.regions import arguments_of, by_definition, called, function_of, region_of, shader_declarations
from support.profiles import recorded_profile

import pumice
from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.strategies.choice import compile_region
from pumice.compiler.strategies.rows import subgroup_vectors
from pumice.compiler.strategies.rows.subgroup_rows import SubgroupRows
from pumice.compiler.strategies.rows.subgroup_vectors import SubgroupVectors
from pumice.spirv.checks.validation import ensure_valid

CPU = target_of(recorded_profile("lavapipe_mesa_22_3_6"))

CHAIN = """%0 = stablehlo.multiply %a, %b : tensor<SHAPE>
%r = stablehlo.maximum %0, %b : tensor<SHAPE>"""

ROWS = """%0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<16xf32>) -> tensor<SHAPE>
%1 = stablehlo.broadcast_in_dim %c, dims = [0] : (tensor<64xf32>) -> tensor<SHAPE>
%2 = stablehlo.add %a, %0 : tensor<SHAPE>
%3 = stablehlo.multiply %2, %1 : tensor<SHAPE>
%r = stablehlo.exponential %3 : tensor<SHAPE>"""

PROGRAMS = {
    "whole workgroups": ("%a: tensor<SHAPE>, %b: tensor<SHAPE>", "4x512xf32", CHAIN),
    "a workgroup that begins earlier": ("%a: tensor<SHAPE>, %b: tensor<SHAPE>", "2x15x88xf32", CHAIN),
    "integers": ("%a: tensor<SHAPE>, %b: tensor<SHAPE>", "1096xi32", CHAIN),
    "vectors and numbers of rows": ("%a: tensor<SHAPE>, %b: tensor<16xf32>, %c: tensor<64xf32>", "64x16xf32", ROWS),
}


def text_of(name: str) -> str:
    arguments, shape, body = PROGRAMS[name]
    text = f"func.func @main({arguments}) -> tensor<SHAPE> {{\n{body}\nreturn %r : tensor<SHAPE>\n}}"
    return text.replace("SHAPE", shape)


@pytest.mark.sample(5)
@pytest.mark.parametrize("vectors, subgroups", [(1, 1), (4, 4), (2, 16)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_the_definitions(
    gpu: pumice.Device, monkeypatch: pytest.MonkeyPatch, name: str, vectors: int, subgroups: int
) -> None:
    chosen, text = SubgroupVectors(vectors, subgroups), text_of(name)
    monkeypatch.setattr(SubgroupVectors, "candidates", classmethod(lambda cls, region: iter([(0.0, chosen)])))
    assert chosen.takes(region_of(text, CPU))
    arguments = arguments_of(function_of(text))
    (expected,) = by_definition(function_of(text), arguments)
    # Each call has a result of its own, whose address the kernel must receive.
    (actual,) = called(gpu, text, *arguments, times=3)
    # Devices may flush subnormal numbers.
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=float(np.finfo(np.float32).tiny))


def test_all_loads_are_by_address() -> None:
    text = text_of("vectors and numbers of rows")
    kernel = compile_region(region_of(text, CPU), SubgroupVectors(2, 4))
    ensure_valid(kernel.code, "vulkan1.2")
    assert kernel.pushes_addresses
    assert "PhysicalStorageBufferAddresses" in shader_declarations(kernel.code)[0]


@pytest.mark.parametrize(
    "why, text",
    {
        "a transpose": """func.func @main(%a: tensor<512x512xf32>) -> tensor<512x512xf32> {
            %r = stablehlo.transpose %a, dims = [1, 0] : (tensor<512x512xf32>) -> tensor<512x512xf32>
            return %r : tensor<512x512xf32>
        }""",
        "halves": """func.func @main(%a: tensor<512x512xf16>) -> tensor<512x512xf16> {
            %r = stablehlo.negate %a : tensor<512x512xf16>
            return %r : tensor<512x512xf16>
        }""",
        "rows that are no vectors": """
        func.func @main(%a: tensor<512x516xf32>, %b: tensor<516xf32>) -> tensor<512x516xf32> {
            %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<516xf32>) -> tensor<512x516xf32>
            %r = stablehlo.add %a, %0 : tensor<512x516xf32>
            return %r : tensor<512x516xf32>
        }""",
    }.items(),
)
def test_it_leaves_to_others_what_has_no_vectors(why: str, text: str) -> None:
    assert not SubgroupVectors(4, 4).takes(region_of(text, CPU)), why


def test_a_result_in_the_place_of_an_argument_is_written_once() -> None:
    names = "whole workgroups", "a workgroup that begins earlier"
    whole, part = (region_of(text_of(name), CPU) for name in names)
    assert SubgroupVectors(4, 4).takes(replace(whole, in_place=(0,)))
    assert not SubgroupVectors(4, 4).takes(replace(part, in_place=(0,)))


def test_small_results_are_not_worth_it() -> None:
    assert not list(SubgroupVectors.candidates(region_of(text_of("whole workgroups"), CPU)))
    assert subgroup_vectors.MIN_ELEMENTS > 2048


SUM = """func.func @main(%a: tensor<ROWSx128xf32>) -> tensor<ROWSxf32> {
  %0 = stablehlo.constant dense<2.0> : tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.add across dimensions = [1]
    : (tensor<ROWSx128xf32>, tensor<f32>) -> tensor<ROWSxf32>
  return %1 : tensor<ROWSxf32>
}"""

CENTRED = """func.func @main(%a: tensor<6x2x2x64xf32>, %b: tensor<2x64xf32>, %c: tensor<6x2xf32>)
    -> tensor<6x2x2x64xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.maximum across dimensions = [2, 3]
    : (tensor<6x2x2x64xf32>, tensor<f32>) -> tensor<6x2xf32>
  %2 = stablehlo.multiply %1, %c : tensor<6x2xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<6x2xf32>) -> tensor<6x2x2x64xf32>
  %4 = stablehlo.subtract %a, %3 : tensor<6x2x2x64xf32>
  %5 = stablehlo.reduce(%4 init: %0) applies stablehlo.add across dimensions = [2, 3]
    : (tensor<6x2x2x64xf32>, tensor<f32>) -> tensor<6x2xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<6x2xf32>) -> tensor<6x2x2x64xf32>
  %7 = stablehlo.broadcast_in_dim %b, dims = [2, 3] : (tensor<2x64xf32>) -> tensor<6x2x2x64xf32>
  %8 = stablehlo.multiply %7, %6 : tensor<6x2x2x64xf32>
  %9 = stablehlo.add %8, %4 : tensor<6x2x2x64xf32>
  return %9 : tensor<6x2x2x64xf32>
}"""

REDUCTIONS = {"sums": SUM.replace("ROWS", "37"), "two reductions, and elements of rows": CENTRED}


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("subgroups, run", [(1, 4), (4, 1), (2, 2), (16, 1)])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_rows_are_those_of_the_definitions(
    gpu: pumice.Device, monkeypatch: pytest.MonkeyPatch, name: str, subgroups: int, run: int
) -> None:
    chosen, text = SubgroupRows(subgroups, run), REDUCTIONS[name]
    monkeypatch.setattr(SubgroupRows, "candidates", classmethod(lambda cls, region: iter([(0.0, chosen)])))
    assert chosen.takes(region_of(text, CPU))
    arguments = arguments_of(function_of(text))
    (expected,) = by_definition(function_of(text), arguments)
    np.testing.assert_array_equal(called(gpu, text, *arguments, times=2)[0], expected)


@pytest.mark.parametrize(
    "why, text, parameters",
    [
        ("rows of 128 are no 32 vectors", SUM.replace("ROWS", "8"), SubgroupRows(8, 4)),
        ("subgroups are a power of two", SUM.replace("ROWS", "8"), SubgroupRows(3, 1)),
        ("more rows than groups, which do not come out even", SUM.replace("ROWS", "65537"), SubgroupRows(1, 4)),
        ("halves", SUM.replace("ROWS", "8").replace("f32", "f16"), SubgroupRows(1, 4)),
    ],
)
def test_rows_that_have_no_vectors_are_left_to_others(why: str, text: str, parameters: SubgroupRows) -> None:
    assert not parameters.takes(region_of(text, CPU)), why


def test_long_rows_have_more_subgroups() -> None:
    def first(length: int) -> SubgroupRows:
        text = SUM.replace("ROWS", "2048").replace("128", str(length))
        return next(iter(SubgroupRows.candidates(region_of(text, CPU))))[1]

    assert (first(128), first(1024), first(4096)) == (SubgroupRows(1, 4), SubgroupRows(4, 4), SubgroupRows(16, 4))
