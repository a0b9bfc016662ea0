"""What does a call of a compiled program cost? pumice beside IREE's runtime, on the same modules and device.

``simple_mul`` is called on device arrays, beside the ``iree.runtime`` package, in blocks that alternate in random
order. The larger programs alternate with ``iree-benchmark-module``, IREE's own benchmark driver. The last row is a
process from its start to its first result, beside ``iree-run-module``.

The ratio is that of the medians. The ratio of the best times is beside it: on a machine whose cores are busy the peer's
calls take a hundred times their best, which flatters pumice.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
from peer_programs import PROGRAMS, Program, compiled, tool
from rich.console import Console
from rich.table import Table

import pumice

TARGETS = {"simple_mul": 1.0, "collatz": 0.5, "mnist_like": 1.0, "lstm_like": 1.0}
BLOCK = 20


def pumice_call(session: pumice.Session, program: Program) -> Callable[[], object]:
    """A call on device arrays that are there already."""
    module = session.load(compiled(program))
    function = session.lookup(f"{module.name}.{program.function}")
    arrays = [session.device.asarray(array) for array in program.arrays()]
    return lambda: function(*arrays)


def peer_call(program: Program) -> Callable[[], object]:
    """The same with the ``iree.runtime`` package."""
    import iree.runtime as peer

    device = peer.get_device("vulkan")
    config = peer.Config(device=device)
    module = peer.VmModule.copy_buffer(config.vm_instance, compiled(program).read_bytes())
    function = peer.load_vm_modules(module, config=config)[0][program.function]
    arrays = [peer.asdevicearray(device, array) for array in program.arrays()]
    return lambda: function(*arrays)


def alternate(calls: dict[str, Callable[[], object]], samples: int) -> dict[str, list[float]]:
    """Seconds a call, in blocks that alternate in random order."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(max(3, samples // BLOCK)):
        for name in random.sample(list(calls), len(calls)):
            call = calls[name]
            call()
            for _ in range(BLOCK):
                begin = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - begin)
    return times


def peer_benchmark(program: Program, repetitions: int) -> list[float]:
    """Seconds a call by ``iree-benchmark-module``, one mean a repetition."""
    command = [
        tool("iree-benchmark-module"),
        "--device=vulkan",
        f"--module={compiled(program)}",
        f"--function={program.function}",
        *program.flags(),
        "--benchmark_format=json",
        f"--benchmark_repetitions={repetitions}",
        "--benchmark_min_time=0.1s",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    runs = json.loads(result.stdout[result.stdout.index("{") :])["benchmarks"]
    scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    return [run["real_time"] * scale[run["time_unit"]] for run in runs if run.get("run_type") != "aggregate"]


def timed_process(command: list[str | Path]) -> float:
    """Seconds from a process's start to its end."""
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PUMICE_VALIDATION": "0"})
    return time.perf_counter() - begin


@click.command()
@click.option(
    "--device", "uri", default="vulkan", help="Device URI for pumice; IREE takes its own first Vulkan device."
)
@click.option("--samples", default=1000, show_default=True, help="Calls of simple_mul a side; the others take a tenth.")
@click.option(
    "--rounds", default=5, show_default=True, help="Turns of the sides in the rows with iree-benchmark-module."
)
@click.option("--json", "json_file", type=click.Path(), help="Write the raw samples (seconds) here.")
@click.option("--check", is_flag=True, help="Exit with 1 if a target is missed.")
def main(uri: str, samples: int, rounds: int, json_file: str | None, check: bool) -> None:
    """Prints medians and the ratio of pumice to IREE's runtime."""
    raw: dict[str, dict[str, list[float]]] = {}
    with pumice.open_device(uri) as device:
        mul = PROGRAMS["simple_mul"]
        with pumice.Session(device) as session:
            raw["simple_mul"] = alternate(
                {"pumice": pumice_call(session, mul), "iree.runtime": peer_call(mul)}, samples
            )
        for name in ("collatz", "mnist_like", "lstm_like"):
            program = PROGRAMS[name]
            times = raw[name] = {"pumice": [], "iree-benchmark-module": []}
            with pumice.Session(device) as session:
                call = pumice_call(session, program)
                for _ in range(rounds):
                    times["pumice"] += alternate({"pumice": call}, samples // 10 // rounds)["pumice"]
                    times["iree-benchmark-module"] += peer_benchmark(program, 3)
        name = device.name
    digits = PROGRAMS["mnist_like"]
    ours: list[str | Path] = [sys.executable, "-m", "pumice.tools.cli", "run", compiled(digits), f"--device={uri}"]
    theirs: list[str | Path] = [tool("iree-run-module"), "--device=vulkan", f"--module={compiled(digits)}"]
    call_flags = [f"--function={digits.function}", *digits.flags()]
    cold = raw["first result of a process"] = {"pumice": [], "iree-run-module": []}
    for _ in range(2 * rounds):
        cold["pumice"].append(timed_process([*ours, *call_flags]))
        cold["iree-run-module"].append(timed_process([*theirs, *call_flags]))

    table = Table(title=f"calls of compiled programs on {name}")
    for column in ("program", "side", "median µs", "best µs", "ratio", "of bests", "target"):
        table.add_column(column, justify="left" if column in ("program", "side") else "right", no_wrap=column == "side")
    missed = False
    for case, times in raw.items():
        medians = {side: float(np.median(values)) for side, values in times.items()}
        for side, values in times.items():
            ratio = medians["pumice"] / medians[side]
            target = TARGETS.get(case)
            missed = missed or (target is not None and side != "pumice" and ratio > target)
            table.add_row(
                case if side == "pumice" else "",
                side,
                f"{medians[side] * 1e6:,.1f}",
                f"{min(values) * 1e6:,.1f}",
                "" if side == "pumice" else f"{ratio:.3f}",
                "" if side == "pumice" else f"{min(times['pumice']) / min(values):.3f}",
                "" if side == "pumice" or target is None else f"≤ {target}",
            )
    Console(width=None if sys.stdout.isatty() else 110).print(table)
    if json_file:
        Path(json_file).write_text(json.dumps(raw))
    if check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
