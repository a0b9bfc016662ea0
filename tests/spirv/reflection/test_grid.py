"""Kernels in parts do what they do whole: judged by spirv-val, and by the device itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice import shaders
from pumice.hal_vulkan import Device, compile_glsl, reflect
from pumice.spirv.binary.grammar import Op
from pumice.spirv.binary.words import pack, read_binary
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.reflection.grid import grid_parts, part_of_grid
from pumice.status import InvalidArgumentError, UnimplementedError

LOCAL = (2, 1, 2)
HEAD = """
#version 450
layout(local_size_x = 2, local_size_y = 1, local_size_z = 2) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };
"""
# Each invocation writes its numbers where they say.
WHOLE = """
void main() {
    uvec3 global = gl_GlobalInvocationID, group = gl_WorkGroupID, groups = gl_NumWorkGroups;
    uvec3 size = groups * gl_WorkGroupSize;
    uint at = 8 * (global.x + size.x * (global.y + size.y * global.z));
    data[at] = global.x; data[at + 1] = global.y; data[at + 2] = global.z;
    data[at + 3] = group.x; data[at + 4] = group.y; data[at + 5] = group.z;
    data[at + 6] = gl_LocalInvocationIndex; data[at + 7] = groups.x + 16 * groups.y + 256 * groups.z;
}
"""
COMPONENTS = """
void main() {
    uint width = gl_NumWorkGroups.x * gl_WorkGroupSize.x, height = gl_NumWorkGroups.y * gl_WorkGroupSize.y;
    uint at = 8 * (gl_GlobalInvocationID.x + width * (gl_GlobalInvocationID.y + height * gl_GlobalInvocationID.z));
    data[at] = gl_GlobalInvocationID.x; data[at + 1] = gl_GlobalInvocationID.y; data[at + 2] = gl_GlobalInvocationID.z;
    data[at + 3] = gl_WorkGroupID.x; data[at + 4] = gl_WorkGroupID.y; data[at + 5] = gl_WorkGroupID.z;
    data[at + 6] = gl_LocalInvocationIndex;
    data[at + 7] = gl_NumWorkGroups.x + 16 * gl_NumWorkGroups.y + 256 * gl_NumWorkGroups.z;
}
"""
INDEXED = "void main() { data[0] = gl_WorkGroupID[data[1]]; }"

small = st.tuples(*[st.integers(1, 9)] * 3)


@given(small, small)
def test_parts_cover_the_grid_once(groups: tuple[int, int, int], most: tuple[int, int, int]) -> None:
    seen = np.zeros(groups, int)
    for base, count in grid_parts(groups, most):
        assert all(0 < size <= limit for size, limit in zip(count, most, strict=True))
        seen[tuple(slice(start, start + size) for start, size in zip(base, count, strict=True))] += 1
    assert (seen == 1).all()


def run(device: Device, code: bytes, out: np.ndarray, groups: tuple[int, int, int]) -> None:
    with (
        device.create_executable(code) as executable,
        device.create_buffer(out.nbytes) as buffer,
        device.create_command_buffer() as commands,
    ):
        buffer.write(out)
        commands.begin().dispatch(executable.pipeline(), [buffer], groups)
        commands.end()
        device.compute_queue.submit([commands])
        device.wait_idle()
        out[:] = np.frombuffer(buffer.read(), np.uint32)


@pytest.mark.sample(5)
@pytest.mark.vulkan
@pytest.mark.parametrize("body", [WHOLE, COMPONENTS], ids=["whole", "components"])
@pytest.mark.parametrize("most", [(2, 3, 4), (1, 1, 1), (5, 9, 2)], ids=str)
@pytest.mark.parametrize("optimize", [False, True])
def test_parts_do_what_the_grid_does(device: Device, body: str, most: tuple[int, int, int], optimize: bool) -> None:
    code, groups = compile_glsl(HEAD + body, optimize=optimize), (5, 3, 4)
    invocations = int(np.prod(groups) * np.prod(LOCAL))
    expected, got = (np.full(8 * invocations, 77, np.uint32) for _ in range(2))
    run(device, code, expected, groups)
    for base, count in itertools.islice(grid_parts(groups, most), 24):
        part = part_of_grid(code, base, groups, LOCAL)
        spirv_tools.validate(part)
        assert reflect(part).entry_points[0].bindings == reflect(code).entry_points[0].bindings
        run(device, part, got, count)
    if most != (1, 1, 1):
        np.testing.assert_array_equal(got, expected)
    else:  # 24 of the 60
        assert ((got == expected) | (got == 77)).all() and (got != 77).sum() == 24 * 4 * 8
    assert (expected != 77).all()


def test_the_first_part_of_a_kernel_that_asks_for_nothing_is_itself() -> None:
    code = compile_glsl(HEAD + "void main() { data[0] = gl_LocalInvocationIndex; }")
    assert part_of_grid(code, (7, 8, 9), (70, 80, 90), LOCAL) == code


def test_other_ways_to_the_number_are_refused() -> None:
    with pytest.raises(UnimplementedError, match="cannot be run in parts"):
        part_of_grid(compile_glsl(HEAD + INDEXED), (1, 0, 0), (2, 1, 1), LOCAL)


@pytest.mark.parametrize("name", ["mul", "examples/matmul", "examples/reduction", "examples/softmax"])
def test_shipped_kernels_stay_valid(name: str) -> None:
    part = part_of_grid(shaders.spirv(name), (3, 2, 1), (9, 9, 9), (64, 1, 1))
    spirv_tools.validate(part)
    assert part != shaders.spirv(name)


@pytest.mark.slow
def test_damage_is_refused() -> None:
    code = bytearray(compile_glsl(HEAD + "void main() { data[0] = gl_WorkGroupID.z; }"))
    binary = read_binary(bytes(code))
    constants = {binary.words[start + 2]: start + 3 for opcode, start, _ in binary if opcode == Op.Constant}
    chain = next(start for opcode, start, end in binary if opcode == Op.AccessChain and end - start == 5)
    words = list(binary.words)
    words[constants[words[chain + 4]]] = 3
    with pytest.raises(UnimplementedError, match="OpAccessChain"):
        part_of_grid(pack(words), (0, 0, 0), (1, 1, 1), LOCAL)
    code = bytearray(compile_glsl(HEAD + "void main() { uvec3 all = gl_WorkGroupID; data[0] = all.x; }"))
    binary = read_binary(bytes(code))
    words = list(binary.words)
    vector = next(words[start + 1] for opcode, start, _ in binary if opcode == Op.TypeVector)
    load = next(start for opcode, start, _ in binary if opcode == Op.Load and words[start + 1] == vector)
    words[load + 1] = 1
    with pytest.raises(InvalidArgumentError, match="type 1"):
        part_of_grid(pack(words), (0, 0, 0), (1, 1, 1), LOCAL)
