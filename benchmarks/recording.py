"""What does it cost that a program's buffers come in a new combination? Recording its commands for one more table.

Programs record their commands once for each combination of arguments, results and transient memory that a kept
recording is not found for. The rows are those command buffers of a call that take a binding table: recorded command by
command, as the first time, and by the prepared commands that later tables get (``hal_vulkan/commands/replay.py``).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np
from peer_programs import PROGRAMS, compiled
from rich.console import Console
from rich.table import Table

import pumice
from pumice.hal_vulkan.commands.recording import Recording
from pumice.hal_vulkan.programs.command_buffer import ProgramCommandBuffer

CASES = ("simple_mul", "mnist_like", "mlp", "cnn")


def tables_of(call: Callable[[], object]) -> list[tuple[ProgramCommandBuffer, tuple[Any, ...]]]:
    """The command buffers that a call submits with binding tables, and these."""
    seen: dict[int, tuple[ProgramCommandBuffer, tuple[Any, ...]]] = {}
    real = ProgramCommandBuffer.prepare

    def prepare(self: ProgramCommandBuffer, bindings: Any) -> Recording:
        if bindings:
            seen[id(self)] = self, tuple(bindings)
        return real(self, bindings)

    ProgramCommandBuffer.prepare = prepare  # type: ignore[method-assign, assignment]
    try:
        call()
    finally:
        ProgramCommandBuffer.prepare = real  # type: ignore[method-assign]
    return list(seen.values())


def microseconds(commands: ProgramCommandBuffer, record: Callable[[], Recording], samples: int) -> float:
    """The median time to record and give back."""
    times = []
    for _ in range(samples):
        begin = time.perf_counter()
        commands.context.recycle(record())
        times.append(time.perf_counter() - begin)
    return float(np.median(times)) * 1e6


@click.command()
@click.option("--device", "uri", default=None, help="Device URI.")
@click.option("--samples", default=500, show_default=True, help="Recordings of each kind.")
def main(uri: str | None, samples: int) -> None:
    """Prints the time of recordings, and of a call that finds them."""
    with pumice.open_device(uri) as device:
        table = Table(title=f"recording on {device.name}")
        for column in ("program", "commands", "first, µs", "again, µs", "ratio", "call that records nothing, µs"):
            table.add_column(column, justify="left" if column == "program" else "right")
        for name in CASES:
            program = PROGRAMS[name]
            with pumice.Session(device) as session:
                module = session.load(compiled(program))
                function = session.lookup(f"{module.name}.{program.function}")
                arrays = [device.asarray(array) for array in program.arrays()]
                times = []
                for _ in range(50):
                    begin = time.perf_counter()
                    function(*arrays)
                    times.append(time.perf_counter() - begin)
                for commands, entries in tables_of(lambda f=function, a=arrays: f(*a)):  # type: ignore[misc]
                    first = microseconds(commands, lambda c=commands, e=entries: c._record(e), samples)  # type: ignore[misc]
                    key = b"".join([commands._checked_key(entry) for entry in entries])
                    again = microseconds(
                        commands,
                        lambda c=commands, k=key, e=entries: c._record_again(k, e),  # type: ignore[misc]
                        samples,
                    )
                    table.add_row(
                        name, str(len(commands._commands)), f"{first:.1f}", f"{again:.1f}", f"{again / first:.2f}",
                        f"{np.median(times) * 1e6:.1f}",
                    )  # fmt: skip
        Console(width=None if sys.stdout.isatty() else 110).print(table)


if __name__ == "__main__":
    main()
