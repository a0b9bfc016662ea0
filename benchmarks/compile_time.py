"""What does compiling cost, as a command, beside iree-compile, and how does it grow with the program?

Ten programs of 1 to 5,000 operations: layers of a network (products of matrices, biases, activations, normalisations,
softmax, reshapes and transposes) whose shapes repeat every 40 layers, as those of models do. Each is compiled by both
commands in turn, each time in a new process, so that the machine's changes fall on both. Python's bytecode is cached,
as it is where pumice is installed. A ratio below 1 says that
pumice is quicker; its range is that of the single rounds. ``--check`` exits with 1 if a median ratio is over 1.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
from peer_programs import tool

SIZES = (1, 5, 20, 50, 100, 250, 500, 1000, 2500, 5000)
SHAPES = ((8, 16), (16, 32), (4, 16), (32, 8), (16, 8))


def program(count: int) -> str:
    """A program of so many operations, but for the constants of reductions."""
    rng = random.Random(count)
    lines: list[str] = []
    types: dict[str, tuple[int, int]] = {"%x": SHAPES[0]}
    weights: dict[tuple[int, int], str] = {}
    last = "%x"

    def type_of(rows: int, columns: int) -> str:
        return f"tensor<{rows}x{columns}xf32>"

    def add(text: str, shape: tuple[int, int]) -> str:
        name = f"%{len(lines)}"
        lines.append(f"    {name} = {text}")
        types[name] = shape
        return name

    makers = _layers(rng)
    while len(lines) < count:
        kind = next(makers)
        rows, columns = types[last]
        own = type_of(rows, columns)
        if kind == "matmul":
            wide = rng.choice(SHAPES)[1]
            weight = weights.setdefault((columns, wide), f"%w{len(weights)}")
            last = add(
                f"stablehlo.dot_general {last}, {weight}, contracting_dims = [1] x [0] : "
                f"({own}, {type_of(columns, wide)}) -> {type_of(rows, wide)}",
                (rows, wide),
            )
        elif kind == "sum":
            reduced = f"%{len(lines)}"
            lines.append(
                f"    {reduced} = stablehlo.reduce({last} init: %zero) applies stablehlo.add across dimensions = [1] "
                f": ({own}, tensor<f32>) -> tensor<{rows}xf32>"
            )
            if len(lines) < count:
                spread = add(
                    f"stablehlo.broadcast_in_dim {reduced}, dims = [0] : (tensor<{rows}xf32>) -> {own}",
                    (rows, columns),
                )
                last = spread
        elif kind == "transpose":
            last = add(
                f"stablehlo.transpose {last}, dims = [1, 0] : ({own}) -> {type_of(columns, rows)}", (columns, rows)
            )
        else:
            others = [name for name, shape in list(types.items())[-12:] if shape == (rows, columns)]
            operands = f"{last}, {rng.choice(others)}" if kind in ("add", "multiply", "subtract", "maximum") else last
            last = add(f"stablehlo.{kind} {operands} : {own}", (rows, columns))
    rows, columns = types[last]
    arguments = [f"%x: {type_of(*SHAPES[0])}", *(f"{name}: {type_of(*shape)}" for shape, name in weights.items())]
    body = "\n".join(["    %zero = stablehlo.constant dense<0.0> : tensor<f32>", *lines])
    given = type_of(rows, columns)
    return f"func.func @main({', '.join(arguments)}) -> {given} {{\n{body}\n    return {last} : {given}\n}}\n"


def _layers(rng: random.Random) -> Iterator[str]:
    """Kinds of operations without an end: blocks of a network, which repeat."""
    blocks = [
        ["matmul", "add", "tanh", *rng.sample(["multiply", "logistic", "subtract", "maximum", "negate"], 3)],
        ["multiply", "sum", "rsqrt", "multiply", "matmul", "maximum"],
        ["exponential", "sum", "subtract", "transpose", "add", "logistic"],
    ]
    while True:
        yield from rng.choice(blocks)


def seconds(command: list[str], module: Path, environment: Mapping[str, str]) -> float:
    """How long a command takes that makes a module."""
    module.unlink(missing_ok=True)
    start = time.perf_counter()
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    taken = time.perf_counter() - start
    if done.returncode != 0 or not module.exists():
        raise click.ClickException(f"{command[0]}: {done.stderr[:1000]}")
    return taken


@click.command()
@click.option("--rounds", default=5, help="how often each command compiles each program")
@click.option("--limit", default=30.0, help="seconds after which a program is not compiled again, after two rounds")
@click.option("--size", "sizes", type=int, multiple=True, help="only programs of this many operations")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="write the measurements to this file")
@click.option("--check", is_flag=True, help="exit with 1 if a median ratio is over 1")
def main(rounds: int, limit: float, sizes: tuple[int, ...], json_file: Path | None, check: bool) -> None:
    """Compiles programs of growing size with pumice and with iree-compile."""
    pumice, peer = str(Path(sys.executable).with_name("pumice")), tool("iree-compile")
    measured = []
    click.echo(f"{'operations':>10} {'pumice s':>9} {'peer s':>8} {'ratio':>6}  {'range':<12} {'pumice ms/op':>12}")
    with tempfile.TemporaryDirectory(prefix="compile-time-") as name:
        source, module = Path(name) / "program.mlir", Path(name) / "program.vmfb"
        flags = ["--iree-input-type=stablehlo", "--iree-hal-target-device=vulkan"]
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(Path(name) / "bytecode")
        source.write_text(program(1))
        seconds([pumice, "compile", str(source), "-o", str(module)], module, environment)
        for count in sizes or SIZES:
            source.write_text(program(count))
            ours, theirs = [], []
            end = time.perf_counter() + limit
            while len(ours) < 2 or (len(ours) < rounds and time.perf_counter() < end):
                ours.append(seconds([pumice, "compile", str(source), "-o", str(module)], module, environment))
                theirs.append(seconds([peer, str(source), *flags, "-o", str(module)], module, environment))
            ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
            row = (statistics.median(ours), statistics.median(theirs), statistics.median(ratios))
            measured.append({"operations": count, "pumice": ours, "peer": theirs, "ratio": row[2]})
            spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
            click.echo(
                f"{count:10} {row[0]:9.3f} {row[1]:8.3f} {row[2]:6.2f}  {spread:<12} {1e3 * row[0] / count:12.2f}"
            )
    if json_file is not None:
        json_file.write_text(json.dumps(measured, indent=1))
    if check and any(item["ratio"] > 1 for item in measured):
        sys.exit(1)


if __name__ == "__main__":
    main()
