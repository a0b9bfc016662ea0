"""The sampler: the order of turns, when a point is done, disturbances, and failures that affect one point only.

The workloads here run nothing: their times are planted, so that the sampler's decisions are exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pumice.hal_vulkan.instance.driver import Driver
from pumice.runtime.device import Device
from pumice.status import DeviceLostError, InvalidArgumentError, PumiceError, ResourceExhaustedError, UnimplementedError
from pumice.study.definition.axis import Axis
from pumice.study.definition.point import Point
from pumice.study.definition.sample import Sample
from pumice.study.definition.settings import Sampling
from pumice.study.definition.study import Study, Target
from pumice.study.machine import disturbances
from pumice.study.machine.machine_state import Watch
from pumice.study.results.results import Results
from pumice.study.results.storage.records import PointStatus, SampleFlag
from pumice.study.results.storage.sink import Sink, SinkLog
from pumice.study.runs.runner import run_study
from pumice.study.sampling import point_run
from pumice.study.sampling.point_run import PointRun
from pumice.study.sampling.sampler import Sampler, SampleRun
from pumice.study.sampling.turns import Prior
from pumice.study.workloads.clock import RawSample
from pumice.study.workloads.reference_kernel import Reading, ReferenceKernel
from pumice.study.workloads.workload import DevicePool, Load, WorkloadContext

pytestmark = pytest.mark.vulkan

QUIET = Sampling(
    warmup_count=0, warmup_time=0, min_samples=20, max_samples=60, block=5, interleave=3, reference=False, time_limit=30
)
Take = Callable[[Point, int], float]
"""Returns the nanoseconds of a sample, from its point and number; the first call and the probe are numbers 0 and 1."""


def steady(point: Point, number: int) -> float:
    return 1_000_000 + number % 7


class PlantedWorkload:
    """A workload with planted durations, on its own clock."""

    open_now = 0

    def __init__(self, point: Point, context: WorkloadContext, take: Take) -> None:
        self.device: Device = context.pool.open(context.uri)
        self._context, self._point, self._take = context, point, take
        self._number = itertools.count()
        self._clock = 10**12
        self._is_open = True
        self.load = Load()
        PlantedWorkload.open_now += 1

    def first(self) -> RawSample:
        return self.sample()

    def sample(self) -> RawSample:
        before = self._context.usage()
        begin = self._clock
        self._clock += round(self._take(self._point, next(self._number)))
        preemptions, cpu = self._context.usage_since(before)
        return RawSample(begin, called=begin, returned=begin, awake=self._clock, preemptions=preemptions, cpu=cpu)

    def close(self) -> None:
        PlantedWorkload.open_now -= self._is_open
        self._is_open = False


class Recorder(SinkLog):
    """A sink that records samples, flags and statuses by point, and the order of turns."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[int] = []
        self.samples: dict[int, list[Sample]] = {}
        self.flags: dict[int, list[int]] = {}
        self.statuses: dict[int, list[tuple[str, str]]] = {}
        self.notes: list[str] = []
        self.open: set[int] = set()
        self.most_open = 0
        self.references: list[float] = []

    def add_samples(
        self, point: int, block: int, phase: str, samples: Sequence[Sample], flags: Sequence[int] | None = None
    ) -> None:
        if phase == "sample":
            self.turns.append(point)
            self.samples.setdefault(point, []).extend(samples)
            self.flags.setdefault(point, []).extend(int(flag) for flag in flags or ())

    def set_status(self, point: int, status: str, reason: str = "") -> None:
        self.statuses.setdefault(point, []).append((str(status), reason))
        (self.open.add if status == PointStatus.SAMPLING else self.open.discard)(point)
        self.most_open = max(self.most_open, len(self.open))

    def add_note(self, text: str, *, point: int | None = None, kind: str = "warning") -> None:
        self.notes.append(text)

    def add_reference(self, device: str, *, duration_ns: float, kind: str = "compute", **other: object) -> None:  # type: ignore[override]
        if kind == "own":
            self.references.append(duration_ns)

    def status(self, point: int) -> str:
        return self.statuses[point][-1][0]


@pytest.fixture
def pool(driver: Driver) -> Iterator[DevicePool]:
    PlantedWorkload.open_now = 0
    with DevicePool() as pool:
        yield pool
    assert PlantedWorkload.open_now == 0


def points(count: int, measure: str = "total") -> list[Point]:
    return [Point(index, "planted", "vulkan", {"n": index}, measure=measure) for index in range(count)]


def sample(
    pool: DevicePool,
    monkeypatch: pytest.MonkeyPatch,
    count: int = 6,
    *,
    sampling: Sampling = QUIET,
    take: Take = steady,
    sink: Recorder | None = None,
    preemptions: Callable[[], int] = lambda: -1,
    priors: Mapping[int, Prior] | None = None,
    measure: str = "total",
) -> tuple[Recorder, SampleRun]:
    def planted(kind: str, point: Point, context: WorkloadContext, sampling: Sampling) -> PlantedWorkload:
        return PlantedWorkload(point, context, take)

    monkeypatch.setattr(point_run, "open_workload", planted)
    recorder = sink or Recorder()

    def open_side(point: Point, sink: Sink) -> PointRun:
        context = WorkloadContext(pool, point.device, usage=lambda: (preemptions(), math.nan))
        return PointRun("kernel", point, context, sampling, sink)

    sampler = Sampler(open_side, sampling, pool, recorder)
    return recorder, sampler.run(points(count, measure), priors)


# ---- turns ----------------------------------------------------------------------------------------------------------


def test_blocks_of_points_interleave_in_an_order_that_the_seed_sets(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, result = sample(pool, monkeypatch)
    assert sorted(result.done) == [0, 1, 2, 3, 4, 5] and result.samples == len(recorder.turns) * QUIET.block
    assert recorder.most_open == QUIET.interleave
    # Each of the three open points has its turn before any has two.
    first = recorder.turns[:3]
    assert len(set(first)) == 3 and all(set(recorder.turns[i : i + 3]) == set(first) for i in range(0, 9, 3))
    assert sample(pool, monkeypatch)[0].turns == recorder.turns
    others = [
        sample(pool, monkeypatch, sampling=Sampling(**{**_fields(QUIET), "seed": seed}))[0].turns for seed in (1, 2, 3)
    ]
    assert all(turns != recorder.turns for turns in others)
    # The order is drawn in each round, not only at the start.
    rounds = [tuple(recorder.turns[i : i + 3]) for i in range(0, 9, 3)]
    assert len(set(rounds)) > 1


def _fields(sampling: Sampling) -> dict[str, Any]:
    return {name: getattr(sampling, name) for name in Sampling.names()}


def planned(**given: Any) -> Sampling:
    return Sampling(**{**_fields(QUIET), **given})


# ---- when a point is done -------------------------------------------------------------------------------------------


def test_a_quiet_point_ends_early_and_a_noisy_one_at_the_most(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)

    def take(point: Point, number: int) -> float:
        return steady(point, number) if point.index else 1e6 * float(random.lognormal(0, 2))

    recorder, result = sample(pool, monkeypatch, 2, take=take)
    assert result.noisy == [0] and result.done == [1] and not result.failed
    assert len(recorder.samples[0]) == QUIET.max_samples
    assert QUIET.min_samples <= len(recorder.samples[1]) < QUIET.max_samples
    assert recorder.status(0) == PointStatus.NOISY and recorder.statuses[0][-1][1].startswith("max samples: 60 samples")
    assert recorder.status(1) == PointStatus.DONE and recorder.statuses[1][-1][1].startswith("error reached")


def test_a_point_has_no_more_samples_than_the_most(pool: DevicePool, monkeypatch: pytest.MonkeyPatch) -> None:
    for most, block in ((7, 5), (1, 5), (5, 5), (12, 50)):
        recorder, result = sample(
            pool, monkeypatch, 1, sampling=planned(min_samples=1, max_samples=most, block=block, relative_error=0)
        )
        assert len(recorder.samples[0]) == most == result.samples


def test_a_time_limit_ends_a_point(pool: DevicePool, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, _ = sample(pool, monkeypatch, 1, sampling=planned(time_limit=0, min_samples=1000, max_samples=1000))
    assert recorder.statuses[0][-1][1].startswith("time limit") and len(recorder.samples[0]) == QUIET.block


def test_a_point_goes_on_with_what_earlier_runs_have(pool: DevicePool, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [1e6 + i % 7 for i in range(55)]
    prior = Prior(values, [i // 5 for i in range(55)], [False] * 55, 11)
    recorder, result = sample(pool, monkeypatch, 2, priors={0: prior}, sampling=planned(min_samples=60))
    assert len(recorder.samples[0]) == 5 and len(recorder.samples[1]) == 60 and result.samples == 65


# ---- disturbances ---------------------------------------------------------------------------------------------------


def test_preempted_samples_are_counted_and_marked(pool: DevicePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counter increases during every twelfth sample."""
    counts = itertools.count()
    recorder, result = sample(
        pool, monkeypatch, 1, preemptions=lambda: (next(counts) + 1) // 24, sampling=planned(relative_error=0, block=30)
    )
    marked = [flag for flag in recorder.flags[0] if flag & SampleFlag.PREEMPTED]
    assert result.preempted == len(marked) == pytest.approx(result.samples / 12, abs=1)
    assert all(
        (sample.preemptions > 0) == bool(flag)
        for sample, flag in zip(recorder.samples[0], recorder.flags[0], strict=True)
    )
    assert f"{len(marked)} samples with a thread preempted" in recorder.statuses[0][-1][1]


@pytest.mark.parametrize("every", [1.25, 4, 6])
def test_preemptions_in_many_samples_are_no_disturbance(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch, every: float
) -> None:
    """The threads of a software driver preempt one another."""
    counts = itertools.count()
    recorder, result = sample(pool, monkeypatch, 1, preemptions=lambda: int((next(counts) + 1) // every))
    assert result.preempted == 0 and {sample.preemptions for sample in recorder.samples[0]} == {0, 1}


def test_a_platform_that_tells_of_no_preemption(pool: DevicePool, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, result = sample(pool, monkeypatch, 1, preemptions=lambda: -1)
    assert result.preempted == 0 and {sample.preemptions for sample in recorder.samples[0]} == {-1}


def test_disturbed_samples_are_left_out_of_the_decision(pool: DevicePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the samples is preempted and takes up to ten times as long; the others are steady, and suffice."""
    counts = itertools.count()
    random = np.random.default_rng(0)

    def take(point: Point, number: int) -> float:
        return 1e6 * (1 + 9 * random.random()) if number % 3 == 0 else steady(point, number)

    monkeypatch.setattr(disturbances, "_TELLING", 0.5)
    # With two readings a sample, the counter increases within samples 0, 3, 6, …
    recorder, result = sample(pool, monkeypatch, 1, take=take, preemptions=lambda: (next(counts) + 5) // 6)
    assert result.done == [0] and 0.2 < result.preempted / result.samples < 0.5


def test_throttling_is_marked_when_the_reference_like_the_load_has_changed(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = itertools.count()
    told: list[int] = []

    def read(self: ReferenceKernel) -> Reading:
        told.append(next(readings))
        return Reading(0, 50_000.0 + told[-1], "load")

    monkeypatch.setattr(ReferenceKernel, "read", read)
    monkeypatch.setattr(ReferenceKernel, "changed", lambda self, limit: told[-1] in (2, 5))
    # The device's own reference also reads, at the start.
    monkeypatch.setattr(Watch, "read", lambda self: None)
    monkeypatch.setattr(point_run, "_WATCHING", 1e9)
    recorder, result = sample(pool, monkeypatch, 1, sampling=planned(reference=True, relative_error=0))
    blocks = [set(recorder.flags[0][i : i + 5]) for i in range(0, 60, 5)]
    # A reading follows each block and applies to the next one.
    assert blocks == [{int(SampleFlag.THROTTLED)} if i in (3, 6) else {0} for i in range(12)]
    why = "10 samples while the reference like this load ran at another speed"
    assert result.throttled == 10 and why in recorder.statuses[0][-1][1]
    assert recorder.references == [50_000.0 + i for i in range(12)]


def test_the_machine_is_watched_from_the_beginning_to_the_end(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    states: list[Mapping[str, float | None]] = []
    recorder = Recorder()
    monkeypatch.setattr(recorder, "add_state", lambda **state: states.append(state))
    sample(pool, monkeypatch, 1, sink=recorder)
    assert len(states) >= 2 and all((state["wake_ns"] or 0) > 0 for state in states)
    assert states[0]["host_ns"] < states[-1]["host_ns"]  # type: ignore[operator]  # both are known


# ---- failures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1, 7])
def test_a_point_that_fails_is_marked_and_the_others_go_on(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """In its first call, in the probe, or within a block."""

    def take(point: Point, n: int) -> float:
        if point.index == 2 and n == number:
            raise InvalidArgumentError("planted")
        return steady(point, n)

    recorder, result = sample(pool, monkeypatch, take=take)
    assert sorted(result.done) == [0, 1, 3, 4, 5] and list(result.failed) == [2] and "planted" in result.failed[2]
    assert recorder.statuses[2][-1] == (PointStatus.FAILED, "INVALID_ARGUMENT: planted")


def test_what_the_device_cannot_run_is_skipped(pool: DevicePool, monkeypatch: pytest.MonkeyPatch) -> None:
    def take(point: Point, n: int) -> float:
        if point.index == 1:
            raise UnimplementedError("planted")
        return steady(point, n)

    recorder, result = sample(pool, monkeypatch, 3, take=take)
    assert list(result.skipped) == [1] and not result.failed and sorted(result.done) == [0, 2]
    assert recorder.status(1) == PointStatus.SKIPPED


def test_a_measure_that_a_workload_does_not_have_is_said(pool: DevicePool, monkeypatch: pytest.MonkeyPatch) -> None:
    _, result = sample(pool, monkeypatch, 1, measure="create")
    assert "'create'" in result.failed[0] and "submit, device, total" in result.failed[0]
    _, result = sample(pool, monkeypatch, 1, measure="execute")
    assert 'set measure = "device" or "total"' in result.skipped[0]


@pytest.mark.parametrize("number", [0, 12])
def test_a_lost_device_fails_one_point_and_is_opened_again_for_the_others(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Open points start again on the new device and keep their samples."""
    devices = []

    def take(point: Point, n: int) -> float:
        device = pool.open("vulkan")
        if device not in devices:
            devices.append(device)
        if point.index == 2 and n == number:
            device.hal.lose(DeviceLostError("planted"))
            raise DeviceLostError("planted")
        return steady(point, n)

    recorder, result = sample(pool, monkeypatch, take=take)
    assert list(result.failed) == [2] and sorted(result.done) == [0, 1, 3, 4, 5]
    assert len(devices) == 2 and recorder.notes == ["the device was lost and opened again: planted"]
    assert all(QUIET.min_samples <= len(recorder.samples[i]) <= QUIET.max_samples for i in result.done)
    assert result.samples == sum(map(len, recorder.samples.values()))


def test_a_device_that_is_lost_again_and_again_ends_the_run(pool: DevicePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the reference kernel itself crashes the device: no point is at fault, and none would ever be done."""
    losses = itertools.count(1)

    def read(self: ReferenceKernel) -> tuple[int, float, bool]:
        assert next(losses) < 50
        raise DeviceLostError("planted")

    monkeypatch.setattr(ReferenceKernel, "read", read)
    with pytest.raises(DeviceLostError, match="planted"):
        sample(pool, monkeypatch, 2, sampling=planned(reference=True))


def test_a_sink_that_fails_ends_the_run_and_fails_no_point(pool: DevicePool, monkeypatch: pytest.MonkeyPatch) -> None:
    class FullDisk(Recorder):
        def add_samples(self, *arguments: Any, **named: Any) -> None:
            if len(self.turns) == 3:
                raise ResourceExhaustedError("planted")
            super().add_samples(*arguments, **named)

    recorder = FullDisk()
    with pytest.raises(ResourceExhaustedError):
        sample(pool, monkeypatch, sink=recorder)
    assert len(recorder.turns) == 3
    assert {recorder.status(point) for point in recorder.statuses} == {PointStatus.SAMPLING}


def test_an_interrupt_keeps_what_was_stored_and_a_second_run_ends_it(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = True

    def take(point: Point, n: int) -> float:
        if interrupted and point.index == 1 and n == 23:
            raise KeyboardInterrupt
        return steady(point, n)

    def planted(kind: str, point: Point, context: WorkloadContext, sampling: Sampling) -> PlantedWorkload:
        return PlantedWorkload(point, context, take)

    monkeypatch.setattr(point_run, "open_workload", planted)
    study = Study(
        "interrupted",
        (Target("planted", "kernel", {"source": "builtin:mul"}, measure="total"),),
        (Axis("batch", (1, 2, 3)),),
        sampling=planned(min_samples=40),
    )
    PlantedWorkload.open_now = 0
    with pytest.raises(KeyboardInterrupt):
        run_study(study, tmp_path, devices=("vulkan",))
    assert PlantedWorkload.open_now == 0
    with Results.open(tmp_path) as results:
        counts = [point.count for point in results.points]
        # The interrupted block is absent; all blocks before it are stored.
        assert counts[1] == 20 and sum(counts) >= 55
        assert results.runs[0].outcome == "interrupted"
        assert {point.status for point in results.points} <= {PointStatus.SAMPLING, PointStatus.DONE}
    interrupted = False
    outcome = run_study(study, tmp_path, devices=("vulkan",))
    with Results.open(tmp_path) as results:
        assert all(point.status is PointStatus.DONE for point in results.points)
        assert sum(point.count for point in results.points) == sum(counts) + outcome.samples
        assert all(len(set(zip(p.runs, p.blocks, strict=True))) == p.count / 5 for p in results.points)


def test_progress_is_told(pool: DevicePool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Told:
        def __init__(self) -> None:
            self.fractions: dict[int, list[float]] = {}
            self.ended: dict[int, PointStatus] = {}

        def advance(self, point: Point, fraction: float) -> None:
            self.fractions.setdefault(point.index, []).append(fraction)

        def finished(self, point: Point, status: PointStatus, reason: str) -> None:
            assert reason
            self.ended[point.index] = status

    told = Told()

    def planted(kind: str, point: Point, context: WorkloadContext, sampling: Sampling) -> PlantedWorkload:
        def take(point: Point, number: int) -> float:
            if point.index == 1:
                raise PumiceError("planted")
            return steady(point, number)

        return PlantedWorkload(point, context, take)

    monkeypatch.setattr(point_run, "open_workload", planted)
    Sampler(
        lambda point, sink: PointRun("kernel", point, WorkloadContext(pool, point.device), QUIET, sink),
        QUIET,
        pool,
        Recorder(),
        told,
    ).run(points(3))
    assert told.ended == {0: PointStatus.DONE, 1: PointStatus.FAILED, 2: PointStatus.DONE}
    for fractions in told.fractions.values():
        assert fractions == sorted(fractions) and 0 < fractions[0] <= fractions[-1] <= 1
