"""NumPy in, NumPy out: pumice beside wgpu-py, the same multiplication on the same device in one run.

Each side does what its users write: pumice calls a kernel on two NumPy arrays and gets a NumPy array. wgpu makes
buffers from the two arrays and one for the result, a bind group, encodes and submits a dispatch, and reads the result
back with ``queue.read_buffer``; pipeline and layouts are made once. A second row lets wgpu keep its buffers and write
them with ``queue.write_buffer``. Blocks of both sides alternate in random order.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

import pumice
from pumice import shaders

WGSL = """
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> product: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&product)) { product[id.x] = a[id.x] * b[id.x]; }
}
"""
TARGETS = {4: 0.6, 1 << 20: 0.6}


def pumice_case(device: pumice.Device) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A kernel call on NumPy arrays."""
    kernel = device.load_kernel(shaders.path("mul"))

    def call(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result = kernel(a, b, pumice.empty(a.shape, a.dtype))
        assert isinstance(result, np.ndarray)
        return result

    return call


def wgpu_cases(name: str) -> dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
    """wgpu-py with fresh buffers, and with buffers kept; nothing where it is not installed."""
    try:
        import wgpu
    except ModuleNotFoundError:
        return {}

    adapters = [a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] == "Vulkan"]
    matching = [a for a in adapters if a.info["device"] == name] or adapters
    if not matching:
        raise click.ClickException("wgpu finds no Vulkan adapter to compare with")
    device = matching[0].request_device_sync()
    module = device.create_shader_module(code=WGSL)
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
    layout = pipeline.get_bind_group_layout(0)
    storage, source, target = wgpu.BufferUsage.STORAGE, wgpu.BufferUsage.COPY_SRC, wgpu.BufferUsage.COPY_DST

    def dispatch(buffers: list[wgpu.GPUBuffer], count: int) -> None:
        entries = [
            {"binding": i, "resource": {"buffer": b, "offset": 0, "size": b.size}} for i, b in enumerate(buffers)
        ]
        group = device.create_bind_group(layout=layout, entries=entries)
        encoder = device.create_command_encoder()
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(pipeline)
        compute.set_bind_group(0, group)
        compute.dispatch_workgroups(-(-count // 64))
        compute.end()
        device.queue.submit([encoder.finish()])

    def fresh(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        buffers = [device.create_buffer_with_data(data=x, usage=storage) for x in (a, b)]
        buffers.append(device.create_buffer(size=a.nbytes, usage=storage | source))
        dispatch(buffers, a.size)
        return np.frombuffer(device.queue.read_buffer(buffers[2]), a.dtype)

    kept: dict[int, list[wgpu.GPUBuffer]] = {}

    def reused(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        buffers = kept.get(a.nbytes)
        if buffers is None:
            buffers = kept[a.nbytes] = [
                device.create_buffer(size=a.nbytes, usage=storage | source | target) for _ in range(3)
            ]
        device.queue.write_buffer(buffers[0], 0, a)
        device.queue.write_buffer(buffers[1], 0, b)
        dispatch(buffers, a.size)
        return np.frombuffer(device.queue.read_buffer(buffers[2]), a.dtype)

    return {"wgpu, fresh buffers": fresh, "wgpu, buffers kept": reused}


def measure(
    cases: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]], count: int, samples: int
) -> dict[str, list[float]]:
    """Seconds a call, in blocks of twenty that alternate in random order."""
    a, b = (np.random.default_rng(seed).random(count, np.float32) for seed in (1, 2))
    for name, call in cases.items():
        if not np.array_equal(call(a, b), a * b):
            raise click.ClickException(f"{name} gave a wrong product")
    times: dict[str, list[float]] = {name: [] for name in cases}
    block = 20
    for _ in range(max(1, samples // block)):
        for name in random.sample(list(cases), len(cases)):
            call = cases[name]
            call(a, b)
            for _ in range(block):
                begin = time.perf_counter()
                call(a, b)
                times[name].append(time.perf_counter() - begin)
    return times


@click.command()
@click.option("--device", "uri", default=None, help="Device URI for pumice; wgpu takes the adapter of the same name.")
@click.option("--samples", default=400, show_default=True, help="Calls a case and size.")
@click.option("--json", "json_file", type=click.Path(), help="Write the raw samples (seconds) here.")
@click.option("--check", is_flag=True, help="Exit with 1 if a target is missed.")
def main(uri: str | None, samples: int, json_file: str | None, check: bool) -> None:
    """Prints medians and the ratio of pumice to the faster wgpu row."""
    console = Console()
    missed = False
    raw: dict[str, dict[str, list[float]]] = {}
    with pumice.open_device(uri) as device:
        cases = {"pumice": pumice_case(device), **wgpu_cases(device.name)}
        table = Table(title=f"multiply on {device.name}, NumPy in and out")
        for column in ("elements", "case", "median µs", "best µs", "pumice / it", "target"):
            table.add_column(column, justify="left" if column == "case" else "right")
        for count, target in TARGETS.items():
            times = raw[str(count)] = measure(cases, count, samples)
            medians = {name: float(np.median(values)) for name, values in times.items()}
            fastest = min((value for name, value in medians.items() if name != "pumice"), default=float("nan"))
            missed = missed or medians["pumice"] / fastest > target
            for name, values in times.items():
                ratio = "" if name == "pumice" else f"{medians['pumice'] / medians[name]:.2f}"
                goal = "" if name == "pumice" else f"≤ {target}"
                table.add_row(f"{count:,}", name, f"{medians[name] * 1e6:.1f}", f"{min(values) * 1e6:.1f}", ratio, goal)
    console.print(table)
    if json_file:
        Path(json_file).write_text(json.dumps(raw))
    if check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
