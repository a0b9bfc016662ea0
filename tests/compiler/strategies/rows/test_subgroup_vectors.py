"""Element-wise chains by vectors of a subgroup, compared with the definitions, and their executables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.profiles import recorded_profile
from support.regions import by_definition, function_of, shader_declarations

import pumice
from pumice.compiler.kernels.region import KernelRegion
from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.pipeline import compile_data
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


def region_of(text: str) -> KernelRegion:
    return KernelRegion(function_of(text).regions[0].block, "main", CPU)


@pytest.mark.sample(5)
@pytest.mark.parametrize("vectors, subgroups", [(1, 1), (4, 4), (2, 16)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_the_definitions(
    gpu: pumice.Device,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    vectors: int,
    subgroups: int,
) -> None:
    chosen = SubgroupVectors(vectors, subgroups)
    monkeypatch.setattr(SubgroupVectors, "candidates", classmethod(lambda cls, region: iter([(0.0, chosen)])))
    text = text_of(name)
    assert chosen.takes(region_of(text))
    rng = np.random.default_rng(3)
    arguments = [
        rng.integers(-9, 9, value.tensor.lengths).astype(np.int32 if name == "integers" else np.float32)
        for value in function_of(text).regions[0].block.arguments
    ]
    (expected,) = by_definition(function_of(text), arguments)
    path = tmp_path / "program.vmfb"
    path.write_bytes(compile_data(text.encode(), "x.mlir", target_of(gpu.profile)).module)
    with pumice.Session(gpu) as session:
        main = session.lookup(f"{session.load(path).name}.main")
        for _ in range(3):  # each with a result of its own, whose address the kernel must receive
            actual = main(*map(gpu.asarray, arguments)).numpy()
            np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_all_loads_are_by_address() -> None:
    text = text_of("vectors and numbers of rows")
    kernel = compile_region(KernelRegion(region_of(text).block, "main", CPU), SubgroupVectors(2, 4))
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
    assert not SubgroupVectors(4, 4).takes(region_of(text)), why


def test_a_result_in_the_place_of_an_argument_is_written_once() -> None:
    whole, part = region_of(text_of("whole workgroups")), region_of(text_of("a workgroup that begins earlier"))
    assert SubgroupVectors(4, 4).takes(replace(whole, in_place=(0,)))
    assert not SubgroupVectors(4, 4).takes(replace(part, in_place=(0,)))


def test_small_results_are_not_worth_it() -> None:
    assert not list(SubgroupVectors.candidates(region_of(text_of("whole workgroups"))))
    assert subgroup_vectors.MIN_ELEMENTS > 2048
