"""Schedules the chunks of a study on the workers of a cluster, and writes their results to the store.

It chooses the worker of each chunk, one chunk at a time if chunks would disturb each other, and pins the task to that
worker. So a chunk has at most one valid task: when its worker is lost the task is cancelled, its result is ignored, and
the chunk goes to another worker under a new key.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final, Literal, NamedTuple

from ...base.lazy_dataclass import dataclass
from ...hal_vulkan.instance.profile import DeviceProfile
from ...status import InternalError, UnavailableError
from ..definition.point import Point
from ..results.storage.records import PointStatus
from ..results.storage.sink import Sink
from ..sampling.sampler import Progress, SampleRun
from .chunks import MAX_ATTEMPTS, ChunkQueue
from .client import ClusterClient, ClusterTask
from .worker import Chunk, ChunkResult, WorkerFacts, measure_chunk
from .workers import ClusterWorkers, find_device

Alone = Literal["machine", "device", "worker"]
"""The unit that measures one chunk at a time: a machine, each device of a machine, or each worker."""

_LOOK_S: Final = 0.5


def place_of(alone: Alone, address: str, facts: WorkerFacts, profile: DeviceProfile) -> tuple[str, ...]:
    """Returns the key of the unit that a chunk occupies while a worker measures it; see ``Alone``."""
    match alone:
        case "machine":
            return (facts.machine,)
        case "device":
            return (facts.machine, profile.device_uuid or profile.name)
        case "worker":
            return (address,)


@dataclass(frozen=True, slots=True)
class Work:
    """The common state of all tasks of a study. ``token`` distinguishes this run in the keys of tasks."""

    study: Mapping[str, object]
    files: Mapping[str, bytes]
    validation: bool | None
    token: str


class _Running(NamedTuple):
    chunk: Chunk
    address: str
    unit: tuple[str, ...]
    task: ClusterTask[ChunkResult]


@dataclass
class ChunkScheduler:
    """A run of a study; see the module. Call ``run`` once, in one thread.

    ``having`` has the workers of each device, by device URI and worker address. ``store`` has a run in progress. Chunks
    without a worker for their device wait for a worker for ``worker_timeout`` seconds.
    """

    client: ClusterClient
    workers: ClusterWorkers
    work: Work
    chunks: ChunkQueue
    having: dict[str, dict[str, DeviceProfile]]
    store: Sink
    points: Sequence[Point]
    progress: Progress | None
    alone: Alone
    worker_timeout: float
    _result: SampleRun = field(default_factory=SampleRun, init=False)
    _running: dict[str, _Running] = field(default_factory=dict, init=False)
    _ended_tasks: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue, init=False)
    _hosts: dict[str, str] = field(default_factory=dict, init=False)
    _refusals: dict[tuple[str, str], str] = field(default_factory=dict, init=False)
    _waits_since: dict[str, float] = field(default_factory=dict, init=False)
    _files: dict[str, object] = field(default_factory=dict, init=False)
    _received: set[int] = field(default_factory=set, init=False)
    _machines: dict[str, set[str]] = field(default_factory=dict, init=False)
    _models: dict[str, DeviceProfile] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        # Kept for workers that join when all others are gone: a device's model does not change.
        self._models = {uri: next(iter(having.values())) for uri, having in self.having.items()}

    def run(self) -> SampleRun:
        """Measures all chunks. At every end, stored results are kept and running tasks are cancelled."""
        try:
            while self.chunks or self._running:
                self._look()
                self._hand_out()
                self._give_up()
                self._collect()
        finally:
            for running in self._running.values():
                running.task.cancel()
            self._running.clear()
        return self._result

    # -- workers -------------------------------------------------------------------------------------

    def _look(self) -> None:
        for address in self.workers.look():
            self._files.pop(address, None)
            for having in self.having.values():
                having.pop(address, None)
            for key in [key for key, running in self._running.items() if running.address == address]:
                self._lost(self._running.pop(key), "was lost")
            # Another worker may join with the same address.
            self._hosts.pop(address, None)
            for uri in self.having:
                self._refusals.pop((uri, address), None)
        for address, error in self.workers.refused.items():
            if address not in self._hosts:
                self._hosts[address] = ""
                self.store.add_note(f"a worker that joined takes no part: {error.message}")
        for address, facts in self.workers.usable.items():
            if address in self._hosts:
                continue
            self._hosts[address] = facts.host
            for uri, having in self.having.items():
                profile = find_device(uri, address, facts, self._models[uri])
                if profile is not None:
                    having[address] = profile

    def _titled(self, address: str) -> str:
        return f"worker {address} on {self._hosts[address]}"

    def _candidates(self, uri: str) -> list[str]:
        """Returns the workers that can measure on a device, busy or not."""
        return [address for address in self.having[uri] if (uri, address) not in self._refusals]

    # -- out -----------------------------------------------------------------------------------------

    def _hand_out(self) -> None:
        busy = {running.unit for running in self._running.values()}
        working = {running.address for running in self._running.values()}
        handed = True
        while handed:
            handed = False
            for uri in self.chunks.devices:
                for address in self._candidates(uri):
                    unit = place_of(self.alone, address, self.workers.usable[address], self.having[uri][address])
                    if unit in busy or address in working:
                        continue
                    if not self._submit(self.chunks.take(uri), address, unit):
                        continue
                    busy.add(unit)
                    working.add(address)
                    handed = True
                    break

    def _submit(self, chunk: Chunk, address: str, unit: tuple[str, ...]) -> bool:
        key = f"pumice-study-{self.work.token}-chunk-{chunk.number}-attempt-{chunk.attempt}"
        try:
            files = self._files_on(address)
        except UnavailableError as error:
            self.having[chunk.device].pop(address, None)
            self.store.add_note(f"{self._titled(address)} takes no work: {error.message}")
            self.chunks.put_back(chunk)
            return False
        work = self.work
        task = self.client.submit(
            measure_chunk, work.study, chunk, work.validation, key, key=key, worker=address, sent=files
        )
        self._running[key] = _Running(chunk, address, unit, task)
        task.on_end(lambda: self._ended_tasks.put(key))
        return True

    def _files_on(self, address: str) -> object:
        if not self.work.files:
            return None
        if address not in self._files:
            self._files[address] = self.client.send(self.work.files, address)
        return self._files[address]

    # -- back ----------------------------------------------------------------------------------------

    def _collect(self) -> None:
        """Waits briefly for tasks to end; workers join and leave meanwhile."""
        with contextlib.suppress(queue.Empty):
            self._finish(self._ended_tasks.get(timeout=_LOOK_S))
            while True:
                self._finish(self._ended_tasks.get_nowait())

    def _finish(self, key: str) -> None:
        running = self._running.pop(key, None)
        if running is None:  # of a worker that counts as lost
            return
        try:
            result = running.task.result()
        except UnavailableError as error:  # its result was lost with its worker
            self.client.workers()  # raises if the Dask scheduler was lost
            self._lost(running, f"brought no result: {error.message}")
            return
        except Exception as error:
            self._refuse(running, f"{type(error).__name__}: {error}")
            return
        if result.error:
            self._refuse(running, result.error)
        else:
            self._receive(running, result)

    def _receive(self, running: _Running, result: ChunkResult) -> None:
        chunk, uri = running.chunk, running.chunk.device
        if (result.number, result.attempt) != (chunk.number, chunk.attempt):
            raise InternalError(
                f"expected the result of {chunk.number, chunk.attempt}, got {result.number, result.attempt}"
            )
        indices = {point.index for point in chunk.points}
        if twice := indices & self._received:
            raise InternalError(f"points {sorted(twice)} were measured twice; the second results are discarded")
        self._received |= indices
        if uri not in self._machines:
            self._machines[uri] = set()
            result.device.replay(self.store)
        self._note_machine(uri, running.address)
        result.measured.replay(self.store)
        for index in sorted(indices):
            self.store.add_note(self._hosts[running.address], point=index, kind="host")
        if indices:
            self.store.add_note(
                f"{_listed(chunk.points)} on {uri}: measured by {self._titled(running.address)}", kind="info"
            )
        self._result += result.run
        if self.progress is not None:
            for index, status, reason in result.ended:
                self.progress.finished(self.points[index], status, reason)

    def _note_machine(self, uri: str, address: str) -> None:
        machines = self._machines[uri]
        facts = self.workers.usable.get(address)
        machines.add(facts.machine if facts is not None else address)
        if len(machines) == 2:
            self.store.add_note(
                f"points of {uri} are measured on several machines: points may differ because the machines do, "
                "and their host times are of different clocks; other notes say what was measured where"
            )

    # -- what goes wrong -----------------------------------------------------------------------------

    def _lost(self, running: _Running, how: str) -> None:
        chunk = running.chunk
        running.task.cancel()
        if self.chunks.retry(chunk):
            self.store.add_note(
                f"{self._titled(running.address)} {how}: {_listed(chunk.points)} on {chunk.device} are measured again"
            )
        else:
            self._fail(
                chunk,
                f"{MAX_ATTEMPTS} workers were lost while they measured it; {self._titled(running.address)} {how}",
            )

    def _refuse(self, running: _Running, reason: str) -> None:
        """Excludes a worker from a device that it cannot measure on; other workers may."""
        self._refusals[running.chunk.device, running.address] = reason
        self.store.add_note(f"{self._titled(running.address)} cannot measure on {running.chunk.device}: {reason}")
        self.chunks.put_back(running.chunk)

    def _give_up(self) -> None:
        """Fails the chunks that have waited too long for a worker."""
        for uri in self.chunks.devices:
            if self._candidates(uri):
                self._waits_since.pop(uri, None)
                continue
            if self.having[uri]:
                reasons = [reason for (device, _), reason in self._refusals.items() if device == uri]
                why = f"no worker can measure on {uri}: {reasons[-1]}"
            elif time.monotonic() - self._waits_since.setdefault(uri, time.monotonic()) >= self.worker_timeout:
                why = f"no worker with the device {uri} is left, and none came within {self.worker_timeout:g} s"
            else:
                continue
            for chunk in self.chunks.drain(uri):
                self._fail(chunk, why)

    def _fail(self, chunk: Chunk, why: str) -> None:
        if chunk.peaks:
            self.store.add_note(f"the peaks of {chunk.device} were not measured: {why}")
        for point in chunk.points:
            self.store.set_status(point.index, PointStatus.FAILED, why)
            self._result.failed[point.index] = why
            if self.progress is not None:
                self.progress.finished(point, PointStatus.FAILED, why)


def _listed(points: Iterable[Point]) -> str:
    numbers = ", ".join(str(index) for index in sorted(point.index for point in points))
    return f"points {numbers}" if numbers else "the peaks"
