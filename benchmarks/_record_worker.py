"""Times runs of 25 dispatches: ``_record_worker.py pumice|calls|wgpu|vkdispatch``. For ``recorded_run.py``.

A line ``CASE NUMBER`` is answered with the nanoseconds of the host for each of as many runs. Nothing is waited for in
between; the device is idle before and after.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from _answers import answer

Run = Callable[[int], Any]
Runs = tuple[dict[str, Run], Callable[[], object]]
"""The runs by case, and a function that waits for them."""

DISPATCHES = 25
COUNT = 64
GLSL = """#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { float dt; uint n; };
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) buffer B { float b[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < n) b[i] += dt * a[i]; }
"""
WGSL = """
struct Push { dt: f32, n: u32 }
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> b: array<f32>;
@group(0) @binding(2) var<uniform> push: Push;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < push.n) { b[id.x] += push.dt * a[id.x]; }
}
"""


def _pumice() -> tuple[Any, Any, list[Any]]:
    import pumice

    device = pumice.open_device()
    return device, device.load_kernel(GLSL), [device.zeros(COUNT) for _ in range(10)]


def pumice_calls() -> Runs:
    """Returns 25 calls of a kernel."""
    _, kernel, arrays = _pumice()

    def run(i: int, changed: int) -> None:
        for at in range(DISPATCHES):
            kernel(arrays[at % 10], arrays[(at + 1) % 10], dt=(i + 0.25 if at < changed else 0.25), n=COUNT)

    return {
        "same": lambda i: run(i, 0),
        "one": lambda i: run(i, 1),
        "all": lambda i: run(i, DISPATCHES),
    }, lambda: [array.numpy() for array in arrays]


def pumice_runs() -> Runs:
    """Returns runs of a recording; one whose values never change keeps them in its commands."""
    device, kernel, arrays = _pumice()

    def recorded() -> Any:
        with device.record() as step:
            for at in range(DISPATCHES):
                kernel(arrays[at % 10], arrays[(at + 1) % 10], dt=0.25, n=COUNT)
        return step

    same, one, every = recorded(), recorded(), recorded()
    first = next(iter(one.steps)).name + "[0].dt"
    return {
        "same": lambda i: same.run(),
        "one": lambda i: one.run({first: i + 0.25}),
        "all": lambda i: every.run(dt=i + 0.25),
    }, lambda: [array.numpy() for array in arrays]


def wgpu_runs() -> Runs:
    """Returns runs of wgpu-py, which keeps all but the encoder; its values are in a uniform buffer."""
    import wgpu

    adapters = [a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] == "Vulkan"]
    device = adapters[0].request_device_sync()
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    arrays = [device.create_buffer(size=4 * COUNT, usage=usage) for _ in range(10)]
    params = device.create_buffer(size=256 * DISPATCHES, usage=wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST)
    module = device.create_shader_module(code=WGSL)
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
    layout = pipeline.get_bind_group_layout(0)

    def group(at: int) -> Any:
        resources = [
            {"buffer": arrays[at % 10], "offset": 0, "size": 4 * COUNT},
            {"buffer": arrays[(at + 1) % 10], "offset": 0, "size": 4 * COUNT},
            {"buffer": params, "offset": 256 * at, "size": 8},
        ]
        return device.create_bind_group(
            layout=layout, entries=[{"binding": i, "resource": resource} for i, resource in enumerate(resources)]
        )

    groups = [group(at) for at in range(DISPATCHES)]

    def values(number: float, changed: int) -> bytes:
        return b"".join(struct.pack("<fI248x", number, COUNT) for _ in range(changed))

    def run(i: int, changed: int) -> None:
        if changed:
            device.queue.write_buffer(params, 0, values(i + 0.25, changed))
        encoder = device.create_command_encoder()
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(pipeline)
        for bound in groups:
            compute.set_bind_group(0, bound)
            compute.dispatch_workgroups(1)
        compute.end()
        device.queue.submit([encoder.finish()])

    run(0, DISPATCHES)
    return {
        "same": lambda i: run(i, 0),
        "one": lambda i: run(i, 1),
        "all": lambda i: run(i, DISPATCHES),
    }, lambda: device.queue.read_buffer(arrays[1])


def vkdispatch_runs() -> Runs:
    """Returns submissions of a command graph of vkdispatch, with a variable for each dispatch."""
    import vkdispatch as vd
    import vkdispatch.codegen as vc
    from vkdispatch.codegen.abbreviations import Buff, Var, f32

    vd.make_context(use_cpu=True)

    def body(b: Any, a: Any, dt: Any) -> None:
        at = vc.global_invocation_id().x
        b[at] = b[at] + dt * a[at]

    body.__annotations__ = {"b": Buff[f32], "a": Buff[f32], "dt": Var[f32]}  # it reads them as objects
    add = vd.shader("b.size")(body)
    arrays = [vd.asbuffer(np.ones(COUNT, np.float32)) for _ in range(10)]
    graph = vd.CommandGraph()
    for at in range(DISPATCHES):
        add(arrays[(at + 1) % 10], arrays[at % 10], dt=graph.bind_var(f"dt{at}"), graph=graph)

    def run(i: int, changed: int) -> None:
        for at in range(changed):
            graph.set_var(f"dt{at}", i + 0.25)
        graph.submit()

    run(0, DISPATCHES)
    return {
        "same": lambda i: run(i, 0),
        "one": lambda i: run(i, 1),
        "all": lambda i: run(i, DISPATCHES),
    }, lambda: arrays[1].read(0)


def main() -> None:
    """Answers the questions of ``recorded_run.py``."""
    sides = {"pumice": pumice_runs, "calls": pumice_calls, "wgpu": wgpu_runs, "vkdispatch": vkdispatch_runs}
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # peers print warnings
    runs, wait = sides[sys.argv[1]]()
    wait()
    answer(runs, wait, answers, 3)


if __name__ == "__main__":
    main()
