"""What does measuring cost? Samples a second of a whole study, beside a bare loop of the same submissions.

The loop submits the same recorded command buffer and waits for it, and does nothing else. The study does that too,
and around it reads timestamps, resolves them into segments, writes them to a file, and decides whether there are
enough samples. Blocks of the two alternate in random order. The difference is the tool's cost a sample. A second,
slower run of the study times its parts one by one and shows where that cost goes.

The cost of a sample is not in its measurement, which lies between two readings of the clock inside. It limits the
samples a second, and it is how long the device is idle between samples.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
import numpy.typing as npt
from c_program import stay_on_core
from rich.console import Console
from rich.table import Table

from pumice.status import PumiceError
from pumice.study.definition.expansion import expand
from pumice.study.definition.settings import Sampling
from pumice.study.definition.study import Study, Target
from pumice.study.definition.study_file import study_as_dict
from pumice.study.machine.environment import environment_facts
from pumice.study.results.storage.store import Store
from pumice.study.sampling import point_run
from pumice.study.sampling.point_run import PointRun
from pumice.study.sampling.single_run import SingleRun
from pumice.study.sampling.stopping import StopRule
from pumice.study.statistics.bootstrap import bootstrap
from pumice.study.workloads.kernel import KernelWorkload
from pumice.study.workloads.workload import DevicePool, WorkloadContext

_CONFIDENCE: Final = 0.95
_PARTS: Final = {
    "sample: submit, wait, timestamps read": (KernelWorkload, "sample"),
    "of which submit and wait": (KernelWorkload, "_run_native"),
    "of which timestamps read": (KernelWorkload, "_ticks"),
    "clocks read": (PointRun, "_reading"),
    "resolve": (point_run, "resolve"),
    "store": (Store, "add_samples"),
    "store: clocks": (Store, "add_clock"),
    "stop rule": (StopRule, "update"),
}


class Loops:
    """The tool and the bare loop, over one command buffer of one device."""

    def __init__(self, pool: DevicePool, uri: str, folder: Path, block: int, timestamps: str) -> None:
        # As a study has it, but for an end: what an endless one asks of its stop rule is what a long one asks.
        sampling = Sampling(
            block=block, min_samples=1 << 20, max_samples=1 << 20, relative_error=0, time_limit=1e9, reference=False
        )
        settings = {"source": "builtin:builtin/empty", "groups": 1, "timestamps": timestamps}
        study = Study("overhead", (Target("empty", "kernel", settings, measure="total"),), sampling=sampling)
        points = expand(study, (uri,))
        self.block = block
        self.store = Store.create(folder, study_as_dict(study), points)
        self.store.begin_run(environment_facts())
        side = PointRun("kernel", points[0], WorkloadContext(pool, uri), sampling, self.store)
        self.run = SingleRun(side, sampling)
        self.run.start()
        # Looks at the samples each time that there are a quarter more of them, from as few on as a study does.
        self.run._rule._next = Sampling().min_samples
        workload = side.workload
        assert isinstance(workload, KernelWorkload)
        self._submission = workload._submissions[0]

    def tool(self) -> float:
        """Seconds of a turn of the sampler."""
        began = time.perf_counter()
        self.run.take_turn()
        return time.perf_counter() - began

    def bare(self) -> float:
        """Seconds of as many submissions and waits."""
        submission = self._submission
        began = time.perf_counter()
        for _ in range(self.block):
            submission.run()
        taken = time.perf_counter() - began
        submission.queue.retire()
        return taken

    def close(self) -> None:
        """Ends the run."""
        self.run.close()
        self.store.end_run()
        self.store.close()


@contextmanager
def timed_parts() -> Iterator[dict[str, float]]:
    """Adds up the seconds of each part while they last."""
    spent: dict[str, float] = defaultdict(float)
    before = []

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                spent[name] += time.perf_counter() - began

        return call

    for name, (owner, attribute) in _PARTS.items():
        function = getattr(owner, attribute)
        before.append((owner, attribute, function))
        setattr(owner, attribute, timed(name, function))
    try:
        yield spent
    finally:
        for owner, attribute, function in before:
            setattr(owner, attribute, function)


def interval(values: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    """The median with its interval."""
    found = bootstrap(values)
    low, high = found.interval(_CONFIDENCE)
    return found.estimate, low, high


@click.command()
@click.option("--device", "uri", default="vulkan", metavar="URI", help="The device, e.g. lavapipe or vulkan://0.")
@click.option("--rounds", default=200, show_default=True, type=click.IntRange(20, 5000), help="Blocks a side.")
@click.option("--block", default=Sampling().block, show_default=True, type=click.IntRange(1), help="Samples a block.")
@click.option(
    "--timestamps", default="span", show_default=True, type=click.Choice(["span", "none"]), help="As the setting."
)
@click.option("--cpu", type=click.IntRange(0), metavar="N", help="Keep all of it on this one core (Linux).")
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="Write the times there.")
def main(uri: str, rounds: int, block: int, timestamps: str, cpu: int | None, json_path: Path | None) -> None:
    """Prints samples a second of a study and of a bare loop, and what the tool spends a sample on."""
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    stay_on_core(cpu)
    order = random.Random(0)
    try:
        with tempfile.TemporaryDirectory() as folder, DevicePool(validation=False) as pool:
            name = pool.open(uri).name
            loops = Loops(pool, uri, Path(folder) / "whole", block, timestamps)
            sides = {"study": loops.tool, "bare loop": loops.bare}
            taken: dict[str, list[float]] = {side: [] for side in sides}
            bootstrap([1.0, 2.0])  # SciPy is loaded once a process
            for _ in range(rounds):
                for side in order.sample(list(sides), 2):
                    taken[side].append(sides[side]() / block)
            loops.close()
            loops = Loops(pool, uri, Path(folder) / "parts", block, timestamps)
            with timed_parts() as spent:
                for _ in range(rounds):
                    loops.tool()
            loops.close()
    except PumiceError as error:
        raise click.ClickException(str(error)) from error
    study, bare = (np.array(taken[side]) for side in ("study", "bare loop"))
    console.print(
        f"{name}; Python {sys.version.split()[0]}; blocks of {block}, timestamps {timestamps}", soft_wrap=True
    )
    table = Table()
    for head in ("", "samples/s", "µs a sample", "95 %"):
        table.add_column(head, justify="right" if head else "left", no_wrap=True)
    for label, times in (("study", study), ("bare loop", bare), ("the tool's own", study - bare)):
        median, low, high = interval(times * 1e6)
        rate = "" if label.startswith("the") else f"{1e6 / median:,.0f}"
        table.add_row(label, rate, f"{median:.1f}", f"{low:.1f} to {high:.1f}")
    console.print(table)
    median, low, high = interval(study / bare)
    console.print(
        f"study / bare loop: {median:.2f} ({low:.2f} to {high:.2f}); "
        f"the mean over all blocks {study.sum() / bare.sum():.2f}"
    )
    parts = Table(title="where it goes (means, parts timed one by one)")
    for head in ("part", "µs a sample", "µs a block"):
        parts.add_column(head, justify="left" if head == "part" else "right", no_wrap=True)
    for part in _PARTS:
        seconds = spent.get(part, 0.0) / rounds
        parts.add_row(part, f"{seconds / block * 1e6:.1f}", f"{seconds * 1e6:.0f}")
    console.print(parts)
    if json_path is not None:
        json_path.write_text(json.dumps({"device": name, "block": block, "seconds_a_sample": taken}) + "\n")


if __name__ == "__main__":
    main()
