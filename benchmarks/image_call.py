"""Calls of a kernel with images: on the device, from NumPy, and what making and reading an image costs alone.

Prints the least of several medians, in microseconds. A call with NumPy arrays fills an image, runs, and reads another.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import click
import numpy as np
from rich.console import Console
from rich.table import Table

import pumice

KERNEL = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) uniform sampler2D source;
layout(binding = 1, rgba8) writeonly uniform image2D target;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (all(lessThan(at, imageSize(target)))) imageStore(target, at, texelFetch(source, at, 0));
}"""
SIDES = (16, 256, 1024)


def microseconds(call: Callable[[], object], wait: Callable[[], None], batch: int) -> float:
    """The time of a call, waits for the device included once a batch."""
    medians = []
    for _ in range(5):
        times = []
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(batch):
                call()
            wait()
            times.append((time.perf_counter() - start) / batch)
        medians.append(statistics.median(times))
    return min(medians) * 1e6


@click.command()
@click.option("--device", "uri", default=None, help="The device; the best one by default.")
def main(uri: str | None) -> None:
    """Measures and prints a table."""
    table = Table("texels", "device images", "NumPy arrays", "asimage", "numpy()")
    with pumice.open_device(uri) as device:
        kernel = device.load_kernel(KERNEL)
        for side in SIDES:
            picture = np.zeros((side, side, 4), np.uint8)
            place = pumice.empty(picture.shape, np.uint8)
            image, target = device.asimage(picture), device.empty_image(picture.shape, "rgba8unorm")
            batch = 100 if side < 100 else 5
            figures = [
                microseconds(lambda: kernel(image, target), device.wait, batch),  # noqa: B023 (called at once)
                microseconds(lambda: kernel(picture, place), device.wait, batch),  # noqa: B023
                microseconds(lambda: device.asimage(picture), device.wait, batch),  # noqa: B023
                microseconds(target.numpy, device.wait, batch),
            ]
            table.add_row(f"{side} x {side}", *(f"{figure:.0f} µs" for figure in figures))
        Console().print(f"kernel calls with images on {device.name}", table, sep="\n")


if __name__ == "__main__":
    main()
