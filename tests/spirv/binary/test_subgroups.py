"""What size of subgroups kernels count on, told from what glslang makes of GLSL."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice import shaders
from pumice.hal_vulkan import compile_glsl, reflect
from pumice.spirv.binary.subgroups import least_subgroup_size
from pumice.status import PumiceError

SOURCE = """
#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_clustered : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_shuffle_relative : require
layout(local_size_x = SIZE) in;
layout(set = 0, binding = 0) buffer Data { float data[]; };
void main() {
    float x = data[gl_LocalInvocationID.x];
    data[gl_LocalInvocationID.x] = USE;
}
"""


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("use", "size", "expected"),
    [
        ("x", 64, 1),
        ("subgroupAdd(x)", 64, 16),
        ("subgroupMax(x)", 8, 8),
        ("subgroupAdd(x)", 1, 1),
        ("subgroupAdd(x) / float(gl_SubgroupSize)", 64, 1),
        ("subgroupAdd(x) + float(gl_SubgroupID)", 64, 1),
        ("subgroupInclusiveAdd(x)", 64, 1),
        ("subgroupClusteredAdd(x, 4)", 64, 4),
        ("subgroupShuffleXor(x, 1)", 64, 2),
        ("subgroupShuffleXor(subgroupShuffleXor(x, 8), 16)", 64, 32),
        ("subgroupShuffle(x, 7)", 64, 8),
        ("subgroupShuffle(x, uint(data[1]))", 64, 1),
        ("subgroupShuffleUp(x, 4)", 64, 8),
        ("subgroupShuffleDown(x, 32) + subgroupAdd(x)", 64, 64),
        ("subgroupShuffleXor(x, uint(data[1]))", 64, 1),
    ],
)
def test_least_size(use: str, size: int, expected: int) -> None:
    code = compile_glsl(SOURCE, defines={"USE": use, "SIZE": size})
    (entry,) = reflect(code).entry_points
    assert entry.local_size == (size, 1, 1)
    assert least_subgroup_size(code, size) == expected


@pytest.mark.parametrize("name", ["mul", "examples/matmul", "examples/prefix_sum"])
def test_kernels_without_subgroups_need_none(name: str) -> None:
    assert least_subgroup_size(shaders.spirv(name), 64) == 1


@given(st.binary(max_size=80), st.integers(20, 300))
def test_whatever_reflection_accepts_has_a_size(noise: bytes, cut: int) -> None:
    for code in (noise, shaders.spirv("mul")[:cut] + noise):
        with contextlib.suppress(PumiceError):
            reflect(code)
            assert least_subgroup_size(code, 64) >= 1
