"""Times calls of kernels by kind of argument: ``_call_worker.py pumice|wgpu``. For ``call_arguments.py``.

A line ``CASE NUMBER`` is answered with the nanoseconds that each of the calls took on the host. Nothing is waited for
in between; the device is idle before and after.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from _answers import answer

Call = Callable[[int], Any]

PUSH = """#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { float dt; uint n; };
layout(binding = 0) buffer A { float a[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < n) a[i] += dt; }
"""
UNIFORM = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) uniform Params { float dt; uint n; vec4 weights; };
layout(binding = 1) buffer A { float a[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < n) a[i] += dt * weights.x; }
"""
IMAGE = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, rgba8) uniform readonly image2D source;
layout(binding = 1, rgba8) uniform writeonly image2D result;
void main() { ivec2 at = ivec2(gl_GlobalInvocationID.xy); imageStore(result, at, imageLoad(source, at)); }
"""
WGSL_UNIFORM = """
struct Params { dt: f32, n: u32, weights: vec4<f32> }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> a: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < params.n) { a[id.x] += params.dt * params.weights.x; }
}
"""
WGSL_IMAGE = """
@group(0) @binding(0) var source: texture_2d<f32>;
@group(0) @binding(1) var result: texture_storage_2d<rgba8unorm, write>;
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    textureStore(result, id.xy, textureLoad(source, id.xy, 0));
}
"""
COUNT = 64


def pumice_calls() -> tuple[dict[str, Call], Callable[[], object]]:
    """Returns the calls of pumice, and a function that waits for them."""
    import pumice

    device = pumice.open_device()
    push, uniform, image = (device.load_kernel(source) for source in (PUSH, UNIFORM, IMAGE))
    array = device.zeros(COUNT)
    source, result = (device.asimage(np.zeros((8, 8, 4), np.uint8)) for _ in range(2))
    return {
        "same": lambda i: push(array, dt=0.5, n=COUNT),
        "push": lambda i: push(array, dt=i + 0.25, n=COUNT),
        "uniform": lambda i: uniform({"dt": i + 0.25, "n": COUNT, "weights": [1, 0, 0, 0]}, array),
        "images": lambda i: image(source, result),
    }, lambda: (array.numpy(), result.numpy())


def wgpu_calls() -> tuple[dict[str, Call], Callable[[], object]]:
    """Returns the calls of wgpu-py, which keeps buffers, pipelines and bind groups, and a function that waits."""
    import wgpu

    adapters = [a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] == "Vulkan"]
    device = adapters[0].request_device_sync()
    storage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    array = device.create_buffer(size=4 * COUNT, usage=storage)
    params = device.create_buffer(size=32, usage=wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST)
    usage = wgpu.TextureUsage.TEXTURE_BINDING | wgpu.TextureUsage.STORAGE_BINDING
    source, result = (device.create_texture(size=(8, 8, 1), format="rgba8unorm", usage=usage) for _ in range(2))

    def made(code: str, resources: list[Any]) -> Callable[[], None]:
        module = device.create_shader_module(code=code)
        pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
        entries = [{"binding": i, "resource": resource} for i, resource in enumerate(resources)]
        group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)

        def dispatch() -> None:
            encoder = device.create_command_encoder()
            compute = encoder.begin_compute_pass()
            compute.set_pipeline(pipeline)
            compute.set_bind_group(0, group)
            compute.dispatch_workgroups(1)
            compute.end()
            device.queue.submit([encoder.finish()])

        return dispatch

    buffers = [{"buffer": b, "offset": 0, "size": b.size} for b in (params, array)]
    uniform, image = made(WGSL_UNIFORM, buffers), made(WGSL_IMAGE, [source.create_view(), result.create_view()])

    def changed(i: int) -> None:
        device.queue.write_buffer(params, 0, struct.pack("<fI8x4f", i + 0.25, COUNT, 1, 0, 0, 0))
        uniform()

    return {
        "same": lambda i: uniform(),
        "push": changed,
        "uniform": changed,
        "images": lambda i: image(),
    }, lambda: device.queue.read_buffer(array)


def main() -> None:
    """Answers the questions of ``call_arguments.py``."""
    calls, wait = {"pumice": pumice_calls, "wgpu": wgpu_calls}[sys.argv[1]]()
    answer(calls, wait, sys.stdout, 10)


main()
