"""What does the virtual machine cost? The same modules by a session, as HAL code in Python, and as C programs.

Each side runs in a process of its own. The processes of a program take turns, a block of calls each, in random order,
once with each form: ``new`` allocates the results, ``out`` writes them into storages of the caller. All of it is done
with every process on one core, and again on all cores. A ratio is the median over the rounds of the ratio of the
blocks' medians, with its 95 % interval (a bootstrap over the rounds). What the virtual machine costs is the difference
between a session's call and the HAL code's: both are Python, and submit the same work to the same device layer. C is
the floor.

Arguments lie on the device. A call ends when its results are there.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click
import numpy as np
from c_program import compile_c, stay_on_core
from rich.console import Console
from rich.table import Table
from timed_process import TimedProcess, Times, ratio

import pumice

SIDES = ("VM", "HAL code", "C")
FORMS = ("new", "out")
MOST_RATIO = 0.8
"""What the HAL code of ``simple_mul`` may take of a session's call."""

_FOLDER = Path(__file__).parent
_BUILD = _FOLDER / "build" / "without_vm"
_LAYERS = 20

MUL = """
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def mlp() -> str:
    """Layers of which each is one dispatch."""
    lines = ["func.func @main(%v0: tensor<4x16xf32>, %w: tensor<16x16xf32>) -> tensor<4x16xf32> {"]
    for layer in range(_LAYERS):
        lines += [
            f"  %p{layer} = stablehlo.dot_general %v{layer}, %w, contracting_dims = [1] x [0]",
            "    : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>",
            f"  %v{layer + 1} = stablehlo.tanh %p{layer} : tensor<4x16xf32>",
        ]
    return "\n".join([*lines, f"  return %v{_LAYERS} : tensor<4x16xf32>", "}"])


# The host decides twice a round: whether there is another one, and, since a loop inside whose trips depend on the data
# is none that the device decides about, how many trips that has.
LOOP = """
func.func @main(%x: tensor<4xf32>, %limit: tensor<f32>) -> (tensor<4xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = stablehlo.while(%v = %x, %n = %zero) : tensor<4xf32>, tensor<i32>
  cond {
    %1 = stablehlo.reduce(%v init: %none) applies stablehlo.add across dimensions = [0]
      : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.compare LT, %1, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %two = stablehlo.constant dense<2> : tensor<i32>
    %odd = stablehlo.remainder %n, %two : tensor<i32>
    %1:2 = stablehlo.while(%i = %zero, %w = %v) : tensor<i32>, tensor<4xf32>
    cond {
      %2 = stablehlo.compare LT, %i, %odd : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %half = stablehlo.constant dense<0.5> : tensor<4xf32>
      %2 = stablehlo.add %w, %half : tensor<4xf32>
      %3 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %3, %2 : tensor<i32>, tensor<4xf32>
    }
    %4 = stablehlo.add %n, %one : tensor<i32>
    stablehlo.return %1#1, %4 : tensor<4xf32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<i32>
}
"""


@dataclass(frozen=True)
class Program:
    """A program of one function ``main``, and the arguments of its calls.

    Attributes:
        share: of the calls asked for that a block has; less where a call takes long.
    """

    name: str
    text: str
    arguments: tuple[np.ndarray, ...]
    share: float = 1.0

    @property
    def folder(self) -> Path:
        """Where what is made of it lies."""
        return _BUILD / self.name


def programs() -> list[Program]:
    """The rows of the table, in order."""
    rng = np.random.default_rng(1)
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in ((4, 16), (16, 16)))
    four = np.arange(4, dtype=np.float32)
    return [
        Program("simple_mul", MUL, (four, four + 1)),
        Program("mlp", mlp(), (x, w * np.float32(0.4)), 0.5),
        Program("loop", LOOP, (np.zeros(4, np.float32), np.array(49, np.float32)), 0.02),
    ]


@dataclass
class Result:
    """The blocks of a program's sides, round by round, in ns a call.

    Attributes:
        cores: where the processes ran.
    """

    program: Program
    work: str
    cores: str
    form: str
    blocks: dict[str, list[Times]] = field(default_factory=lambda: {side: [] for side in SIDES})

    def microseconds(self, side: str) -> float:
        """The median call."""
        return float(np.median(np.concatenate(self.blocks[side]))) / 1e3

    def ratio(self, side: str) -> tuple[float, float, float]:
        """To the session's call, with the bounds of the interval."""
        return ratio(self.blocks[side], self.blocks["VM"])


def build(program: Program, device: pumice.Device) -> str:
    """Makes all that the processes run, and says what a call does: dispatches, and how often the host asks the device.

    The results that the sides are held against are the reference device's.
    """
    folder = program.folder
    folder.mkdir(parents=True, exist_ok=True)
    module = pumice.compile(program.text, file_name=program.name, targets=("vulkan", "reference"))
    (folder / "module.vmfb").write_bytes(module)
    for number, array in enumerate(program.arguments):
        np.save(folder / f"in{number}.npy", array)
        (folder / f"in{number}.bin").write_bytes(array.tobytes())
    with pumice.Session(device="reference") as session:
        given = session.call(f"{session.load(module).name}.main", *program.arguments)
        for number, result in enumerate(given if isinstance(given, tuple) else (given,)):
            np.save(folder / f"out{number}.npy", result.numpy())
    for way, file in (("--hal", "program.py"), ("--c", "program.c")):
        command = [Path(sys.executable).with_name("pumice"), "codegen", way, "module.vmfb", "-o", file]
        subprocess.run(command, cwd=folder, check=True)
    compile_c([folder / "program.c", _FOLDER / "without_vm.c"], folder / "program", ["-I", str(folder)])
    with pumice.Session(device) as session:
        name = session.load(module).name
        with session.profile(most_slowdown=None) as profile:
            session.call(f"{name}.main", *program.arguments)
        dispatches = sum(export.count for export in profile.exports)
        reads = sum(native.count for native in profile.natives if native.name == "hal.buffer.load")
    return f"{dispatches} dispatches, {reads} round trips"


@contextmanager
def on_core(cpu: int | None) -> Iterator[None]:
    """Processes that are started within stay on a core; ``None``: they may run anywhere."""
    if cpu is None:
        yield
        return
    before = os.sched_getaffinity(0)
    stay_on_core(cpu)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def commands(program: Program, uri: str, name: str) -> dict[str, list[str | Path]]:
    """The processes of a program's sides."""
    folder = program.folder
    worker = [sys.executable, _FOLDER / "_without_vm_worker.py"]
    return {
        "VM": [*worker, "vm", folder / "module.vmfb", folder, uri],
        "HAL code": [*worker, "hal", folder / "program.py", folder, uri],
        "C": [folder / "program", name, *sorted(folder.glob("in*.bin"))],
    }


def measure(program: Program, work: str, uri: str, name: str, cpu: int | None, calls: int, rounds: int) -> list[Result]:
    """The blocks of a program, all its processes on one core or on all; one result for each form."""
    cores = "all" if cpu is None else str(cpu)
    results = {form: Result(program, work, cores, form) for form in FORMS}
    count = max(2, round(calls * program.share))
    with ExitStack() as stack:
        with on_core(cpu):
            processes = {
                side: stack.enter_context(TimedProcess(command, f"the process of {side}"))
                for side, command in commands(program, uri, name).items()
            }
        turns = [(side, form) for side in processes for form in FORMS]
        for side, form in turns:
            processes[side].ask(form, max(2, count // 4))
        for _ in range(rounds):
            for side, form in random.sample(turns, len(turns)):
                results[form].blocks[side].append(np.array(processes[side].ask(form, count)))
    return list(results.values())


def table_of(results: list[Result], device: str) -> Table:
    """A row for each program, set of cores and form."""
    table = Table(title=f"calls on {device}, µs")
    for column in ("program", "cores", "results", *SIDES, "HAL / VM", "95 %", "C / VM", "95 %", "VM costs"):
        table.add_column(column, justify="left" if column in ("program", "results") else "right", no_wrap=True)
    for result in results:
        times = {side: result.microseconds(side) for side in SIDES}
        ratios = [result.ratio(side) for side in SIDES[1:]]
        table.add_row(
            result.program.name,
            result.cores,
            result.form,
            *(f"{time:,.1f}" for time in times.values()),
            *(text for middle, low, high in ratios for text in (f"{middle:.2f}", f"{low:.2f} to {high:.2f}")),
            f"{times['VM'] - times['HAL code']:,.1f}",
        )
    return table


@click.command()
@click.option(
    "--device",
    "uri",
    default="vulkan",
    show_default=True,
    help="Device URI.",
)
@click.option("--cpu", default=0, show_default=True, help="The core of the pinned half.")
@click.option("--calls", default=200, show_default=True, help="Calls of simple_mul a block; the others take fewer.")
@click.option("--rounds", default=15, show_default=True, help="Turns of the sides.")
@click.option("--json", "json_file", type=click.Path(), help="Write the medians of the blocks (ns) here.")
@click.option("--check", is_flag=True, help="Exit with 1 if the target is missed.")
def main(uri: str, cpu: int, calls: int, rounds: int, json_file: str | None, check: bool) -> None:
    """Prints µs a call of each side, and what the virtual machine costs."""
    results: list[Result] = []
    with pumice.open_device(uri) as device:
        name = device.name
        work = {program.name: build(program, device) for program in programs()}
    for program in programs():
        click.echo(f"{program.name}: {work[program.name]}", err=True)
        for where in (cpu, None):
            results += measure(program, work[program.name], uri, name, where, calls, rounds)
    Console(width=None if sys.stdout.isatty() else 130).print(table_of(results, name))
    wanted = [one.ratio("HAL code")[0] for one in results if one.program.name == "simple_mul" and one.cores != "all"]
    click.echo(
        f"target: HAL code of simple_mul at most {MOST_RATIO} of the VM; {', '.join(f'{r:.2f}' for r in wanted)}"
    )
    if json_file:
        listed = [
            {
                "program": one.program.name,
                "work": one.work,
                "cores": one.cores,
                "results": one.form,
                "block_medians_ns": {
                    side: [float(np.median(b)) for b in blocks] for side, blocks in one.blocks.items()
                },
            }
            for one in results
        ]
        Path(json_file).write_text(json.dumps(listed))
    if check and max(wanted) > MOST_RATIO:
        sys.exit(1)


if __name__ == "__main__":
    main()
