"""What does a call of a compiled program cost? pumice beside IREE's runtime, on the same modules and device.

``simple_mul`` and the whole programs are called on device arrays, beside the ``iree.runtime`` package. Each side is a
process of its own, in blocks that alternate in random order; the one that is not measured is stopped, because the
threads of the peer's runtime spin while it is idle. ``--cpu 0`` keeps both on one core. Then larger programs alternate
with ``iree-benchmark-module``, IREE's own benchmark driver. The last row is a process from its start to its first
result, beside ``iree-run-module``.

The rows "driver alone" are what no runtime can save: the submissions of a call made again by bare native calls, and a
wait after each.

The ratio of the first kind is the median over the rounds of (median of pumice's block / median of the peer's), with a
95 % interval; that of the others is the ratio of the medians. Wake-ups of threads cost from 5 to 250 µs from one hour
to the next, and both sides wait for them: run ``submit_wait.py`` beside it to see which it was.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click
import numpy as np
from _program_worker import pumice_call
from c_program import stay_on_core
from peer_programs import PROGRAMS, WHOLE_PROGRAMS, Program, compiled, tool
from rich.console import Console
from rich.table import Table
from timed_process import TimedProcess, Times, ratio

TARGETS = {"simple_mul": 0.6, "collatz": 0.5, "mnist_like": 1.0, "lstm_like": 1.0, **dict.fromkeys(WHOLE_PROGRAMS, 0.9)}
WORKER = Path(__file__).with_name("_program_worker.py")
WARM_UP = 3
DRIVER = "driver alone"


def beside_peer(name: str, uri: str, samples: int, rounds: int) -> tuple[dict[str, list[float]], tuple[float, ...]]:
    """Seconds a call of each side, in processes of their own and in turn; the ratio and its 95 % interval."""
    blocks: dict[str, list[Times]] = {"pumice": [], "iree.runtime": [], DRIVER: []}
    sides: dict[str, TimedProcess] = {}
    with ExitStack() as stack:
        for side, word in (("pumice", "pumice"), ("iree.runtime", "iree")):
            command = [sys.executable, WORKER, word, name, uri]
            sides[side] = stack.enter_context(TimedProcess(command, f"{side} with {name}"))
            sides[side].pause()
        results = []
        for process in sides.values():
            process.resume()
            results.append(process.ask("result", 0))
            process.pause()
        if not np.allclose(*results, 1e-3, 1e-4):
            raise click.ClickException(f"{name}: the results of both sides differ")
        for _ in range(rounds):
            for side in random.sample(list(sides), len(sides)):
                sides[side].resume()
                count = WARM_UP + max(3, samples // rounds)
                blocks[side].append(np.array(sides[side].ask("call", count)[WARM_UP:]) * 1e-9)
                if side == "pumice":
                    blocks[DRIVER].append(np.array(sides[side].ask("driver", count)[WARM_UP:]) * 1e-9)
                sides[side].pause()
    raw = {side: [float(each) for block in taken for each in block] for side, taken in blocks.items()}
    return raw, ratio(blocks["pumice"], blocks["iree.runtime"])


def our_times(call: Callable[[], object], count: int) -> list[float]:
    """Seconds a call."""
    call()
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
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
@click.option("--samples", default=1000, show_default=True, help="Calls of simple_mul a side; the others take fewer.")
@click.option("--rounds", default=10, show_default=True, help="Turns of the sides.")
@click.option("--cpu", type=click.IntRange(0), metavar="N", help="Keep both sides on this one core (Linux).")
@click.option("--case", "words", multiple=True, metavar="WORD", help="Only the rows with one of these in their name.")
@click.option("--json", "json_file", type=click.Path(), help="Write the raw samples (seconds) here.")
@click.option("--check", is_flag=True, help="Exit with 1 if a target is missed.")
def main(
    uri: str,
    samples: int,
    rounds: int,
    cpu: int | None,
    words: tuple[str, ...],
    json_file: str | None,
    check: bool,
) -> None:
    """Prints medians and the ratio of pumice to IREE's runtime."""
    stay_on_core(cpu)
    raw: dict[str, dict[str, list[float]]] = {}
    ratios: dict[str, tuple[float, ...]] = {}

    def is_wanted(case: str) -> bool:
        return not words or any(word in case for word in words)

    for name in filter(is_wanted, ("simple_mul", *WHOLE_PROGRAMS)):
        count = samples if name == "simple_mul" else samples // 4
        raw[name], ratios[name] = beside_peer(name, uri, count, rounds)
    for name in filter(is_wanted, ("collatz", "mnist_like", "lstm_like")):
        program = PROGRAMS[name]
        times = raw[name] = {"pumice": [], "iree-benchmark-module": []}
        with ExitStack() as stack:
            call = pumice_call(stack, program, uri)
            for _ in range(rounds // 2):
                times["pumice"] += our_times(call, samples // 5 // rounds)
                times["iree-benchmark-module"] += peer_benchmark(program, 3)
    cold_case = "first result of a process"
    if is_wanted(cold_case):
        raw[cold_case] = first_results(uri, rounds)
    missed = show(raw, ratios, f"calls of compiled programs on {uri}")
    if json_file:
        Path(json_file).write_text(json.dumps(raw))
    if check and missed:
        sys.exit(1)


def first_results(uri: str, rounds: int) -> dict[str, list[float]]:
    """Seconds of processes from their start to their first result, of both sides in turn."""
    digits = PROGRAMS["mnist_like"]
    ours: list[str | Path] = [sys.executable, "-m", "pumice.tools.cli", "run", compiled(digits), f"--device={uri}"]
    theirs: list[str | Path] = [tool("iree-run-module"), "--device=vulkan", f"--module={compiled(digits)}"]
    call_flags = [f"--function={digits.function}", *digits.flags()]
    cold: dict[str, list[float]] = {"pumice": [], "iree-run-module": []}
    for _ in range(rounds):
        cold["pumice"].append(timed_process([*ours, *call_flags]))
        cold["iree-run-module"].append(timed_process([*theirs, *call_flags]))
    return cold


def show(raw: dict[str, dict[str, list[float]]], ratios: dict[str, tuple[float, ...]], title: str) -> bool:
    """Prints the table; returns whether a target is missed."""
    table = Table(title=title)
    for column in ("program", "side", "median µs", "best µs", "ratio", "95 %", "of bests", "target"):
        table.add_column(column, justify="left" if column in ("program", "side") else "right", no_wrap=column == "side")
    missed = False
    for case, times in raw.items():
        medians = {side: float(np.median(values)) for side, values in times.items()}
        for side, values in times.items():
            cells = [case if side == "pumice" else "", side, f"{medians[side] * 1e6:,.1f}", f"{min(values) * 1e6:,.1f}"]
            if side != "pumice":
                is_peer = side != DRIVER
                middle, *interval = (ratios.get(case) if is_peer else None) or (medians["pumice"] / medians[side],)
                target = TARGETS.get(case) if is_peer else None
                missed = missed or (target is not None and middle > target)
                cells += [f"{middle:.3f}", " to ".join(f"{bound:.2f}" for bound in interval)]
                cells += [f"{min(times['pumice']) / min(values):.3f}", "" if target is None else f"≤ {target}"]
            table.add_row(*cells)
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    return missed


if __name__ == "__main__":
    main()
