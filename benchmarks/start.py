"""How long does `pumice run` take to its result, beside iree-run-module, and where does the time go?

Both commands run the same module with the same arguments, each time in a new process, in turn; the time is that of the
whole process. With warm caches nothing is compiled that was compiled before; with cold ones pumice's cache and Mesa's
shader cache are empty each time, for both sides. Python's bytecode is cached, as it is where pumice is installed. The
ratio is the median over the rounds, with its 95 % interval by a bootstrap over them. ``--check`` exits with 1 if a
median ratio with warm caches is over 2.

The second table has other commands, the third the steps of `pumice run`, one after another (the command opens the
driver while it imports).
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import numpy as np
from peer_programs import PROGRAMS, ROOT, Program, compiled, tool
from timed_process import ratio

NAMES = ("simple_mul", "mnist_like", "transformer_block")
WORKER = Path(__file__).with_name("_start_worker.py")
PUMICE = str(Path(sys.executable).with_name("pumice"))
_GOAL = 2.0


def arguments(program: Program) -> list[str]:
    """The function and its arguments, as both commands take them."""
    values = [f"--input={'x'.join(map(str, shape))}xf32=1" for shape, _ in program.arguments]
    return [f"--function={program.function}", *values]


def environment(caches: Path) -> dict[str, str]:
    """The environment of both sides, with caches in a folder."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return kept | {
        "PUMICE_CACHE_DIR": str(caches / "pumice"),
        "MESA_SHADER_CACHE_DIR": str(caches / "mesa"),
        "PUMICE_DEVICE": os.environ.get("PUMICE_DEVICE", "lavapipe"),
    }


def seconds(command: Sequence[str], env: Mapping[str, str], cpus: set[int]) -> tuple[float, str]:
    """How long a command takes, and what it says on stderr."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cpus),  # noqa: PLW1509  this process has no threads
    )
    _, said = process.communicate()
    taken = time.perf_counter() - start
    if process.returncode != 0:
        raise click.ClickException(f"{' '.join(command)}: {said[-1000:]}")
    return taken, said


def check_results(ours: Sequence[str], theirs: Sequence[str], env: Mapping[str, str]) -> None:
    """Holds that both commands give the same numbers, to the digits that both print alike."""

    def numbers(command: Sequence[str]) -> np.ndarray:
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        texts = re.findall(r"=(.*)", done.stdout)
        return np.array([float(word) for text in texts for word in re.findall(r"[-+]?\d[\d.e+-]*", text)])

    np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=2e-3, atol=1e-4)


def spread(values: Sequence[float]) -> str:
    """Median and range in milliseconds."""
    shown = [1e3 * one for one in (statistics.median(values), min(values), max(values))]
    return f"{shown[0]:7.1f}  {shown[1]:5.0f} to {shown[2]:<5.0f}"


def compare(name: str, kind: str, cpus: set[int], rounds: int, folder: Path) -> tuple[list[float], list[float]]:
    """The times of both commands, in turn, a round for each."""
    program = PROGRAMS[name]
    module = str(compiled(program))
    ours = [PUMICE, "run", module, *arguments(program)]
    theirs = [tool("iree-run-module"), "--device=vulkan", f"--module={module}", *arguments(program)]
    check_results(ours, theirs, environment(folder / "warm"))
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        env = environment(Path(tempfile.mkdtemp(dir=folder)) if kind == "cold" else folder / "warm")
        for side, command in zip(times, (ours, theirs), strict=True):
            taken, _ = seconds(command, env, cpus)
            if number:
                side.append(taken)
    return times


def other_commands(env: Mapping[str, str], cpus: set[int], rounds: int) -> dict[str, list[float]]:
    """The times of commands that the peer has no counterpart of."""
    program = PROGRAMS["softmax"]
    text = [str(ROOT / program.source), *arguments(program)]
    kernel = [str(ROOT / "shaders/mul.comp"), "-b", "0=4xf32=1,2,3,4", "-b", "1=4xf32=2", "-b", "2=4xf32"]
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "python -c 'import numpy'": [sys.executable, "-c", "import numpy"],
        "python -c 'import pumice'": [sys.executable, "-c", "import pumice"],
        "pumice --version": [PUMICE, "--version"],
        "pumice --help": [PUMICE, "--help"],
        "pumice run mul.comp": [PUMICE, "run", *kernel],
        "pumice run softmax.mlir": [PUMICE, "run", *text],
    }
    times: dict[str, list[float]] = {title: [] for title in commands}
    for number in range(rounds + 1):
        for title, command in commands.items():
            taken, _ = seconds(command, env, cpus)
            if number:
                times[title].append(taken)
    return times


def steps(env: Mapping[str, str], cpus: set[int], rounds: int) -> dict[str, list[float]]:
    """The times of the steps of a run, one after another."""
    program = PROGRAMS["mnist_like"]
    command = [sys.executable, str(WORKER), "run", str(compiled(program)), *arguments(program)]
    times: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        last = start = time.time()
        taken, said = seconds(command, env, cpus)
        marks = [line.rsplit("=", 1) for line in said.splitlines() if re.search(r"=\d{9,}\.\d+$", line)]
        for step, at in (*marks, ("end of the process", start + taken)):
            if number:
                times.setdefault(step, []).append(float(at) - last)
            last = float(at)
    return times


@click.command()
@click.option("--rounds", default=9, help="how often each side runs, after one run that is not counted")
@click.option("--case", "words", multiple=True, help="only programs whose name has this word")
@click.option("--cpu", type=int, help="the core for the pinned rows; the first one")
@click.option("--warm", is_flag=True, help="only warm caches")
@click.option("--parts", is_flag=True, help="only the other commands and the steps")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="write the measurements to this file")
@click.option("--check", is_flag=True, help="exit with 1 if a ratio with warm caches is over 2")
def main(
    rounds: int, words: Sequence[str], cpu: int | None, warm: bool, parts: bool, json_file: Path | None, check: bool
) -> None:
    """Times the start of pumice and of the peer."""
    everywhere = os.sched_getaffinity(0)
    places = {"anywhere": everywhere, "one core": {min(everywhere) if cpu is None else cpu}}
    names = [name for name in NAMES if not parts and (not words or any(word in name for word in words))]
    runs: list[dict[str, object]] = []
    missed = False
    with tempfile.TemporaryDirectory(prefix="start-") as name_of_folder:
        folder = Path(name_of_folder)
        if names:
            click.echo(
                f"{'program':18} {'caches':6} {'cores':9} {'pumice ms':>9}  {'range':13} {'peer ms':>9}  {'range':13} "
                f"{'ratio':>5}  95 %"
            )
        for name in names:
            for kind in ("warm",) if warm else ("warm", "cold"):
                for where, cpus in places.items():
                    ours, theirs = compare(name, kind, cpus, rounds, folder)
                    middle, low, high = ratio([np.array([one]) for one in ours], [np.array([one]) for one in theirs])
                    missed |= kind == "warm" and middle > _GOAL
                    row: dict[str, object] = {"program": name, "caches": kind, "cores": where, "ratio": middle}
                    runs.append({**row, "pumice": ours, "peer": theirs})
                    shown = f"{spread(ours):>24} {spread(theirs):>24} {middle:5.2f}  {low:.2f} to {high:.2f}"
                    click.echo(f"{name:18} {kind:6} {where:9} {shown}")
        env = environment(folder / "warm")
        tables = {
            "command, warm caches": other_commands(env, everywhere, rounds),
            "step of pumice run digits.vmfb, warm caches": steps(env, everywhere, rounds),
        }
    for title, rows in tables.items():
        click.echo(f"\n{title:44} {'ms':>7}  range")
        for row, several in rows.items():
            click.echo(f"{row:44} {spread(several)}")
    if json_file is not None:
        json_file.write_text(json.dumps({"runs": runs, **tables}, indent=1))
    if check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
