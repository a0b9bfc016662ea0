"""Results that are made up of rounds of blocks in turns, with a reference like each point's load, and comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from pumice.study.definition.point import Point
from pumice.study.definition.sample import Sample
from pumice.study.results.comparison.results_comparison import ResultsComparison, compare_results, compare_sides
from pumice.study.results.results import Results
from pumice.study.results.storage.records import SampleFlag
from pumice.study.results.storage.store import Store
from pumice.study.statistics.comparison import Comparison

__all__ = [
    "BLOCK",
    "BLOCKS",
    "MANY",
    "ROUNDS",
    "STUDY",
    "add_run",
    "compared",
    "made_runs",
    "only",
    "sides",
    "two_sides",
    "undisturbed",
]

Medians = Mapping[tuple[str, int], float]
"""The median of each point, in nanoseconds, by device and size."""

Flags = Callable[[int], SampleFlag]
"""What disturbed a sample, by its number in its point."""

ROUNDS, BLOCKS, BLOCK = 8, 5, 10
STUDY = {"version": 1, "name": "mul", "targets": []}


def undisturbed(number: int) -> SampleFlag:
    return SampleFlag(0)


def add_run(
    opened: Store,
    points: Mapping[int, tuple[Point, float]],
    random: np.random.Generator,
    *,
    speed: float = 1.0,
    reference: float | None = 1.0,
    lacking: Sequence[int] = (),
    flags: Mapping[int, Flags] | None = None,
    at: int = 0,
    rounds: int = ROUNDS,
    load: str = "like it",
) -> None:
    """Rounds of blocks in turns, by points with their medians, and a reference like each point's load."""
    now = at
    for each in range(rounds):
        first = each * (BLOCKS + 1)
        for index, (_, median) in points.items():
            opened.add_samples(index, first, "first", [Sample(started=now, total=9 * median)])
        for block in range(first + 1, first + 1 + BLOCKS):
            for index, (point, median) in points.items():
                now += 10_000_000
                times = speed * median * random.normal(1, 0.01, BLOCK)
                wake = np.nan if point.axes["n"] in lacking else 5000.0
                samples = [Sample(started=now, total=t, execute=t / 2, wake=wake + t / 100) for t in times]
                mark = (flags or {}).get(index, undisturbed)
                numbers = range(BLOCK * (block - 1 - each), BLOCK * (block - each))
                opened.add_samples(index, block, "sample", samples, [mark(number) for number in numbers])
                if reference is not None:
                    taken = 1e5 * reference * random.normal(1, 0.002)
                    opened.add_reference(
                        point.device, started_ns=now, duration_ns=taken, kind="own", point=index, load=load
                    )


MANY = (1.0,) * 5


def made_runs(
    folder: Path,
    medians: Medians,
    *,
    measure: str = "total",
    speeds: Sequence[float] = (1.0,),
    references: Sequence[float] | None = None,
    status: str = "done",
    study: Mapping[str, object] = STUDY,
    device: str = "",
    driver: str = "Mesa",
    **options: object,
) -> Path:
    """A result with a run for each speed of the machine, which the references see unless they are told."""
    points = [Point(index, "mul", device, {"n": size}, measure=measure) for index, (device, size) in enumerate(medians)]
    random = np.random.default_rng(len(str(folder)))
    with Store.create(folder, study, points) as opened:
        for repeat, speed in enumerate(speeds, 1):
            opened.begin_run({}, repeat=repeat)
            for uri in {uri for uri, _ in medians} if device else ():
                opened.add_device(uri, name=device, driver=driver, facts={})
            reference = speed if references is None else references[repeat - 1]
            placed = {point.index: (point, median) for point, median in zip(points, medians.values(), strict=True)}
            add_run(opened, placed, random, speed=speed, **({"reference": reference} | options))  # type: ignore[arg-type]
            for point in points:
                opened.set_status(point.index, status, "as it was made")
            opened.end_run()
    return folder


def two_sides(
    folder: Path, ratio: float, *, status: str = "done", runs: int = 1, speeds: float = 0.0, **options: object
) -> Path:
    """A result whose new side takes so many times as long as the old one, and one point that has no old side."""
    new = Point(0, "mul", "d", {"n": 1}, measure="total", against=1)
    old = Point(1, "mul", "d", {"n": 1}, measure="total", is_against=True)
    alone = Point(2, "mul", "d", {"n": 2}, measure="total")
    random = np.random.default_rng(len(str(folder)))
    with Store.create(folder, STUDY, [new, old, alone]) as opened:
        for repeat in range(1, runs + 1):
            opened.begin_run({}, repeat=repeat)
            points = {0: (new, 1e4 * ratio), 1: (old, 1e4), 2: (alone, 1e4)}
            add_run(opened, points, random, speed=random.lognormal(0, speeds), **options)  # type: ignore[arg-type]
            for point in (new, old, alone):
                opened.set_status(point.index, status, "as it was made")
            opened.end_run()
    return folder


def compared(a: Path, b: Path, **options: float | str | Sequence[str]) -> ResultsComparison:
    with Results.open(a) as first, Results.open(b) as second:
        return compare_results(first, second, **options)  # type: ignore[arg-type]


def sides(folder: Path, **options: float | str) -> ResultsComparison:
    with Results.open(folder) as results:
        return compare_sides(results, **options)  # type: ignore[arg-type]


def only(found: ResultsComparison) -> Comparison:
    (one,) = found.points
    assert one.comparison is not None, one.why_not
    return one.comparison
