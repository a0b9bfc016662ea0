"""Planted truths are found: k-fold work takes k times as long, and a sleep of the host is in its segment.

Other load can spoil an experiment, so each is repeated, up to four times in all, before it fails. If a point is NOISY
each time, the test is skipped. The intervals are at 99 %, and must be narrow enough to exclude a wrong factor.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pumice.hal_vulkan.instance.driver import Driver
from pumice.study.definition.axis import Axis
from pumice.study.definition.expansion import expand
from pumice.study.definition.sample import SEGMENTS, Sample
from pumice.study.definition.settings import Sampling
from pumice.study.definition.study import Study, Target
from pumice.study.results.storage.records import SampleFlag
from pumice.study.results.storage.rows import SAMPLE_COLUMNS, sample_from_row
from pumice.study.results.storage.sink import SinkLog
from pumice.study.runs.runner import sample_points
from pumice.study.statistics.bootstrap import bootstrap
from pumice.study.statistics.comparison import Comparison, compare
from pumice.study.statistics.fit import fit_line
from pumice.study.workloads.workload import DevicePool

pytestmark = [pytest.mark.vulkan, pytest.mark.timing]

ATTEMPTS = 6
GROUPS = 1  # one thread of a device that is the CPU, so that the work does not depend on sharing cores
FMA = {
    "source": "builtin:timing/fma",
    "bindings": [{"shape": [GROUPS * 64, 4], "init": "zeros"}],
    "groups": GROUPS,
}
SLEEP_MS = 1.0


@pytest.fixture
def pool(driver: Driver) -> Iterator[DevicePool]:
    with DevicePool() as pool:
        if not pool.open("vulkan").hal.plan.timestamp_bits:
            pytest.skip("the device writes no timestamps")
        yield pool


class Taken:
    """The samples of each point of a study from this run, with their blocks."""

    def __init__(self, study: Study, pool: DevicePool) -> None:
        self.points = expand(study, ("vulkan",))
        log = SinkLog()
        sample_points(study, self.points, pool, log)
        self.samples: dict[int, list[Sample]] = defaultdict(list)
        self.blocks: dict[int, list[int]] = defaultdict(list)
        self.flags: dict[int, list[int]] = defaultdict(list)
        for table, _, rows in log._written:
            for row in rows if table == "samples" else ():
                if row["phase"] == "sample":
                    point = int(row["point"] or 0)
                    self.samples[point].append(sample_from_row([row[name] for name in SAMPLE_COLUMNS]))
                    self.blocks[point].append(int(row["block"] or 0))
                    self.flags[point].append(int(row["flags"] or 0))

    def of(self, point: int, measure: str) -> NDArray[np.float64]:
        return np.array([getattr(sample, measure) for sample in self.samples[point]])


class Unclear(Exception):
    """Raised if the intervals of an attempt are too wide."""


def repeated(study: Study, pool: DevicePool, find_faults: Callable[[Taken], Sequence[str]]) -> None:
    """Repeats an experiment with up to 4 times the samples. Fails if each conclusive attempt finds faults; skips if
    none is
    conclusive.
    """
    faults: Sequence[str] | None = None
    unclear = ""
    for attempt in range(ATTEMPTS):
        count = study.sampling.min_samples << attempt % 3
        taken = Taken(study.with_sampling(min_samples=count, max_samples=count), pool)
        try:
            faults = find_faults(taken)
        except Unclear as error:
            unclear = str(error)
            continue
        if not faults:
            return
    if faults is None:
        pytest.skip(f"the machine is too busy, in all of {ATTEMPTS} attempts: {unclear}")
    if unsteady := unsteadiness():
        pytest.skip(f"the machine is too busy: {unsteady}; found: {'; '.join(faults)}")
    pytest.fail(f"after {ATTEMPTS} attempts: {'; '.join(faults)}")


def unsteadiness() -> str:
    """Returns why the machine is too unsteady, by a sleep and a loop on the host alone; empty if it is steady."""
    sleeps, loops = [], []
    for _ in range(100):
        begin = time.monotonic_ns()
        time.sleep(SLEEP_MS / 1000)
        slept = time.monotonic_ns()
        sum(range(20_000))
        sleeps.append((slept - begin) / 1e6)
        loops.append(time.monotonic_ns() - slept)
    late = float(np.quantile(sleeps, 0.9))
    first, median, third = np.quantile(loops, [0.25, 0.5, 0.75])
    if late > 1.25 * SLEEP_MS:
        return f"a tenth of its sleeps of {SLEEP_MS:g} ms take more than {late:.2f} ms"
    return f"equal loops differ by {(third - first) / median:.0%}" if third - first > 0.15 * median else ""


def fixed_sampling(count: int, **given: Any) -> Sampling:
    return Sampling(warmup_time=0, min_samples=count, max_samples=count, block=5, reference=False, **given)


def test_a_kernel_with_k_fold_work_is_k_fold_slower(pool: DevicePool) -> None:
    """The factor is that of the time beyond a kernel without work, the intercept of a line through the others.

    The limit is the interval of the ratio plus two percent, as interruptions affect a device that is the CPU.
    """
    factors = (0, 1, 2, 4, 8)
    study = Study(
        "planted",
        (Target("fma", "kernel", FMA | {"push": {"iterations": "$3000 * k", "factor": 1.0}}),),
        (Axis("k", factors),),
        sampling=fixed_sampling(150, time_limit=30.0),
    )

    def find_faults(taken: Taken) -> list[str]:
        times = {int(point.axes["k"]): taken.of(point.index, "execute") for point in taken.points}
        blocks = {int(point.axes["k"]): taken.blocks[point.index] for point in taken.points}
        fixed = bootstrap(times[0], blocks=blocks[0])
        faults, unclear = [], []
        line = fit_line(
            factors[1:], [times[k] for k in factors[1:]], confidence=0.99, blocks=[blocks[k] for k in factors[1:]]
        )
        # Starting a loop has a cost: the fixed cost is between that of the empty loop and the line's intercept. Each
        # end gives
        # an interval of the ratio.
        costs = (*fixed.interval(0.99), line.intercept_interval.low, line.intercept_interval.high)
        ends = (min(costs), max(costs))
        for k in factors[2:]:
            intervals = [
                compare(
                    times[1] - end, times[k] - end, confidence=0.99, blocks_a=blocks[1], blocks_b=blocks[k]
                ).interval
                for end in ends
            ]
            low, high = min(interval.low for interval in intervals), max(interval.high for interval in intervals)
            if not 0.98 * low <= k <= 1.02 * high:
                faults.append(f"{k}-fold work took {low:.3f} to {high:.3f} times as long")
            if high - low > 0.3 * k:
                unclear.append(f"{k}-fold work took {low:.3f} to {high:.3f} times as long, which says too little")
        # The empty loop is the fixed cost to within a unit of work: longer kernels are interrupted more often on a
        # device that
        # is the CPU, which tilts the line.
        part = 0.25 * line.slope
        if not line.intercept_interval.low - part <= fixed.estimate <= line.intercept_interval.high + part:
            faults.append(f"no work took {fixed.estimate:.0f} ns, the line says {line.intercept_interval}")
        if unclear:
            raise Unclear("; ".join(unclear))
        return faults

    repeated(study, pool, find_faults)


def test_a_batch_of_b_dispatches_costs_b_times_the_marginal(pool: DevicePool) -> None:
    """The slope over the batch is the time of one dispatch's work and a barrier. It is at least the cost of the same
    work in
    a longer dispatch, and less than one and a half times that.
    """
    study = Study(
        "batches",
        (Target("fma", "kernel", FMA | {"push": {"iterations": "$10000 * work", "factor": 1.0}}),),
        (Axis("work", (1, 2)), Axis("batch", (1, 2, 4))),
        sampling=fixed_sampling(100, time_limit=30.0),
    )

    def find_faults(taken: Taken) -> list[str]:
        times = {(p.axes["work"], p.axes["batch"]): taken.of(p.index, "execute") for p in taken.points}
        line = fit_line((1, 2, 4), [times[1, batch] for batch in (1, 2, 4)], confidence=0.99)
        marginal = float(np.median(times[2, 1]) - np.median(times[1, 1]))
        low, high = line.slope_interval
        if not (high >= 0.95 * marginal and low <= 1.5 * marginal):
            return [f"a dispatch more took {low:.0f} to {high:.0f} ns, its work {marginal:.0f} ns"]
        return []

    repeated(study, pool, find_faults)


def test_a_sleep_of_the_host_is_found_in_its_segment_and_only_there(pool: DevicePool) -> None:
    """After a sleep caches are colder and threads asleep, so that the next segments take some microseconds longer: the
    others
    must move by less than a tenth of the sleep, at the nearer bound of their interval.
    """
    asleep = ("update", "record", "wake", "read")
    everything = FMA | {"push": {"iterations": 100, "factor": 1.0}, "update": True, "record": "each", "read": True}
    study = Study(
        "sleeps",
        (
            Target("awake", "kernel", everything, measure="total"),
            Target("asleep", "kernel", everything | {"host_sleep": SLEEP_MS / 1000}, measure="total"),
        ),
        (Axis("host_sleep_in", asleep),),
        sampling=fixed_sampling(40, noise_limit=1e9),
    )

    def find_faults(taken: Taken) -> list[str]:
        faults = []
        for segment in asleep:
            plain, slept = (
                next(p.index for p in taken.points if p.target == target and p.axes["host_sleep_in"] == segment)
                for target in ("awake", "asleep")
            )
            for name in (*SEGMENTS, "overlap", "total"):
                before, after = taken.of(plain, name), taken.of(slept, name)
                if np.isnan(before).all() and np.isnan(after).all():
                    continue
                shift = float(np.median(after) - np.median(before)) / 1e6
                if name in (segment, "total"):
                    if not SLEEP_MS - 0.05 <= shift <= 1.5 * SLEEP_MS:
                        faults.append(f"asleep in {segment}: {name} moved by {shift:.3f} ms")
                elif (
                    math.isfinite(shift) and abs(shift) > 0.1 * SLEEP_MS and moved(before, after, 0.1 * SLEEP_MS * 1e6)
                ):
                    faults.append(f"asleep in {segment}: {name} moved by {shift:.3f} ms")
        return faults

    repeated(study, pool, find_faults)


def moved(before: NDArray[np.float64], after: NDArray[np.float64], least_ns: float) -> bool:
    """Whether the median has certainly moved by ``least_ns``; both sides get a base of one sleep, as ratios of 0 are
    undefined.
    """
    base = SLEEP_MS * 1e6
    comparison: Comparison = compare(before + base, after + base, confidence=0.99)
    low, high = comparison.interval
    return low > 1 + least_ns / base or high < 1 - least_ns / base


@pytest.mark.parametrize("wait", ["host", "poll", "thread"])
def test_segments_sum_to_the_end_to_end_time(pool: DevicePool, wait: str) -> None:
    """Within the deviation of the clocks; no time is negative by more than that."""
    settings = FMA | {"push": {"iterations": 500, "factor": 1.0}, "update": True, "record": "each", "read": True}
    study = Study(
        "sums",
        (Target("fma", "kernel", settings | {"wait": wait}, measure="total"),),
        (Axis("in_flight", (1, 4)),),
        sampling=fixed_sampling(50, noise_limit=1e9),
    )
    taken = Taken(study, pool)
    for point in taken.points:
        for sample, flags in zip(taken.samples[point.index], taken.flags[point.index], strict=True):
            parts = [getattr(sample, name) for name in SEGMENTS if not math.isnan(getattr(sample, name))]
            assert len(parts) == 7
            assert sum(parts) - sample.overlap == pytest.approx(sample.total, abs=max(1.0, sample.deviation))
            assert sample.wake >= -sample.deviation - 1 and min(sample.queue, sample.overlap) == 0
            assert flags & SampleFlag.CLOCK_UNSURE or sample.deviation <= 0.05 * sample.total
