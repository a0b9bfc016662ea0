"""Frame time of a window: ``pumice view`` beside the same shader in a window of wgpu-py and rendercanvas.

Both sides show the three waves of examples/view/waves.frag, without its derivative and as a loop of the same length, in
windows of the same size on the same device, in present mode immediate: nothing waits for the display's refresh. pumice
computes the picture and copies it to the window's image; wgpu draws a triangle over it, as its users do. Each block of
frames runs in a process of its own, the two sides of a round one after the other in random order; ratios are those of
rounds. Processor time is that of all threads of the process, without the display's server. Without a display both run
on Xvfb.

    python benchmarks/viewer.py [--device lavapipe] [--frames 400] [--rounds 7]
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from pumice.viewer import ShaderPicture, Window

GLSL = """
void mainImage(out vec4 color, in vec2 position) {
    vec2 p = (2.0 * position - iResolution.xy) / iResolution.y;
    vec3 light = vec3(0.0);
    for (int i = 0; i < 3; i++) {
        float wave = 0.35 * sin(2.0 * p.x + iTime * (0.7 + 0.3 * float(i)) + 2.1 * float(i));
        light[i] += 0.03 / (abs(p.y - wave) + 0.01);
    }
    color = vec4(1.0 - exp(-light), 1.0);
}
"""
WGSL = """
struct Inputs { size: vec2<f32>, time: f32, padding: f32 }
@group(0) @binding(0) var<uniform> inputs: Inputs;

@vertex
fn corner(@builtin(vertex_index) i: u32) -> @builtin(position) vec4<f32> {
    return vec4<f32>(f32(i32(i & 1u) * 4 - 1), f32(i32(i >> 1u) * 4 - 1), 0.0, 1.0);
}

@fragment
fn image(@builtin(position) place: vec4<f32>) -> @location(0) vec4<f32> {
    let position = vec2<f32>(place.x, inputs.size.y - place.y);
    let p = (2.0 * position - inputs.size) / inputs.size.y;
    var light = vec3<f32>(0.0);
    for (var i = 0; i < 3; i++) {
        let wave = 0.35 * sin(2.0 * p.x + inputs.time * (0.7 + 0.3 * f32(i)) + 2.1 * f32(i));
        light[i] += 0.03 / (abs(p.y - wave) + 0.01);
    }
    return vec4<f32>(1.0 - exp(-light), 1.0);
}
"""
WARM_UP = 10


@contextmanager
def pumice_window(device: str, size: tuple[int, int]) -> Iterator[Callable[[], object]]:
    """Shows a frame of pumice's."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "waves.frag"
        path.write_text(GLSL)
        with Window(
            lambda opened: ShaderPicture(opened, path),
            title=path.name,
            size=size,
            device=device,
            vsync=False,
            has_overlay=False,
        ) as window:
            yield window.frame


@contextmanager
def wgpu_window(device: str, size: tuple[int, int]) -> Iterator[Callable[[], object]]:
    """Shows a frame of wgpu's."""
    import wgpu
    from rendercanvas.glfw import RenderCanvas

    adapters = [one for one in wgpu.gpu.enumerate_adapters_sync() if one.info["backend_type"] == "Vulkan"]
    adapter = next((one for one in adapters if one.info["device"] == device), None)
    if adapter is None:
        raise click.ClickException(f"wgpu has no Vulkan adapter {device!r}")
    canvas = RenderCanvas(size=size, title="wgpu", update_mode="manual", vsync=False)
    gpu = adapter.request_device_sync()
    context = canvas.get_context("wgpu")
    target = context.get_preferred_format(adapter).removesuffix("-srgb")
    context.configure(device=gpu, format=target)
    module = gpu.create_shader_module(code=WGSL)
    pipeline = gpu.create_render_pipeline(
        layout="auto",
        vertex={"module": module, "entry_point": "corner"},
        fragment={"module": module, "entry_point": "image", "targets": [{"format": target}]},
        primitive={"topology": "triangle-list"},
    )
    inputs = gpu.create_buffer(size=16, usage=wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST)
    group = gpu.create_bind_group(
        layout=pipeline.get_bind_group_layout(0), entries=[{"binding": 0, "resource": {"buffer": inputs}}]
    )
    import numpy as np

    begun = time.monotonic()

    def draw() -> None:
        gpu.queue.write_buffer(inputs, 0, np.array([*size, time.monotonic() - begun, 0], np.float32))
        encoder = gpu.create_command_encoder()
        view = context.get_current_texture().create_view()
        drawing = encoder.begin_render_pass(
            color_attachments=[{"view": view, "load_op": "clear", "store_op": "store", "clear_value": (0, 0, 0, 1)}]
        )
        drawing.set_pipeline(pipeline)
        drawing.set_bind_group(0, group)
        drawing.draw(3)
        drawing.end()
        gpu.queue.submit([encoder.finish()])

    canvas.request_draw(draw)

    def frame() -> None:
        canvas._process_events()
        canvas.force_draw()

    try:
        yield frame
    finally:
        canvas.close()


@contextmanager
def some_display() -> Iterator[None]:
    """The display that there is, or Xvfb."""
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform in ("win32", "darwin"):
        yield
        return
    program = shutil.which("Xvfb")
    if program is None:
        raise click.ClickException("there is no display, and no Xvfb: apt-get install xvfb")
    reader, writer = os.pipe()
    server = subprocess.Popen(
        [program, "-displayfd", str(writer), "-screen", "0", "1280x800x24", "-noreset"],
        pass_fds=(writer,),
        stderr=subprocess.DEVNULL,
    )
    os.close(writer)
    try:
        with os.fdopen(reader) as numbers:
            os.environ["DISPLAY"] = f":{numbers.readline().strip()}"
        yield
    finally:
        server.terminate()
        server.wait()


SIDES = {"pumice": pumice_window, "wgpu and rendercanvas": wgpu_window}


def measure(side: str, device: str, size: tuple[int, int], frames: int) -> tuple[float, float]:
    """Milliseconds and milliseconds of processor time a frame, in this process."""
    with SIDES[side](device, size) as frame:
        for _ in range(WARM_UP):
            frame()
        begun, worked = time.perf_counter(), time.process_time()
        for _ in range(frames):
            frame()
        return 1e3 * (time.perf_counter() - begun) / frames, 1e3 * (time.process_time() - worked) / frames


def measure_apart(side: str, device: str, size: tuple[int, int], frames: int) -> tuple[float, float]:
    """``measure`` in a process of its own."""
    command = [sys.executable, __file__, "--side", side, "--device", device, "--frames", str(frames), "--size"]
    found = subprocess.run([*command, *map(str, size)], stdout=subprocess.PIPE, text=True, check=True)
    wall, processor = json.loads(found.stdout.splitlines()[-1])
    return wall, processor


def spread(values: list[float]) -> tuple[str, str, str]:
    """Least, median and most."""
    least, median, most = (f"{one:.2f}" for one in (min(values), statistics.median(values), max(values)))
    return least, median, most


@click.command()
@click.option("--device", default="lavapipe", show_default=True)
@click.option("--size", type=(int, int), default=(640, 360), show_default=True)
@click.option("--frames", default=400, show_default=True, help="Of a block.")
@click.option("--rounds", default=7, show_default=True)
@click.option("--side", type=click.Choice(list(SIDES)), hidden=True)
def main(device: str, size: tuple[int, int], frames: int, rounds: int, side: str | None) -> None:
    """Runs both sides."""
    if side is not None:
        print(json.dumps(measure(side, device, size, frames)))
        return
    from pumice.hal_vulkan import shared_driver

    driver = shared_driver()
    name = driver.profiles[driver.select(device)].name
    devices = dict(zip(SIDES, (device, name), strict=True))
    found: dict[str, list[tuple[float, float]]] = {one: [] for one in SIDES}
    with some_display():
        for _ in range(rounds):
            for one in random.sample(list(SIDES), len(SIDES)):
                found[one].append(measure_apart(one, devices[one], size, frames))
    table = Table(title=f"{name}: a frame of {size[0]} x {size[1]}, {rounds} blocks of {frames} frames")
    for column in ("", "least", "median", "most"):
        table.add_column(column, justify="right" if column else "left")
    for what, values in zip(("frame, ms", "processor, ms"), range(2), strict=True):
        for one, blocks in found.items():
            table.add_row(f"{one}: {what}", *spread([block[values] for block in blocks]))
        table.add_row(
            f"ratio of rounds: {what.split(',')[0]}",
            *spread([ours[values] / theirs[values] for ours, theirs in zip(*found.values(), strict=True)]),
        )
    Console().print(table)


if __name__ == "__main__":
    main()
