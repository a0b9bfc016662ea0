"""The scheduler of chunks with scripted workers: late results, refusals, points that lose every worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from support.profiles import recorded_profile
from support.study.stored_results import sample_count

from pumice.hal_vulkan.instance.profile import DeviceProfile
from pumice.status import InternalError, InvalidArgumentError, NotFoundError, UnavailableError
from pumice.study.cluster.chunks import MAX_ATTEMPTS, ChunkQueue
from pumice.study.cluster.client import ClusterClient
from pumice.study.cluster.scheduler import ChunkScheduler, Work, place_of
from pumice.study.cluster.worker import Chunk, ChunkResult, WorkerFacts
from pumice.study.cluster.workers import ClusterWorkers, distinct_devices, find_device, installed_version, match_devices
from pumice.study.definition.point import Point
from pumice.study.definition.sample import Sample
from pumice.study.results.results import Results
from pumice.study.results.storage.records import PointStatus, SampleFlag
from pumice.study.results.storage.sink import SinkLog
from pumice.study.results.storage.store import Store
from pumice.study.sampling.sampler import SampleRun
from pumice.study.sampling.turns import Prior

POINTS = [Point(index, "saxpy", "lavapipe", {"n": index + 1}) for index in range(4)]


def profile(name: str = "lavapipe_mesa_22_3_6") -> DeviceProfile:
    return recorded_profile(name)


def facts(machine: str = "one", *names: str) -> WorkerFacts:
    return WorkerFacts(
        f"host-{machine}", machine, tuple(profile(name) for name in names) or (profile(),), "", {"pumice": "0"}
    )


def measured(chunk: Chunk) -> ChunkResult:
    """Returns the result of a chunk, as a worker returns it."""
    device, log = SinkLog(), SinkLog()
    device.add_device(chunk.device, name="llvmpipe", driver="Mesa", facts={})
    for point in chunk.points:
        log.set_status(point.index, PointStatus.SAMPLING)
        log.add_samples(point.index, 0, "sample", [Sample(started=1, total=10.0)] * 3, [SampleFlag(0)] * 3)
        log.set_status(point.index, PointStatus.DONE, "enough")
    indices = [point.index for point in chunk.points]
    ended = tuple((index, PointStatus.DONE, "enough") for index in indices)
    return ChunkResult(chunk.number, chunk.attempt, "", device, log, SampleRun(done=indices), ended)


@dataclass
class Task:
    key: str
    worker: str
    arguments: tuple[Any, ...]
    outcome: object = None
    cancelled: bool = False
    callbacks: list[Callable[[], None]] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return self.outcome is not None

    def on_end(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)
        if self.is_done:
            callback()

    def end(self, outcome: object) -> None:
        self.outcome = outcome
        for callback in self.callbacks:
            callback()

    def result(self) -> object:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def cancel(self) -> None:
        self.cancelled = True


class FakeClient:
    """A client whose workers answer at once; ``measure`` returns the result of a chunk, or ``None`` while it is not
    finished.
    """

    address = "tcp://scheduler"

    def __init__(self, there: dict[str, WorkerFacts], measure: Callable[[FakeClient, Task, Chunk], object]) -> None:
        self.there = there
        self.chunks: list[Task] = []
        self._measure = measure

    def workers(self) -> dict[str, str]:
        return dict.fromkeys(self.there, "folder")

    def send(self, data: object, worker: str) -> object:
        if worker not in self.there:
            raise UnavailableError("no such worker")
        return data

    def submit(
        self, function: Callable[..., object], *arguments: Any, key: str, worker: str, sent: object = None
    ) -> Task:
        task = Task(key, worker, arguments)
        if function.__name__ == "version":
            task.outcome = installed_version()
        elif function.__name__ == "describe_worker":
            task.outcome = self.there[worker]
        else:
            self.chunks.append(task)
            task.outcome = self._measure(self, task, arguments[1])
        return task


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(tmp_path, {"version": 1, "name": "s"}, POINTS) as fresh:
        fresh.begin_run({"pumice": "0"})
        yield fresh


def scheduler(client: FakeClient, store: Store, **changes: Any) -> ChunkScheduler:
    workers = ClusterWorkers(cast(ClusterClient, client), None, "t")
    workers.wait(1)
    chunks = ChunkQueue(0)
    chunks.add_points("lavapipe", POINTS, {}, slots=1, most=2)
    values: dict[str, Any] = {"progress": None, "alone": "machine", "worker_timeout": 0.0, **changes}
    return ChunkScheduler(
        client=cast(ClusterClient, client),
        workers=workers,
        work=Work({}, {"a.npy": b""}, None, "t"),
        chunks=chunks,
        having=match_devices(["lavapipe"], workers.usable),
        store=store,
        points=POINTS,
        **values,
    )


def counts(store: Store) -> list[int]:
    return [sample_count(store.path.parent, point.index) for point in POINTS]


def notes(folder: Path) -> str:
    with Results.open(folder) as results:
        return "\n".join(note.text for note in results.notes)


def test_what_a_lost_worker_sends_late_is_dropped(store: Store, tmp_path: Path) -> None:
    late: list[tuple[Task, Chunk]] = []

    def measure(client: FakeClient, task: Task, chunk: Chunk) -> object:
        if task.worker == "a":
            late.append((task, chunk))
            del client.there["a"]  # as the scheduler sees it
            return None
        if late and late[0][0].cancelled and not late[0][0].is_done:
            late[0][0].end(measured(late[0][1]))
        return measured(chunk)

    client = FakeClient({"a": facts("one"), "b": facts("two")}, measure)
    run = scheduler(client, store).run()
    assert late[0][0].is_done
    assert counts(store) == [3, 3, 3, 3]
    assert sorted(run.done) == [0, 1, 2, 3]
    keys = [task.key for task in client.chunks]
    assert len(keys) == len(set(keys)) == 3 and any(key.endswith("attempt-2") for key in keys)


def test_a_result_that_is_not_the_chunk_s_is_refused(store: Store) -> None:
    client = FakeClient({"a": facts()}, lambda _, task, chunk: ChunkResult(chunk.number, chunk.attempt + 1))
    with pytest.raises(InternalError, match="expected the result of"):
        scheduler(client, store).run()
    assert counts(store) == [0, 0, 0, 0]


def test_a_worker_that_cannot_measure_is_not_asked_again(store: Store, tmp_path: Path) -> None:
    def measure(client: FakeClient, task: Task, chunk: Chunk) -> object:
        return ChunkResult(chunk.number, chunk.attempt, error="no memory") if task.worker == "a" else measured(chunk)

    client = FakeClient({"a": facts("one"), "b": facts("two")}, measure)
    scheduler(client, store).run()
    assert counts(store) == [3, 3, 3, 3]
    assert [task.worker for task in client.chunks].count("a") == 1
    assert "worker a on host-one cannot measure on lavapipe: no memory" in notes(tmp_path)


@pytest.mark.slow
def test_where_no_worker_can_measure_points_fail_with_the_reason(store: Store) -> None:
    client = FakeClient({"a": facts()}, lambda _, task, chunk: ValueError("odd"))
    run = scheduler(client, store, worker_timeout=60.0).run()
    assert run.failed == dict.fromkeys(range(4), "no worker can measure on lavapipe: ValueError: odd")
    assert store.statuses() == [[PointStatus.FAILED] * 4]


def test_a_point_that_loses_every_worker_fails_alone(store: Store) -> None:
    def measure(client: FakeClient, task: Task, chunk: Chunk) -> object:
        if all(point.index != 2 for point in chunk.points):
            return measured(chunk)
        return UnavailableError("the worker was lost")

    client = FakeClient({"a": facts()}, measure)
    run = scheduler(client, store).run()
    assert list(run.failed) == [2] and f"{MAX_ATTEMPTS} workers were lost" in run.failed[2]
    assert counts(store) == [3, 3, 0, 3]


@pytest.mark.slow
def test_without_a_worker_points_fail_after_the_limit(store: Store) -> None:
    def measure(client: FakeClient, task: Task, chunk: Chunk) -> object:
        client.there.clear()
        return measured(chunk)

    run = scheduler(FakeClient({"a": facts()}, measure), store).run()
    assert len(run.done) == 2 and len(run.failed) == 2
    assert all("none came within 0 s" in reason for reason in run.failed.values())


@pytest.mark.slow
def test_another_model_that_comes_does_not_take_a_device_s_place(store: Store) -> None:
    def measure(client: FakeClient, task: Task, chunk: Chunk) -> object:
        client.there.clear()
        client.there["b"] = facts("two", "nvidia_rtx_4060")
        return None

    client = FakeClient({"a": facts()}, measure)
    assert len(scheduler(client, store).run().failed) == 4
    assert {task.worker for task in client.chunks} == {"a"}


def test_machines_measure_one_chunk_at_a_time(store: Store, tmp_path: Path) -> None:
    at_once: list[int] = []

    def measure(client: FakeClient, task: Task, chunk: Chunk) -> object:
        at_once.append(sum(not chunk.is_done for chunk in client.chunks))
        return measured(chunk)

    client = FakeClient({"a": facts("one"), "b": facts("one")}, measure)
    scheduler(client, store).run()
    assert len({task.worker for task in client.chunks}) == 1 and at_once == [1, 1]
    device_profile = profile()
    assert place_of("machine", "a", facts(), device_profile) == place_of(
        "machine", "b", facts(), profile("intel_xe_tgl")
    )
    assert place_of("device", "a", facts(), device_profile) == place_of("device", "b", facts(), device_profile)
    assert place_of("device", "a", facts(), device_profile) != place_of("device", "a", facts(), profile("intel_xe_tgl"))
    assert place_of("worker", "a", facts(), device_profile) != place_of("worker", "b", facts(), device_profile)


def test_several_machines_are_noted(store: Store, tmp_path: Path) -> None:
    client = FakeClient({"a": facts("one"), "b": facts("two")}, lambda _, task, chunk: measured(chunk))
    scheduler(client, store).run()
    text = notes(tmp_path)
    assert text.count("measured on several machines") == 1
    assert "on lavapipe: measured by worker b on host-two" in text
    with Results.open(tmp_path) as results:
        by = {note.point: note.text for note in results.notes if note.kind == "host"}
    assert set(by) == set(range(4)) and set(by.values()) == {"host-one", "host-two"}


def test_chunks_share_points_out_at_random() -> None:
    chunks = ChunkQueue(7)
    points = [Point(index, "t", "d") for index in range(100)]
    chunks.add_points("d", points, {3: Prior()}, slots=3, most=16)
    chunks.add_peaks("d")
    assert chunks.devices == ("d",)
    first, *others = chunks.drain("d")
    assert first.peaks and not first.points
    assert len(others) == 7 and {len(chunk.points) for chunk in others} <= {14, 15}
    assert sorted(point.index for chunk in others for point in chunk.points) == list(range(100))
    assert [point.index for point in others[0].points] != sorted(point.index for point in others[0].points)
    assert [list(chunk.priors) for chunk in others if chunk.priors] == [[3]]
    assert not chunks
    few = ChunkQueue(7)
    few.add_points("d", points[:5], {}, slots=3, most=16)
    assert [len(chunk.points) for chunk in few.drain("d")] == [2, 2, 1]


def test_the_points_of_a_pair_are_in_one_chunk() -> None:
    """Also after the chunk was divided because two workers were lost."""
    news = [Point(index, "mul", "gpu", {"n": index}, against=index + 10) for index in range(10)]
    pairs = [*news, *(Point(index + 10, "mul", "gpu", {"n": index}, is_against=True) for index in range(10))]
    for slots, most in ((1, 16), (3, 4), (50, 1)):
        chunks = ChunkQueue(seed=1)
        chunks.add_points("gpu", [*pairs, Point(20, "mul", "gpu")], {}, slots=slots, most=most)
        chunks_left = list(chunks.drain("gpu"))
        for chunk in chunks_left:
            chunks.retry(replace(chunk, attempt=MAX_ATTEMPTS - 1))
        for chunks_of_attempt in (chunks_left, list(chunks.drain("gpu"))):
            assert sorted(point.index for chunk in chunks_of_attempt for point in chunk.points) == list(range(21))
            for chunk in chunks_of_attempt:
                indices = {point.index for point in chunk.points}
                assert all(point.against in {None, *indices} for point in chunk.points)
                assert all(point.index - 10 in indices for point in chunk.points if point.is_against)


def test_devices_are_found_as_each_worker_s_driver_would() -> None:
    there = {"a": facts("one"), "b": facts("two", "intel_xe_tgl"), "c": WorkerFacts("h", "m", (), "no driver", {})}
    devices = match_devices(["lavapipe", "vulkan://intel"], there)
    assert {uri: list(having) for uri, having in devices.items()} == {"lavapipe": ["a"], "vulkan://intel": ["b"]}
    assert len(distinct_devices(there)) == 2
    with pytest.raises(InvalidArgumentError, match="not the same on all workers"):
        match_devices(["vulkan"], there)
    with pytest.raises(NotFoundError, match="no Vulkan device: no driver"):
        match_devices(["vulkan://nothing"], there)
    assert find_device("vulkan", "b", there["b"], profile()) is None
    assert find_device("vulkan", "a", there["a"], profile()) is not None
    with pytest.raises(NotFoundError):
        distinct_devices({"c": there["c"]})
