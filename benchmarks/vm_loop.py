"""What does an operation of the virtual machine cost? Scalar loops in pumice, in IREE's runtime, and in plain Python.

Each loop is a module assembled here, with no calls and no device, run for a million iterations. A row's last columns
are the ratios to IREE's bytecode interpreter, which is written in C.
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
from rich.console import Console
from rich.table import Table

from pumice.vm import BytecodeModule, Context, write_module
from pumice.vm.assembly.assembler import assemble

LOOPS = {
    # name: registers set before, body, value carried, what Python does
    "add and compare": ("", "  %i6 = vm.add.i32 %i6, %i5", 3),
    "linear congruence": (
        "  %i2 = vm.const.i32 1664525\n  %i3 = vm.const.i32 1013904223",
        "  %i6 = vm.mul.i32 %i6, %i2\n  %i6 = vm.add.i32 %i6, %i3",
        4,
    ),
    "bits": (
        "  %i2 = vm.const.i32 13\n  %i3 = vm.const.i32 17\n  %i4 = vm.const.i32 5",
        "  %i7 = vm.shl.i32 %i6, %i2\n  %i6 = vm.xor.i32 %i6, %i7\n"
        "  %i7 = vm.shr.i32.u %i6, %i3\n  %i6 = vm.xor.i32 %i6, %i7\n"
        "  %i7 = vm.shl.i32 %i6, %i4\n  %i6 = vm.xor.i32 %i6, %i7",
        8,
    ),
}
PROGRAM = """vm.module @loop version 0
vm.export @run
vm.func @run(%i0: i32) -> (i32) {{
^bb0:
  %i1 = vm.const.i32 1
{before}
  %i5 = vm.const.i32 0
  %i6 = vm.const.i32 1
  vm.br ^bb1()
^bb1:
  %i8 = vm.cmp.lt.i32.s %i5, %i0
  vm.cond_br %i8, ^bb2(), ^bb3()
^bb2:
{body}
  %i5 = vm.add.i32 %i5, %i1
  vm.br ^bb1()
^bb3:
  vm.return %i6
}}
"""


def plain_add(n: int) -> int:
    i, x = 0, 1
    while i < n:
        x = (x + i) & 0xFFFFFFFF
        i += 1
    return x


def plain_congruence(n: int) -> int:
    i, x = 0, 1
    while i < n:
        x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
        i += 1
    return x


def plain_bits(n: int) -> int:
    i, x = 0, 1
    while i < n:
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        i += 1
    return x


PLAIN: dict[str, Callable[[int], int]] = {
    "add and compare": plain_add,
    "linear congruence": plain_congruence,
    "bits": plain_bits,
}


def peer_call(module_bytes: bytes) -> Callable[[int], int] | None:
    """The function in IREE's runtime; ``None`` without its package."""
    try:
        import iree.runtime as peer
    except ImportError:
        return None
    config = peer.Config("local-sync")
    module = peer.VmModule.copy_buffer(config.vm_instance, module_bytes)
    context = peer.VmContext(config.vm_instance, modules=[module])
    function = module.lookup_function("run")
    inputs, outputs = peer.VmVariantList(1), peer.VmVariantList(1)
    del inputs, outputs

    def call(n: int) -> int:
        given, taken = peer.VmVariantList(1), peer.VmVariantList(1)
        given.push_int(n)
        context.invoke(function, given, taken)
        return int(taken.get_variant(0))

    return call


@click.command()
@click.option("--iterations", default=1_000_000, show_default=True, help="Of each loop.")
@click.option("--rounds", default=7, show_default=True, help="Runs of each side, alternating in random order.")
@click.option("--json", "json_file", type=click.Path(), help="Write the raw samples (seconds) here.")
def main(iterations: int, rounds: int, json_file: str | None) -> None:
    """Prints nanoseconds an operation and ratios to IREE's interpreter."""
    table = Table(title=f"scalar loops of {iterations:,} iterations")
    for column in ("loop", "side", "ns an operation", "best", "it / IREE"):
        table.add_column(column, justify="left" if column in ("loop", "side") else "right")
    raw: dict[str, dict[str, list[float]]] = {}
    for name, (before, body, operations) in LOOPS.items():
        module_bytes = write_module(assemble(PROGRAM.format(before=before, body=body)))
        context = Context([BytecodeModule.from_bytes(module_bytes)])
        function = context.lookup("loop.run")
        calls: dict[str, Callable[[int], int]] = {
            "pumice": lambda n, context=context, function=function: context.invoke(function, (n,)),
            "plain Python": PLAIN[name],
        }
        peer = peer_call(module_bytes)
        if peer is not None:
            calls["IREE"] = peer
        results = {side: call(1000) & 0xFFFFFFFF for side, call in calls.items()}
        if len(set(results.values())) != 1:
            raise click.ClickException(f"{name}: the sides disagree: {results}")
        times = raw[name] = {side: [] for side in calls}
        for _ in range(rounds):
            for side in random.sample(list(calls), len(calls)):
                begin = time.perf_counter()
                calls[side](iterations)
                times[side].append(time.perf_counter() - begin)
        medians = {side: float(np.median(values)) for side, values in times.items()}
        for side, values in times.items():
            scale = 1e9 / iterations / operations
            table.add_row(
                name if side == "pumice" else "",
                side,
                f"{medians[side] * scale:.2f}",
                f"{min(values) * scale:.2f}",
                f"{medians[side] / medians['IREE']:.1f}" if "IREE" in medians else "",
            )
    console = Console()
    console.print(table)
    if "IREE" not in next(iter(raw.values())):
        console.print("IREE's runtime is not installed (pip install -e '.[peer]'): no ratios", style="yellow")
    if json_file:
        Path(json_file).write_text(json.dumps(raw))


if __name__ == "__main__":
    sys.exit(main())
