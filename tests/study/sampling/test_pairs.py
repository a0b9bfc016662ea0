"""Pairs through the sampler, the store and resumed runs: with planted workloads, and on a device."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from support.study.stored_results import query

from pumice.hal_vulkan.instance.driver import Driver
from pumice.status import DeviceLostError, PumiceError, UnavailableError
from pumice.study.definition.axis import Axis
from pumice.study.definition.expansion import expand
from pumice.study.definition.point import Point
from pumice.study.definition.sample import Sample
from pumice.study.definition.settings import Sampling
from pumice.study.definition.study import Study, Target
from pumice.study.definition.study_file import study_as_dict
from pumice.study.results.results import Results
from pumice.study.results.storage.records import PointStatus
from pumice.study.results.storage.rows import Value
from pumice.study.results.storage.sink import Sink, SinkLog
from pumice.study.results.storage.store import Store
from pumice.study.runs.runner import prior_samples, run_study
from pumice.study.sampling.pair_run import _pairs
from pumice.study.sampling.passes import Pass, Resumption, plan_passes
from pumice.study.sampling.sampler import Sampler, SampleRun
from pumice.study.sampling.turns import Block, Prior
from pumice.study.workloads.workload import DevicePool

pytestmark = pytest.mark.vulkan

QUIET = Sampling(min_samples=20, max_samples=160, block=2, interleave=4, reference=False, time_limit=30)
Fault = Callable[[Point, int], None]
"""Called with a point and the number of its block before the block is sampled; may raise."""


def of_two_sides(**fields: object) -> Study:
    """Returns a study with two points that have another side each, and one without."""
    target = Target("planted", "kernel", {"source": "builtin:mul"}, measure="total")
    other = Study("old", (target,), (Axis("batch", (1, 2)),))
    return Study("new", (target,), (Axis("batch", (1, 2, 3)),), sampling=QUIET, against=other, **fields)  # type: ignore[arg-type]


class Planted:
    """A side whose samples last a million nanoseconds plus the number of samples taken so far."""

    numbers: Iterator[int] = itertools.count()
    open_now = 0
    is_apart = False

    def __init__(self, point: Point, sink: Sink, fault: Fault) -> None:
        self.point = point
        self._sink, self._fault = sink, fault
        self._is_open = False

    def start(self, block: int, *, again: bool) -> None:
        assert not self._is_open
        self._fault(self.point, block)
        self._is_open = True
        Planted.open_now += 1
        for index, phase in enumerate(("first", "warmup")):
            self._sink.add_samples(self.point.index, block + index, phase, [Sample(0, 1.0)])

    def take_block(self, block: int, samples: int, *, most_ns: int) -> Block:
        self._fault(self.point, block)
        values = [1e6 + next(Planted.numbers) for _ in range(samples)]
        self._sink.add_samples(self.point.index, block, "sample", [Sample(0, value) for value in values])
        return Block(values, [0] * samples, 1000)

    def read_reference(self) -> None:
        """There is no reference kernel."""

    def release(self) -> None:
        Planted.open_now -= self._is_open
        self._is_open = False

    def close(self) -> None:
        self.release()


@pytest.fixture
def pool(driver: Driver) -> Iterator[DevicePool]:
    Planted.numbers, Planted.open_now = itertools.count(), 0
    with DevicePool() as pool:
        yield pool
    assert Planted.open_now == 0


def no_fault(point: Point, block: int) -> None:
    """Lets everything succeed."""


def sample(
    pool: DevicePool,
    sink: Sink,
    points: Sequence[Point],
    fault: Fault = no_fault,
    priors: Mapping[int, Prior] | None = None,
    sampling: Sampling = QUIET,
) -> SampleRun:
    return Sampler(lambda point, sink: Planted(point, sink, fault), sampling, pool, sink).run(points, priors)


def stored(folder: Path, study: Study, points: Sequence[Point]) -> Store:
    return Store.create(folder, study_as_dict(study), points)


def blocks_of(folder: Path, point: int) -> dict[tuple[object, object], list[float]]:
    """Returns the samples of a point by run and block."""
    rows = query(
        folder, "SELECT run, block, total_ns FROM samples WHERE point = ? AND phase = 'sample' ORDER BY number", point
    )
    return {
        key: [float(str(row[2])) for row in group]
        for key, group in itertools.groupby(rows, lambda row: (row[0], row[1]))
    }


# ---- what is stored -------------------------------------------------------------------------------------------------


def test_pairs_and_points_are_measured_and_stored(pool: DevicePool, tmp_path: Path) -> None:
    study = of_two_sides()
    points = expand(study, ["vulkan"])
    with stored(tmp_path, study, points) as store:
        store.begin_run({})
        result = sample(pool, store, points)
    assert sorted(result.done) == [0, 1, 2, 3, 4] and not result.failed
    with Results.open(tmp_path) as results:
        for new in results.points[:2]:
            old = new.against
            assert old is not None and old.status is new.status is PointStatus.DONE and old.reason == new.reason
            assert "precision reached" in new.reason and "pairs of blocks in 8 rounds" in new.reason
            mine, its = blocks_of(tmp_path, new.point.index), blocks_of(tmp_path, old.point.index)
            assert mine.keys() == its.keys()
            # In each lap, the samples of one side follow immediately on those of the other.
            for block, values in mine.items():
                assert sorted([*values, *its[block]]) == [min(*values, *its[block]) + index for index in range(4)]
            firsts = [side.integers("block", "first").tolist() for side in (new, old)]
            assert firsts[0] == firsts[1] and len(firsts[0]) == 8
        assert results.points[2].against is None and "pairs" not in results.points[2].reason


def test_a_pair_takes_two_of_the_places_of_open_points(pool: DevicePool) -> None:
    open_now = []

    def fault(point: Point, block: int) -> None:
        open_now.append(Planted.open_now)

    sample(pool, SinkLog(), expand(of_two_sides(), ["vulkan"]), fault)
    assert max(open_now) == QUIET.interleave


# ---- failures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("failing", "name"), [(0, "new"), (3, "old")])
@pytest.mark.parametrize("block", [0, 7, 25])
def test_a_side_that_fails_fails_its_pair_and_no_other(
    pool: DevicePool, tmp_path: Path, failing: int, name: str, block: int
) -> None:
    study = of_two_sides()
    points = expand(study, ["vulkan"])

    def fault(point: Point, at: int) -> None:
        if point.index == failing and at >= block:
            raise PumiceError("planted")

    with stored(tmp_path, study, points) as store:
        store.begin_run({})
        result = sample(pool, store, points, fault)
        assert set(result.failed) == {0, 3} and sorted(result.done) == [1, 2, 4]
        assert set(result.failed.values()) == {f"the {name} side failed: UNKNOWN: planted"}
        store.end_run()
        # Both are measured again.
        store.begin_run({})
        (left,) = plan_passes(study, points, store.statuses(), Resumption())
        assert [point.index for point in left.points] == [0, 3]
        again = sample(pool, store, left.points, priors=prior_samples(tmp_path, left))
    assert sorted(again.done) == [0, 3]
    with Results.open(tmp_path) as results:
        assert {result.status for result in results.points} == {PointStatus.DONE}


@pytest.mark.parametrize("lacking", [{4}, {1, 4}])
def test_what_the_device_lacks_for_the_old_side_skips_both(pool: DevicePool, lacking: set[int]) -> None:
    def fault(point: Point, block: int) -> None:
        if point.index in lacking:
            raise UnavailableError("no such feature")

    result = sample(pool, SinkLog(), expand(of_two_sides(), ["vulkan"]), fault)
    assert set(result.skipped) == {1, 4} and "the old side failed: " in result.skipped[1]


def test_what_the_device_lacks_for_the_new_side_alone_is_a_failure(pool: DevicePool) -> None:
    def fault(point: Point, block: int) -> None:
        if point.index == 1:
            raise UnavailableError("no such feature")

    result = sample(pool, SinkLog(), expand(of_two_sides(), ["vulkan"]), fault)
    assert not result.skipped and set(result.failed) == {1, 4}
    assert "the new side failed: FAILED_PRECONDITION: no such feature" in result.failed[1]


def test_a_lost_device_breaks_no_pair(pool: DevicePool, tmp_path: Path) -> None:
    study = of_two_sides()
    points = expand(study, ["vulkan"])
    seen = itertools.count()

    def fault(point: Point, block: int) -> None:
        if point.index == 2 and block == 9 and next(seen) == 0:
            raise DeviceLostError("planted")

    with stored(tmp_path, study, points) as store:
        store.begin_run({})
        result = sample(pool, store, points, fault)
    assert set(result.failed) == {2} and sorted(result.done) == [0, 1, 3, 4]
    for new, old in ((0, 3), (1, 4)):
        mine, its = blocks_of(tmp_path, new), blocks_of(tmp_path, old)
        assert mine.keys() == its.keys()
        assert all(abs(min(values) - min(its[block])) == 2 for block, values in mine.items())


# ---- runs that go on ------------------------------------------------------------------------------------------------


class Writes(Sink):
    """A sink that records what was written, one transaction each."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str, Sequence[Mapping[str, Value]]]] = []

    def write(self, table: str, doing: str, rows: Sequence[Mapping[str, Value]]) -> None:
        self.all.append((table, doing, tuple(rows)))


def test_a_kill_at_any_moment_pairs_nothing_wrongly(pool: DevicePool, tmp_path: Path) -> None:
    """A kill leaves a store with the first transactions of a run. Here a run is resumed from each of them."""
    study = of_two_sides()
    points = expand(study, ["vulkan"])
    writes = Writes()
    sample(pool, writes, points)
    random = np.random.default_rng(0)
    cuts = {*range(40), *random.integers(40, len(writes.all), 12).tolist(), len(writes.all) - 1}
    for cut in sorted(cuts):
        folder = tmp_path / str(cut)
        with stored(folder, study, points) as store:
            store.begin_run({})
            for written in writes.all[:cut]:
                store.write(*written)
        with Store.open(folder) as store:
            left, *_ = [*plan_passes(study, points, store.statuses(), Resumption()), Pass(1, study, ())]
            priors = prior_samples(folder, left)
            for new, old in ((0, 3), (1, 4)):
                pairs = _pairs(priors.get(new, Prior()), priors.get(old, Prior()))
                assert all(abs(mine[0] - its[0]) == 2 for mine, its, _ in zip(*pairs, strict=True))
            if cut % 4 and cut != len(writes.all) - 1:
                continue
            store.begin_run({})
            sample(pool, store, left.points, priors=priors)
        with Results.open(folder) as results:
            assert {result.status for result in results.points} == {PointStatus.DONE}
        for new, old in ((0, 3), (1, 4)):
            mine, its = blocks_of(folder, new), blocks_of(folder, old)
            # At most the block during the kill belongs to one side alone.
            assert len(mine.keys() ^ its.keys()) <= 1
            assert all(abs(min(mine[key]) - min(its[key])) == 2 for key in mine.keys() & its.keys())
            assert len(mine.keys() & its.keys()) >= 50


# ---- on a device ----------------------------------------------------------------------------------------------------


def test_sides_of_different_kinds_and_settings_on_a_device(tmp_path: Path) -> None:
    bindings = [{"shape": 64}] * 2
    new = Target("it", "kernel", {"source": "builtin:examples/saxpy", "bindings": bindings, "push": [2.0]}, "total")
    old = Target("it", "submit", {}, "total")
    sampling = Sampling(max_samples=40, block=2, time_limit=30.0, warmup_time=0.0, reference=False)
    study = Study("kinds", (new,), sampling=sampling, against=Study("kinds", (old,)))
    outcome = run_study(study, tmp_path, devices=("vulkan",))
    assert sorted(outcome.done + outcome.noisy) == [0, 1]
    with Results.open(tmp_path) as results:
        one = results.points[0]
        assert one.against is not None and one.count == one.against.count == 40
        assert blocks_of(tmp_path, 0).keys() == blocks_of(tmp_path, 1).keys()
        assert len(one.first) == len(one.against.first) >= 2
        assert np.median(one.values("execute")) > 0 and np.isnan(one.against.values("execute")).all() is not None
        assert results.as_study() == study and results.as_study().against is not None


def test_a_file_of_one_side_that_is_missing_fails_the_pair(tmp_path: Path) -> None:
    settings = {"bindings": [{"shape": 64}] * 2, "push": [2.0]}
    new = Target("it", "kernel", {**settings, "source": "builtin:examples/saxpy"})
    old = Target("it", "kernel", {**settings, "source": "gone.spv"})
    study = Study("gone", (new,), sampling=QUIET, against=Study("gone", (old,), folder=tmp_path))
    outcome = run_study(study, tmp_path / "results", devices=("vulkan",))
    assert set(outcome.failed) == {0, 1} and not outcome.samples
    assert all("the old side failed: " in reason and "gone.spv" in reason for reason in outcome.failed.values())
