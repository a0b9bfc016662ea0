"""Device addresses: arrays in the place of pointers, in push constants and in memory, and what a call knows of them."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest

import pumice

pytestmark = pytest.mark.vulkan

HEAD = """#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 32) in;
"""
SAXPY = (
    HEAD
    + """
layout(buffer_reference, std430) buffer Floats { float v[]; };
layout(push_constant) uniform Push { Floats x_ptr; Floats y_ptr; float a; uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) y_ptr.v[i] += a * x_ptr.v[i];
}
"""
)
# Structures that point to each other, and arrays of pointers that are announced before what they point to.
TREE = (
    HEAD
    + """
layout(buffer_reference, buffer_reference_align = 8) buffer Node;
layout(buffer_reference, buffer_reference_align = 8) buffer Node { uint key; Node left; Node right; Node more[2]; };
layout(std430, binding = 0) writeonly buffer Keys { uint keys[]; };
layout(push_constant) uniform Push { Node roots[2]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < 2) {
        keys[4 * i] = roots[i].key;
        keys[4 * i + 1] = roots[i].left.key;
        keys[4 * i + 2] = roots[i].right.left.key;
        keys[4 * i + 3] = roots[i].more[1].key;
    }
}
"""
)
TABLE = (
    HEAD
    + """
layout(buffer_reference, std430) readonly buffer Row { float v[]; };
struct Entry { Row row; uint count; };
layout(std430, binding = 0) readonly buffer Table { Entry entries[]; };
layout(std430, binding = 1) writeonly buffer Sums { float sums[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= entries.length()) return;
    float sum = 0;
    for (uint k = 0; k < entries[i].count; k++) sum += entries[i].row.v[k];
    sums[i] = sum;
}
"""
)
NUMBERS = (
    HEAD
    + """
layout(buffer_reference, std430) buffer Floats { float v[]; };
layout(push_constant) uniform Push { uint64_t address; uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) Floats(address).v[i] += 1;
}
"""
)


@pytest.fixture(scope="module")
def device() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        if not opened.vulkan.device_addresses:
            pytest.skip("the device has no bufferDeviceAddress")
        yield opened


def test_arrays_in_the_place_of_pointers(device: pumice.Device) -> None:
    saxpy = device.load_kernel(SAXPY)
    x, y = (device.asarray(np.arange(100, dtype=np.float32)) for _ in range(2))
    for _ in range(3):
        assert saxpy(x_ptr=x, y_ptr=y, a=2, n=100, groups=4) is None
    np.testing.assert_array_equal(y.numpy(), np.arange(100) * 7)
    saxpy(push=[x, y, 1, 100], groups=4)
    saxpy(push={"x_ptr": x, "y_ptr": y}, a=1, n=100, groups=4)
    _, timing = saxpy.time(x_ptr=x, y_ptr=y, a=1, n=100, groups=4)
    np.testing.assert_array_equal(y.numpy(), np.arange(100) * 10)
    assert timing.duration_ns > 0
    assert saxpy.prepare(x_ptr=x, y_ptr=y, a=1, n=9, groups=4).push[:8] == x.device_address.to_bytes(8, "little")
    assert saxpy.dtype("Floats") == np.float32


def test_views_have_their_own_addresses(device: pumice.Device) -> None:
    saxpy = device.load_kernel(SAXPY)
    x, y = device.asarray(np.ones(64, np.float32)), device.zeros(64)
    assert y[16:].device_address == y.device_address + 64
    saxpy(x_ptr=x, y_ptr=y[16:], a=3, n=16, groups=1)
    np.testing.assert_array_equal(y.numpy(), np.repeat([0, 3, 0, 0], 16))


def test_structures_that_point_to_each_other(device: pumice.Device) -> None:
    tree = device.load_kernel(TREE)
    (node,) = tree.reflection.pointees
    assert [(m.name, m.offset, m.pointee) for m in node.members] == [
        ("key", 0, ""),
        ("left", 8, "Node"),
        ("right", 16, "Node"),
        ("more", 24, "Node"),
    ]
    nodes = np.zeros(5, tree.dtype("Node"))
    held = device.asarray(nodes)
    at = [held[k : k + 1].device_address for k in range(5)]
    nodes["key"] = [10, 11, 12, 13, 14]
    nodes["left"], nodes["right"] = [at[1], at[2], at[3], at[4], at[0]], [at[1], at[4], at[0], at[2], at[3]]
    nodes["more"][:, 1] = at[::-1]
    held.copy_from(nodes)
    keys = tree(pumice.empty(8, np.uint32), roots=[held, held[1:]])
    np.testing.assert_array_equal(np.asarray(keys), [10, 11, 12, 14, 11, 12, 10, 13])


def test_blocks_of_pointers(device: pumice.Device) -> None:
    table = device.load_kernel(TABLE)
    rows = [device.asarray(np.full(k + 1, k, np.float32)) for k in range(4)]
    entries = [{"row": row, "count": row.size} for row in rows]
    np.testing.assert_array_equal(table(entries, pumice.empty(4)), [0, 2, 6, 12])
    numbers = np.zeros(4, table.dtype("Table"))
    numbers["row"], numbers["count"] = [row.device_address for row in rows], [row.size for row in rows]
    np.testing.assert_array_equal(table(numbers, pumice.empty(4), uses=rows), [0, 2, 6, 12])


@pytest.mark.features("shaderInt64")
def test_addresses_as_numbers_with_uses(device: pumice.Device) -> None:
    add = device.load_kernel(NUMBERS)
    x = device.zeros(32)
    for _ in range(50):
        add(address=x.device_address, n=32, groups=1, uses=[x])
    np.testing.assert_array_equal(x.numpy(), np.full(32, 50))
    x.copy_from(np.full(32, 7, np.float32))  # waits for uses under way
    add(address=x.device_address, n=32, groups=1, uses=x)
    assert x.wait() is x
    np.testing.assert_array_equal(x.map(), np.full(32, 8))


def test_an_array_dropped_after_its_call_is_freed_after_its_work(device: pumice.Device) -> None:
    saxpy = device.load_kernel(SAXPY)
    count = 1 << 16
    y = device.zeros(count)
    for _ in range(20):
        x = device.asarray(np.ones(count, np.float32))
        saxpy(x_ptr=x, y_ptr=y, a=1, n=count, groups=count // 32)
        del x
        gc.collect()
        device.asarray(np.full(count, 1000, np.float32)).close()  # would take memory that was freed too early
    np.testing.assert_array_equal(y.numpy(), np.full(count, 20))


@pytest.mark.features("shaderInt64")
def test_wrong_arrays_are_refused(device: pumice.Device) -> None:
    saxpy, add = device.load_kernel(SAXPY), device.load_kernel(NUMBERS)
    x, y = device.zeros(4), device.zeros(4)
    with pytest.raises(pumice.InvalidArgumentError, match=r"x_ptr is a pointer, got a NumPy array.*device\.asarray"):
        saxpy(x_ptr=np.zeros(4, np.float32), y_ptr=y, a=1, n=4, groups=1)
    with pytest.raises(pumice.InvalidArgumentError, match=r"pointer to Floats got dtype int32.*float32"):
        saxpy(x_ptr=device.zeros(4, np.int32), y_ptr=y, a=1, n=4, groups=1)
    with pytest.raises(pumice.InvalidArgumentError, match="only pointers take one"):
        saxpy(x_ptr=x, y_ptr=y, a=x, n=4, groups=1)
    with pytest.raises(pumice.InvalidArgumentError, match=r"pointer to Floats y_ptr.*not given"):
        device.load_kernel(SAXPY, push_defaults=0)(x_ptr=x, groups=1)
    with pytest.raises(pumice.InvalidArgumentError, match="uses= takes a list of the arrays on the device"):
        add(address=1, n=0, groups=1, uses=[np.zeros(4)])  # type: ignore[list-item]
    with pumice.open_device(device.uri) as other, pytest.raises(pumice.InvalidArgumentError, match="is on"):
        saxpy(x_ptr=other.zeros(4), y_ptr=y, a=1, n=4, groups=1)
    x.close()
    for call in (
        lambda: x.device_address,
        lambda: saxpy(x_ptr=x, y_ptr=y, a=1, n=4, groups=1),
        lambda: add(address=y.device_address, n=4, groups=1, uses=[x]),
    ):
        with pytest.raises(pumice.ClosedError, match="was closed"):
            call()


def test_a_device_without_addresses_says_so() -> None:
    with pumice.open_device("reference") as device:
        array = device.zeros(4)
        with pytest.raises(pumice.UnimplementedError, match="bufferDeviceAddress"):
            _ = array.device_address
