"""Grids of more workgroups in x than the device dispatches: exact ids, by every way of a call."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import pumice
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.instrument.wide_grid import split_counts, with_wide_grid
from pumice.spirv.sources.glsl import compile_glsl

pytestmark = pytest.mark.vulkan

# Each workgroup writes its ids, and counts itself.
IDS = """#version 450
layout(local_size_x = 2, local_size_y = 3) in;
layout(std430, binding = 0) buffer Ids { uvec4 ids[]; };
layout(std430, binding = 1) buffer Sum { uint runs; };
layout(push_constant) uniform Push { uint first; };
shared uint seen;
uint column() { return gl_GlobalInvocationID.x; }
void main() {
    if (gl_LocalInvocationIndex == 0) seen = 0;
    barrier();
    atomicAdd(seen, 1);
    barrier();
    uint wide = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    uvec3 id = gl_GlobalInvocationID;
    uint at = gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x;
    if (gl_LocalInvocationIndex == 0) atomicAdd(runs, seen);
    if (gl_LocalInvocationIndex == 5 && at >= first && at - first < ids.length())
        ids[at - first] = uvec4(column(), id.y, wide, gl_NumWorkGroups.y);
}
"""


@pytest.fixture
def device() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        yield opened


def test_counts() -> None:
    assert split_counts((10, 1, 1), (10, 10, 10), 1) is None
    assert split_counts((11, 1, 1), (10, 10, 10), 1) == (6, 2, 1)
    assert split_counts((25, 2, 3), (10, 10, 10), 1) == (9, 6, 3)
    assert split_counts((101, 1, 1), (10, 10, 10), 1) is None
    assert split_counts((0, 1, 1), (10, 10, 10), 1) is None
    assert split_counts((1 << 26, 1, 1), (1 << 16, 1 << 16, 1), 64) == (1 << 16, 1 << 10, 1)
    assert split_counts(((1 << 26) + 1, 1, 1), (1 << 16, 1 << 16, 1), 64) is None  # ids of 32 bits would wrap


@pytest.mark.parametrize("first", [0, 65_530, 70_000 - 32, 2 * 70_000 - 32])
def test_ids(device: pumice.Device, first: int) -> None:
    most = device.profile.limits.max_compute_work_group_count[0]
    if most >= 70_000:
        pytest.skip("the device dispatches this many workgroups in x")
    kernel = device.load_kernel(IDS)
    ids, runs = kernel(np.zeros((32, 4), np.uint32), np.zeros(1, np.uint32), groups=(70_000, 2), first=first)  # type: ignore[misc]
    assert runs[0] == 70_000 * 2 * 6
    groups = first + np.arange(32)
    x, y = groups % 70_000, groups // 70_000
    np.testing.assert_array_equal(ids, np.stack([2 * x + 1, 3 * y + 2, 0 * x + 140_000, 0 * x + 2], axis=-1))


def test_large_arrays_need_no_groups(device: pumice.Device) -> None:
    count = 5_000_001
    kernel = device.load_kernel("""#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Values { float v[]; };
layout(push_constant) uniform Push { float factor; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < v.length()) v[i] *= factor; }
""")
    values = np.arange(count, dtype=np.float32)
    expected = values * 2
    np.testing.assert_array_equal(kernel(values, factor=2.0), expected)
    resident = device.asarray(values)
    for _ in range(2):
        kernel(resident, factor=2.0)
    np.testing.assert_array_equal(resident.numpy(), values * 4)
    result, timing = kernel.time(resident, factor=0.5)
    assert timing.duration_ns > 0
    assert isinstance(result, pumice.DeviceArray)
    np.testing.assert_array_equal(result.numpy(), expected)


def test_messages(device: pumice.Device) -> None:
    kernel = device.load_kernel(IDS)
    with pytest.raises(pumice.ResourceExhaustedError, match=r"are more than .* gl_NumWorkGroups"):
        kernel(np.zeros((32, 4), np.uint32), np.zeros(1, np.uint32), groups=(1, 1 << 20, 1 << 10), first=0)


@pytest.mark.parametrize("target", ["vulkan1.0", "vulkan1.1", "vulkan1.2", "vulkan1.3"])
@pytest.mark.parametrize("debug", [False, True])
def test_modules_are_valid(target: str, debug: bool) -> None:
    bare = "#version 450\nlayout(local_size_x = 2) in;\nlayout(binding = 0) buffer B { int b; };\nvoid main() { b++; }"
    for source in (IDS, bare):
        code = compile_glsl(source, target_env=target, debug=debug)
        spirv_tools.validate(with_wide_grid(code, "main", (2, 3, 1), (70_000, 2, 1), (35_000, 4, 1)), target_env=target)


def test_slang(device: pumice.Device) -> None:
    kernel = device.load_kernel(
        """RWStructuredBuffer<uint> sum;
[shader("compute")] [numthreads(1, 1, 1)]
void count(uint3 id : SV_GroupID, uint3 at : SV_DispatchThreadID) {
    if (id.x == at.x && id.x < 100000) InterlockedAdd(sum[0], 1);
    if (id.x == 99999) sum[1] = 7;
}
""",
        language="slang",
    )
    np.testing.assert_array_equal(kernel(np.zeros(2, np.uint32), groups=100_000), [100_000, 7])
