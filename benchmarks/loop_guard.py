"""What the loop guard costs: calls of kernels and of a program with it and without it, on a driver that cuts loops.

Two processes at a time take turns, one with the guard and one without: in each round each makes a call and waits for
it, in an order that changes. Taken is the CPU time of the process, with the driver's threads, which other work on the
machine disturbs less than the time that passes. Where a process has its memory makes a difference that stays, so there
are several pairs. Printed are the medians, and the median of the ratios of a round with its quartiles.

    python benchmarks/loop_guard.py [--pairs 8] [--rounds 25]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

import pumice

HEAD = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) writeonly buffer B { float b[]; };
layout(push_constant) uniform Push { uint n; };
shared float tile[64];
void main() { uint g = gl_GlobalInvocationID.x; float c = 0.0; BODY b[g] = c; }
"""
# Name, body, passes of a loop, invocations.
KERNELS = (
    ("no loop", "c = a[g] * float(n);", 1, 1 << 18),
    ("8 multiplications", "for (uint i = 0; i < n; i++) c = c * 0.5 + float(i);", 8, 1 << 18),
    ("sum of 16", "for (uint i = 0; i < n; i++) c += a[(g + i) & 1023];", 16, 1 << 16),
    ("sum of 256", "for (uint i = 0; i < n; i++) c += a[(g + i) & 1023];", 256, 1 << 13),
    ("sum of 4096", "for (uint i = 0; i < n; i++) c += a[(g + i) & 1023];", 4096, 1 << 9),
    ("product of 64x64", "for (uint j = 0; j < n; j++) for (uint i = 0; i < n; i++) c += a[i] * a[j];", 64, 1 << 9),
    ("search of 256", "for (uint i = 0;; i++) { c += a[i]; if (c >= float(n)) break; }", 256, 1 << 13),
    (
        "tiles of 256",
        "for (uint k = 0; k < n; k += 64) { tile[gl_LocalInvocationIndex] = a[k + gl_LocalInvocationIndex]; barrier();"
        " for (uint i = 0; i < 64; i++) c += tile[i]; barrier(); }",
        256,
        1 << 12,
    ),
)
PROGRAM = """module @m {
  func.func public @main(%x: tensor<64x256xf32>, %w: tensor<256x256xf32>, %b: tensor<256xf32>) -> tensor<64x256xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
    %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<256xf32>) -> tensor<64x256xf32>
    %2 = stablehlo.add %0, %1 : tensor<64x256xf32>
    %3 = stablehlo.tanh %2 : tensor<64x256xf32>
    return %3 : tensor<64x256xf32>
  }
}"""


def serve(guard: bool) -> None:
    """Answers each line, a number of a case, with the nanoseconds of one call."""
    device = pumice.open_device(loop_guard=guard, persistent_cache=False)
    calls: list[Callable[[], object]] = []
    for _, body, passes, count in KERNELS:
        kernel = device.load_kernel(HEAD.replace("BODY", body))
        arrays = {"A": device.asarray(np.ones(4096, np.float32)), "B": device.empty(count)}
        if count > 4096 and "a[g]" in body:
            arrays["A"] = device.asarray(np.ones(count, np.float32))
        taken = [arrays[p.binding.name] for p in kernel.parameters]
        calls.append(lambda kernel=kernel, taken=taken, n=passes: (kernel(*taken, n=n), device.wait()))  # type: ignore[misc]
    with pumice.Session(device) as session:
        session.append_module_from_memory(pumice.compile(PROGRAM))
        function = session.lookup("m.main")
        inputs = [device.asarray(np.ones(s, np.float32) / 256) for s in ((64, 256), (256, 256), (256,))]
        calls.append(lambda: function(*inputs))
        for call in calls:
            for _ in range(5):
                call()
        print("ready", flush=True)
        for line in sys.stdin:
            call = calls[int(line)]
            begin = time.process_time_ns()
            call()
            print(time.process_time_ns() - begin, flush=True)


def main() -> None:
    """Runs the two processes and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--serve", choices=("on", "off"))
    options = parser.parse_args()
    if options.serve:
        serve(options.serve == "on")
        return
    with pumice.open_device() as device:
        print(f"{device.name}; {options.pairs} pairs, {options.rounds} rounds each")
    names = [*(one[0] for one in KERNELS), "network layer"]
    times: dict[tuple[str, int], list[int]] = {(mode, case): [] for mode in ("on", "off") for case in range(len(names))}
    for _ in range(options.pairs):
        measure_pair(times, options.rounds)
    print(f"{'':20} {'off':>9} {'on':>9} {'on/off':>7}  quartiles")
    for case, name in enumerate(names):
        on, off = times["on", case], times["off", case]
        low, middle, high = statistics.quantiles([one / other for one, other in zip(on, off, strict=True)], n=4)
        print(
            f"{name:20} {statistics.median(off) / 1e3:6.0f} us {statistics.median(on) / 1e3:6.0f} us {middle:7.3f}  "
            f"{low:.3f} to {high:.3f}"
        )


def measure_pair(times: dict[tuple[str, int], list[int]], rounds: int) -> None:
    """Adds the times of a pair of processes, started in turn."""
    workers = {
        mode: subprocess.Popen(
            [sys.executable, __file__, "--serve", mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for mode in ("on", "off")
    }

    def ask(mode: str, case: int) -> int:
        worker = workers[mode]
        assert worker.stdin is not None and worker.stdout is not None
        print(case, file=worker.stdin, flush=True)
        return int(worker.stdout.readline())

    for worker in workers.values():
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    for case in range(len(KERNELS) + 1):
        for turn in range(rounds):
            for mode in ("on", "off") if turn % 2 else ("off", "on"):
                times[mode, case].append(ask(mode, case))
    for worker in workers.values():
        assert worker.stdin is not None
        worker.stdin.close()
        worker.wait()


if __name__ == "__main__":
    main()
