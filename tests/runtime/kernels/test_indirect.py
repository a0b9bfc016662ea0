"""Workgroup counts in an array on the device, read when the call runs."""

from __future__ import annotations

import numpy as np
import pytest

import pumice
from pumice.status import ClosedError, InvalidArgumentError, ResourceExhaustedError

pytestmark = pytest.mark.vulkan

_COUNTS = """
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Counts { uint counts[3]; };
layout(push_constant) uniform Push { uint n; };
void main() { counts[0] = n; counts[1] = 2; counts[2] = 1; }
"""
_HITS = """
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Hits { uint hits[]; };
void main() { atomicAdd(hits[gl_WorkGroupID.x], 1 + gl_WorkGroupID.y); }
"""


@pytest.fixture
def hit(device: pumice.Device) -> pumice.Kernel:
    return device.load_kernel(_HITS)


def test_a_kernel_makes_the_counts_of_the_next(device: pumice.Device, hit: pumice.Kernel) -> None:
    count = device.load_kernel(_COUNTS)
    groups, hits = device.zeros(3, np.uint32), device.zeros(64, np.uint32)
    expected = np.zeros(64, np.uint32)
    for n in (7, 0, 64, 3, 3):
        count(groups, n=n, groups=1)
        assert hit(hits, groups=groups) is hits
        expected[:n] += 3
    np.testing.assert_array_equal(hits.numpy(), expected)


def test_counts_anywhere_in_an_array(device: pumice.Device, hit: pumice.Kernel) -> None:
    many = device.asarray(np.array([9, 5, 1, 1, 2, 1, 1], np.uint32))
    hits = device.zeros(8, np.uint32)
    hit(hits, groups=many[1:4])
    hit(hits, groups=many[4:])
    assert hits.numpy().tolist() == [2, 2, 1, 1, 1, 0, 0, 0]


def test_arguments_of_the_host(device: pumice.Device, hit: pumice.Kernel) -> None:
    groups = device.asarray(np.array([2, 1, 1], np.uint32))
    result = hit(np.zeros(4, np.uint32), groups=groups)
    assert isinstance(result, np.ndarray)
    assert result.tolist() == [1, 1, 0, 0]


def test_time_measures_it(device: pumice.Device, hit: pumice.Kernel) -> None:
    hits = device.zeros(4, np.uint32)
    result, timing = hit.time(hits, groups=device.asarray(np.array([3, 1, 1], np.uint32)))
    assert (result, timing.groups) == (hits, None)
    assert hits.numpy().tolist() == [1, 1, 1, 0]


def test_counts_are_kept_until_the_work_is_done(device: pumice.Device, hit: pumice.Kernel) -> None:
    hits = device.zeros(1 << 15, np.uint32)
    for _ in range(50):
        hit(hits, groups=device.asarray(np.array([1 << 15, 1, 1], np.uint32)))
    assert (hits.numpy() == 50).all()


def test_counts_past_the_limits_that_the_host_sees(device: pumice.Device, hit: pumice.Kernel) -> None:
    most = device.profile.limits.max_compute_work_group_count
    groups = device.asarray(np.array([1, most[1] + 1, 1], np.uint32))
    if not groups.buffer.host_visible:
        pytest.skip("the counts are on the device alone")
    with pytest.raises(ResourceExhaustedError, match="more than .* dispatches at once"):
        hit(device.zeros(4, np.uint32), groups=groups)


@pytest.mark.parametrize(
    ("shape", "dtype"), [((4,), np.uint32), ((1, 3), np.uint32), ((3,), np.int32), ((3,), np.uint64), ((12,), np.uint8)]
)
def test_other_arrays_are_refused(
    device: pumice.Device, hit: pumice.Kernel, shape: tuple[int, ...], dtype: type[np.generic]
) -> None:
    with pytest.raises(InvalidArgumentError, match=r"three uint32 on the device.*got shape"):
        hit(device.zeros(4, np.uint32), groups=device.zeros(shape, dtype))


def test_what_is_refused_by_name(device: pumice.Device, hit: pumice.Kernel) -> None:
    hits = device.zeros(4, np.uint32)
    with pumice.open_device("reference") as other, pytest.raises(InvalidArgumentError, match="on another device"):
        hit(hits, groups=other.zeros(3, np.uint32))
    odd = device.asarray(np.zeros(16, np.uint8))[1:13]
    with pytest.raises(InvalidArgumentError, match="three uint32"):
        hit(hits, groups=odd)
    closed = device.zeros(3, np.uint32)
    closed.close()
    with pytest.raises(ClosedError):
        hit(hits, groups=closed)
    with pytest.raises(InvalidArgumentError, match="dispatch_indirect"):
        hit.prepare(hits, groups=device.zeros(3, np.uint32))
    assert not hits.numpy().any()
