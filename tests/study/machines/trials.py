"""Trials: two versions measured on one machine of a model, in turns or in separate runs, and the verdicts on them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping

import numpy as np
from machine_models import Model
from virtual_study import EQUAL, SLOWER, VirtualRun, measure, study, virtual_time

from pumice.study.definition.settings import Sampling
from pumice.study.results.comparison.results_comparison import ResultsComparison, compare_results, compare_sides

RUNS = 5

Verdicts = Mapping[tuple[str, str], str]
"""The verdict by way and target; the ways are ``interleaved``, or ``single`` and ``runs``."""

_PAIRED = Sampling(warmup_count=2, warmup_time=0.0)
# The number of samples is fixed, so that the stop rule's bootstrap runs once.
_SEPARATE = Sampling(warmup_count=2, warmup_time=0.0, min_samples=200, max_samples=200)


def interleaved(model: Model, seed: int, slower: float) -> Verdicts:
    """Measures both versions in one run, in turns."""
    run = _run(model, seed, 1, slower)
    with virtual_time(run):
        results = measure(run, study(_PAIRED, paired=True))
    return _verdicts("interleaved", compare_sides(results.read()))


def separate(model: Model, seed: int, slower: float) -> Verdicts:
    """Measures five runs of the old version in a row, then five of the new one, ten seconds to an hour later. Compares
    all of
    them, and the last run of the old version with the first of the new one.
    """
    run = _run(model, seed, 2, slower)
    random = np.random.default_rng([seed, 3])
    sides = []
    with virtual_time(run):
        for run.is_new in (False, True):
            results = None
            for repeat in range(1, RUNS + 1):
                results = measure(run, study(_SEPARATE, paired=False), results, repeat=repeat)
                run.machine.pass_time(random.uniform(1, 5))
            sides.append(results)
            run.machine.pass_time(math.exp(random.uniform(math.log(10), math.log(3600))))
    old, new = sides
    runs = compare_results(old.read(), new.read())
    single = compare_results(old.read(run=RUNS), new.read(run=1))
    return {**_verdicts("single", single), **_verdicts("runs", runs)}


TRIALS: Mapping[str, Callable[[Model, int, float], Verdicts]] = {"interleaved": interleaved, "separate": separate}
"""The ways of trying a model, called with a seed and the ratio of the slower version's time to the other one's."""


def _run(model: Model, seed: int, purpose: int, slower: float) -> VirtualRun:
    # Each model has other seeds; otherwise all would differ by their effects only.
    return VirtualRun(model.machine([zlib.crc32(model.name.encode()), seed, purpose]), model.work, slower)


def _verdicts(way: str, compared: ResultsComparison) -> Verdicts:
    verdicts = {}
    for point in compared.points:
        verdict = "UNCLEAR" if point.comparison is None else str(point.comparison.verdict)
        verdicts[way, point.a.point.target] = verdict
    assert {target for _, target in verdicts} == {EQUAL, SLOWER}
    return verdicts
