"""What does profiling cost? The same programs in two sessions, one of them profiled, in alternating blocks.

``every dispatch`` times all dispatches. ``most_slowdown`` limits the share of the time that timing may cost, and only
counts the other dispatches; its blocks begin after the first dispatches of the profile, which are all timed. A ratio is
the median over the rounds of (time of the profiled block / time of the other one next to it). A block's time is its
whole time, and so includes work that is done every few calls.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
from peer_programs import PROGRAMS, compiled
from rich.console import Console
from rich.table import Table

import pumice

TARGET = 1.10
BLOCK_SECONDS = 0.02
WARM_SECONDS = 0.6


def block(call: Callable[[], object], count: int) -> float:
    """Seconds a call."""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


def results_of(call: Callable[[], object]) -> tuple[object, ...]:
    """A call's results, always as a tuple."""
    results = call()
    return results if isinstance(results, tuple) else (results,)


def measure(uri: str, name: str, rounds: int, most_slowdown: float | None) -> tuple[list[float], list[float], float]:
    """Seconds a call without and with a profile, block by block, and the share of dispatches that was timed."""
    program = PROGRAMS[name]
    with pumice.open_device(uri) as device, pumice.Session(device) as plain, pumice.Session(device) as profiled:
        calls: list[Callable[[], object]] = []
        for session in (plain, profiled):
            module = session.load(compiled(program))
            function = session.lookup(f"{module.name}.{program.function}")
            arrays = [device.asarray(array) for array in program.arrays()]
            calls.append(lambda function=function, arrays=arrays: function(*arrays))
        first = [[np.asarray(one) for one in results] for results in map(results_of, calls)]
        assert all(np.array_equal(*pair) for pair in zip(*first, strict=True)), "the sessions disagree"
        with profiled.profile(most_slowdown=most_slowdown) as profile:
            warm = time.perf_counter() + WARM_SECONDS
            while time.perf_counter() < warm:
                for call in calls:
                    call()
            count = max(1, int(BLOCK_SECONDS / block(calls[0], 3)))
            times: tuple[list[float], list[float]] = ([], [])
            for _ in range(rounds):
                for side in random.sample((0, 1), 2):
                    times[side].append(block(calls[side], count))
        ran = [one for one in profile.dispatches if one.kind == "dispatch"]
        return times[0], times[1], sum(not one.is_untimed for one in ran) / len(ran)


@click.command()
@click.option("--device", "uri", default="vulkan", help="Device URI.")
@click.option("--rounds", default=60, show_default=True, help="Blocks a side.")
@click.option("--most-slowdown", default=0.03, show_default=True, help="As for Session.profile.")
@click.option("--json", "json_file", type=click.Path(), help="Write the raw samples (seconds) here.")
@click.option("--check", is_flag=True, help="Exit with 1 if a ratio with most_slowdown is over the target.")
def main(uri: str, rounds: int, most_slowdown: float, json_file: str | None, check: bool) -> None:
    """Prints the ratio of profiled to unprofiled calls."""
    raw: dict[str, dict[str, list[float]]] = {}
    missed = False
    with pumice.open_device(uri) as device:
        table = Table(title=f"calls with a profile beside calls without on {device.name}")
    for column in ("program", "plain µs", "profiled µs", "ratio", "target", "dispatches timed"):
        table.add_column(column, justify="left" if column == "program" else "right")
    for name in PROGRAMS:
        for share in (None, most_slowdown):
            plain, profiled, timed = measure(uri, name, rounds, share)
            label = f"{name}, {'every dispatch' if share is None else f'most_slowdown={share:g}'}"
            raw[label] = {"plain": plain, "profiled": profiled}
            ratio = float(np.median(np.array(profiled) / np.array(plain)))
            missed = missed or (share is not None and ratio > TARGET)
            table.add_row(
                label,
                f"{np.median(plain) * 1e6:,.1f}",
                f"{np.median(profiled) * 1e6:,.1f}",
                f"{ratio:.3f}",
                "" if share is None else f"≤ {TARGET}",
                f"{timed:.1%}",
            )
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    if json_file:
        Path(json_file).write_text(json.dumps(raw))
    if check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
