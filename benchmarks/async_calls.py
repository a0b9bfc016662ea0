"""Does overlapping pay? Programs with 1, 8 and 64 calls in flight, beside synchronous calls and IREE's runtime.

Each program is called on device arrays in four ways, in short blocks whose order is random in each round:
synchronously; from asyncio with the steps in the session's thread (``call_async``, the default); from asyncio with the
steps in the event loop (``AsyncioLoop``); and with the ``iree.runtime`` package in a process of its own, which is
stopped while others are measured. A ratio is the median over the rounds of the ratio of two blocks of a round, with a
95 % interval.

What decides is where the threads run. Where the driver's thread is on another core than the caller, each synchronous
call pays for two wake-ups, which overlapping calls share and hide: they are up to twice as quick. Where the operating
system keeps both threads on one core, or ``--cpu 0`` does, nothing overlaps, and a call costs what its Python does. So
the benchmark prints what a wake-up costs on this machine at this time (half of a round trip of a byte between two
processes), and for each way how many cores were busy: about one means that nothing overlapped. The *bound* is the
speed-up at the limits that the processor sets: the calling thread's CPU time, and the process's over all cores.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click
import numpy as np
from c_program import stay_on_core
from peer_programs import PROGRAMS, compiled
from rich.console import Console
from rich.table import Table
from timed_process import TimedProcess, ratio

import pumice
from pumice.vm import AsyncioLoop

DEPTHS = (1, 8, 64)
EIGHT_TARGET = 1.0  # of our own synchronous rate, at 8 in flight in the better way
PEER_TARGET = 1.5  # of the peer's rate, likewise
ONE_TARGET = 0.8  # of our own synchronous rate, at 1 in flight in the event loop
WORKER = Path(__file__).with_name("_program_worker.py")
_ECHO = "import os\nwhile os.read(0, 1): os.write(1, b'.')"
_PINGS = 50


class Block:
    """A block of calls: seconds a call, and cores that were busy meanwhile."""

    def __init__(self, run: Callable[[], object], count: int) -> None:
        cpu, begin = time.process_time(), time.perf_counter()
        run()
        wall = time.perf_counter() - begin
        self.seconds = wall / count
        self.cores = (time.process_time() - cpu) / wall


def synchronous(call: Callable[[], object], count: int) -> None:
    """Calls one after another."""
    for _ in range(count):
        call()


def overlapping(
    function: pumice.SessionFunction, arrays: list[pumice.DeviceArray], depth: int, count: int, in_loop: bool
) -> Block:
    """Calls from asyncio with ``depth`` in flight."""

    async def caller(loop: AsyncioLoop | None) -> None:
        for _ in range(count // depth):
            await function.call_async(*arrays, loop=loop)

    async def callers(loop: AsyncioLoop | None) -> None:
        await asyncio.gather(*(caller(loop) for _ in range(depth)))

    with asyncio.Runner() as runner:  # made outside of the time: a loop is made once, not for a block of calls

        async def loop_of() -> AsyncioLoop | None:
            return AsyncioLoop() if in_loop else None

        loop = runner.run(loop_of())
        return Block(lambda: runner.run(callers(loop)), count // depth * depth)


def bound_of(call: Callable[[], object], count: int) -> float:
    """The largest possible speed-up by overlapping (see the module)."""
    begin, mine, all_of_it = time.perf_counter(), time.thread_time(), time.process_time()
    synchronous(call, count)
    wall = time.perf_counter() - begin
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1.0, min(wall / (time.thread_time() - mine), cores * wall / (time.process_time() - all_of_it)))


class WakeUps:
    """What waking a process costs: half of a round trip of a byte. Use it as a context manager."""

    def __enter__(self) -> WakeUps:
        self._echo = subprocess.Popen([sys.executable, "-c", _ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, *_: object) -> None:
        self._echo.communicate()

    def times(self) -> list[float]:
        """Seconds of some of them."""
        assert self._echo.stdin is not None and self._echo.stdout is not None
        to, back = self._echo.stdin.fileno(), self._echo.stdout.fileno()
        times = []
        for _ in range(_PINGS):
            begin = time.perf_counter()
            os.write(to, b".")
            os.read(back, 1)
            times.append((time.perf_counter() - begin) / 2)
        return times


def measure(
    uri: str, name: str, count: int, rounds: int, wake_ups: WakeUps
) -> tuple[dict[str, list[Block | float]], list[float], float]:
    """A block of each way of calling a round (of the peer, seconds a call); wake-ups; and the bound."""
    program = PROGRAMS[name]
    with ExitStack() as stack:
        command = [sys.executable, WORKER, "iree", name, uri]
        peer = stack.enter_context(TimedProcess(command, f"iree.runtime with {name}"))
        peer.pause()

        def peers() -> float:
            peer.resume()
            try:
                return sum(peer.ask("call", count)) / count * 1e-9
            finally:
                peer.pause()

        device = stack.enter_context(pumice.open_device(uri))
        session = stack.enter_context(pumice.Session(device, options=pumice.SessionOptions(concurrent=True)))
        module = session.load(compiled(program))
        function = session.lookup(f"{module.name}.{program.function}")
        arrays = [device.asarray(array) for array in program.arrays()]
        call = partial(function, *arrays)
        ways: dict[str, Callable[[], Block | float]] = {
            "synchronous": lambda: Block(partial(synchronous, call, count), count),
            "iree.runtime": peers,
        }
        for in_loop, where in ((False, ""), (True, ", in the loop")):
            for depth in DEPTHS:
                ways[f"{depth} in flight{where}"] = partial(overlapping, function, arrays, depth, count, in_loop)
        for run in ways.values():
            run()
        blocks: dict[str, list[Block | float]] = {way: [] for way in ways}
        wakes: list[float] = []
        for _ in range(rounds):
            wakes += wake_ups.times()
            for way in random.sample(list(ways), len(ways)):
                blocks[way].append(ways[way]())
        return blocks, wakes, bound_of(call, count)


def seconds(blocks: list[Block | float]) -> list[np.ndarray]:
    """Seconds a call of each block."""
    return [np.array([one.seconds if isinstance(one, Block) else one]) for one in blocks]


@click.command()
@click.option(
    "--device", "uri", default="vulkan", help="Device URI for pumice; IREE takes its own first Vulkan device."
)
@click.option("--rounds", type=click.IntRange(1), default=30, show_default=True, help="Blocks of each way of calling.")
@click.option(
    "--calls",
    type=click.IntRange(1),
    default=320,
    show_default=True,
    help="Calls in a block of simple_mul, in multiples of 64; mnist_like takes a fifth.",
)
@click.option("--cpu", type=click.IntRange(0), metavar="N", help="Keep both sides on this one core (Linux).")
@click.option("--json", "json_file", type=click.Path(), help="Write the seconds a call of all blocks here.")
@click.option("--check", is_flag=True, help="Exit with 1 if a target is missed.")
def main(uri: str, rounds: int, calls: int, cpu: int | None, json_file: str | None, check: bool) -> None:
    """Prints calls a second, and ratios to synchronous calls of pumice and of IREE's runtime."""
    stay_on_core(cpu)
    raw: dict[str, dict[str, list[float]]] = {}
    where = "all cores" if cpu is None else f"core {cpu}"
    table = Table(title=f"calls a second, {where}; ratios of rates, {rounds} rounds, with 95 % intervals")
    for column in ("program", "way", "calls/s", "of synchronous", "of iree.runtime", "cores busy", "bound"):
        table.add_column(column, justify="left" if column in ("program", "way") else "right")
    missed: list[str] = []
    waits = []
    with WakeUps() as wake_ups:
        for name, share in (("simple_mul", 1), ("mnist_like", 5)):
            count = max(1, calls // share // max(DEPTHS)) * max(DEPTHS)
            blocks, wakes, bound = measure(uri, name, count, rounds, wake_ups)
            waits += wakes
            times = {way: seconds(found) for way, found in blocks.items()}
            raw[name] = {way: [float(one[0]) for one in found] for way, found in times.items()}
            rates: dict[str, tuple[float, float]] = {}
            for way, found in times.items():
                first = way == "synchronous"
                ours, theirs = (ratio(times[other], found) for other in ("synchronous", "iree.runtime"))
                rates[way] = ours[0], theirs[0]
                cores = [one.cores for one in blocks[way] if isinstance(one, Block)]
                table.add_row(
                    name if first else "", way, f"{1 / float(np.median(found)):,.0f}",
                    "" if first else f"{ours[0]:.2f} ({ours[1]:.2f} to {ours[2]:.2f})",
                    "" if way == "iree.runtime" else f"{theirs[0]:.2f} ({theirs[1]:.2f} to {theirs[2]:.2f})",
                    f"{np.median(cores):.2f}" if cores else "",
                    f"{bound:.2f}" if first else "",
                )  # fmt: skip
            eight = [found for way, found in rates.items() if way.startswith("8 in flight")]
            for what, reached, target in (
                ("8 in flight, of synchronous", max(one[0] for one in eight), EIGHT_TARGET),
                ("8 in flight, of iree.runtime", max(one[1] for one in eight), PEER_TARGET),
                ("1 in flight in the loop, of synchronous", rates["1 in flight, in the loop"][0], ONE_TARGET),
            ):
                if reached < target:
                    missed.append(f"{name}: {what}: {reached:.2f}, target {target}")
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    low, middle, high = (float(each) * 1e6 for each in np.quantile(waits, (0.25, 0.5, 0.75)))
    print(f"a wake-up took {middle:.1f} us (quartiles {low:.1f} to {high:.1f})")
    print("\n".join(f"missed: {one}" for one in missed) or "all targets are met")
    if json_file:
        Path(json_file).write_text(json.dumps({"cpu": cpu, "wake_ups": waits, "seconds": raw}))
    if check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
