"""The tiles of contractions on recorded devices; spirv-val checks each kernel."""

from __future__ import annotations

import math

import pytest
from support.compiler.regions import region_of
from support.profiles import PROFILE_NAMES, recorded_profile

from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.strategies.choice import candidates_of, compile_region
from pumice.compiler.strategies.contraction.contraction_tile import ContractionTile
from pumice.compiler.strategies.contraction.workgroup_tile import WorkgroupTile
from pumice.compiler.strategies.movement.elements import Elements

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
    ],
)
def test_shared_memory_is_used_where_it_pays(name: str, kind: type) -> None:
    (chosen, *_) = candidates_of(region_of(PROGRAMS["matmul"], target_of(recorded_profile(name))))
    assert isinstance(chosen, kind)


def test_any_device_runs_what_is_made_for_none() -> None:
    (chosen, *_) = candidates_of(region_of(PROGRAMS["matmul"], Target()))
    assert isinstance(chosen, ContractionTile) and not chosen.shuffled
