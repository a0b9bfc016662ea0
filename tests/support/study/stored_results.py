"""Results that are made up, and what a results file holds, read by SQL."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pumice.study.definition.kept_file import KeptFile
from pumice.study.definition.point import Point
from pumice.study.definition.sample import Sample
from pumice.study.results.storage.database import RESULTS_FILE
from pumice.study.results.storage.records import SampleFlag
from pumice.study.results.storage.store import Store

__all__ = ["KEPT", "POINTS", "STUDY", "made_results", "made_version", "next_block", "query", "sample_count", "samples"]

_BLOCKS = 20
_RUNS = 5
_VERSION_ROUNDS = 16


def made_results(
    folder: Path,
    medians: Sequence[float],
    *,
    name: str = "sizes",
    noise: float = 0.01,
    count: int = 400,
    disturbed: int = 0,
    status: str = "done",
) -> Path:
    """Results with a point for each median in ns, seen in five runs of four blocks, on a machine whose state its
    reference kernels tell; 0 for one that the device cannot run.

    Args:
        disturbed: blocks at the end whose samples are flagged as preempted.
        status: of the points that were measured.
    """
    values = [4 << place for place in range(len(medians))]
    target = {"name": "mul", "kind": "kernel", "source": "builtin:mul", "groups": "$n"}
    described = {"version": 1, "name": name, "axes": {"n": values}, "targets": [target]}
    points = [Point(place, "mul", "lavapipe", {"n": n}, {"batch": 1}) for place, n in enumerate(values)]
    random = np.random.default_rng(len(medians))
    with Store.create(folder, described, points) as store:
        for run in range(_RUNS):
            store.begin_run({"pumice": "0.1.0"}, repeat=run + 1)
            store.add_device("lavapipe", name="llvmpipe", driver="Mesa", facts={})
            for place, median in enumerate(medians):
                if not median:
                    store.set_status(place, "skipped", "UNAVAILABLE: no such queue")
                    continue
                store.add_samples(place, 0, "first", [Sample(0, total=9 * median)])
                for block in range(_BLOCKS // _RUNS):
                    taken = 1e5 * (1 + 1e-4 * random.standard_normal())
                    store.add_reference(
                        "lavapipe", started_ns=0, duration_ns=taken, kind="own", point=place, load="like it"
                    )
                    times = median * (1 + noise * random.standard_normal(count // _BLOCKS))
                    before = run * _BLOCKS // _RUNS + block
                    flags = SampleFlag.PREEMPTED if before >= _BLOCKS - disturbed else SampleFlag(0)
                    samples = [Sample(0, total=t + 50, execute=float(t)) for t in times]
                    store.add_samples(place, block + 1, "sample", samples, [flags] * len(samples))
                store.set_status(place, status, "error reached")
            store.end_run()
    return folder


def made_version(
    folder: Path,
    place: int,
    level: float,
    old: tuple[str, float] | None,
    revision: Mapping[str, object] | None = None,
    version: str = "",
    rounds: int = _VERSION_ROUNDS,
) -> Path:
    """Results of a version, ``v{place}`` by default, whose kernel takes ``level`` times as long as others, on a machine
    that is 1 to 2 times slower; ``old`` is the version that was measured in turns with it, and its level.
    """
    target = {"name": "mul", "kind": "kernel", "source": "mul.comp"}
    random = np.random.default_rng(place)
    state = 1 + random.random()
    described: dict[str, object] = {"version": 1, "name": "muls", "targets": [target]}
    if old is not None:
        described["against"] = {"version": 1, "name": "muls", "targets": [target]}
    points = [Point(0, "mul", "lavapipe", against=None if old is None else 1)]
    points += [] if old is None else [Point(1, "mul", "lavapipe", is_against=True)]
    with Store.create(folder, described, points) as store:
        store.begin_run({} if revision is None else {"revision": revision})
        store.add_device("lavapipe", name="llvmpipe", driver="Mesa", facts={})
        sides = [("mul.comp", version or f"v{place}", level)] + ([] if old is None else [("against: mul.comp", *old)])
        for index, (name, content, side) in enumerate(sides):
            store.add_file(KeptFile.of(name, content.encode(), "kernel"))
            for round_ in range(rounds):
                instance = side * (1 + 0.01 * random.standard_normal())
                for block in range(4):
                    number = 4 * round_ + block
                    if not block:
                        store.add_samples(index, number, "first", [Sample(0, total=9e4)])
                    times = 1e4 * state * instance * (1 + 0.02 * random.standard_normal(5))
                    store.add_samples(index, number, "sample", [Sample(0, total=t, execute=float(t)) for t in times])
                    taken = 1e5 * state * (1 + 1e-3 * random.standard_normal())
                    store.add_reference("lavapipe", started_ns=0, duration_ns=taken, kind="own", point=0, load="x")
            store.set_status(index, "done")
        store.end_run()
    return folder


def query(folder: Path, text: str, *values: object) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(folder / RESULTS_FILE)) as connection:
        return connection.execute(text, values).fetchall()


def sample_count(folder: Path, point: int, phase: str = "sample") -> int:
    """Samples of a point and phase, of all runs."""
    ((count,),) = query(folder, "SELECT count(*) FROM samples WHERE point = ? AND phase LIKE ?", point, phase)
    assert isinstance(count, int)
    return count


def next_block(folder: Path, point: int) -> int:
    """A block number of a point that no sample has yet, of any run."""
    ((block,),) = query(folder, "SELECT coalesce(max(block), -1) + 1 FROM samples WHERE point = ?", point)
    assert isinstance(block, int)
    return block


STUDY = {"version": 1, "name": "copy-sizes", "sampling": {"seed": 0, "max_samples": 100}, "axes": {"n": [1, 2, 3]}}
POINTS = [
    *(Point(index, "saxpy", "lavapipe", {"n": index + 1}, {"batch": 1}, baseline=3) for index in range(3)),
    Point(3, "empty kernel", "lavapipe", is_baseline=True),
]
KEPT = KeptFile.of("saxpy.comp", b"void main() {}", "kernel")


def samples(count: int, start: int = 0) -> list[Sample]:
    return [Sample(started=start + index, total=100.0 + index, execute=50.0) for index in range(count)]
