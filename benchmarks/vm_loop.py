"""What does an operation of the virtual machine cost? Scalar loops in pumice, in IREE's runtime, and in plain Python.

Each loop is a module assembled here, with no calls of imports and no device, run for a million iterations. The sides
are processes of their own and take turns. A row has the ratio of its side to IREE's bytecode interpreter, which is
written in C, with the bounds of its 95 % interval. ``--cpu 0`` pins all sides to one core.

Below it: what it takes to compile a function of 200 instructions to machine code, and how long after a deadline or
Ctrl-C a loop in machine code goes on.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from timed_process import TimedProcess, Times, ratio
from vm_programs import LOOPS, PROGRAM

from pumice.status import DeadlineExceededError
from pumice.vm import BytecodeModule, Context
from pumice.vm.assembly.assembler import assemble
from pumice.vm.machine_code.llvm import compiler
from pumice.vm.machine_code.unit import UnitModule, unit_text

SIDES = {"pumice": "pumice", "translated": "pumice, to Python only", "peer": "IREE", "plain": "plain Python"}
WORKER = Path(__file__).with_name("_vm_loop_worker.py")
ENDLESS = """vm.module @loop version 0
vm.export @run
vm.func @run(%i0: i32) -> (i32) {
^bb0:
  vm.br ^bb1()
^bb1:
  %i0 = vm.add.i32 %i0, %i0
  vm.br ^bb1()
}
"""


def measure(loop: str, sides: list[str], iterations: int, rounds: int) -> dict[str, list[Times]]:
    """For each side and round the seconds of some calls, less of those that take long."""
    blocks: dict[str, list[Times]] = {side: [] for side in sides}
    with ExitStack() as stack:
        processes = {
            side: stack.enter_context(TimedProcess([sys.executable, WORKER, side, loop], f"{side} of {loop}"))
            for side in sides
        }
        for process in processes.values():
            process.ask("run", iterations)
            process.pause()
        for number in range(rounds):
            for side in sides if number % 2 else reversed(sides):
                process = processes[side]
                process.resume()
                calls = 5 if side in ("pumice", "peer") else 1
                blocks[side].append(np.array([process.ask("run", iterations)[0] for _ in range(calls)]))
                process.pause()
    return blocks


def compile_times(rounds: int) -> tuple[int, dict[str, list[float]]]:
    """The instructions of a function of about 200, and the milliseconds to compile it, by step."""
    llvm = compiler(wait=True)
    assert llvm is not None
    body = "\n".join(LOOPS[name][1] for name in ("bits", "buffer loads", "linear congruence"))
    lines = (body + "\n") * 15
    before = "  %r0 = vm.const.ref.rodata 0\n  %i2 = vm.const.i32 7\n  %i3 = vm.const.i32 3\n  %i4 = vm.const.i32 5"
    module = BytecodeModule(assemble(PROGRAM.format(before=before, body=lines.rstrip("\n"))))
    times: dict[str, list[float]] = {"IR": [], "machine code": [], "loading": []}
    for _ in range(rounds):
        units = UnitModule(module.verified, module.analysis)
        begin = time.perf_counter()
        text = unit_text(units.unit(0), 0)
        written = time.perf_counter()
        code = llvm.object_code(text)
        made = time.perf_counter()
        llvm.load(code, "f0")
        end = time.perf_counter()
        for step, seconds in zip(times, (written - begin, made - written, end - made), strict=True):
            times[step].append(1e3 * seconds)
    return len(module.verified.functions[0].instructions), times


def late(rounds: int, *, by_signal: bool) -> list[float]:
    """Milliseconds that an endless loop goes on after its deadline, or after SIGINT."""
    found: list[float] = []
    with Context([BytecodeModule(assemble(ENDLESS))]) as context:
        function = context.lookup("loop.run")
        for _ in range(rounds):
            sent: list[float] = []

            def send(sent: list[float] = sent) -> None:
                sent.append(time.perf_counter())
                os.kill(os.getpid(), signal.SIGINT)

            timer = threading.Timer(0.05, send)
            begin = time.perf_counter()
            try:
                if by_signal:
                    timer.start()
                context.invoke(function, (1,), timeout=None if by_signal else 0.05)
            except (DeadlineExceededError, KeyboardInterrupt):
                found.append(1e3 * (time.perf_counter() - (sent[0] if by_signal else begin + 0.05)))
            if by_signal:
                timer.join()
    return found[1:]


@click.command()
@click.option("--iterations", default=1_000_000, show_default=True, help="Of each loop.")
@click.option("--rounds", default=9, show_default=True, help="Blocks of each side, in turn.")
@click.option("--loop", "wanted", default="", help="Only loops with this in their name.")
@click.option("--cpu", type=int, help="Pin all sides to this core.")
@click.option("--check", is_flag=True, help="Exit with 1 if a loop is slower than IREE's interpreter.")
def main(iterations: int, rounds: int, wanted: str, cpu: int | None, check: bool) -> None:
    """Prints nanoseconds an operation, ratios to IREE's interpreter, compile times, and latencies of interruptions."""
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    sides = list(SIDES)
    if importlib.util.find_spec("iree") is None:
        sides.remove("peer")
    table = Table(title=f"scalar loops of {iterations:,} iterations{'' if cpu is None else ', on one core'}")
    for column in ("loop", "side", "ns an operation", "it / IREE", "95 %"):
        table.add_column(column, justify="left" if column in ("loop", "side") else "right")
    slower: list[str] = []
    for name, (_, _, operations) in LOOPS.items():
        if wanted not in name:
            continue
        blocks = measure(name, sides, iterations, rounds)
        for side in sides:
            median = float(np.median(np.concatenate(blocks[side]))) * 1e9 / iterations / operations
            found, low, high = ratio(blocks[side], blocks["peer"]) if "peer" in blocks else (0.0, 0.0, 0.0)
            table.add_row(
                name if side == sides[0] else "",
                SIDES[side],
                f"{median:.2f}",
                f"{found:.2f}" if found else "",
                f"{low:.2f} … {high:.2f}" if found and side != "peer" else "",
            )
            if side == "pumice" and found > 1.0:
                slower.append(name)
    console = Console(markup=False)
    console.print(table)
    if "peer" not in sides:
        console.print("IREE's runtime is not installed (pip install -e '.[peer]'): no ratios", style="yellow")
    if compiler(wait=True) is None:
        console.print("llvmlite is not installed (pip install -e '.[jit]'): no machine code", style="yellow")
    else:
        report: dict[str, Callable[[], str]] = {
            "machine code": lambda: _compile_line(*compile_times(4 * rounds)),
            "after a deadline": lambda: _late_line(late(4 * rounds, by_signal=False)),
            "after Ctrl-C": lambda: _late_line(late(4 * rounds, by_signal=True)),
        }
        for title, line in report.items():
            console.print(f"{title}: {line()}")
    if check and slower:
        raise click.ClickException(f"slower than IREE's interpreter: {', '.join(slower)}")


def _compile_line(count: int, times: dict[str, list[float]]) -> str:
    sums = np.sum(list(times.values()), axis=0)
    parts = " + ".join(f"{np.median(values):.2f} {step}" for step, values in times.items())
    return f"{np.median(sums):.2f} ms for {count} instructions ({parts}), {min(sums):.2f} to {max(sums):.2f}"


def _late_line(values: list[float]) -> str:
    return f"{np.median(values):.2f} ms, at most {max(values):.2f} of {len(values)}"


if __name__ == "__main__":
    sys.exit(main())
