"""What does ``sanitize=True`` cost?

Each example shader runs once with and once without it in turn, in one workgroup grid that fills its arrays, and must
leave the same bits. A line gives the median of the calls' times without it, and the ratio of the two. It is a tool for
tests: a factor of two or three is what to expect, more for kernels that do little but access memory.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Final

import click
import numpy as np

import pumice

_SHADERS: Final = Path(__file__).parents[1] / "shaders" / "examples"
_ELEMENTS: Final = 1 << 16
_GROUPS: Final = (16, 16, 1)


def arguments(kernel: pumice.Kernel, seed: int) -> list[np.ndarray]:
    """Small numbers for every binding."""
    rng = np.random.default_rng(seed)
    found = []
    for parameter in kernel.parameters:
        element = parameter.binding.element
        assert element is not None
        assert element.dtype is not None
        found.append(rng.integers(0, 200, _ELEMENTS).astype(element.dtype))
    return found


def push_constants(kernel: pumice.Kernel) -> bytes | None:
    """Sizes of 256, whatever they are of."""
    block = kernel.pipeline.entry.push_constants
    return None if block is None else np.full(block.size // 4, 256, np.uint32).tobytes()


@click.command()
@click.option("--device", default="vulkan", show_default=True)
@click.option("--repetitions", default=15, show_default=True)
def main(device: str, repetitions: int) -> None:
    """Prints a line for each shader."""
    with pumice.open_device(device) as opened:
        print(f"{opened.name}, {repetitions} calls each")
        for path in sorted(_SHADERS.glob("*.spv")):
            with opened.load_kernel(path) as plain, opened.load_kernel(path, sanitize=True) as watched:
                push = push_constants(plain)
                times: dict[pumice.Kernel, list[float]] = {plain: [], watched: []}
                results = {}
                for _ in range(repetitions):
                    for kernel, seconds in times.items():
                        arrays = [opened.asarray(one) for one in arguments(plain, 1)]
                        opened.hal.wait_idle()
                        start = time.perf_counter()
                        kernel(*arrays, groups=_GROUPS, push=push)
                        opened.hal.wait_idle()
                        seconds.append(time.perf_counter() - start)
                        results[kernel] = [one.numpy().tobytes() for one in arrays]
                if results[plain] != results[watched]:
                    raise SystemExit(f"{path.stem}: the results differ")
                before, after = (statistics.median(times[one]) for one in (plain, watched))
                print(f"{path.stem:14} {1e3 * before:8.2f} ms   x {after / before:.2f}")


if __name__ == "__main__":
    main()
