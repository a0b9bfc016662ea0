"""Time from a WGSL file to its first result: pumice beside wgpu-py, on the same driver.

Each run is a process of its own: it starts Python, imports pumice or wgpu, opens the device, loads one of 20 kernels,
calls it on 4,096 words and checks the result against the other side's. The parent measures the whole process. Sides
alternate in random order. No run finds its kernel in a cache: Mesa's cache is off, and pumice starts with a copy of a
folder where only its self-test of the driver has run, which happens once for a driver (``--cold`` leaves that out).

Kernels write workgroup memory before they read it: wgpu leaves its zeros to the driver, and lavapipe (Mesa 22.3) stores
none, so that results of wgpu that depend on them are wrong there.

The table has the medians, and the ratio of pumice to wgpu with its quartiles. The target is 1.5 for each kernel.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

WORDS = 4096
TARGET = 1.5
HEAD = "@group(0) @binding(0) var<storage, read_write> v: array<u32>;\n"
ARGUMENTS = "@builtin(global_invocation_id) g: vec3<u32>, @builtin(local_invocation_index) l: u32"


def kernel(body: str, *, size: int = 64, globals: str = "") -> str:
    """Returns a source whose invocation has index ``i`` of ``v``, ``l`` of its group, and a word ``x``."""
    start = f"let i = g.x; var x = v[i];\n{body}\nv[i] = x;"
    return f"{HEAD}{globals}\n@compute @workgroup_size({size})\nfn main({ARGUMENTS}) {{\n{start}\n}}\n"


KERNELS = {
    "add one": kernel("x = x + 1u;"),
    "reverse, 256 words": kernel(
        "t[l] = x; workgroupBarrier(); x = t[255u - l];", size=256, globals="var<workgroup> t: array<u32, 256>;"
    ),
    "reverse, 2,048 words": kernel(
        "t[l] = x; workgroupBarrier(); x = t[255u - l];", size=256, globals="var<workgroup> t: array<u32, 2048>;"
    ),
    "vectors, 16 KiB": kernel(
        "t[l * 4u] = vec4(x); workgroupBarrier(); x = t[(63u - l) * 4u].y;",
        globals="var<workgroup> t: array<vec4<u32>, 1024>;",
    ),
    "reduce structures": kernel(
        """t[l] = Monoid(x & 7u, x >> 3u, l, array(l, x));
for (var s = 1u; s < 256u; s = s * 2u) {
  workgroupBarrier(); var a = t[l]; if (l >= s) { let b = t[l - s]; a.a += b.a; a.b = max(a.b, b.b); a.d[1] ^= b.d[1]; }
  workgroupBarrier(); t[l] = a; }
x = t[l].a + t[l].b + t[l].d[1];""",
        size=256,
        globals="struct Monoid { a: u32, b: u32, c: u32, d: array<u32, 2> };\nvar<workgroup> t: array<Monoid, 256>;",
    ),
    "scan": kernel(
        """t[l] = x;
for (var s = 1u; s < 128u; s = s << 1u) {
  workgroupBarrier(); var y = 0u; if (l >= s) { y = t[l - s]; } workgroupBarrier(); t[l] += y; }
x = t[l];""",
        size=128,
        globals="var<workgroup> t: array<u32, 128>;",
    ),
    "tiles": kernel(
        """let r = l / 16u; let c = l % 16u; var sum = 0u;
for (var k = 0u; k < 4u; k++) {
  a[r][c] = v[k * 256u + l]; b[r][c] = v[l]; workgroupBarrier();
  for (var j = 0u; j < 16u; j++) { sum += a[r][j] * b[j][c]; } workgroupBarrier(); }
storageBarrier(); x = sum * 0u + r;""",
        size=256,
        globals="var<workgroup> a: array<array<u32, 16>, 16>;\nvar<workgroup> b: array<array<u32, 16>, 16>;",
    ),
    "histogram": kernel(
        "atomicStore(&bins[l], 0u); workgroupBarrier();\n"
        "atomicAdd(&bins[x & 255u], 1u); workgroupBarrier(); x = atomicLoad(&bins[l]);",
        size=256,
        globals="var<workgroup> bins: array<atomic<u32>, 256>;",
    ),
    "array of a function": kernel(
        """var a: array<u32, 64>;
for (var k = 0u; k < 64u; k++) { a[(k * 7u + x) % 64u] += k; } x = a[x % 64u];"""
    ),
    "private array": kernel(
        "for (var k = 0u; k < 32u; k++) { a[(k + x) % 32u] = k; } x = a[l % 32u];",
        globals="var<private> a: array<u32, 32>;",
    ),
    "Collatz": kernel(
        """var n = 0u;
while (x > 1u && n < 200u) { x = select(x / 2u, 3u * x + 1u, x % 2u == 1u); n++; }
x = n;"""
    ),
    "bitonic sort": kernel(
        """t[l] = x; workgroupBarrier();
for (var k = 2u; k <= 256u; k *= 2u) { for (var j = k / 2u; j > 0u; j /= 2u) {
  let o = l ^ j; let p = t[l]; let q = t[o]; workgroupBarrier();
  t[l] = select(max(p, q), min(p, q), ((l & k) == 0u) == (l < o)); workgroupBarrier(); } }
x = t[l];""",
        size=256,
        globals="var<workgroup> t: array<u32, 256>;",
    ),
    "functions of floats": kernel(
        """let f = f32(x % 100u);
x = u32(1000.0 * (2.0 + sin(f) + sqrt(f) + exp2(-f) + floor(f * 0.3)));"""
    ),
    "random numbers": kernel(
        "for (var k = 0u; k < 16u; k++) { x = pcg(x); }",
        globals="""fn pcg(s: u32) -> u32 { let n = s * 747796405u + 2891336453u;
  let w = ((n >> ((n >> 28u) + 4u)) ^ n) * 277803737u; return (w >> 22u) ^ w; }""",
    ),
    "switch": kernel(
        """switch (x % 5u) {
  case 0u: { x += 1u; } case 1u, 2u: { x *= 3u; } case 3u: { x = ~x; } default: { x >>= 1u; } }"""
    ),
    "Mandelbrot": kernel(
        """let c = vec2(f32(i % 64u) / 24.0 - 2.0, f32(i / 64u) / 32.0 - 1.0); var z = vec2(0.0); var n = 0u;
while (n < 64u && dot(z, z) < 4.0) { z = vec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c; n++; } x = n;"""
    ),
    "matrices": kernel(
        """let m = mat3x3<f32>(1.0, 2.0, 0.0, 0.0, 1.0, 4.0, 5.0, 6.0, 0.0);
let p = vec3<f32>(vec3(x, l, 1u) % vec3(16u));
x = u32(dot(transpose(m) * (m * p), vec3(1.0)) + abs(determinant(m)));"""
    ),
    "packing": kernel("x = pack4x8unorm(unpack4x8unorm(x).wzyx) ^ pack2x16float(unpack2x16float(x & 0x3fff3fffu));"),
    "bits": kernel(
        """x = countOneBits(x) + reverseBits(x) + extractBits(x, 3u, 7u);
x += firstLeadingBit(x | 1u) + insertBits(x, l, 4u, 4u);"""
    ),
    "structures by value": kernel(
        """var r = Ray(vec3<i32>(i32(l)), vec3(1, -1, 2));
for (var k = 0; k < 8; k++) { r = step(r, k); }
x = u32(r.at.x + r.at.z);""",
        globals="""struct Ray { at: vec3<i32>, to: vec3<i32> };
fn step(r: Ray, k: i32) -> Ray { var s = r; s.at += s.to * k; if (s.at.y < 0) { s.to.y = -s.to.y; } return s; }""",
    ),
}


def run_pumice(source: Path, groups: int) -> np.ndarray:
    import pumice

    with pumice.open_device(persistent_cache=False) as device:
        result = device.load_kernel(source)(np.arange(WORDS, dtype=np.uint32), groups=groups)
    return np.asarray(result)


def run_wgpu(source: Path, groups: int) -> np.ndarray:
    import wgpu

    adapters = [a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] == "Vulkan"]
    if not adapters:
        raise click.ClickException("wgpu finds no Vulkan adapter to compare with")
    device = adapters[0].request_device_sync()
    module = device.create_shader_module(code=source.read_text())
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    buffer = device.create_buffer_with_data(data=np.arange(WORDS, dtype=np.uint32), usage=usage)
    entries = [{"binding": 0, "resource": {"buffer": buffer}}]
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
    encoder = device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    compute.set_bind_group(0, group)
    compute.dispatch_workgroups(groups)
    compute.end()
    device.queue.submit([encoder.finish()])
    return np.frombuffer(device.queue.read_buffer(buffer), np.uint32)


SIDES = {"pumice": run_pumice, "wgpu": run_wgpu}


def timed(side: str, source: Path, groups: int, warm: Path | None) -> tuple[float, np.ndarray]:
    """Runs a side in a process of its own; returns its seconds and the result."""
    with tempfile.TemporaryDirectory() as folder:
        if warm is not None:
            shutil.copytree(warm, folder, dirs_exist_ok=True)
        environment = {**os.environ, "PUMICE_CACHE_DIR": folder, "MESA_SHADER_CACHE_DISABLE": "true"}
        result = Path(folder, "result.npy")
        command = [sys.executable, __file__, "--worker", side, str(source), str(groups), str(result)]
        start = time.perf_counter()
        subprocess.run(command, check=True, env=environment, timeout=300, stderr=subprocess.PIPE)
        return time.perf_counter() - start, np.load(result)


@click.command()
@click.option("--runs", default=5, show_default=True, help="Runs of each kernel on each side.")
@click.option("--only", help="Kernels whose names contain this.")
@click.option("--cold", is_flag=True, help="Let pumice test the driver in each run.")
def main(runs: int, only: str | None, cold: bool) -> None:
    """Times first calls; the exit status is 1 if a median ratio is above the target."""
    chosen = {name: text for name, text in KERNELS.items() if only is None or only in name}
    table = Table("kernel", "pumice s", "wgpu s", "ratio", "quartiles")
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        source, warm = Path(folder, "kernel.wgsl"), Path(folder, "warm")
        warm.mkdir()
        if not cold:
            any_kernel = "#version 450\nlayout(binding = 0) buffer V { uint v[]; };\nvoid main() { v[0]++; }\n"
            Path(folder, "warm.comp").write_text(any_kernel)
            environment = {**os.environ, "PUMICE_CACHE_DIR": str(warm)}
            command = [sys.executable, __file__, "--worker", "pumice", f"{folder}/warm.comp", "1", f"{folder}/warm.npy"]
            subprocess.run(command, check=True, env=environment, stderr=subprocess.PIPE)
        for name, text in chosen.items():
            source.write_text(text)
            size = int(text.partition("@workgroup_size(")[2].partition(")")[0])
            times: dict[str, list[float]] = {side: [] for side in SIDES}
            for _ in range(runs):
                results = []
                for side in random.sample(list(SIDES), len(SIDES)):
                    seconds, result = timed(side, source, WORDS // size, None if cold or side == "wgpu" else warm)
                    times[side].append(seconds)
                    results.append(result)
                if not np.array_equal(results[0], results[1]):
                    raise click.ClickException(f"{name}: pumice and wgpu give different results")
            ratios = np.divide(times["pumice"], times["wgpu"])
            low, ratio, high = np.quantile(ratios, [0.25, 0.5, 0.75])
            medians = [f"{np.median(times[side]):.2f}" for side in SIDES]
            table.add_row(name, *medians, f"{ratio:.2f}", f"{low:.2f}-{high:.2f}")
            print(f"{name}: {ratio:.2f}", file=sys.stderr, flush=True)
            missed += [name] if ratio > TARGET else []
    Console(width=100).print(table)
    if missed:
        raise click.ClickException(f"above {TARGET}: {', '.join(missed)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        np.save(sys.argv[5], SIDES[sys.argv[2]](Path(sys.argv[3]), int(sys.argv[4])))
    else:
        main()
