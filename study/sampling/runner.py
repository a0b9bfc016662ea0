"""Runs a study: expands it, stores measurements in a folder, and resumes an earlier run.

>>> from pumice.study import load_study, run_study
>>> outcome = run_study(load_study("study.toml"), "results")
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ..definition.expansion import expand
from ..definition.point import Point, paired
from ..definition.study import Study
from ..definition.study_file import study_as_dict
from ..results.point_result import PointResult
from ..results.records import DISTURBED, PointStatus
from ..results.results import Results
from ..results.sink import PHASES, Sink
from ..results.store import Store
from ..workloads.peaks import measure_peaks
from ..workloads.workload import DevicePool, WorkloadContext
from .environment import device_facts, environment_facts, revision_facts
from .point_run import PointRun
from .sampler import Progress, Sampler, SampleRun
from .side import Side
from .taken_files import FileKeeper, TakenFiles, check_finished, take_points
from .turns import Prior

# Blocks and rounds of different runs are distinguished by the run in the bits above theirs.
_RUN_BITS: Final = 32


def run_study(
    study: Study,
    folder: str | os.PathLike[str],
    *,
    devices: Sequence[str] = (),
    progress: Progress | None = None,
    validation: bool | None = None,
) -> SampleRun:
    """Measures the unfinished points of a study.

    Args:
        study: what is measured.
        folder: where results are stored; created if necessary. Results of the same study are resumed: finished points
            stay, begun ones keep their samples, failed ones are tried again.
        devices: URIs in place of the study's.
        progress: told about the points.
        validation: enables the validation layers; ``None`` asks ``PUMICE_VALIDATION``.

    Returns:
        the outcome of this run. Statistics are of the results: ``Results.open(folder)``.

    Raises:
        InvalidArgumentError: the study is inconsistent, or the folder has results of another one.
        NotFoundError: no such device.
        FailedPreconditionError: the folder has samples of another content of a file.
        ResourceExhaustedError: the disk is full; stored results stay.
        KeyboardInterrupt: by the user; stored results stay.
    """
    points = expand(study, devices or study.devices or default_devices())
    path = Path(folder)
    with (
        open_store(path, study, points) as store,
        DevicePool(validation=validation) as pool,
        TakenFiles(study) as taken,
    ):
        priors = prior_samples(path)
        waiting = pending_points(points, store.statuses())
        store.begin_run(run_facts(study))
        outcome = "interrupted"
        try:

            def minor(point: Point) -> int:
                return pool.open(point.device).profile.api_version[1]

            check_finished(taken.files, [point for point in points if point not in waiting], minor, store)
            waiting, total = take_points(taken.files, waiting, minor, store, progress)
            taken.unpack()
            keeper = FileKeeper(store, taken.files, waiting)
            for uri in dict.fromkeys(point.device for point in waiting):
                record_device(uri, pool, store)
                if study.peaks and uri not in measured_peaks(path):
                    found = measure_peaks(pool.open(uri))
                    store.add_peaks(uri, found.peaks, found.details)
                mine = [point for point in waiting if point.device == uri]
                total += sample_points(taken.study, mine, pool, keeper, progress=progress, priors=priors)
            outcome = "complete"
        finally:
            store.end_run(outcome)
    return total


def run_facts(study: Study) -> dict[str, object]:
    """``environment_facts``, and where the study's files are."""
    return {**environment_facts(), **revision_facts(study), "folder": str(study.folder.absolute())}


def open_store(folder: Path, study: Study, points: Sequence[Point]) -> Store:
    """The store of a study's results: that of an earlier run, or a new one."""
    described = study_as_dict(study)
    if Store.exists(folder):
        return Store.open(folder, described, points)
    return Store.create(folder, described, points, text=study.text)


def default_devices() -> tuple[str, ...]:
    """The device of a study that names none: ``PUMICE_DEVICE``, or the best."""
    return (os.environ.get("PUMICE_DEVICE") or "vulkan",)


def sample_points(
    study: Study,
    points: Sequence[Point],
    pool: DevicePool,
    sink: Sink,
    *,
    progress: Progress | None = None,
    priors: Mapping[int, Prior] | None = None,
) -> SampleRun:
    """Measures points of one device; see ``Sampler``."""

    def open_side(point: Point, sink: Sink) -> Side:
        context = WorkloadContext(pool, point.device, study.folder_of(point), study.sampling.seed)
        return PointRun(study.kind_of(point), point, context, study.sampling, sink)

    return Sampler(open_side, study.sampling, pool, sink, progress).run(points, priors)


def record_device(uri: str, pool: DevicePool, sink: Sink) -> None:
    device = pool.open(uri)
    profile = device.profile
    sink.add_device(
        uri,
        name=profile.name,
        driver=f"{profile.driver_name} {profile.driver_info}".strip(),
        facts=device_facts(profile, device.vulkan.plan),
    )


def pending_points(points: Sequence[Point], statuses: Sequence[PointStatus]) -> list[Point]:
    """The points that have not ended, and the other points of their pairs."""
    pending = {
        point.index
        for each in paired(points)
        if not all(statuses[one.index].is_final for one in each)
        for point in each
    }
    return [point for point in points if point.index in pending]


def prior_samples(folder: Path) -> dict[int, Prior]:
    """The samples in a folder of points that were begun and not finished."""
    priors = {}
    with Results.open(folder) as results:
        points = [one.point for one in results.points]
        for point in pending_points(points, [one.status for one in results.points]):
            one = results.points[point.index]
            if one.status is not PointStatus.PENDING:
                priors[point.index] = _prior(one)
    return priors


def _prior(one: PointResult) -> Prior:
    runs, blocks = one.integers("run"), one.integers("block")
    openings, first = one.integers("run", "first"), one.integers("block", "first")
    # How often it had been opened in its run before each block.
    rounds = [np.count_nonzero((openings == run) & (first < block)) for run, block in zip(runs, blocks, strict=True)]
    following = 1 + max(int(np.max(one.integers("block", phase), initial=-1)) for phase in PHASES)
    return Prior(
        one.values().tolist(),
        (runs << _RUN_BITS | blocks).tolist(),
        ((one.flags & int(DISTURBED)) != 0).tolist(),
        following,
        (runs << _RUN_BITS | np.asarray(rounds, np.int64)).tolist(),
    )


def measured_peaks(folder: Path) -> set[str]:
    """The devices whose peaks are in a folder."""
    with Results.open(folder) as results:
        return {one.device for one in results.peaks}
