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
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


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
