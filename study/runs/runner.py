"""Runs a study: expands it, stores measurements in a folder, and resumes an earlier run.

>>> from pumice.study import load_study, run_study
>>> outcome = run_study(load_study("study.toml"), "results")
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

import numpy as np

from ...base.child_process import ChildProcess
from ...hal_vulkan import shared_driver
from ..definition.expansion import expand
from ..definition.point import Point
from ..definition.study import Study
from ..definition.study_file import study_as_dict
from ..machine.environment import device_facts, environment_facts, revision_facts
from ..results.results import Results
from ..results.storage.point_result import PointResult
from ..results.storage.records import DISTURBED
from ..results.storage.sink import PHASES, Sink
from ..results.storage.store import Store
from ..sampling.passes import Pass, Resumption, plan_passes
from ..sampling.point_run import PointRun
from ..sampling.sampler import Progress, Sampler, SampleRun
from ..sampling.turns import Prior, Side
from ..workloads.peaks import measure_peaks
from ..workloads.workload import DevicePool, WorkloadContext
from .child_calls import ApartSide, SideProcess, measure_in
from .taken_files import FileKeeper, TakenFiles, check_finished, take_points

# Blocks and rounds of different runs are distinguished by the run in the bits above theirs.
_RUN_BITS: Final = 32


@runtime_checkable
class RunProgress(Progress, Protocol):
    """A ``Progress`` that also receives the plan, once, and each pass before its points."""

    def planned(self, passes: Sequence[Pass], points: int, repeats: int) -> None:
        """Receives the remaining passes, the number of the study's points excluding the other side, and the number of
        times to measure each.
        """

    def begun(self, part: Pass) -> None:
        """Receives a pass before its points."""


def run_study(
    study: Study,
    folder: str | os.PathLike[str],
    *,
    devices: Sequence[str] = (),
    progress: Progress | None = None,
    validation: bool | None = None,
    runs: int | None = None,
    continue_noisy: bool = False,
    more_time: float | None = None,
) -> SampleRun:
    """Measures the unfinished points of a study.

    Args:
        study: the study.
        folder: the folder for results; created if necessary. Results of the same study are resumed: finished points
            stay, begun ones keep their samples, failed ones are tried again. The sampling settings ``time_limit``,
            ``max_samples``, ``noise_limit``, ``relative_error`` and ``resolution`` may differ.
        devices: the device URIs in place of the study's.
        progress: the receiver of the points' progress; a ``RunProgress`` is also notified of the passes.
        validation: whether to enable the validation layers; ``None`` reads ``PUMICE_VALIDATION``.
        runs: the number of times to measure the study, each in a separate process if there are several; ``None`` for
            the number begun in the folder.
        continue_noisy, more_time: the finished points to sample further; see ``Resumption``.

    Returns:
        The outcome of this call. Statistics are of the results: ``Results.open(folder)``.

    Raises:
        InvalidArgumentError: the study is inconsistent, or ``runs`` or ``more_time`` is out of range.
        FailedPreconditionError: the folder has results of another study or samples of another content of a file, or
            another process writes to it.
        NotFoundError: there is no such device.
        AbortedError: the process of a run has ended.
        ResourceExhaustedError: the disk is full; stored results stay.
        KeyboardInterrupt: the user interrupted the run; stored results stay.
    """
    resumption = Resumption(runs, continue_noisy, more_time)
    points = expand(study, devices or study.devices or default_devices())
    path = Path(folder)
    total = SampleRun()
    with open_store(path, study, points) as store, TakenFiles(study) as taken:
        statuses = store.statuses()
        passes = plan_passes(taken.study, points, statuses, resumption)
        repeats = max(runs or 1, len(statuses))
        if isinstance(progress, RunProgress):
            progress.planned(passes, sum(not point.is_against for point in points), repeats)
        minor = functools.partial(minor_version, validation)
        check_finished(taken.files, finished_points(points, passes), minor, store)
        facts = run_facts(study)
        for pass_ in passes:
            if isinstance(progress, RunProgress):
                progress.begun(pass_)
            priors, with_peaks = prior_samples(path, pass_), measured_peaks(path)
            with contextlib.ExitStack() as stack:
                child = stack.enter_context(ChildProcess(f"run {pass_.repeat}")) if repeats > 1 else None
                stack.enter_context(recorded_run(store, pass_, {**facts, **(child.environment if child else {})}))
                waiting, failed = take_points(taken.files, pass_.points, minor, store, progress)
                taken.unpack()
                pass_, sink = replace(pass_, points=tuple(waiting)), FileKeeper(store, taken.files, waiting)
                if child is not None:
                    run = measure_in(child, pass_, sink, progress, priors, with_peaks, validation)
                else:
                    pool = stack.enter_context(DevicePool(validation=validation))
                    run = measure_points(pass_, pool, sink, priors, with_peaks, progress)
                total += failed + run
    return total


def minor_version(validation: bool | None, point: Point) -> int:
    """Returns the minor version of Vulkan 1 on a point's device."""
    driver = shared_driver(validation=validation)
    return driver.profiles[driver.select(point.device or None)].version[1]


def finished_points(points: Sequence[Point], passes: Sequence[Pass]) -> list[Point]:
    """Returns the points that no pass measures."""
    left = {point.index for pass_ in passes for point in pass_.points}
    return [point for point in points if point.index not in left]


@contextlib.contextmanager
def recorded_run(store: Store, part: Pass, facts: Mapping[str, object]) -> Iterator[None]:
    """Records a run in the store for the measurement of a pass."""
    store.begin_run({**facts, "sampling": asdict(part.study.sampling)}, repeat=part.repeat)
    outcome = "interrupted"
    try:
        yield
        outcome = "complete"
    finally:
        store.end_run(outcome)


def run_facts(study: Study) -> dict[str, object]:
    """Returns ``environment_facts``, the folder of the study, and the earlier results that keep a side's files."""
    sides = {"origin": study, "against_origin": study.against}
    origins = {name: side.kept.origin for name, side in sides.items() if side and side.kept and side.kept.origin}
    return {**environment_facts(), **revision_facts(study), **origins, "folder": str(study.folder.absolute())}


def measure_points(
    part: Pass,
    pool: DevicePool,
    sink: Sink,
    priors: Mapping[int, Prior],
    with_peaks: Collection[str],
    progress: Progress | None,
) -> SampleRun:
    """Measures the points of a pass, and, if the study asks for it, the peaks of devices not in ``with_peaks``."""
    total = SampleRun()
    for uri in dict.fromkeys(point.device for point in part.points):
        record_device(uri, pool, sink)
        if part.study.peaks and uri not in with_peaks:
            measured = measure_peaks(pool.open(uri))
            sink.add_peaks(uri, measured.peaks, measured.details)
        mine = [point for point in part.points if point.device == uri]
        total += sample_points(part.study, mine, pool, sink, progress=progress, priors=priors, repeat=part.repeat)
    return total


def open_store(folder: Path, study: Study, points: Sequence[Point]) -> Store:
    """Opens the store of an earlier run of the study, or creates one."""
    described = study_as_dict(study)
    if Store.exists(folder):
        return Store.open(folder, described, points)
    return Store.create(folder, described, points, text=study.text)


def default_devices() -> tuple[str, ...]:
    """Returns the device for a study that names none: ``PUMICE_DEVICE``, or the best."""
    return (os.environ.get("PUMICE_DEVICE") or "vulkan",)


def sample_points(
    study: Study,
    points: Sequence[Point],
    pool: DevicePool,
    sink: Sink,
    *,
    progress: Progress | None = None,
    priors: Mapping[int, Prior] | None = None,
    repeat: int = 1,
) -> SampleRun:
    """Measures points of one device; see ``Sampler``."""

    def open_here(point: Point, sink: Sink) -> Side:
        context = WorkloadContext(pool, point.device, study.folder_of(point), study.sampling.seed)
        return PointRun(study.kind_of(point), point, context, study.sampling, sink)

    open_side = open_here
    if study.processes:
        names = ("the study",) if study.against is None else ("the new side", "the old side")
        sides = [(name, process, study, pool.validation) for name, process in zip(names, study.processes, strict=True)]
        devices = []
        for side in sides:
            with SideProcess(*side) as process:
                sink.add_note(process.describe(points[0].device), kind="info")
                devices.append(process.device(points[0].device))
        new, *old = devices
        if old and old[0] != new:
            sink.add_note(f"the sides differ in device: {old[0]} on the old side, {new} on the new", kind="sides")

        def open_side(point: Point, sink: Sink) -> Side:
            return ApartSide(*sides[point.is_against], point, sink)

    return Sampler(open_side, study.sampling, pool, sink, progress, repeat).run(points, priors)


def record_device(uri: str, pool: DevicePool, sink: Sink) -> None:
    device = pool.open(uri)
    profile = device.profile
    sink.add_device(
        uri,
        name=profile.name,
        driver=f"{profile.driver_name} {profile.driver_info}".strip(),
        facts=device_facts(profile, device.vulkan.plan),
    )


def prior_samples(folder: Path, part: Pass) -> dict[int, Prior]:
    """Returns the samples that the points of a pass already have in its repeat."""
    with Results.open(folder) as results:
        priors = {point.index: _prior(results.points[point.index], part) for point in part.points}
    return {index: prior for index, prior in priors.items() if prior.next_block}


def _prior(result: PointResult, part: Pass) -> Prior:
    """Returns the samples of a point in the repeat of a pass; ``next_block`` is 0 if there are none."""
    mine, opened = (result.integers("repeat", phase) == part.repeat for phase in ("sample", "first"))
    runs, blocks = result.integers("run")[mine], result.integers("block")[mine]
    openings, first = result.integers("run", "first")[opened], result.integers("block", "first")[opened]
    # The number of times that it was opened in its run before each block.
    turns, places = np.unique(np.stack([runs, blocks]), axis=1, return_inverse=True)
    rounds = [np.count_nonzero((openings == run) & (first < block)) for run, block in turns.T]
    return Prior(
        result.values()[mine].tolist(),
        (runs << _RUN_BITS | blocks).tolist(),
        ((result.flags[mine] & int(DISTURBED)) != 0).tolist(),
        1 + max(int(np.max(result.integers("block", phase), initial=-1)) for phase in PHASES),
        (runs << _RUN_BITS | np.asarray(rounds, np.int64)[places.reshape(-1)]).tolist(),
        uncounted=int(np.count_nonzero(mine)) if part.continued else 0,
    )


def measured_peaks(folder: Path) -> set[str]:
    with Results.open(folder) as results:
        return {peak.device for peak in results.peaks}
