"""What does a round of a loop cost? The same StableHLO, compiled by pumice and by iree-compile.

Each program runs in turn: compiled by pumice on pumice, compiled by pumice on IREE's runtime, compiled by iree-compile
on IREE's runtime. IREE's runtime is timed by ``iree-benchmark-module``, its own driver; pumice in this process, with
arguments on the device. Ratios are those of a turn; the range over all turns is beside their median.

The last row is a loop of four round trips between host and device, one module of iree-compile's on both runtimes:
pumice and the ``iree.runtime`` package, each in a process of its own, in blocks that alternate (as in
``call_latency.py``), with the 95 % interval of the ratio. ``--cpu 0`` keeps all sides on one core.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from c_program import stay_on_core
from call_latency import beside_peer
from peer_programs import BUILD, tool
from rich.console import Console
from rich.table import Table

import pumice

SCAN = """
func.func @main(%x: tensor<64xf32>, %a: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<1000x64xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<1000x64xf32>
  %0:3 = stablehlo.while(%i = %zero, %v = %x, %all = %none) : tensor<i32>, tensor<64xf32>, tensor<1000x64xf32>
  cond {
    %limit = stablehlo.constant dense<1000> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0]
      : (tensor<64x64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %3 = stablehlo.add %2, %x : tensor<64xf32>
    %4 = stablehlo.reshape %3 : (tensor<64xf32>) -> tensor<1x64xf32>
    %5 = stablehlo.dynamic_update_slice %all, %4, %i, %zero
      : (tensor<1000x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1000x64xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %6, %3, %5 : tensor<i32>, tensor<64xf32>, tensor<1000x64xf32>
  }
  return %0#1, %0#2 : tensor<64xf32>, tensor<1000x64xf32>
}
"""
COLLATZ = """
func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%v = %n, %k = %zero) : tensor<i32>, tensor<i32>
  cond {
    %1 = stablehlo.compare NE, %v, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.remainder %v, %two : tensor<i32>
    %3 = stablehlo.compare EQ, %2, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %4 = "stablehlo.if"(%3) ({
      %5 = stablehlo.divide %v, %two : tensor<i32>
      stablehlo.return %5 : tensor<i32>
    }, {
      %5 = stablehlo.multiply %v, %three : tensor<i32>
      %6 = stablehlo.add %5, %one : tensor<i32>
      stablehlo.return %6 : tensor<i32>
    }) : (tensor<i1>) -> tensor<i32>
    %7 = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %4, %7 : tensor<i32>, tensor<i32>
  }
  return %0#1 : tensor<i32>
}
"""


FOUR_ROUNDS_TARGET = 0.6  # of the time with iree.runtime


@dataclass(frozen=True)
class Case:
    """A program and its arguments, by shape and value."""

    title: str
    text: str
    arguments: tuple[tuple[tuple[int, ...], str, float], ...]

    def arrays(self) -> list[np.ndarray]:
        """The arguments."""
        return [np.full(shape, value, dtype) for shape, dtype, value in self.arguments]

    def flags(self) -> list[str]:
        """The arguments as IREE's tools take them."""
        names = {"float32": "f32", "int32": "i32"}
        return [
            f"--input={''.join(f'{n}x' for n in shape)}{names[dtype]}={value:g}"
            for shape, dtype, value in self.arguments
        ]


CASES = {
    "scan": Case("1,000 rounds, results stacked", SCAN, (((64,), "float32", 0.5), ((64, 64), "float32", 0.01))),
    "collatz": Case("178 rounds and a branch in each, until the device says so", COLLATZ, (((), "int32", 871),)),
}


def modules(name: str, case: Case) -> tuple[Path, Path]:
    """The module that pumice makes of a program, and the one that iree-compile makes."""
    BUILD.mkdir(exist_ok=True)
    source, ours, theirs = (BUILD / f"loops_{name}.{suffix}" for suffix in ("mlir", "vmfb", "iree.vmfb"))
    source.write_text(case.text)
    ours.write_bytes(pumice.compile(source))
    command = [tool("iree-compile"), "--iree-hal-target-device=vulkan", "--iree-input-type=stablehlo", source]
    subprocess.run([*command, "-o", theirs], check=True)
    return ours, theirs


def peer_seconds(module: Path, case: Case) -> float:
    """Seconds a call by ``iree-benchmark-module``."""
    flags = ["--device=vulkan", f"--module={module}", "--function=main", *case.flags(), "--benchmark_format=json"]
    command = [tool("iree-benchmark-module"), *flags, "--benchmark_min_time=0.2s"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (run,) = json.loads(output[output.index("{") :])["benchmarks"]
    return run["real_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[run["time_unit"]]


def seconds(function: pumice.SessionFunction, arrays: list[pumice.DeviceArray], count: int) -> float:
    """The median of some calls."""
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        function(*arrays)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def measure(name: str, case: Case, device: pumice.Device, turns: int, count: int) -> dict[str, list[float]]:
    """Seconds of each side, one number a turn; the results are held against the definitions first."""
    ours, theirs = modules(name, case)
    times: dict[str, list[float]] = {"pumice": [], "pumice's on IREE's runtime": [], "iree-compile's": []}
    with pumice.Session(device=device) as session, pumice.Session(device="reference") as reference:
        session.load(ours)
        reference.load(pumice.compile(case.text, targets=("reference",)))
        found, expected = (each.call("module.main", *case.arrays()) for each in (session, reference))
        for one, other in zip(
            *(each if isinstance(each, tuple) else (each,) for each in (found, expected)), strict=True
        ):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), 1e-4)
        function = session.lookup("module.main")
        arrays = [device.asarray(array) for array in case.arrays()]
        seconds(function, arrays, 5)
        for _ in range(turns):
            times["pumice"].append(seconds(function, arrays, count))
            times["pumice's on IREE's runtime"].append(peer_seconds(ours, case))
            times["iree-compile's"].append(peer_seconds(theirs, case))
    return times


@click.command()
@click.option(
    "--device", "uri", default="vulkan", help="Device URI for pumice; IREE takes its own first Vulkan device."
)
@click.option("--turns", type=click.IntRange(1), default=5, show_default=True, help="Turns of the sides.")
@click.option("--samples", type=click.IntRange(1), default=20, show_default=True, help="Calls of pumice a turn.")
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=12,
    show_default=True,
    help="Blocks of each side of the four round trips.",
)
@click.option("--cpu", type=click.IntRange(0), metavar="N", help="Keep all sides on this one core (Linux).")
@click.option("--json", "json_file", type=click.Path(), help="Write the raw samples (seconds) here.")
@click.option("--check", is_flag=True, help="Exit with 1 if a target is missed.")
def main(uri: str, turns: int, samples: int, rounds: int, cpu: int | None, json_file: str | None, check: bool) -> None:
    """Prints medians and the ratio of pumice to the others."""
    stay_on_core(cpu)
    with pumice.open_device(uri) as device:
        raw = {name: measure(name, case, device, turns, samples) for name, case in CASES.items()}
        table = Table(title=f"loops on {device.name}")
    for column in ("program", "compiled by, run by", "median ms", "pumice / this", "range"):
        table.add_column(column, justify="left" if column.startswith(("program", "compiled")) else "right")
    missed = False
    for name, times in raw.items():
        for side, values in times.items():
            ratios = sorted(one / other for one, other in zip(times["pumice"], values, strict=True))
            ratio = statistics.median(ratios)
            missed = missed or (side == "iree-compile's" and ratio > 1)
            shown = () if side == "pumice" else (f"{ratio:.3f}", f"{ratios[0]:.3f} to {ratios[-1]:.3f}")
            table.add_row(
                CASES[name].title if side == "pumice" else "", side, f"{statistics.median(values) * 1e3:,.2f}", *shown
            )
    trips, (middle, low, high) = beside_peer("four_rounds", uri, samples * rounds, rounds)
    missed = missed or middle > FOUR_ROUNDS_TARGET
    for side, values in trips.items():
        shown = () if side == "pumice" else (f"{statistics.median(trips['pumice']) / statistics.median(values):.3f}",)
        if side == "iree.runtime":  # whose blocks alternate with pumice's
            shown = (f"{middle:.3f}", f"{low:.3f} to {high:.3f}")
        first = "four round trips" if side == "pumice" else ""
        table.add_row(first, f"iree-compile, {side}", f"{statistics.median(values) * 1e3:,.2f}", *shown)
    raw["four_rounds"] = trips
    Console(width=None if sys.stdout.isatty() else 130).print(table)
    if json_file:
        Path(json_file).write_text(json.dumps(raw))
    if check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
