"""Rows by vectors of a subgroup, compared with the definitions."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.regions import arguments_of, by_definition, called, function_of, region_of
from support.profiles import recorded_profile

import pumice
from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.strategies.rows.subgroup_rows import SubgroupRows

CPU = target_of(recorded_profile("lavapipe_mesa_22_3_6"))

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

PROGRAMS = {"sums": SUM.replace("ROWS", "37"), "two reductions, and elements of rows": CENTRED}


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("subgroups, run", [(1, 4), (4, 1), (2, 2), (16, 1)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_the_definitions(
    gpu: pumice.Device, monkeypatch: pytest.MonkeyPatch, name: str, subgroups: int, run: int
) -> None:
    chosen, text = SubgroupRows(subgroups, run), PROGRAMS[name]
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
def test_it_leaves_to_others_what_has_no_vectors(why: str, text: str, parameters: SubgroupRows) -> None:
    assert not parameters.takes(region_of(text, CPU)), why


def test_long_rows_have_more_subgroups() -> None:
    def first(length: int) -> SubgroupRows:
        text = SUM.replace("ROWS", "2048").replace("128", str(length))
        return next(iter(SubgroupRows.candidates(region_of(text, CPU))))[1]

    assert (first(128), first(1024), first(4096)) == (SubgroupRows(1, 4), SubgroupRows(4, 4), SubgroupRows(16, 4))
