"""What a call costs with results in new arrays, in arrays of the caller, and in donated memory.

    python benchmarks/out_parameters.py [--device URI]

For one multiplication of four floats it prints the time that the calling thread computes in one call, in microseconds:
the smallest and the median of rounds in turn, so that other load counts little.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

import pumice

SOURCE = """
func.func @mul(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
ROUNDS = 30
CALLS = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="a device URI; without it the best one")
    device = pumice.open_device(parser.parse_args().device)
    with pumice.Session(device) as session:
        name = session.load(pumice.compile(SOURCE, targets=("vulkan", "reference"))).name
        mul = session.lookup(f"{name}.mul")
        ones = np.ones(4, np.float32)
        a, b, c = (device.asarray(ones) for _ in range(3))
        held = [device.asarray(ones)]

        def donate() -> None:
            held[0] = mul(held[0], b, donate=0)

        ways: dict[str, Callable[[], object]] = {
            "new array": lambda: mul(a, b),
            "out=": lambda: mul(a, b, out=c),
            "donate=": donate,
        }
        for call in ways.values():
            call()
        for result in (mul(a, b), mul(a, b, out=c), held[0]):
            np.testing.assert_array_equal(result.numpy(), ones)
        print(f"on {device.name}")
        times: dict[str, list[float]] = {way: [] for way in ways}
        for round_ in range(ROUNDS + 3):
            for way, call in ways.items():
                begin = time.thread_time()
                for _ in range(CALLS):
                    call()
                if round_ >= 3:
                    times[way].append((time.thread_time() - begin) / CALLS * 1e6)
        for way, found in times.items():
            print(f"{way:10}  {min(found):6.1f} us  median {statistics.median(found):6.1f} us")


if __name__ == "__main__":
    main()
