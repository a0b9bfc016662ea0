"""Studies on a Dask cluster: workers are lost or join, lack the device or have another version, and no sample is
stored twice.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import psutil
import pytest

import pumice
from pumice.status import (
    IncompatibleError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from pumice.study.cluster import workers as cluster_workers
from pumice.study.cluster.run import run_on_cluster
from pumice.study.definition.axis import Axis
from pumice.study.definition.point import Point
from pumice.study.definition.settings import Sampling
from pumice.study.definition.study import Study, Target
from pumice.study.results.results import Results
from pumice.study.results.storage.records import PointStatus
from pumice.study.runs.runner import run_study
from pumice.study.sampling.passes import Pass

distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.vulkan, pytest.mark.timeout(240)]

SAMPLES = 8
QUICK = Sampling(
    warmup_count=1,
    warmup_time=0,
    min_samples=SAMPLES,
    max_samples=SAMPLES,
    block=4,
    interleave=4,
    reference=False,
    noise_limit=1e9,
)


Answer = TypeVar("Answer")


def until(find: Callable[[], Answer | None]) -> Answer:
    """Polls until there is an answer."""
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        answer = find()
        if answer is not None:
            return answer
        time.sleep(0.01)
    raise AssertionError("waited for too long")


class Cluster:
    """A scheduler in a thread, and workers without nannies, so that a killed worker is not restarted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._local = distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0")
        self.address: str = self._local.scheduler_address
        self.client: Any = distributed.Client(self.address, set_as_default=False)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, count: int, **variables: str) -> list[str]:
        """Starts workers, waits for them and returns their addresses."""
        before = set(self.client.nthreads())
        command = [sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--no-nanny", "--no-dashboard"]
        options = ["--nthreads", "1", "--local-directory", str(self._folder), "--host", "127.0.0.1"]
        with (self._folder / "workers.log").open("ab") as log:
            started = [
                subprocess.Popen([*command, *options], stdout=log, stderr=log, env={**os.environ, **variables})
                for _ in range(count)
            ]
        self.client.wait_for_workers(len(before) + count, timeout=60)
        pids = {pid: address for address, pid in self.client.run(os.getpid).items()}
        new = [pids[process.pid] for process in started]
        self.processes.update(zip(new, started, strict=True))
        return new

    def kill(self, address: str) -> None:
        """Kills a worker with SIGKILL."""
        process = self.processes.pop(address)
        process.kill()
        process.wait()

    def chunk_holder(self) -> str:
        """Waits until a worker measures a chunk; returns its address."""
        return until(self._holder)

    def _holder(self) -> str | None:
        for address, keys in self.client.processing().items():
            if any("-chunk-" in str(key) for key in keys):
                return str(address)
        return None

    def close(self) -> None:
        for address in [*self.processes]:
            self.kill(address)
        self.client.close()
        self._local.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with contextlib.closing(Cluster(tmp_path_factory.mktemp("cluster"))) as running:
        yield running


@pytest.fixture
def workers(cluster: Cluster) -> list[str]:
    """Returns two workers, starting those that the previous test killed."""
    missing = 2 - len(cluster.processes)
    if missing > 0:
        cluster.start(missing)
    return sorted(cluster.processes)


def make_study(count: int = 8, *, sleep: float = 0.0, **changes: Any) -> Study:
    """Returns a study of one target at ``count`` batch sizes; each sample sleeps."""
    settings = {"source": "builtin:builtin/empty", "groups": 1, "record": "each", "host_sleep": sleep}
    target = Target("empty", "kernel", settings)
    values: dict[str, Any] = {"devices": ("vulkan",), "sampling": QUICK, **changes}
    return Study("spread", (target,), (Axis("batch", tuple(range(1, count + 1))),), **values)


def assert_measured_once(folder: Path, count: int) -> None:
    """Checks that each point had its first call in one run only, and has as many samples as its rule requires."""
    with Results.open(folder) as results:
        assert len(results.points) == count
        for result in results.points:
            assert result.status in (PointStatus.DONE, PointStatus.NOISY), (result.status, result.reason)
            assert len(result.blocks_of("first")) == 1
            blocks = result.blocks_of("sample")
            assert len(blocks) == SAMPLES
            # A turn also ends after half a second, with fewer samples on a busy machine.
            sizes = np.unique(blocks, return_counts=True)[1]
            assert int(sizes.sum()) == SAMPLES and int(sizes.max()) <= 4


def notes_of(folder: Path) -> list[str]:
    with Results.open(folder) as results:
        return [note.text for note in results.notes]


@dataclass
class Told:
    """Progress that records its calls and then calls back."""

    finished_points: list[int] = field(default_factory=list)
    then: Callable[[], None] | None = None
    repeats: list[int] = field(default_factory=list)

    def planned(self, passes: Sequence[Pass], points: int, repeats: int) -> None:
        assert {pass_.repeat for pass_ in passes} <= set(range(1, repeats + 1))

    def begun(self, one: Pass) -> None:
        self.repeats.append(one.repeat)

    def advance(self, point: Point, fraction: float) -> None:
        raise AssertionError("nobody knows how far a point is on another machine")

    def finished(self, point: Point, status: PointStatus, reason: str) -> None:
        self.finished_points.append(point.index)
        if self.then is not None:
            self.then()


@contextlib.contextmanager
def meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """Runs ``work`` in a thread during the block; raises its error afterwards."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    for error in errors:
        raise error


@pytest.mark.sample(1, "workers that go and come")
def test_a_lost_worker_s_points_are_measured_again_and_never_twice(
    cluster: Cluster, workers: list[str], tmp_path: Path
) -> None:
    killed: list[str] = []

    def kill() -> None:
        killed.append(cluster.chunk_holder())
        cluster.kill(killed[0])

    told = Told()
    with meanwhile(kill):
        run = run_on_cluster(
            make_study(sleep=0.02), tmp_path, cluster.client, alone="worker", progress=told, worker_timeout=30
        )
    assert len(killed) == 1 and killed[0] in workers
    assert_measured_once(tmp_path, 8)
    assert sorted(run.done + run.noisy) == list(range(8)) and not run.failed
    assert run.samples == 8 * SAMPLES
    assert sorted(told.finished_points) == list(range(8))
    notes = notes_of(tmp_path)
    lost = [note for note in notes if "was lost" in note and "measured again" in note]
    # On a loaded machine a living worker may be slow to answer and count as lost, too.
    assert sum(killed[0] in note for note in lost) == 1
    measured = [note for note in notes if ": measured by worker" in note]
    assert measured and not any(killed[0] in note for note in measured)
    with Results.open(tmp_path) as results:
        assert len(results.devices) == 1 and results.devices[0].device == "vulkan"
        assert [run.outcome for run in results.runs] == ["complete"]
        there = results.runs[0].environment["cluster"]
        assert isinstance(there, dict) and sorted(there["workers"]) == workers


@pytest.mark.sample(1, "workers that go and come")
@pytest.mark.slow
def test_runs_of_pairs_survive_the_loss_of_the_busy_worker(
    cluster: Cluster, workers: list[str], tmp_path: Path
) -> None:
    killed: list[str] = []
    below: list[psutil.Process] = []

    def kill() -> None:
        killed.append(cluster.chunk_holder())
        process = psutil.Process(cluster.processes[killed[0]].pid)
        # Each chunk of several runs is measured in a separate process.
        below.extend(until(lambda: process.children() or None))
        cluster.kill(killed[0])

    told = Told()
    study = make_study(2, sleep=0.005)
    with meanwhile(kill):
        run = run_on_cluster(
            replace(study, against=study),
            tmp_path,
            cluster.client,
            runs=2,
            alone="worker",
            progress=told,
            worker_timeout=90,
        )
    assert not psutil.wait_procs(below, timeout=20)[1]
    assert told.repeats == [1, 2] and sorted(told.finished_points) == sorted([*range(4)] * 2)
    assert not run.failed
    assert any(killed[0] in note and "measured again" in note for note in notes_of(tmp_path))
    with Results.open(tmp_path) as results:
        assert [(run.repeat, run.outcome) for run in results.runs] == [(1, "complete"), (2, "complete")]
        for new in results.points[:2]:
            old = new.against
            assert old is not None and old.point.is_against
            for side in (new, old):
                assert all(status in (PointStatus.DONE, PointStatus.NOISY) for status, _ in side.repeats)
                assert sorted(set(side.repeat.tolist())) == [1, 2]
            # One attempt for each repeat, and both sides in the same turns.
            for repeat in (1, 2):
                turns = [sorted(set(side.integers("block")[side.repeat == repeat].tolist())) for side in (new, old)]
                assert turns[0] == turns[1] and len(turns[0]) >= 2
                assert np.count_nonzero(new.repeat == repeat) <= SAMPLES


@pytest.mark.sample(1, "workers that go and come")
def test_a_machine_measures_one_chunk_at_a_time(cluster: Cluster, workers: list[str], tmp_path: Path) -> None:
    run_on_cluster(make_study(), tmp_path, cluster.address, devices=("all",))
    assert_measured_once(tmp_path, 8)
    with Results.open(tmp_path) as results:
        # Both workers see the same device, so it is measured once.
        assert len({result.point.device for result in results.points}) == 1
        assert results.points[0].point.device.startswith("vulkan://GPU-")
        spans = []
        for result in results.points:
            started = result.integers("started_ns", "sample")
            spans.append((int(started.min()), int(started.max())))
        by_chunk = [note.text for note in results.notes if ": measured by worker" in note.text]
    assert len(by_chunk) == 2
    assert any("take turns" in note for note in notes_of(tmp_path))
    groups = [[int(n) for n in note.split(" on ")[0].removeprefix("points ").split(",")] for note in by_chunk]
    (first, second) = [(min(spans[i][0] for i in group), max(spans[i][1] for i in group)) for group in groups]
    assert first[1] < second[0] or second[1] < first[0]


def test_files_are_sent_along(cluster: Cluster, workers: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "study"
    (folder / "data").mkdir(parents=True)
    np.save(folder / "data" / "x.npy", np.arange(64, dtype=np.float32))
    np.save(tmp_path / "outside.npy", np.zeros(64, np.float32))
    (folder / "step.glsl").write_text("#define STEP 1.0\n")
    (folder / "add.comp").write_text(
        '#version 450\n#extension GL_GOOGLE_include_directive : require\n#include "step.glsl"\n'
        "layout(local_size_x = 64) in;\n"
        "layout(set = 0, binding = 0) readonly buffer X { float x[]; };\n"
        "layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };\n"
        "void main() { y[gl_GlobalInvocationID.x] = x[gl_GlobalInvocationID.x] * SCALE + STEP; }\n"
    )
    bindings = ["@data/x.npy", {"shape": 64, "init": "@../outside.npy"}]
    good = Target("add", "kernel", {"source": "add.comp", "groups": 1, "defines": {"SCALE": 2}, "bindings": bindings})
    bad = Target("gone", "kernel", {"source": "gone.spv", "groups": 1, "bindings": bindings})
    study = Study("files", (good, bad), devices=("vulkan",), sampling=QUICK, folder=folder)
    run = run_on_cluster(study, tmp_path / "out", cluster.client)
    assert run.done + run.noisy == [0] and "gone.spv" in run.failed[1]
    with Results.open(tmp_path / "out") as results:
        assert results.points[0].point.settings["source"] == "add.comp"
        assert results.points[1].status is PointStatus.FAILED


def test_a_device_that_nobody_has(cluster: Cluster, workers: list[str], tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        run_on_cluster(make_study(), tmp_path, cluster.client, devices=("vulkan", "vulkan://NoSuchCard"))
    assert "vulkan://NoSuchCard" in caught.value.message
    assert pumice.list_devices()[0].name in caught.value.message
    assert all(address in caught.value.message for address in workers)
    assert not (tmp_path / "results.sqlite").exists()


def test_another_version(cluster: Cluster, workers: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = cluster_workers.installed_version()
    monkeypatch.setattr(cluster_workers, "installed_version", lambda: "99.1")
    with pytest.raises(IncompatibleError, match="99.1") as caught:
        run_on_cluster(make_study(), tmp_path, cluster.client)
    assert f"has pumice {here}" in caught.value.message


def test_what_is_no_scheduler(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a scheduler's address"):
        run_on_cluster(make_study(), tmp_path, "nothing://at-all")
    with pytest.raises(InvalidArgumentError, match="alone is one of"):
        run_on_cluster(make_study(), tmp_path, "tcp://127.0.0.1:1", alone="no")  # type: ignore[arg-type]


def test_without_dask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UnavailableError, match=r"pip install 'pumice\[cluster\]'"):
        run_on_cluster(make_study(), tmp_path, "tcp://127.0.0.1:8786")


@pytest.mark.sample(1, "workers that go and come")
def test_an_interrupted_study_goes_on_on_the_cluster_and_here(
    cluster: Cluster, workers: list[str], tmp_path: Path
) -> None:
    study = make_study(12, sleep=0.03)

    def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_on_cluster(study, tmp_path, cluster.client, progress=Told(then=interrupt))
    until(lambda: True if not any(cluster.client.processing().values()) else None)
    with Results.open(tmp_path) as results:
        done = [result.point.index for result in results.points if result.status.is_final]
        assert 0 < len(done) < 12
        assert [run.outcome for run in results.runs] == ["interrupted"]

    # Again, with the workers killed before they finish.
    def kill_all() -> None:
        cluster.chunk_holder()
        for address in workers:
            cluster.kill(address)

    with meanwhile(kill_all):
        run = run_on_cluster(study, tmp_path, cluster.client, worker_timeout=0.1)
    assert run.failed and set(run.failed).isdisjoint(done)
    assert all("no worker with the device vulkan is left" in reason for reason in run.failed.values())

    here = run_study(study, tmp_path)
    assert sorted(here.done + here.noisy) == sorted(run.failed)
    assert_measured_once(tmp_path, 12)


@pytest.mark.sample(1, "workers that go and come")
def test_a_worker_that_comes_takes_over(cluster: Cluster, tmp_path: Path) -> None:
    for address in [*cluster.processes]:
        cluster.kill(address)
    cluster.start(1)

    def replace() -> None:
        cluster.kill(cluster.chunk_holder())
        cluster.start(1)

    with meanwhile(replace):
        run = run_on_cluster(make_study(4, sleep=0.02), tmp_path, cluster.client, worker_timeout=30)
    assert not run.failed
    assert_measured_once(tmp_path, 4)
