"""Uniforms outside blocks, as OpenGL's shaders have them: values by name, initial values, and messages."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import pumice

pytestmark = pytest.mark.vulkan

SOURCE = """#version 430
layout(local_size_x = 64) in;
uniform float rate = 0.5;
uniform vec2 offset = vec2(1, 2);
uniform int n;
uniform float w[3];
uniform mat3x2 m;
uniform bool is_added;
struct Light { vec3 position; float power; };
uniform Light lights[2];
layout(binding = 0) uniform sampler2D textured;
layout(r32f, binding = 0) uniform image2D image;
layout(binding = 0) buffer Out { float o[]; };
layout(binding = 0) uniform atomic_uint counter;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) return;
    o[i] = rate * offset.y + w[2] + m[2][1] + lights[1].power + (is_added ? 1000 : 0);
    o[i] += texelFetch(textured, ivec2(1, 0), 0).x + imageLoad(image, ivec2(0, 1)).x;
    atomicCounterIncrement(counter);
}
"""
PICTURE = np.arange(4, dtype=np.float32).reshape(2, 2)
LIGHTS = [{"position": [0, 0, 0], "power": 0.0}, {"position": [0, 0, 0], "power": 0.25}]
VALUES = {"n": 3, "w": [1, 2, 3], "m": [[1, 2, 3], [4, 5, 6]], "is_added": True, "lights": LIGHTS}
TOTAL = 0.5 * 2 + 3 + 6 + 0.25 + 1000 + 10 + 200
MAIN = "layout(local_size_x = 4) in;\nbuffer Out { float o[]; };\nvoid main() { o[gl_LocalInvocationIndex] = %s; }\n"


@pytest.fixture
def device() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        yield opened


def test_values_by_name(device: pumice.Device) -> None:
    kernel = device.load_kernel(SOURCE)
    counter, out = np.zeros(1, np.uint32), np.zeros(4, np.float32)
    by_name = kernel(o=out, counter=counter, textured=10 * PICTURE, image=100 * PICTURE, **VALUES)  # type: ignore[arg-type]
    in_order = kernel(out, counter, 100 * PICTURE, 10 * PICTURE, push=VALUES)  # type: ignore[arg-type]
    for results in (by_name, in_order):
        assert isinstance(results, tuple)
        assert list(results[0]) == [TOTAL, TOTAL, TOTAL, 0]  # type: ignore[arg-type]
        assert list(results[1]) == [3]  # type: ignore[arg-type]


def test_arrays_of_the_device(device: pumice.Device) -> None:
    kernel = device.load_kernel("uniform float x; uniform float y;\n" + MAIN % "x - y")
    out = device.asarray(np.zeros(4, np.float32))
    for x in (3.0, 5.0):
        kernel(out, x=x, y=1.0)
        np.testing.assert_array_equal(out.numpy(), np.full(4, x - 1))


def test_initial_values_and_defaults(device: pumice.Device) -> None:
    source = "uniform float x = 0.5; uniform int n; uniform vec2 v;\n" + MAIN % "x + n + v.y"
    out = np.empty(4, np.float32)
    kernel = device.load_kernel(source)
    assert kernel(out, n=1, v=[0, 2])[0] == 3.5  # type: ignore[index]
    assert kernel(out, n=1, v=[0, 2], x=1.0)[0] == 4  # type: ignore[index]
    assert device.load_kernel(source, push_defaults=0)(out, n=1)[0] == 1.5  # type: ignore[index]
    assert device.load_kernel(source, push_defaults={"v": [3, 4]})(out, n=1)[0] == 5.5  # type: ignore[index]


def test_more_bytes_than_push_constants_have(device: pumice.Device) -> None:
    kernel = device.load_kernel("uniform float x[100];\n" + MAIN % "x[99]")
    assert kernel(np.empty(4, np.float32), x=np.arange(100))[0] == 99  # type: ignore[index]


def test_messages(device: pumice.Device) -> None:
    kernel = device.load_kernel("uniform float x; uniform int n;\n" + MAIN % "x + n")
    out = np.empty(4, np.float32)
    with pytest.raises(pumice.InvalidArgumentError, match=r"uniform\(s\) float x not given"):
        kernel(out, n=1)
    with pytest.raises(pumice.NotFoundError, match="no uniform 'y'; it has: x, n"):
        kernel(out, n=1, y=2.0)
    with pytest.raises(pumice.InvalidArgumentError, match=r"takes 1 array\(s\), got 2"):
        kernel(out, out, n=1, x=1.0)
    assert "uniforms: float x, int n" in repr(kernel)
