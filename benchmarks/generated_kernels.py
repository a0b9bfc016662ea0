"""How fast are the kernels that pumice generates? Its modules beside iree-compile's, on pumice's runtime.

A case is a program of StableHLO (kernel_programs.py). pumice compiles it for the device at hand, iree-compile for
Vulkan as it does by default, and both modules run on pumice's runtime, with arguments that lie on the device and
results that are left there: what differs is the code. Each side runs in a process of its own. Their results are held
against each other, and against NumPy, before anything is timed. The two take turns, a block of calls each, in random
order. The ratio is the median over the rounds of the ratio of the blocks' medians, with its 95 % interval (a bootstrap
over the rounds).

Bytes are those of the arguments and the results, each once; GB/s and GFLOP/s come with their share of what the device
reaches in kernels that do nothing else (``pumice study peaks``), measured first, in the same way. Where a library that
is written for speed computes the same (NumPy on a CPU, CuPy on an NVIDIA GPU where it is installed), the ratio to it is
beside, for information.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import click
import numpy as np
from c_program import stay_on_core
from kernel_programs import CASES, Case, Goal
from peer_programs import BUILD, tool
from rich.console import Console
from rich.table import Table
from timed_process import TimedProcess, Times, ratio

import pumice
from pumice.base.files import write_whole
from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.origin import Origin
from pumice.compiler.pipeline import compile_data
from pumice.hal_vulkan import DeviceProfile, DeviceType

_FOLDER = Path(__file__).parent
_MODULES = BUILD / "generated"
_PEER_TARGETS = ("", "valhall4")
"""Values of ``--iree-vulkan-target``: the first with which iree-compile makes a module counts.

Without one it takes a device without narrow types, whose buffers have wider elements than the arrays of a case.
"""
_BLOCK_S = 0.1
_MOST_CALLS = 200
_LEAST_ROUNDS = 3


@dataclass
class Result:
    """The blocks of a case's sides, round by round, in ns a call.

    Attributes:
        nbytes: of arguments and results.
        refusal: why the peer's side was not measured.
    """

    name: str
    case: Case
    nbytes: int = 0
    refusal: str = ""
    ours: list[Times] = field(default_factory=list)
    theirs: list[Times] = field(default_factory=list)
    library: list[Times] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Our median call."""
        return float(np.median(np.concatenate(self.ours))) / 1e9

    def missed(self, goal: Goal, peaks: tuple[float, float]) -> list[str]:
        """What is not as it should be."""
        found = []
        if self.theirs and ratio(self.ours, self.theirs)[0] > goal.ratio:
            found.append("ratio")
        shares = (
            (goal.bandwidth, self.nbytes / peaks[0], "GB/s"),
            (goal.arithmetic, self.case.flops / peaks[1], "GFLOP/s"),
        )
        for least, share, what in shares:
            if least is not None and share / self.seconds < least:
                found.append(what)
        return found


def slug(name: str) -> str:
    """A case's name in names of files."""
    return "".join(letter if letter.isalnum() or letter in ".-" else "_" for letter in name)


def build(name: str, case: Case, target: Target) -> Path:
    """Our module for a target."""
    path = _MODULES / f"{slug(name)}.vmfb"
    module = compile_data(case.text.encode(), name, target).module
    write_whole(path, lambda file: file.write(module))
    return path


def tuned(name: str, case: Case, device: DeviceProfile, uri: str, database: Path, seconds: float) -> Target:
    """The target of a device after a case was tuned on it."""
    from pumice.tuning.tuner import tune_program

    target, done = tune_program(case.text.encode(), name, Origin(), device, uri, path=database, seconds=seconds)
    for line in (*done.refused, *([f"{name}: {done.left} not done"] if done.left else ())):
        click.echo(line, err=True)
    return target


def build_peer(name: str, case: Case) -> Path:
    """iree-compile's module, which is kept by program and release."""
    compiler = tool("iree-compile")
    release = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    is_narrow = any(element in ("f16", "i8") for _, element in case.arguments)
    targets = _PEER_TARGETS[is_narrow:]
    key = hashlib.sha256(release + "".join(targets).encode() + case.text.encode()).hexdigest()[:16]
    path = _MODULES / f"{slug(name)}.{key}.iree.vmfb"
    if path.exists():
        return path
    source = path.with_suffix(".mlir")
    source.write_text(case.text)
    for target in targets:
        flags = ["--iree-hal-target-device=vulkan", *([f"--iree-vulkan-target={target}"] if target else [])]
        part = path.with_suffix(".part")
        done = subprocess.run([compiler, *flags, source, "-o", part], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            part.replace(path)
            return path
    raise click.ClickException("iree-compile refuses: " + done.stderr.partition("\n")[0][-120:])


def worker(module: Path | str, name: str, results: Path, uri: str) -> TimedProcess:
    """The process of a side."""
    command = [sys.executable, _FOLDER / "_generated_kernels_worker.py", str(module), name, results, uri]
    return TimedProcess(command, f"{name} by {results.name}")


def check(name: str, case: Case, folder: Path, side: str, like: str | None) -> int:
    """Holds a side's results against NumPy's, and another side's; returns their bytes."""
    found = [np.load(path) for path in sorted(folder.glob(f"{side}.*.npy"))]
    expected = {}
    if case.definition is not None:
        expected["NumPy"] = [case.definition(*case.arrays())]
    if like is not None:
        expected[like] = [np.load(path) for path in sorted(folder.glob(f"{like}.*.npy"))]
    for source, values in expected.items():
        for one, other in zip(found, values, strict=True):
            one, other = one.astype(np.float64), other.astype(np.float64)
            wrong = np.abs(one - other).max() / max(np.abs(other).max(), 1e-30)
            if one.shape != other.shape or not wrong <= case.tolerance:
                raise click.ClickException(f"{name}: {side}'s result is not {source}'s: {wrong:.2g} of the largest")
    return sum(each.nbytes for each in found)


def library_of(device: DeviceProfile) -> str | None:
    """The library to stand beside: the vendor's, as far as it is installed."""
    if device.device_type is DeviceType.CPU:
        return "NumPy"
    is_nvidia = target_of(device).family == "nvidia"
    return "CuPy" if is_nvidia and importlib.util.find_spec("cupy") is not None else None


def measure(name: str, device: DeviceProfile, target: Target, uri: str, rounds: int, seconds: float) -> Result:
    """The case, checked and timed."""
    case = CASES[name]
    result = Result(name, case)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pumice-kernels-")))
        sides = {"pumice": stack.enter_context(worker(build(name, case, target), name, folder / "pumice", uri))}
        result.nbytes = check(name, case, folder, "pumice", None) + sum(each.nbytes for each in case.arrays())
        try:
            module = build_peer(name, case)
            peer = stack.enter_context(worker(module, name, folder / "iree-compile", uri))
            check(name, case, folder, "iree-compile", "pumice")
            sides["iree-compile"] = peer
        except click.ClickException as error:
            why = folder / "iree-compile.error"
            result.refusal = why.read_text(encoding="utf-8").partition(". ")[0] if why.exists() else error.message
        library = library_of(device)
        if library is not None and case.is_library:
            sides["library"] = stack.enter_context(worker(library, name, folder / library, uri))
        blocks = {"pumice": result.ours, "iree-compile": result.theirs, "library": result.library}
        once = {side: min(process.ask("run", 2)) / 1e9 for side, process in sides.items()}
        counts = {side: max(1, min(int(_BLOCK_S / each), _MOST_CALLS)) for side, each in once.items()}
        turn = sum(counts[side] * once[side] for side in sides)
        for _ in range(max(_LEAST_ROUNDS, min(rounds, int(seconds / turn)))):
            for side in random.sample(list(sides), len(sides)):
                blocks[side].append(np.array(sides[side].ask("run", counts[side])))
    return result


def show(console: Console, results: list[Result], peaks: tuple[float, float], title: str, least: Goal | None) -> int:
    """Prints the table; returns how many cases miss their goal. ``least`` is the goal of all of them, if it is."""
    table = Table(title=title)
    columns = ("pumice, ms", "iree-compile", "ratio", "95 %", "library", "GB/s", "GFLOP/s", "goal", "missed")
    table.add_column("case")
    for column in columns:
        table.add_column(column, justify="right")
    count = 0
    for result in results:
        goal, case = least or result.case.goal, result.case
        missed = result.missed(goal, peaks)
        count += bool(missed)
        shown = ["-", "-", "-"]
        if result.theirs:
            middle, low, high = ratio(result.ours, result.theirs)
            theirs = float(np.median(np.concatenate(result.theirs))) / 1e6
            shown = [f"{theirs:,.3f}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}"]
        shown.append(f"{ratio(result.ours, result.library)[0]:.2f}" if result.library else "")
        rates = [
            f"{number / result.seconds / 1e9:,.1f} ({number / result.seconds / peak:.0%})" if number else ""
            for number, peak in zip((result.nbytes, case.flops), peaks, strict=True)
        ]
        goals = [f"≤ {goal.ratio:g}"]
        goals += [f"≥ {share:.0%}" for share in (goal.bandwidth, goal.arithmetic) if share is not None]
        table.add_row(
            result.name, f"{result.seconds * 1e3:,.3f}", *shown, *rates, ", ".join(goals), ", ".join(missed) or "no"
        )
    console.print(table)
    for result in results:
        if result.refusal:
            console.print(f"{result.name}: {result.refusal}", highlight=False)
    return count


@click.command()
@click.option("--device", "uri", default="vulkan", show_default=True, help="Device URI.")
@click.option("--cpu", type=int, help="Keep everything on this core (Linux).")
@click.option("--case", "words", multiple=True, metavar="WORD", help="Only cases with this word; several add up.")
@click.option("--rounds", type=click.IntRange(1), default=9, show_default=True, help="Turns of the two sides, at most.")
@click.option("--seconds", default=4.0, show_default=True, help="A case stops after this, but takes three rounds.")
@click.option("--tune", "database", type=click.Path(path_type=Path), help="Tune each case first, by this database.")
@click.option("--tune-time", default=30.0, show_default=True, help="Seconds of tuning for a case.")
@click.option("--json", "json_file", type=click.Path(), help="Write the raw samples (ns) here.")
@click.option("--check", "checked", is_flag=True, help="Exit with 1 if a goal is missed.")
def main(
    uri: str,
    cpu: int | None,
    words: tuple[str, ...],
    rounds: int,
    seconds: float,
    database: Path | None,
    tune_time: float,
    json_file: str | None,
    checked: bool,
) -> None:
    """Prints times, ratios with their spread, and shares of the measured peaks."""
    names = [name for name in CASES if not words or any(word.lower() in name.lower() for word in words)]
    if not names:
        raise click.UsageError(f"no case has one of these words; there are {', '.join(CASES)}")
    stay_on_core(cpu)
    _MODULES.mkdir(parents=True, exist_ok=True)
    console = Console(markup=False, width=None if sys.stdout.isatty() else 150)
    with pumice.open_device(uri) as device:
        profile, title = device.profile, device.name
    print("measuring peaks", end="", file=sys.stderr, flush=True)
    with worker("peaks", names[0], Path("peaks"), uri) as process:
        found = []
        for _ in range(3):
            found.append(process.ask("run", 1))
            print(".", end="", file=sys.stderr, flush=True)
    bandwidth, arithmetic = np.max(found, axis=0)
    results = []
    print(f"\nmeasuring {len(names)} cases", end="", file=sys.stderr, flush=True)
    for name in names:
        target = target_of(profile)
        if database is not None:
            target = tuned(name, CASES[name], profile, uri, database, tune_time)
        results.append(measure(name, profile, target, uri, rounds, seconds))
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    where = f"core {cpu}" if cpu is not None else "all cores"
    title = f"{title}, {where}; peaks {bandwidth / 1e9:,.1f} GB/s, {arithmetic / 1e9:,.1f} GFLOP/s"
    everywhere = None if profile.device_type is DeviceType.CPU else Goal(1.0)
    missed = show(console, results, (bandwidth, arithmetic), title, everywhere)
    if json_file:
        raw = {
            each.name: {
                "nbytes": each.nbytes,
                "flops": each.case.flops,
                "pumice": [list(block) for block in each.ours],
                "iree-compile": [list(block) for block in each.theirs],
                "library": [list(block) for block in each.library],
            }
            for each in results
        }
        peaks = {"bytes/s": bandwidth, "flop/s": arithmetic}
        Path(json_file).write_text(json.dumps({"device": profile.name, "cpu": cpu, "peaks": peaks, "cases": raw}))
    if checked and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
