"""What does Python cost between a program and Vulkan?

The same work is done twice: by pumice, and by a C program on plain Vulkan (submit_wait.c, built on the spot). Each
*round* measures a block of samples of every case in both, the two of a case one right after the other, in random
order: a machine that is busy or changes its clock then does so for both. The ratio is the median over the rounds of
(median of pumice's block / median of the C program's block); its interval is a bootstrap over the rounds.

Where the device is the CPU, most of a submission is threads of the driver that wake each other, and which core they
wake on moves both sides by a factor of two; ``--cpu 0`` keeps everything on one core, which is steadier and, the C
program being much faster so, the harder test.

To add a case, write a method of ``PumiceCases`` that returns a ``Measure``, and list it in ``PumiceCases.cases``.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click
import numpy as np
from c_program import MUL, SAXPY, SETS, BareCalls, CProgram, Shader, build, check_output, stay_on_core
from rich.console import Console
from rich.table import Table
from timed_process import Times, ratio

import pumice
from pumice import shaders
from pumice.hal_vulkan import Buffer, CommandBuffer, ComputePipeline, MemoryTypeFlags
from pumice.status import PumiceError

Measure = Callable[[int], list[int]]
"""Takes a number of repetitions; returns the nanoseconds of each."""

_NEW_SETS: Final = 100
_NEVER_SEEN: Final = 2000  # sets, more than are kept: each call's arrays were not here before
_MANY: Final = 1000
# Pumice lets go of finished submissions every sixteenth time, so one call alone says too little.
_GROUP: Final = 16
_WARM_UP: Final = 4


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Attributes:
        name: the row's head.
        shader: the kernel that both sides run.
        measure: pumice's side.
        command: the C program's side: what it is told (see submit_wait.c).
        group: a sample is the mean of this many repetitions.
        dispatches: samples are divided by this.
        most_ratio: the target for pumice / C, if there is one.
        most_ns: the target for pumice's time, if there is one.
        share: of the number of samples asked for; less for slow cases.
    """

    name: str
    shader: Shader
    measure: Measure
    command: str
    group: int = 1
    dispatches: int = 1
    most_ratio: float | None = None
    most_ns: float | None = None
    share: float = 1.0


@dataclass
class Result:
    """The blocks of a case: for each round the samples of both sides, in ns."""

    case: Case
    pumice: list[Times] = field(default_factory=list)
    c: list[Times] = field(default_factory=list)

    @property
    def medians(self) -> tuple[float, float]:
        """The medians of all samples, pumice's and the C program's, in ns."""
        return float(np.median(np.concatenate(self.pumice))), float(np.median(np.concatenate(self.c)))

    def ratio(self) -> tuple[float, float, float]:
        """The ratio, and the bounds of its 95 % interval."""
        return ratio(self.pumice, self.c)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; ``None`` without a target."""
        if self.case.most_ratio is not None:
            return self.ratio()[0] <= self.case.most_ratio
        if self.case.most_ns is not None:
            return self.medians[0] <= self.case.most_ns
        return None

    def as_json(self) -> dict[str, object]:
        """All that the table says, in ns, and the median of each block."""
        (pumice_ns, c_ns), (ratio, low, high) = self.medians, self.ratio()
        return {
            "case": self.case.name,
            "pumice_ns": pumice_ns,
            "c_ns": c_ns,
            "ratio": ratio,
            "ratio_interval": [low, high],
            "most_ratio": self.case.most_ratio,
            "most_ns": self.case.most_ns,
            "met": self.met,
            "pumice_block_medians_ns": [float(np.median(block)) for block in self.pumice],
            "c_block_medians_ns": [float(np.median(block)) for block in self.c],
        }


class PumiceCases:
    """Pumice's side of every case, on one device. Everything that a program would make once is made here."""

    def __init__(self, device: pumice.Device) -> None:
        self.device = device
        self.hal = device.hal
        self.queue = device.hal.compute_queue
        self.semaphore = device.hal.create_semaphore(name="benchmark")
        self.payload = 0
        self._bare: BareCalls | None = None
        self.kernel = device.load_kernel(shaders.path(MUL.name))
        self.mul = self.kernel.pipeline
        self.saxpy = self.hal.create_pipeline(shaders.spirv(SAXPY.name))
        self.mul_sets = self._make_sets(MUL, self.mul)
        self.saxpy_sets = self._make_sets(SAXPY, self.saxpy)

    def cases(self) -> list[Case]:
        """The rows of the table, in order."""
        return [
            Case("two bare cffi calls", MUL, self.bare_calls, "prerecorded", _GROUP),
            Case("prerecorded", MUL, self.prerecorded(), "prerecorded", _GROUP, most_ratio=1.15),
            Case("re-recorded, other buffers", MUL, self.rerecorded(), "rerecorded", _GROUP),
            Case("kernel call, other arrays", MUL, self.kernel_call(SETS), "rerecorded", _GROUP, most_ratio=1.4),
            Case("kernel call, 100 arrays", MUL, self.kernel_call(_NEW_SETS), "rerecorded", _GROUP, most_ratio=1.4),
            Case("kernel call, new arrays", MUL, self.kernel_call(_NEVER_SEEN), "rerecorded", _GROUP),
            Case("record: same set", MUL, self.record_same_set(), "record", 1, _MANY, most_ns=1500, share=0.2),
            Case("record: alternating sets", MUL, self.record_other_sets(), "record-sets", 1, _MANY, share=0.2),
            Case(
                "record: push constants",
                SAXPY,
                self.record_push_constants(),
                "record-push",
                1,
                _MANY,
                most_ns=1200,
                share=0.2,
            ),
            Case("run 1,000 dispatches", MUL, self.thousand(), "thousand", most_ratio=1.05, share=0.2),
        ]

    # -- cases ---------------------------------------------------------------------------------------

    def bare_calls(self, count: int) -> list[int]:
        """What Python can reach at all: ``prerecorded`` in a process without pumice, which checks and notes nothing."""
        if self._bare is None:
            self._bare = BareCalls(self.device, MUL)
        return [int(sample) for sample in self._bare.ask("prerecorded", count)]

    def close(self) -> None:
        """Ends the process of ``bare_calls``."""
        if self._bare is not None:
            self._bare.close()

    def prerecorded(self) -> Measure:
        """Submit a reusable command buffer of one dispatch, and wait."""
        return self._timed_submission(1)

    def thousand(self) -> Measure:
        """Submit a reusable command buffer of a thousand dispatches, and wait."""
        return self._timed_submission(_MANY)

    def rerecorded(self) -> Measure:
        """A new one-shot command buffer a call, over other buffers than the last call's; submit, and wait."""

        def measure(count: int) -> list[int]:
            clock, samples = time.perf_counter_ns, [0] * count
            hal, queue, semaphore, pipeline, payload = self.hal, self.queue, self.semaphore, self.mul, self.payload
            for i in range(count):
                start = clock()
                payload += 1
                commands = hal.create_command_buffer(one_shot=True)
                commands.begin()
                commands.dispatch(pipeline, self.mul_sets[i % SETS], (1, 1, 1))
                commands.end()
                queue.submit((commands,), signals=((semaphore, payload),))
                semaphore.wait(payload)
                samples[i] = clock() - start
            self.payload = payload
            return samples

        return measure

    def kernel_call(self, sets: int) -> Measure:
        """The runtime's way: call a kernel with other device arrays than the last call's, and wait for the result.

        With few sets of arrays the kernel has seen each before, and keeps their commands; with thousands it has to
        record.
        """
        arrays = [[self.device.asarray(a) for a in MUL.inputs(number)] for number in range(sets)]
        turn = 0
        for number, (a, b, product) in enumerate(arrays):
            self.kernel(a, b, product)
            check_output("a kernel call", MUL, number, product.numpy())

        def measure(count: int) -> list[int]:
            nonlocal turn
            clock, samples, kernel = time.perf_counter_ns, [0] * count, self.kernel
            for i in range(count):
                turn = (turn + 1) % sets
                a, b, product = arrays[turn]
                start = clock()
                kernel(a, b, product)
                product.wait()
                samples[i] = clock() - start
            return samples

        return measure

    def record_same_set(self) -> Measure:
        """Record a thousand dispatches of one bound set."""
        bound = self.mul.bind(self.mul_sets[0])

        def record(commands: CommandBuffer) -> None:
            for _ in range(_MANY):
                commands.dispatch(self.mul, bound, (1, 1, 1))

        return self._timed_recording(record)

    def record_other_sets(self) -> Measure:
        """Record a thousand dispatches that take two bound sets in turn."""
        pair = [self.mul.bind(self.mul_sets[i]) for i in range(2)]
        sets = [pair[i % 2] for i in range(_MANY)]

        def record(commands: CommandBuffer) -> None:
            for bound in sets:
                commands.dispatch(self.mul, bound, (1, 1, 1))

        return self._timed_recording(record)

    def record_push_constants(self) -> Measure:
        """Record a thousand dispatches of one bound set, with other push constants each."""
        bound = self.saxpy.bind(self.saxpy_sets[0])
        constants = [i.to_bytes(SAXPY.push_bytes, "little") for i in range(_MANY)]

        def record(commands: CommandBuffer) -> None:
            for push in constants:
                commands.dispatch(self.saxpy, bound, (1, 1, 1), push)

        return self._timed_recording(record)

    # -- what they share -----------------------------------------------------------------------------

    def _timed_submission(self, dispatches: int) -> Measure:
        commands = self.hal.create_command_buffer().begin()
        bound = self.mul.bind(self.mul_sets[0])
        for _ in range(dispatches):
            commands.dispatch(self.mul, bound, (1, 1, 1))
        commands.end()

        def measure(count: int) -> list[int]:
            clock, samples = time.perf_counter_ns, [0] * count
            queue, semaphore, payload = self.queue, self.semaphore, self.payload
            for i in range(count):
                start = clock()
                payload += 1
                queue.submit((commands,), signals=((semaphore, payload),))
                semaphore.wait(payload)
                samples[i] = clock() - start
            self.payload = payload
            return samples

        return measure

    def _timed_recording(self, record: Callable[[CommandBuffer], None]) -> Measure:
        commands = self.hal.create_command_buffer()

        def measure(count: int) -> list[int]:
            clock, samples = time.perf_counter_ns, [0] * count
            for i in range(count):
                commands.begin()
                start = clock()
                record(commands)
                samples[i] = clock() - start
                commands.end()
            return samples

        return measure

    def _make_sets(self, shader: Shader, pipeline: ComputePipeline) -> list[list[Buffer]]:
        """Buffers for each set, and one dispatch over them, which is checked."""
        sets = []
        for number in range(SETS):
            buffers = []
            for data in shader.inputs(number):
                buffer = self.hal.create_buffer(
                    data.nbytes, memory_type=MemoryTypeFlags.DEVICE_LOCAL | MemoryTypeFlags.HOST_VISIBLE
                )
                buffer.write(data.tobytes())
                buffers.append(buffer)
            with self.hal.create_command_buffer(one_shot=True) as commands:
                commands.begin().dispatch(pipeline, buffers, (1, 1, 1), bytes(shader.push_bytes))
                self.payload += 1
                self.queue.submit((commands.end(),), signals=((self.semaphore, self.payload),))
                self.semaphore.wait(self.payload)
            check_output("pumice", shader, number, np.frombuffer(buffers[-1].read(), np.float32))
            sets.append(buffers)
        return sets


def run(cases: Sequence[Case], programs: dict[str, CProgram], samples: int, rounds: int) -> list[Result]:
    """Measures ``rounds`` blocks of every case on both sides; the order is random, and the two of a case adjacent."""
    results = [Result(case) for case in cases]
    order = random.Random(0)
    for _ in range(rounds):
        for result in order.sample(results, len(results)):
            case = result.case
            block = max(3, round(samples * case.share / rounds))

            def ask(count: int, case: Case = case) -> Sequence[float]:
                return programs[case.shader.name].ask(case.command, count)

            sides: list[tuple[Callable[[int], Sequence[float]], list[Times]]]
            sides = [(case.measure, result.pumice), (ask, result.c)]
            for measure, blocks in order.sample(sides, 2):
                # The caches and the clock belong to the other side until a few repetitions are through.
                taken = np.array(measure((_WARM_UP + block) * case.group), np.float64) / case.dispatches
                blocks.append(taken.reshape(-1, case.group).mean(axis=1)[_WARM_UP:])
    return results


def show(results: Sequence[Result], console: Console) -> None:
    """Prints the table."""
    table = Table()
    for head in ("case", "pumice", "C", "pumice / C", "95 %", "target", "met"):
        table.add_column(head, justify="left" if head == "case" else "right", no_wrap=True)
    for result in results:
        case, (pumice_ns, c_ns), (ratio, low, high) = result.case, result.medians, result.ratio()
        target = ""
        if case.most_ratio is not None:
            target = f"≤ {case.most_ratio:g}"
        elif case.most_ns is not None:
            target = f"≤ {_time(case.most_ns)}"
        table.add_row(
            case.name,
            _time(pumice_ns),
            _time(c_ns),
            f"{ratio:.3g}",
            f"{low:.3g} to {high:.3g}",
            target,
            {True: "[green]yes[/]", False: "[red]no[/]", None: ""}[result.met],
        )
    console.print(table)


def _time(ns: float) -> str:
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


@click.command()
@click.option("--device", "uri", metavar="URI", help="The device, e.g. lavapipe or vulkan://0.")
@click.option("--samples", default=1000, show_default=True, type=click.IntRange(20, 100_000), help="A case and side.")
@click.option("--rounds", default=40, show_default=True, type=click.IntRange(2, 1000), help="Blocks of samples.")
@click.option("--cpu", type=click.IntRange(0), metavar="N", help="Keep both sides on this one core (Linux).")
@click.option("--case", "words", multiple=True, metavar="WORD", help="Only the cases with one of these in their name.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="Write the results there.")
@click.option("--check", is_flag=True, help="Exit with 1 if a target is missed.")
def main(
    uri: str | None,
    samples: int,
    rounds: int,
    cpu: int | None,
    words: tuple[str, ...],
    json_path: Path | None,
    check: bool,
) -> None:
    """Times pumice beside a C program that does the same: submit and wait, record, run."""
    console = Console()
    stay_on_core(cpu)
    build()
    try:
        device = pumice.open_device(uri)
    except PumiceError as error:
        raise click.ClickException(str(error)) from error
    with device:
        if device.hal.validation:
            raise click.ClickException("validation would be timed on one side only: unset PUMICE_VALIDATION")
        profile = device.profile
        driver = f"{profile.driver_name} {profile.driver_info}".strip()
        place = "" if cpu is None else f", on core {cpu}"
        console.print(f"{profile.name}, {driver}; Python {sys.version.split()[0]}{place}", soft_wrap=True)
        pumice_cases = PumiceCases(device)
        cases = [c for c in pumice_cases.cases() if not words or any(word in c.name for word in words)]
        if not cases:
            raise click.ClickException(f"no case has {' or '.join(words)} in its name")
        programs: dict[str, CProgram] = {}
        try:
            for case in cases:
                if case.shader.name not in programs:
                    programs[case.shader.name] = CProgram(device, case.shader)
            results = run(cases, programs, samples, rounds)
        finally:
            pumice_cases.close()
            for program in programs.values():
                program.close()
    show(results, console)
    if json_path is not None:
        about = {"device": profile.name, "driver": driver, "python": sys.version.split()[0], "cpu": cpu}
        settings = {"samples": samples, "rounds": rounds}
        rows = [result.as_json() for result in results]
        json_path.write_text(json.dumps({**about, **settings, "cases": rows}, indent=1) + "\n")
    if check and any(result.met is False for result in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
