"""The Mandelbrot set: a two-dimensional kernel, push constants by name, device time of the dispatch.

``python examples/mandelbrot.py [FILE.pgm]`` writes a picture that any image viewer opens.
"""

import sys
from pathlib import Path

import numpy as np

import pumice
from pumice import shaders

WIDTH, HEIGHT, MOST = 320, 240, 200

with pumice.open_device() as device:
    kernel = device.load_kernel(shaders.source_path("examples/mandelbrot"))
    members = kernel.pipeline.entry.push_constants.members
    print("push constants:", ", ".join(member.name for member in members))
    counts, timing = kernel.time(
        pumice.empty((HEIGHT, WIDTH), np.uint32),
        width=WIDTH,
        height=HEIGHT,
        max_iterations=MOST,
        left=-2.2,
        top=-1.2,
        step_x=3.2 / WIDTH,
        step_y=2.4 / HEIGHT,
    )
    print(f"{WIDTH} x {HEIGHT}: {timing.duration_ns / 1e6:.2f} ms, {timing.clock} ({timing.device_type})")
    inside = int((counts == MOST).sum())
    print(f"{inside} of {counts.size} points do not escape within {MOST} iterations")
    assert 0.1 < inside / counts.size < 0.4

    if len(sys.argv) > 1:
        grey = (255 * (1 - np.minimum(counts, MOST) / MOST) ** 4).astype(np.uint8)
        Path(sys.argv[1]).write_bytes(f"P5 {WIDTH} {HEIGHT} 255\n".encode() + grey.tobytes())
        print("wrote", sys.argv[1])
