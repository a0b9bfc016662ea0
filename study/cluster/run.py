"""Runs a study on the workers of a Dask cluster, and stores their measurements in one folder.

>>> from pumice.study import run_on_cluster
>>> outcome = run_on_cluster(study, "results", "tcp://head:8786")

Points of a device are divided into chunks. A worker that has the device measures a chunk, its points interleaved. A
machine measures one chunk at a time, so that measurements do not disturb each other. Measurements return when their
chunk is complete and are stored then; a chunk whose worker is lost goes to another worker.

If the client is killed while it stores a chunk, resuming continues from the stored samples, as after a local run.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from ...hal_vulkan.instance.profile import DeviceProfile
from ...hal_vulkan.vulkan.validation import validation_requested
from ...status import InvalidArgumentError
from ..definition.expansion import expand
from ..definition.point import Point
from ..definition.study import Study
from ..definition.study_file import study_as_dict
from ..results.storage.store import Store
from ..runs.runner import (
    RunProgress,
    default_devices,
    finished_points,
    measured_peaks,
    open_store,
    prior_samples,
    recorded_run,
    run_facts,
)
from ..runs.taken_files import FileKeeper, check_finished, take_points
from ..sampling.passes import Resumption, plan_passes
from ..sampling.sampler import Progress, SampleRun
from ..workloads.study_files import StudyFiles
from .chunks import ChunkQueue
from .client import ClusterClient, connected
from .scheduler import Alone, ChunkScheduler, Work, place_of
from .worker import WorkerFacts
from .workers import ALL_DEVICES, ClusterWorkers, distinct_devices, match_devices

if TYPE_CHECKING:
    from distributed import Client


def run_on_cluster(
    study: Study,
    folder: str | os.PathLike[str],
    scheduler: str | Client,
    *,
    devices: Sequence[str] = (),
    progress: Progress | None = None,
    validation: bool | None = None,
    runs: int | None = None,
    continue_noisy: bool = False,
    more_time: float | None = None,
    alone: Alone = "machine",
    worker_timeout: float = 60.0,
) -> SampleRun:
    """Measures the unfinished points of a study, each on a worker that has its device.

    Workers need the same version of pumice with the extra ``cluster``. Files that the study names are read here and
    sent to them, GLSL as compiled SPIR-V. A worker has a device if its own driver finds one by the URI; workers may
    join later.

    Args:
        study: the study.
        folder: the folder for results, on this machine; created if necessary. Results of the same study are resumed,
            also those of ``run_study``, and vice versa.
        scheduler: the scheduler's address such as ``tcp://head:8786``, or a client, which stays the caller's.
        devices: the device URIs in place of the study's; ``("all",)`` takes each device of the cluster, as
            ``vulkan://GPU-UUID``.
        progress: the receiver of progress; it is notified of points when their chunk has returned, and ``advance`` is
            not called.
        validation: whether to enable the workers' validation layers; ``None`` reads ``PUMICE_VALIDATION`` here, then on
            each worker.
        runs: the number of passes over all workers, as for ``run_study``. With several runs, each worker measures each
            chunk in a separate process.
        continue_noisy, more_time: the finished points to sample further, as for ``run_study``.
        alone: the unit that measures one chunk at a time: ``"machine"``, with all its workers and devices;
            ``"device"``, for several devices of a machine at once, which share its processors; ``"worker"``, for
            workers that each have a separate device and processors.
        worker_timeout: the seconds to wait for the first worker, and for a worker with a device that no remaining
            worker has; then its points fail, and the others continue.

    Returns:
        The outcome of this run. Statistics are of the results: ``Results.open(folder)``.

    Raises:
        InvalidArgumentError: the study is inconsistent, a device is another model on some workers, the folder has
            results of another study, or the scheduler is not an address.
        NotFoundError: no worker has a device; the message lists the workers and their devices.
        IncompatibleError: a worker has another version of pumice.
        UnavailableError: Dask is not installed, or the scheduler cannot be reached or was lost; stored results stay.
        ResourceExhaustedError: the disk is full; stored results stay.
        KeyboardInterrupt: the user interrupted the run: workers stop within a block of samples, stored results stay.
    """
    if alone not in get_args(Alone):
        raise InvalidArgumentError(f"alone is one of {', '.join(get_args(Alone))}; got {alone!r}")
    resumption = Resumption(runs, continue_noisy, more_time)
    everywhere = ALL_DEVICES in devices
    if everywhere and len(devices) > 1:
        raise InvalidArgumentError(f"{ALL_DEVICES!r} is each device of the cluster; got {', '.join(devices)}")
    points = () if everywhere else expand(study, devices or study.devices or default_devices())
    # Without a setting here, each worker's own variable decides.
    validation = True if validation is None and validation_requested(None) else validation
    began = time.monotonic_ns()
    token = uuid.uuid4().hex[:12]
    with connected(scheduler) as client, contextlib.closing(ClusterWorkers(client, validation, token)) as workers:
        workers.wait(worker_timeout)
        if everywhere:
            points = expand(study, distinct_devices(workers.usable))
        having = match_devices(dict.fromkeys(point.device for point in points), workers.usable)
        path = Path(folder)
        total = SampleRun()
        with open_store(path, study, points) as store:
            statuses = store.statuses()
            repeats = max(runs or 1, len(statuses))
            passes = plan_passes(study, points, statuses, resumption)
            if isinstance(progress, RunProgress):
                progress.planned(passes, sum(not point.is_against for point in points), repeats)

            def minor(point: Point) -> int:
                return min(profile.version[1] for profile in having[point.device].values())

            files = StudyFiles(study, sent=True)
            check_finished(StudyFiles(study, sent=False), finished_points(points, passes), minor, store)
            facts = {**run_facts(study), "cluster": _cluster_facts(client, workers.usable)}
            for index, pass_ in enumerate(passes):
                if isinstance(progress, RunProgress):
                    progress.begun(pass_)
                priors, with_peaks = prior_samples(path, pass_), measured_peaks(path)
                with recorded_run(store, pass_, facts):
                    waiting, failed = take_points(files, pass_.points, minor, store, progress)
                    keeper = FileKeeper(store, files, waiting)
                    chunks = ChunkQueue(study.sampling.seed, repeat=pass_.repeat, apart=repeats > 1)
                    for uri in dict.fromkeys(point.device for point in waiting):
                        usable = workers.usable
                        slots = {place_of(alone, at, usable[at], profile) for at, profile in having[uri].items()}
                        mine = [point for point in waiting if point.device == uri]
                        chunks.add_points(uri, mine, priors, slots=len(slots), most=study.sampling.interleave)
                        if study.peaks and uri not in with_peaks:
                            chunks.add_peaks(uri)
                    _note_sharing(workers.usable, having, alone, store)
                    work = Work(study_as_dict(pass_.study), files.contents, validation, f"{token}-{index}")
                    run = ChunkScheduler(
                        client, workers, work, chunks, having, keeper, points, progress, alone, worker_timeout
                    )
                    total += failed + run.run()
    total.elapsed_ns = time.monotonic_ns() - began
    return total


def _cluster_facts(client: ClusterClient, workers: Mapping[str, WorkerFacts]) -> dict[str, object]:
    return {
        "scheduler": client.address,
        "workers": {
            at: {
                "host": facts.host,
                "machine": facts.machine,
                "devices": [profile.name for profile in facts.profiles],
                "environment": facts.environment,
            }
            for at, facts in sorted(workers.items())
        },
    }


def _note_sharing(
    workers: Mapping[str, WorkerFacts],
    having: Mapping[str, Mapping[str, DeviceProfile]],
    alone: Alone,
    store: Store,
) -> None:
    machines: dict[str, list[str]] = {}
    for address in sorted({address for workers_of in having.values() for address in workers_of}):
        machines.setdefault(workers[address].machine, []).append(address)
    for addresses in machines.values():
        if len(addresses) < 2:
            continue
        text = f"workers {', '.join(addresses)} are on one machine, {workers[addresses[0]].host}"
        if alone == "machine":
            store.add_note(f"{text}: they take turns", kind="info")
        else:
            store.add_note(
                f"{text}, and measure at the same time, one chunk for each {alone}: they may disturb each other"
            )
