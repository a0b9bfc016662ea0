"""Tests of arguments for bindings and push constants that a shader declares and does not use."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pumice
from pumice.spirv.sources.compile import compile_source
from pumice.spirv.sources.language import Language

pytestmark = pytest.mark.vulkan

HEAD = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer BX { float x[]; } X;
layout(std430, binding = 1) readonly buffer BW { float w[]; } W[2];
layout(std430, binding = 2) buffer BY { float y[]; } Y;
layout(push_constant) uniform Pass { uint width; float gain; };
"""
X = np.array([1, 2, 3], np.float32)


@pytest.fixture
def device() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        yield opened


@pytest.fixture
def doubling(device: pumice.Device) -> pumice.Kernel:
    return device.load_kernel(
        HEAD + "void main() { uint i = gl_GlobalInvocationID.x; if (i < Y.y.length()) Y.y[i] = 2 * X.x[i]; }"
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda k: k(X, X),
        lambda k: k(X, [X, X], X),
        lambda k: k(X, X, X, X),
        lambda k: k(X, [X, X], out=np.empty_like(X)),
        lambda k: k(X=X, W=[X, X], Y=X),
        lambda k: k(X, BW=X, Y=X, width=3),
        lambda k: k(X, [X, X], Y=X, gain=1.0),
        lambda k: k(X, X, push={"width": 4, "gain": 2.0}),
        lambda k: k(X, X, push=b"12345678"),
        lambda k: k(X, X, push=[4, 2.0]),
        lambda k: k.time(X, X, width=4, gain=2.0)[0],
    ],
)
def test_arguments_for_unused_declarations_are_dropped(
    doubling: pumice.Kernel, call: Callable[[pumice.Kernel], Any]
) -> None:
    np.testing.assert_array_equal(call(doubling), 2 * X)


def test_each_is_noted_once(doubling: pumice.Kernel, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "pumice.kernels"):
        for _ in range(3):
            doubling(X, X, width=3)
        doubling(X, X, width=3, gain=2.0)
    noted = [record.getMessage().partition(" are ignored")[0].rpartition(" ")[2] for record in caplog.records]
    assert noted == ["width", "gain"]


def test_defaults_of_unused_push_constants(device: pumice.Device) -> None:
    text = HEAD + "void main() { Y.y[gl_GlobalInvocationID.x] = 1; }"
    for defaults in ({"gain": 2.0}, 0):
        kernel = device.load_kernel(text, push_defaults=defaults)
        np.testing.assert_array_equal(kernel(np.empty(64, np.float32)), np.ones(64))


def test_an_entry_point_takes_what_its_neighbours_use(device: pumice.Device) -> None:
    source = """struct Pass { uint width; float gain; };
[[vk::push_constant]] Pass pass;
[[vk::binding(0)]] StructuredBuffer<float> x;
[[vk::binding(1)]] StructuredBuffer<float> w;
[[vk::binding(2)]] RWStructuredBuffer<float> y;
[shader("compute")] [numthreads(4, 1, 1)]
void scale(uint3 id : SV_DispatchThreadID) { y[id.x] = pass.gain * w[id.x] * x[id.x]; }
[shader("compute")] [numthreads(4, 1, 1)]
void copy(uint3 id : SV_DispatchThreadID) { y[id.x] = x[id.x]; }
"""
    x = np.arange(4, dtype=np.float32)
    code = compile_source(source, Language.SLANG)
    scale, copy = (device.load_kernel(code, entry_point=name) for name in ("scale", "copy"))
    np.testing.assert_array_equal(scale(x, x, x, width=4, gain=2.0), 2 * x * x)
    np.testing.assert_array_equal(copy(x, x, x, width=4, gain=2.0), x)
    np.testing.assert_array_equal(copy(x=x, w=x, y=x), x)


def test_what_is_not_declared_is_refused(doubling: pumice.Kernel) -> None:
    with pytest.raises(pumice.InvalidArgumentError, match=r"takes 2 array\(s\), got 5.*declared and unused: binding 1"):
        doubling(X, X, X, X, X)
    with pytest.raises(pumice.NotFoundError, match="no push constant 'gains'"):
        doubling(X, X, gains=2.0)
