"""An engineer's day: are the verdicts right while another process computes in bursts?

Two kernels, one of arithmetic and one of memory, each against an equal version of itself and against one that does
7 % more, several times, in three ways: two runs, five runs of each side (``--runs``), and both versions in turns in
one run (``--against``). Prints each verdict, and a table of how many are right, UNCLEAR and wrong; the exit status is 1
if one is wrong.

    python tests/study/machines/engineers_day.py
    python tests/study/machines/engineers_day.py --times 3 --ways interleaved --idle
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

WAYS = ("single", "runs", "interleaved")
RUNS = 5
MORE = 1.07
KERNELS = ("arithmetic", "memory")

_STUDY = """
version = 1
name = "day"
sampling = {{ time_limit = {seconds} }}
[[targets]]
name = "arithmetic"
kind = "kernel"
source = "builtin:timing/fma"
bindings = [{{ shape = [64, 4], init = "zeros" }}]
groups = 1
push = {{ iterations = {iterations}, factor = 1.0 }}
[[targets]]
name = "memory"
kind = "kernel"
source = "builtin:timing/copy"
bindings = [{{ shape = [{elements}, 4] }}, {{ shape = [{elements}, 4], init = "zeros" }}]
groups = 64
"""

# Computes at times, on all cores: for 10 ms to 2 s, then pauses for as long.
_LOAD = """
import random, sys, time
random.seed(int(sys.argv[1]))
while True:
    time.sleep(random.expovariate(1))
    until = time.monotonic() + 10 ** random.uniform(-2, 0.3)
    while time.monotonic() < until:
        sum(range(10_000))
"""


@dataclass(frozen=True)
class Judged:
    """One verdict, with its kernel, its way of comparing, and the true slow-down of the new version."""

    kernel: str
    way: str
    ratio: float
    verdict: str
    explanation: str

    @property
    def outcome(self) -> str:
        if self.verdict == "UNCLEAR":
            return "UNCLEAR"
        return "right" if self.verdict == ("SLOWER" if self.ratio > 1 else "SAME") else "wrong"


@contextlib.contextmanager
def bursts(processes: int) -> Iterator[None]:
    """Runs other processes that compute in bursts during the block."""
    started = [subprocess.Popen([sys.executable, "-c", _LOAD, str(seed)]) for seed in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


def day(folder: Path, *, times: int, ways: Sequence[str], device: str, seconds: float) -> Iterator[Judged]:
    """Yields the verdicts of a day; results are kept in a folder."""
    files = {ratio: folder / f"version-{ratio:g}.toml" for ratio in (1.0, MORE)}
    for ratio, file in files.items():
        file.write_text(_STUDY.format(iterations=round(4000 * ratio), elements=round(30_000 * ratio), seconds=seconds))
    for number in range(times):
        for way in ways:
            for ratio in files:
                out = folder / f"{way}-{ratio:g}-{number}"
                old = ("study", "run", files[1.0], "--device", device)
                new = ("study", "run", files[ratio], "--device", device)
                if way == "interleaved":
                    data = _pumice(*new, "--against", files[1.0], "--out", out, "--json")
                else:
                    repeated = ("--runs", str(RUNS)) if way == "runs" else ()
                    _pumice(*old, *repeated, "--out", out / "old")
                    _pumice(*new, *repeated, "--out", out / "new")
                    data = _pumice("study", "compare", out / "old", out / "new", "--json")
                for kernel, verdict, explanation in _verdicts(json.loads(data)):
                    yield Judged(kernel, way, ratio, verdict, explanation)


def _pumice(*arguments: str | Path) -> str:
    """Returns the output of a command; its exit status may be that of a verdict."""
    start = "from pumice.tools.cli import main; main()"
    command = [sys.executable, "-c", start, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3, 4):
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def _verdicts(data: dict) -> Iterator[tuple[str, str, str]]:
    for point in data["points"]:
        yield point["target"], point["verdict"] or "UNCLEAR", point["explanation"] or point["why_not"]


def table(judged: Sequence[Judged]) -> str:
    """Returns the counts of right, UNCLEAR and wrong verdicts as a Markdown table."""
    rows = ["| way | kernel | new version | right | UNCLEAR | wrong |", "| -- | -- | -- | --: | --: | --: |"]
    cells = Counter((judgement.way, judgement.kernel, judgement.ratio, judgement.outcome) for judgement in judged)
    for way, kernel, ratio in dict.fromkeys((judgement.way, judgement.kernel, judgement.ratio) for judgement in judged):
        counts = " | ".join(str(cells[way, kernel, ratio, outcome]) for outcome in ("right", "UNCLEAR", "wrong"))
        rows.append(f"| {way} | {kernel} | {'equal' if ratio == 1 else f'{ratio - 1:+.0%}'} | {counts} |")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10, help="how often each comparison is made")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--seconds", type=float, default=2.0, help="most seconds of sampling for each kernel and side")
    parser.add_argument("--idle", action="store_true", help="without the other processes")
    arguments = parser.parse_args()
    judged = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, bursts(0 if arguments.idle else os.cpu_count() or 1):
        options = vars(arguments) | {"folder": Path(folder)}
        del options["idle"]
        for judgement in day(**options):
            judged.append(judgement)
            passed = time.monotonic() - began
            by = f"{judgement.way:12}{judgement.kernel:11} x{judgement.ratio:g}"
            print(f"{passed:6.0f} s  {judgement.outcome:8}{by} {judgement.explanation}", flush=True)
    print(f"\n{table(judged)}")
    return int(any(judgement.outcome == "wrong" for judgement in judged))


if __name__ == "__main__":
    sys.exit(main())
