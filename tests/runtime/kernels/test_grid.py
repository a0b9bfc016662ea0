"""The grid of a call: inferred where it covers the inputs, by an argument's name, and refused where it would not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.devices.shader_tools import needs_compiler

import pumice

pytestmark = [pytest.mark.vulkan, needs_compiler]

HEAD = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) buffer Y { uint y[]; };
shared uint s[64];
uint g = gl_GlobalInvocationID.x, l = gl_LocalInvocationID.x;
"""
SUM = "void main() { if (g < x.length()) atomicAdd(y[0], x[g]); }"
HISTOGRAM = "void main() { if (g < x.length()) atomicAdd(y[x[g] % 64], 1); }"
PARTIAL = """void main() {
    s[l] = g < x.length() ? x[g] : 0;
    barrier();
    if (l == 0) { uint t = 0; for (uint i = 0; i < 64; i++) t += s[i]; y[gl_WorkGroupID.x] = t; }
}"""
SCATTER = "void main() { if (g < x.length()) y[x[g]] = g + 1; }"
BY_ROW = "void main() { if (g < y.length()) { uint t = 0; for (uint i = 0; i < 9; i++) t += x[9 * g + i]; y[g] = t; } }"
ALONE = "void main() { uint t = 0; for (uint i = 0; i < x.length(); i++) t += x[i]; if (g == 0) y[0] = t; }"
IMAGE = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, rgba8ui) readonly uniform uimage2D picture;
layout(binding = 1) buffer Bins { uint bins[]; };
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (all(lessThan(at, imageSize(picture)))) atomicAdd(bins[imageLoad(picture, at).r], 1);
}"""


@pytest.fixture(scope="module")
def device() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        yield opened


X = np.arange(10_000, dtype=np.uint32)
PARTS = np.add.reduceat(X, np.arange(0, 10_000, 64))


@pytest.mark.parametrize(
    ("body", "length", "expected"),
    [
        (SUM, 1, X.sum(keepdims=True, dtype=np.uint32)),
        (HISTOGRAM, 64, np.bincount(X % 64)),
        (PARTIAL, 157, PARTS),
        (SCATTER, 10_000, None),
    ],
    ids=["sum", "histogram", "partial", "scatter"],
)
@pytest.mark.parametrize("place", ["host", "device"])
def test_too_small_a_grid_is_refused(
    device: pumice.Device, body: str, length: int, expected: np.ndarray | None, place: str
) -> None:
    kernel = device.load_kernel(HEAD + body)
    x = X if place == "host" else device.asarray(X)
    y = (lambda n: np.zeros(n, np.uint32)) if place == "host" else (lambda n: device.zeros(n, np.uint32))
    if expected is not None:
        with pytest.raises(pumice.InvalidArgumentError, match=r"10,000 elements.*groups='X' or groups=157"):
            kernel(x, y(length))
        for groups in ("X", "x", 157):
            np.testing.assert_array_equal(np.asarray(kernel(x, y(length), groups=groups)), expected)
        # Fewer elements than invocations are no reduction of more: 100 values in 157 groups of 64.
        few = kernel(x[:64], y(length))
        np.testing.assert_array_equal(np.asarray(few), np.asarray(kernel(x[:64], y(length), groups=157)))
    else:
        np.testing.assert_array_equal(np.asarray(kernel(x, y(length))), X + 1)  # as many as are read
        with pytest.raises(pumice.InvalidArgumentError, match="groups='X'"):
            kernel(x[:5000], y(100))


def test_a_grid_that_is_right_is_inferred(device: pumice.Device) -> None:
    rows = np.asarray(device.load_kernel(HEAD + BY_ROW)(X[:9000], pumice.empty(1000, np.uint32)))
    np.testing.assert_array_equal(rows, X[:9000].reshape(1000, 9).sum(1))
    alone = device.load_kernel(HEAD + ALONE)(X, pumice.empty(1, np.uint32))
    assert np.asarray(alone)[0] == X.sum()


def test_one_invocation_a_texel(device: pumice.Device) -> None:
    picture = np.arange(100 * 70, dtype=np.uint8).reshape(70, 100) % 250
    kernel = device.load_kernel(IMAGE)
    texels = np.stack([picture] * 4, -1)
    with pytest.raises(pumice.InvalidArgumentError, match=r"groups='picture' or groups=\(13, 9, 1\)"):
        kernel(texels, np.zeros(256, np.uint32))
    bins = kernel(texels, pumice.empty(256, np.uint32), groups="picture")
    np.testing.assert_array_equal(bins, np.bincount(picture.reshape(-1), minlength=256))


def test_the_grid_follows_the_argument(device: pumice.Device) -> None:
    """The same kernel and output, inputs of several lengths: nothing of an earlier call is taken."""
    kernel = device.load_kernel(HEAD + SUM)
    for length in (64, 1000, 64, 5000):
        total = device.zeros(1, np.uint32)
        kernel(device.asarray(X[:length]), total, groups="X")
        assert total.numpy()[0] == X[:length].sum()
    _, timing = kernel.time(X, np.zeros(1, np.uint32), groups="X")
    assert timing.groups == (157, 1, 1)
    x, y = device.asarray(X), device.zeros(1, np.uint32)
    assert kernel.prepare(x, y, groups="X").groups == (157, 1, 1)
    with pytest.raises(pumice.InvalidArgumentError, match=r"argument's name, of: .*; got 'Z'"):
        kernel(x, y, groups="Z")


def test_a_result_that_is_read_starts_as_zeros(device: pumice.Device) -> None:
    """Memory that an earlier call used has other values."""
    kernel = device.load_kernel(HEAD + "void main() { y[g] += x[g]; }")
    x = np.full(100_000, 7, np.uint32)
    for argument in (x, device.asarray(x)):
        for _ in range(3):
            result = kernel(argument, pumice.empty(100_000, np.uint32))
            np.testing.assert_array_equal(np.asarray(result), x)
            del result


def test_an_image_that_is_read_starts_as_zeros(device: pumice.Device) -> None:
    kernel = device.load_kernel(
        """#version 450
        layout(local_size_x = 8, local_size_y = 8) in;
        layout(binding = 0, r32ui) uniform uimage2D picture;
        void main() { imageAtomicAdd(picture, ivec2(gl_GlobalInvocationID.xy), 5); }"""
    )
    for _ in range(3):
        result = kernel(pumice.empty((64, 64), np.uint32))
        np.testing.assert_array_equal(np.asarray(result), np.full((64, 64), 5))
