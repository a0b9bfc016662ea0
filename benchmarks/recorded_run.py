"""Host time of a run of 25 recorded dispatches: pumice beside peers, on the same device, in one run.

Each side is a process of its own, and they take turns: a *block* is 10 runs in a row that nobody waits for. pumice runs
a recording (``device.record``), and makes the 25 calls. wgpu-py keeps pipelines, bind groups and buffers, encodes the
25 dispatches for each run, and writes values to a uniform buffer. vkdispatch submits a command graph with a variable
for each dispatch. A peer is left out where ``--python`` does not find it; Kompute's ``kp`` has no wheel for current
Pythons. The last column is the cost of a changed value: the median without that of *no new value*, by the values.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click
import numpy as np
from c_program import stay_on_core
from rich.console import Console
from rich.table import Table
from timed_process import TimedProcess, Times

CASES: Final = {"same": ("no new value", 0), "one": ("1 of 25 values new", 1), "all": ("25 values new", 25)}
_SIDES: Final = {"pumice": "pumice, recorded", "calls": "pumice, calls", "wgpu": "wgpu-py", "vkdispatch": "vkdispatch"}
_PEERS: Final = ("wgpu", "vkdispatch")
_RUNS: Final = 10
_DISPATCHES: Final = 25
_MOST_US: Final = 10.0
_MOST_VALUE_US: Final = 1.0


@click.command()
@click.option("--rounds", default=40, show_default=True, help="Blocks of 10 runs a case and side.")
@click.option("--python", default=sys.executable, help="The Python that has the peers installed.")
@click.option("--cpu", type=int, help="Keep everything on this core.")
@click.option("--json", "json_file", type=click.Path(), help="Write the nanoseconds a run of each block here.")
@click.option("--check", is_flag=True, help="Exit with 1 if a target is missed.")
def main(rounds: int, python: str, cpu: int | None, json_file: str | None, check: bool) -> None:
    """Prints the microseconds of the host for a run."""
    if cpu is not None:
        stay_on_core(cpu)
    worker = Path(__file__).with_name("_record_worker.py")
    names = [name for name in _SIDES if name not in _PEERS or _imports(python, name)]
    times: dict[str, dict[str, list[Times]]] = {case: {name: [] for name in names} for case in CASES}
    with ExitStack() as stack:
        sides = {
            name: stack.enter_context(
                TimedProcess([python if name in _PEERS else sys.executable, worker, name], _SIDES[name])
            )
            for name in names
        }
        for side in sides.values():
            side.pause()
        for _ in range(rounds):
            for name in random.sample(names, len(names)):
                sides[name].resume()
                for case in random.sample(list(CASES), len(CASES)):
                    times[case][name].append(np.array(sides[name].ask(case, _RUNS)))
                sides[name].pause()
    table = Table(
        title="25 dispatches, not waited for", caption=f"{rounds} blocks of {_RUNS} runs each; µs of the host"
    )
    for column in ("side", "values", "median", "best", "a value"):
        table.add_column(column, justify="left" if column in ("side", "values") else "right")
    figures = {(name, case): np.concatenate(times[case][name]) / 1000 for name in names for case in CASES}
    for name in names:
        for case, (title, count) in CASES.items():
            us = figures[name, case]
            more = float(np.median(us) - np.median(figures[name, "same"])) / count if count else None
            table.add_row(
                *(_SIDES[name], title, f"{np.median(us):.1f}", f"{us.min():.1f}", "" if more is None else f"{more:.2f}")
            )
    Console().print(table)
    run = float(np.median(figures["pumice", "same"]))
    value = float(np.median(figures["pumice", "all"]) - run) / _DISPATCHES
    print(f"a run: {run:.1f} µs (at most {_MOST_US:g}); a changed value: {value:.2f} µs (at most {_MOST_VALUE_US:g})")
    if json_file:
        raw = {name: {case: np.concatenate(times[case][name]).tolist() for case in CASES} for name in names}
        Path(json_file).write_text(json.dumps(raw))
    if check and (run > _MOST_US or value > _MOST_VALUE_US):
        sys.exit(1)


def _imports(python: str, name: str) -> bool:
    return subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0


main()
