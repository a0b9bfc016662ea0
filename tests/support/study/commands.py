"""``pumice study`` and ``pumice bench`` in this process, with little to measure, and the samples that they store."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from click.testing import CliRunner, Result

from pumice.tools.cli import main

PROGRAM: Final = "from pumice.tools.cli import main; main(prog_name='pumice')"
"""The commands as a program of ``python -c``."""


def study(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["study", *map(str, arguments)])


def bench(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["bench", *map(str, arguments)])


def wrong_bench(*arguments: object) -> str:
    """Runs a ``pumice bench`` that is wrong usage and prints nothing; returns its message."""
    result = bench(*arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    assert result.stderr.rstrip().endswith("see `pumice bench --help`")
    return result.stderr


_SAMPLING = (
    "time_limit=0.05 warmup_time=0 warmup_count=1 min_samples=3 max_samples=4 block=2 noise_limit=1e9 reference=false"
)
FAST: Final = [word for setting in _SAMPLING.split() for word in ("--set", setting)]
"""Options of ``pumice bench`` for a few samples, which are never too noisy."""


def mul_study(axes: str, head: str = "", **sampling: str) -> str:
    """Returns a study of the kernel ``mul`` over the axis n, as TOML; nothing is too noisy for it."""
    settings = {"warmup_time": "0", "warmup_count": "1", "noise_limit": "1e9", "reference": "false", **sampling}
    lines = "\n".join(f"{name} = {value}" for name, value in settings.items())
    return f"""
version = 1
name = "sizes"
{head}
[sampling]
{lines}

[axes]
{axes}

[[targets]]
name = "mul"
kind = "kernel"
source = "builtin:mul"
bindings = [{{ shape = "$n" }}, {{ shape = "$n" }}, {{ shape = "$n", init = "zeros" }}]
"""


Taken = dict[tuple[int, int], list[tuple[int, int]]]
"""The run and start of every sample, by repeat and point."""


def samples_of(folder: Path) -> Taken:
    database = sqlite3.connect(f"file:{folder / 'results.sqlite'}?mode=ro", uri=True)
    samples: Taken = {}
    query = "SELECT repeat, point, run, started_ns FROM samples JOIN runs USING (run) ORDER BY point, number"
    for repeat, point, run, started in database.execute(query):
        samples.setdefault((repeat, point), []).append((run, started))
    database.close()
    return samples


def check_resumed(before: Taken, after: Taken) -> None:
    """Checks that a resumed study lost no samples and stored none twice."""
    for key, samples in before.items():
        assert after[key][: len(samples)] == samples, "what was kept stays as it was"
    everything = [sample for samples in after.values() for sample in samples]
    assert len(set(everything)) == len(everything)
