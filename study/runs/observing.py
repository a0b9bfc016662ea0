"""Measures figures of points after their samples, so that these measurements do not change samples.

>>> observe(study, "results", PipelineObserver())
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...hal_vulkan import shared_driver
from ...status import PumiceError
from ..definition.point import Point
from ..definition.study import Study
from ..machine.observers import Observer
from ..results.results import Results
from ..results.storage.records import Observation, PointStatus
from ..results.storage.store import Store
from ..workloads.openers import open_workload
from ..workloads.workload import DevicePool, WorkloadContext
from .runner import minor_version, run_facts
from .taken_files import TakenFiles


def check_observers(observers: Sequence[Observer], devices: Sequence[str], validation: bool | None = None) -> None:
    """Calls ``Observer.check`` for each device."""
    driver = shared_driver(validation=validation)
    for uri in devices:
        for observer in observers:
            observer.check(driver, driver.select(uri or None))


def observe(
    study: Study, folder: str | os.PathLike[str], observer: Observer, *, validation: bool | None = None
) -> Mapping[str, str]:
    """Measures the figures of each measured point except baselines, and stores them in a separate run.

    Returns:
        The reasons why figures are missing, by the label of the point.

    Raises:
        UnavailableError: a device has no such figures.
        FailedPreconditionError: another process writes to the folder, or a measured file has changed.
    """
    path = Path(folder)
    with Results.open(path) as results:
        measured = (PointStatus.DONE, PointStatus.NOISY)
        points = [
            result.point for result in results.points if result.status in measured and not result.point.is_baseline
        ]
    check_observers([observer], list(dict.fromkeys(point.device for point in points)), validation)
    missing = {}
    minor = functools.partial(minor_version, validation)
    with (
        Store.open(path) as store,
        TakenFiles(study) as taken,
        DevicePool(validation=validation, asked=observer.asked) as pool,
    ):
        store.begin_run({**run_facts(study), "observes": observer.kind})
        for text in observer.notes:
            store.add_note(text)
        outcome = "interrupted"
        try:
            for point in points:
                try:
                    mine = taken.files.take(point, minor(point))
                    store.check_files(taken.files.used_by(point.index))
                    taken.unpack()
                    store.add_observations(point.index, _observed(taken.study, mine, pool, observer))
                except PumiceError as error:
                    missing[point.label] = str(error)
                    store.add_note(f"no {observer.kind} figures: {error}", point=point.index)
            outcome = "complete"
        finally:
            store.end_run(outcome)
    return missing


def _observed(study: Study, point: Point, pool: DevicePool, observer: Observer) -> Sequence[Observation]:
    context = WorkloadContext(pool, point.device, study.folder_of(point), study.sampling.seed)
    workload = open_workload(study.kind_of(point), point, context, study.sampling)
    try:
        return observer.observe(workload)
    finally:
        workload.close()
