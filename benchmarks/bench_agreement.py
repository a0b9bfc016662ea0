"""Does the dispatch latency that `pumice bench` reports agree with that of a C program on plain Vulkan?

Both submit a recorded command buffer of one dispatch or of a thousand over four floats, and wait for it: pumice with
the kernel workload of studies, through the code of `pumice bench`; the C program (submit_wait.c) in a loop. Two
figures are compared. *execute* is the device's time between a timestamp at the top and one at the bottom of the pipe.
*total* is the host's time from before the submission to after the wait, without timestamps. A third side of *total*
is the minimum in Python: two native calls between two readings of the clock, in a loop. Its difference to C is the
cost of the interpreter and of cffi, which every measurement in Python includes.

Each round measures a block of samples of each side, in random order. The ratio is the median over the rounds of (median
of a block / median of the C program's block next to it); its interval is a bootstrap over the rounds.

AGREE means that the interval of the ratio reaches into 1 ± 2 %, and that its ends are within 5 % of the ratio. A wider
interval is UNCLEAR, everything else DISAGREE. A constant of one or two microseconds shows in `total` of a dispatch that
takes ten, and vanishes in one that takes a hundred: hence two sizes, and the constant is printed.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click
import numpy as np
import numpy.typing as npt
from c_program import FLOATS, MUL, CProgram, build, stay_on_core
from rich.console import Console
from rich.table import Table

from pumice.hal_vulkan.vulkan.functions import NULL
from pumice.status import PumiceError
from pumice.study.definition.point import Point
from pumice.study.definition.sample import Sample
from pumice.study.definition.settings import Sampling
from pumice.study.definition.target_settings import KINDS
from pumice.study.results.storage.sink import SinkLog
from pumice.study.sampling.point_run import PointRun
from pumice.study.statistics.bootstrap import Interval, bootstrap
from pumice.study.workloads.kernel import KernelWorkload
from pumice.study.workloads.workload import DevicePool, WorkloadContext

Times = npt.NDArray[np.float64]
Side = Callable[[], Times]

_CONFIDENCE: Final = 0.99
_SAME: Final = 0.02
_WIDEST: Final = 0.05
_FOREVER: Final = (1 << 64) - 1
# Dispatches, command of the C program, and the segment of a sample.
_CASES: Final = {
    "execute, 1 dispatch": (1, "timed", "execute"),
    "execute, 1,000 dispatches": (1000, "timed-thousand", "execute"),
    "total, 1 dispatch": (1, "prerecorded", "total"),
    "total, 1,000 dispatches": (1000, "thousand", "total"),
}


@dataclass
class Rounds:
    """The samples of each side of a case, a block a round, in ns."""

    case: str
    blocks: dict[str, list[Times]] = field(default_factory=dict)

    def median(self, side: str) -> tuple[float, Interval]:
        """Of all samples, with its interval over the blocks."""
        found = bootstrap(
            np.concatenate(self.blocks[side]),
            blocks=np.repeat(np.arange(len(self.blocks[side])), [len(block) for block in self.blocks[side]]),
        )
        return found.estimate, found.interval(_CONFIDENCE)

    def ratio(self, side: str, base: str) -> tuple[float, Interval]:
        """Block by block, with its interval."""
        medians = [[np.median(block) for block in self.blocks[name]] for name in (side, base)]
        found = bootstrap(np.divide(*medians))
        return found.estimate, found.interval(_CONFIDENCE)

    def difference(self, side: str, base: str) -> float:
        """Nanoseconds, block by block."""
        medians = [[np.median(block) for block in self.blocks[name]] for name in (side, base)]
        return float(np.median(np.subtract(*medians)))

    def verdict(self, side: str, base: str) -> str:
        """AGREE, DISAGREE or UNCLEAR: see the module."""
        ratio, (low, high) = self.ratio(side, base)
        if max(high / ratio, ratio / low) > 1 + _WIDEST:
            return "UNCLEAR"
        return "AGREE" if low <= 1 + _SAME and high >= 1 - _SAME else "DISAGREE"


class Bench(SinkLog):
    """One point, sampled as `pumice bench` samples it."""

    def __init__(self, pool: DevicePool, uri: str, dispatches: int, measure: str, block: int) -> None:
        super().__init__()
        self._latest: Times = np.empty(0)
        self._measure = measure
        given = {
            "source": f"builtin:{MUL.name}",
            "bindings": [{"shape": FLOATS}] * MUL.buffers,
            "batch": dispatches,
            "barrier": "none",
            "timestamps": "span" if measure == "execute" else "none",
        }
        settings = {setting.name: setting.default for setting in KINDS["kernel"].settings} | given
        self._block_size = block
        endless = Sampling(block=block, min_samples=1 << 40, max_samples=1 << 40, time_limit=1e9, reference=False)
        self._run = PointRun(
            "kernel",
            Point(0, "mul", uri, settings=settings, measure=measure),
            WorkloadContext(pool, uri),
            endless,
            self,
        )
        self._run.start()
        workload = self._run._workload
        assert isinstance(workload, KernelWorkload)
        self.workload = workload
        a, b, product = workload.results()
        assert np.array_equal(product, a * b), "pumice computed something else"

    def add_samples(self, point: int, block: int, phase: str, samples: object, flags: object = None) -> None:
        """Keeps the times of the latest block."""
        assert isinstance(samples, (list, tuple))
        self._latest = np.array([getattr(one, self._measure) for one in samples if isinstance(one, Sample)])

    def take(self) -> Times:
        """A block."""
        self._run.take_block(0, self._block_size)
        return self._latest

    def take_calls_alone(self, count: int) -> Times:
        """A block of the two native calls with the least possible Python between them."""
        prepared = self.workload._submissions[0]
        queue, clock = prepared.queue, prepared.clock
        device = queue.device
        submit, wait, handle = device.fn.vkQueueSubmit, device.fn.vkWaitSemaphores, device.handle
        info, wait_info, native = prepared.info, prepared.wait_info, queue.handle
        times = np.empty(count)
        for index in range(count):
            prepared.prepare()
            queue.submitted += 1
            prepared.values[0] = prepared.wait_values[0] = queue.submitted
            called = clock()
            submit(native, 1, info, NULL)
            wait(handle, wait_info, _FOREVER)
            times[index] = clock() - called
        queue.retire()
        return times

    def close(self) -> None:
        """Ends the point."""
        self._run.close()


def measure(pool: DevicePool, uri: str, case: str, program: CProgram, samples: int, rounds: int) -> Rounds:
    """Blocks of all sides in turns."""
    dispatches, command, figure = _CASES[case]
    count = max(5, samples // rounds)
    order = random.Random(0)
    bench = Bench(pool, uri, dispatches, figure, count)
    sides: dict[str, Side] = {"C": lambda: np.array(program.ask(command, count))}
    if figure == "total":
        sides["calls alone"] = lambda: bench.take_calls_alone(count)
    sides["bench"] = bench.take
    found = Rounds(case, {name: [] for name in sides})
    try:
        for _ in range(rounds):
            for name in order.sample(list(sides), len(sides)):
                found.blocks[name].append(sides[name]())
    finally:
        bench.close()
    return found


def show(results: list[Rounds], console: Console) -> None:
    """Prints the table, and what is left of a disagreement."""
    table = Table()
    for head in ("case", "side", "median", "99 %", "ratio to C", "99 %", "verdict"):
        table.add_column(head, justify="left" if head in ("case", "side", "verdict") else "right", no_wrap=True)
    for one in results:
        for side in one.blocks:
            median, interval = one.median(side)
            row = [one.case, side, f"{median / 1e3:.2f} µs", f"{interval.low / 1e3:.2f} to {interval.high / 1e3:.2f}"]
            if side != "C":
                ratio, interval = one.ratio(side, "C")
                row += [f"{ratio:.3f}", f"{interval.low:.3f} to {interval.high:.3f}"]
                row += [one.verdict(side, "C")] if side == "bench" else [""]
            table.add_row(*row)
        table.add_section()
    console.print(table)
    for one in results:
        if "calls alone" not in one.blocks:
            continue
        ratio, (low, high) = one.ratio("bench", "calls alone")
        console.print(
            f"{one.case}: bench is {one.difference('bench', 'C') / 1e3:+.2f} µs from C; two calls alone are "
            f"{one.difference('calls alone', 'C') / 1e3:+.2f} µs from it, and bench from them "
            f"{one.difference('bench', 'calls alone') / 1e3:+.2f} µs "
            f"(ratio {ratio:.3f}, {low:.3f} to {high:.3f}: {one.verdict('bench', 'calls alone')})",
            soft_wrap=True,
            highlight=False,
        )


@click.command()
@click.option("--device", "uri", default="vulkan", metavar="URI", help="The device, e.g. lavapipe or vulkan://0.")
@click.option("--samples", default=2000, show_default=True, type=click.IntRange(50), help="A side.")
@click.option("--rounds", default=50, show_default=True, type=click.IntRange(10, 1000), help="Blocks a side.")
@click.option("--cpu", type=click.IntRange(0), metavar="N", help="Keep all sides on this one core (Linux).")
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="Write the blocks there.")
@click.option(
    "--check", is_flag=True, help="Exit with 1 if a figure disagrees, but for the total of a single dispatch."
)
def main(uri: str, samples: int, rounds: int, cpu: int | None, json_path: Path | None, check: bool) -> None:
    """Compares the latency that `pumice bench` reports with a C program's, in the same run."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    stay_on_core(cpu)
    build()
    try:
        with DevicePool(validation=False) as pool:
            device = pool.open(uri)
            place = "" if cpu is None else f", on core {cpu}"
            console.print(f"{device.name}; Python {sys.version.split()[0]}{place}", soft_wrap=True)
            with CProgram(device, MUL) as program:
                results = [
                    measure(pool, uri, case, program, samples // (1 if dispatches == 1 else 4), rounds)
                    for case, (dispatches, _, _) in _CASES.items()
                ]
    except PumiceError as error:
        raise click.ClickException(str(error)) from error
    show(results, console)
    if json_path is not None:
        blocks = {
            one.case: {side: [b.tolist() for b in blocks] for side, blocks in one.blocks.items()} for one in results
        }
        json_path.write_text(json.dumps({"device": device.name, "cpu": cpu, "blocks_ns": blocks}) + "\n")
    if check and any(one.verdict("bench", "C") == "DISAGREE" for one in results if one.case != "total, 1 dispatch"):
        sys.exit(1)


if __name__ == "__main__":
    main()
