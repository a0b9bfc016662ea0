"""Host time of one kernel call for each kind of argument: pumice beside wgpu-py, on the same device.

Each side is a process of its own, and they take turns: a *block* is 100 calls in a row that nobody waits for. wgpu-py
keeps its buffers, textures, pipelines and bind groups; it has no push constants, so new values go through
``queue.write_buffer`` to a uniform buffer in both rows. The ratio is the median over the rounds, with the bounds of its
95 % interval by a bootstrap.
"""

from __future__ import annotations

import json
import random
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click
import numpy as np
from c_program import stay_on_core
from rich.console import Console
from rich.table import Table
from timed_process import TimedProcess, Times, ratio

CASES: Final = {
    "same": ("the same arrays and numbers", None),
    "push": ("new push constants", 10),
    "uniform": ("a uniform block as a dict", 15),
    "images": ("the same two images", 8),
}
_SIDES: Final = ("pumice", "wgpu")
_CALLS: Final = 100


@click.command()
@click.option("--rounds", default=60, show_default=True, help="Blocks of 100 calls a case and side.")
@click.option("--cpu", type=int, help="Keep everything on this core.")
@click.option("--json", "json_file", type=click.Path(), help="Write the nanoseconds a call of each block here.")
@click.option("--check", is_flag=True, help="Exit with 1 if a target is missed.")
def main(rounds: int, cpu: int | None, json_file: str | None, check: bool) -> None:
    """Prints the microseconds a call, and the ratio of pumice to wgpu-py."""
    if cpu is not None:
        stay_on_core(cpu)
    times: dict[str, dict[str, list[Times]]] = {name: {side: [] for side in _SIDES} for name in CASES}
    worker = Path(__file__).with_name("_call_worker.py")
    with ExitStack() as stack:
        sides = {side: stack.enter_context(TimedProcess([sys.executable, worker, side], side)) for side in _SIDES}
        for _ in range(rounds):
            for name in random.sample(list(CASES), len(CASES)):
                for side in random.sample(_SIDES, len(_SIDES)):
                    times[name][side].append(np.array(sides[side].ask(name, _CALLS)))
    table = Table(title="one call of a kernel, not waited for", caption=f"{rounds} blocks of {_CALLS} calls each")
    for column in ("arguments", "pumice µs", "best", "wgpu-py µs", "best", "ratio", "95 %", "target µs"):
        table.add_column(column, justify="left" if column == "arguments" else "right")
    missed = False
    for name, (title, target) in CASES.items():
        ours, theirs = (np.concatenate(times[name][side]) / 1000 for side in _SIDES)
        middle, low, high = ratio(times[name]["pumice"], times[name]["wgpu"])
        missed = missed or (target is not None and float(np.median(ours)) > target)
        table.add_row(
            *(title, f"{np.median(ours):.1f}", f"{ours.min():.1f}", f"{np.median(theirs):.1f}", f"{theirs.min():.1f}"),
            *(f"{middle:.2f}", f"{low:.2f} to {high:.2f}", "" if target is None else f"≤ {target}"),
        )
    Console().print(table)
    if json_file:
        raw = {
            name: {side: np.concatenate(blocks).tolist() for side, blocks in by.items()} for name, by in times.items()
        }
        Path(json_file).write_text(json.dumps(raw))
    if check and missed:
        sys.exit(1)


main()
