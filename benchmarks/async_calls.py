"""Does overlapping pay? Programs with 1, 8 and 64 calls in flight, beside synchronous calls and IREE's runtime.

Each program is called on device arrays in four ways, in blocks that alternate in random order: synchronously; from
asyncio with the steps in the session's thread (``call_async``, the default); from asyncio with the steps in the event
loop (``AsyncioLoop``); and, one after another, with the ``iree.runtime`` package in a process that is stopped while
others are measured.

The gain is bounded. Python runs one thread at a time, so a call takes at least the calling thread's CPU time; on
lavapipe the device is the host's processor, so it also takes at least the process's CPU time divided by the number of
cores. The *bound* is the speed-up of calls at these limits, on a machine that runs nothing else.
"""

from __future__ import annotations

import asyncio
import functools
import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import click
import numpy as np
from _program_worker import peer_call
from peer_programs import PROGRAMS, compiled
from rich.console import Console
from rich.table import Table

import pumice
from pumice.vm import AsyncioLoop

DEPTHS = (1, 8, 64)
TARGET = 1.0  # of our own synchronous rate, at 8 in flight
PEER_TARGET = 1.5  # of the peer's rate, at 8 in flight
ONE_TARGET = 0.8  # of our own synchronous rate, at 1 in flight in the event loop


def synchronous(call: Callable[[], object], count: int) -> float:
    """Calls a second, one after another."""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return count / (time.perf_counter() - begin)


def bound_of(call: Callable[[], object], count: int) -> float:
    """The largest possible speed-up by overlapping (see the module)."""
    begin, mine, all_of_it = time.perf_counter(), time.thread_time(), time.process_time()
    for _ in range(count):
        call()
    wall = time.perf_counter() - begin
    return max(
        1.0,
        min(wall / (time.thread_time() - mine), (os.cpu_count() or 1) * wall / (time.process_time() - all_of_it)),
    )


def overlapping(
    function: pumice.SessionFunction, arrays: list[pumice.DeviceArray], depth: int, count: int, in_loop: bool
) -> float:
    """Calls a second from asyncio with ``depth`` in flight."""

    async def main() -> float:
        loop = AsyncioLoop() if in_loop else None

        async def caller() -> None:
            for _ in range(count // depth):
                await function.call_async(*arrays, loop=loop)

        begin = time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(depth)))
        return count // depth * depth / (time.perf_counter() - begin)

    return asyncio.run(main())


@functools.cache
def _peer(name: str) -> Callable[[], object]:
    return peer_call(PROGRAMS[name])


def peer_rate(name: str, count: int) -> float:
    """Calls a second of the peer, in the peer's process."""
    return synchronous(_peer(name), count)


class Peer:
    """IREE's runtime in a process of its own.

    It is stopped while others are measured, because its idle threads keep two cores busy.
    """

    def __init__(self) -> None:
        # Not forked: a copy of this process would share its driver's threads' state.
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        self._process = self._pool.submit(os.getpid).result()

    def rate(self, name: str, count: int) -> float:
        """Calls a second, one after another."""
        os.kill(self._process, signal.SIGCONT)
        try:
            return self._pool.submit(peer_rate, name, count).result()
        finally:
            os.kill(self._process, signal.SIGSTOP)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self._process, signal.SIGCONT)
        self._pool.shutdown()


def measure(
    device: pumice.Device, peer: Peer, name: str, count: int, rounds: int
) -> tuple[dict[str, list[float]], float]:
    """Calls a second for each way of calling, one number a block; and the bound."""
    program = PROGRAMS[name]
    with pumice.Session(device, options=pumice.SessionOptions(concurrent=True)) as session:
        module = session.load(compiled(program))
        function = session.lookup(f"{module.name}.{program.function}")
        arrays = [session.device.asarray(array) for array in program.arrays()]

        def ours() -> object:
            return function(*arrays)

        ways: dict[str, Callable[[], float]] = {
            "synchronous": partial(synchronous, ours, count),
            "iree.runtime": lambda: peer.rate(name, count),
        }
        for in_loop, where in ((False, ""), (True, ", in the loop")):
            for depth in DEPTHS:
                ways[f"{depth} in flight{where}"] = partial(overlapping, function, arrays, depth, count, in_loop)
        for run in ways.values():
            run()
        rates: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way in random.sample(list(ways), len(ways)):
                rates[way].append(ways[way]())
        return rates, bound_of(ours, count)


@click.command()
@click.option(
    "--device", "uri", default="vulkan", help="Device URI for pumice; IREE takes its own first Vulkan device."
)
@click.option("--rounds", default=10, show_default=True, help="Blocks of each way of calling.")
@click.option(
    "--calls", default=640, show_default=True, help="Calls in a block of simple_mul; the others take a quarter."
)
@click.option("--json", "json_file", type=click.Path(), help="Write the rates (calls a second) of all blocks here.")
@click.option("--check", is_flag=True, help="Exit with 1 if a target is missed.")
def main(uri: str, rounds: int, calls: int, json_file: str | None, check: bool) -> None:
    """Prints calls a second, and ratios to synchronous calls of pumice and of IREE's runtime."""
    raw: dict[str, dict[str, list[float]]] = {}
    bounds: dict[str, float] = {}
    with pumice.open_device(uri) as device, Peer() as peer:
        for name, count in (("simple_mul", calls), ("mnist_like", calls // 4)):
            raw[name], bounds[name] = measure(device, peer, name, count, rounds)
        device_name = device.name

    table = Table(title=f"calls a second on {device_name}, {os.cpu_count()} cores (medians of {rounds} blocks)")
    for column in ("program", "way", "calls/s", "of synchronous", "quartiles", "of iree.runtime", "bound"):
        table.add_column(column, justify="left" if column in ("program", "way") else "right")
    missed = False
    for name, rates in raw.items():
        ours, theirs = (float(np.median(rates[way])) for way in ("synchronous", "iree.runtime"))
        for way, values in rates.items():
            rate = float(np.median(values))
            low, high = np.quantile(np.divide(values, rates["synchronous"]), (0.25, 0.75))
            first = way == "synchronous"
            table.add_row(
                name if first else "", way, f"{rate:,.0f}", f"{rate / ours:.2f}",
                f"{low:.2f} to {high:.2f}", f"{rate / theirs:.2f}",
                f"{bounds[name]:.2f}" if first else "",
            )  # fmt: skip
        best = max(float(np.median(rates[way])) for way in rates if way.startswith("8 in flight"))
        one = float(np.median(rates["1 in flight, in the loop"]))
        missed = missed or best / ours < TARGET or best / theirs < PEER_TARGET or one / ours < ONE_TARGET
    Console(width=None if sys.stdout.isatty() else 110).print(table)
    print(
        "bound: the largest possible speed-up, from the CPU time of synchronous calls. At 8 in flight, in the better "
        f"way, the targets are {TARGET} of synchronous and {PEER_TARGET} of the peer; at 1 in the loop {ONE_TARGET}."
    )
    if json_file:
        Path(json_file).write_text(json.dumps({"rates": raw, "bounds": bounds}))
    if check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
