"""Made-up results of studies, and what reports of them have."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pumice.study.definition.expansion import expand
from pumice.study.definition.point import Point
from pumice.study.definition.sample import Sample
from pumice.study.definition.study import Study
from pumice.study.definition.study_file import parse_study, study_as_dict
from pumice.study.results.results import Results
from pumice.study.results.storage.store import Store

STUDY = """
version = 1
name = "depth"
title = "Dispatches in a command buffer"
question = "What does one more cost?"
reading = "The slope."
fit = ["batch"]
compare = "barrier"
baseline = true
peaks = true
[sampling]
noise_limit = 0.05
[axes]
batch = [1, 4, 16, 64]
barrier = ["between", "none"]
[derived]
bytes = "4096"
flops = "1024"
[[targets]]
name = "mul"
kind = "kernel"
source = "builtin:mul"
"""


def taken(
    point: Point, count: int = 60, seed: int = 0, scale: float = 1.0, execute: float | None = None
) -> list[Sample]:
    """Samples of a kernel whose dispatch costs 2 µs, and whose submission costs 30 µs."""
    batch = int(point.settings.get("batch", 1))  # type: ignore[call-overload]
    chance = np.random.default_rng([seed, point.index])
    base = scale * (1000.0 + (200.0 if point.is_baseline else 2000.0) * batch) if execute is None else execute
    barrier = str(point.settings.get("barrier", "single")) if batch > 1 else "single"
    return [
        Sample(
            started=1_000_000 * (place * 100 + point.index),
            total=30_000.0 + time,
            submit=9000.0,
            queue=6000.0,
            execute=time,
            wake=15_000.0,
            device=21_000.0 + time,
            overlap=0.0,
            deviation=1.0,
            dispatches=batch,
            preemptions=0,
            barrier=barrier,
        )
        for place, time in enumerate((base * chance.lognormal(0, 0.02, count)).tolist())
    ]


Fill = Callable[[Store, tuple[Point, ...]], None]


def fill_all(store: Store, points: tuple[Point, ...]) -> None:
    for point in points:
        samples = taken(point)
        store.add_samples(point.index, 0, "first", [samples[0]._replace(execute=1e6, total=2e6)])
        for block in range(6):
            store.add_samples(point.index, block, "sample", samples[10 * block : 10 * block + 10])
        store.set_status(point.index, "done", "error reached")
    for place in range(20):
        store.add_reference("lavapipe", started_ns=300_000_000 * place, duration_ns=20_000.0 + place)
        store.add_clock("lavapipe", host_ns=300_000_000 * place, cpu_mhz=2100.0)
        store.add_clock(
            "lavapipe",
            host_ns=300_000_000 * place,
            device_ticks=300_000_000 * place,
            deviation_ns=1,
            ns_per_tick=1,
            calibrated=True,
        )
    store.add_peaks("lavapipe", {"GB/s": 20.0, "GFLOP/s": 50.0})


def made(folder: Path, text: str = STUDY, fill: Fill = fill_all, kind: str = "CPU") -> Results:
    study = parse_study(text, folder)
    return kept(folder, study, expand(study, ["lavapipe"]), fill, kind, text)


def kept(
    folder: Path, study: Study, points: tuple[Point, ...], fill: Fill, kind: str = "CPU", text: str | None = None
) -> Results:
    with Store.create(folder, study_as_dict(study), points, text=text) as store:
        store.begin_run({"pumice": "0.1.0", "cpu": {"model": "A CPU", "threads": 2}})
        facts = {"type": kind, "timestamps": {"valid_bits": 64}}
        store.add_device("lavapipe", name="llvmpipe", driver="Mesa", facts=facts)
        fill(store, points)
        store.end_run()
    return Results.open(folder)


def figures_of(html: str) -> list[dict[str, object]]:
    return [json.loads(text) for text in re.findall(r'class="figure" data-for="[^"]*">(.*?)</script>', html, re.DOTALL)]
