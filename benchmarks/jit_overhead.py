"""What does a warm call of ``pumice.jit`` cost beside a session call on the same module?

Each side is a process of its own: ``pumice.jit``; a session with the module that it compiled, called with the leaves of
the same arguments; and, for information, ``jax.jit`` on the CPU, until its result is ready. They take turns, block by
block in random order, first all on one core, then wherever the system puts them. A ratio is the median over the rounds
of (median of the jit's block / median of the session's block next to it), with its 95 % interval.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import jax
import jax.numpy as jnp
import numpy as np
from c_program import stay_on_core
from rich.console import Console
from rich.table import Table
from timed_process import TimedProcess, Times, ratio

import pumice

SIDES: Final = ("pumice.jit", "session", "jax.jit on the CPU")
TARGET: Final = 1.5


@dataclass(frozen=True)
class Case:
    """A function of JAX and its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def _values(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


_LAYERS: Final = [{"w": _values(32, 32) * np.float32(0.1), "b": _values(32)} for _ in range(4)]


def _network(layers: Any, x: Any) -> Any:
    for layer in layers:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x


def _step(layers: Any, x: Any, y: Any) -> Any:
    loss, gradients = jax.value_and_grad(lambda p: jnp.mean((_network(p, x) - y) ** 2))(layers)
    return jax.tree.map(lambda p, g: p - 0.01 * g, layers, gradients), loss


CASES: Final[Mapping[str, Case]] = {
    "product of four floats": Case(lambda a, b: a * b, (_values(4), _values(4))),
    "network of four layers, a tree of 8 arrays": Case(_network, (_LAYERS, _values(8, 32))),
    "its training step, trees in and out": Case(_step, (_LAYERS, _values(8, 32), _values(8, 32))),
}


def _call(side: str, case: Case, uri: str) -> Callable[[], object]:
    """A warm call of one side, on arrays that lie where it computes, checked against JAX."""
    expected = jax.tree.leaves(jax.jit(case.function)(*case.arguments))
    call: Callable[[], Any]
    if side == "jax.jit on the CPU":
        arguments, function = jax.tree.map(jnp.asarray, case.arguments), jax.jit(case.function)
        call = lambda: jax.block_until_ready(function(*arguments))  # noqa: E731
    else:
        compiled = pumice.jit(case.function, device=uri)
        arguments = jax.tree.map(compiled.device.asarray, case.arguments)
        call = lambda: compiled(*arguments)  # noqa: E731
        if side == "session":
            session = pumice.Session(compiled.device)
            module = session.load(compiled.lower(*arguments).compile().module)
            main, leaves = session.lookup(f"{module.name}.main"), jax.tree.leaves(arguments)
            call = lambda: main(*leaves)  # noqa: E731
    for one, other in zip(jax.tree.leaves(call()), expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, 1e-4, 1e-5)
    return call


def _serve(side: str, name: str, uri: str, cpu: int | None) -> None:
    """Answers each ``run N`` with the nanoseconds of N calls."""
    stay_on_core(cpu)
    call = _call(side, CASES[name], uri)
    for _ in range(200):
        call()
    print("ready", flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line.split()[1])):
            begin = time.perf_counter_ns()
            call()
            times.append(time.perf_counter_ns() - begin)
        print(*times, flush=True)


def _measure(name: str, uri: str, cpu: int | None, rounds: int, block: int) -> dict[str, list[Times]]:
    """Nanoseconds a call: one array a round of each side."""
    processes: dict[str, TimedProcess] = {}
    times: dict[str, list[Times]] = {side: [] for side in SIDES}
    try:
        for side in SIDES:
            command: list[str | Path] = [sys.executable, __file__, "--device", uri, "--serve", side, name]
            processes[side] = TimedProcess(command + ([] if cpu is None else ["--cpu", str(cpu)]), side)
        for _ in range(rounds):
            for side in random.sample(SIDES, len(SIDES)):
                times[side].append(np.array(processes[side].ask("run", block)))
    finally:
        for process in processes.values():
            process.close()
    return times


@click.command()
@click.option("--device", "uri", default="vulkan", help="Device URI.")
@click.option("--rounds", default=20, show_default=True, help="Blocks a side.")
@click.option("--block", default=50, show_default=True, help="Calls a block.")
@click.option("--cpu", default=None, type=int, help="Only on this core; by default on core 0, and then anywhere.")
@click.option("--json", "json_file", type=click.Path(), help="Write the raw samples (nanoseconds) here.")
@click.option("--check", is_flag=True, help="Exit with 1 if a ratio on one core is over the target.")
@click.option("--serve", nargs=2, hidden=True, help="Be the process of a side.")
def main(
    uri: str,
    rounds: int,
    block: int,
    cpu: int | None,
    json_file: str | None,
    check: bool,
    serve: tuple[str, str] | None,
) -> None:
    """Prints µs a call, and the ratio of pumice.jit to a session call."""
    if serve:
        _serve(*serve, uri, cpu)
        return
    with pumice.open_device(uri) as device:
        title = f"warm calls on {device.name}"
    table = Table(title=title)
    for column in ("function", "where", *(f"{side}, µs" for side in SIDES), "jit / session", "95 %", "target"):
        table.add_column(column, justify="left" if column in ("function", "where") else "right")
    raw: dict[str, dict[str, list[list[float]]]] = {}
    missed = False
    for name in CASES:
        for core in (0, None) if cpu is None else (cpu,):
            where = "anywhere" if core is None else f"core {core}"
            times = _measure(name, uri, core, rounds, block)
            raw[f"{name}, {where}"] = {side: [one.tolist() for one in blocks] for side, blocks in times.items()}
            middle, low, high = ratio(times["pumice.jit"], times["session"])
            missed = missed or (core is not None and middle > TARGET)
            medians = [f"{np.median(np.concatenate(times[side])) / 1e3:,.1f}" for side in SIDES]
            table.add_row(name, where, *medians, f"{middle:.2f}", f"{low:.2f} to {high:.2f}", f"≤ {TARGET}")
    Console(width=None if sys.stdout.isatty() else 150).print(table)
    if json_file:
        Path(json_file).write_text(json.dumps(raw))
    if check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
