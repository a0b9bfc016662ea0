"""Measuring a study for a command: its axes and settings from options, progress, and the exit status."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...status import shorten
from ...terminal import printable
from ..errors import usage, usage_error
from ..streams import note

if TYPE_CHECKING:
    from ...study.definition.point import Point
    from ...study.definition.study import Study

NOISY: Final = 3
"""Exit status if a point is too noisy."""

_FAILED: Final = 1


def with_axes(described: Study, texts: tuple[str, ...]) -> Study:
    """The study with the axes of the command line."""
    from ...study.definition.axis import parse_axis

    with usage("--axis"):
        axes = [parse_axis(text) for text in texts]
        for axis in axes:
            if sum(axis.name == other.name for other in axes) > 1:
                raise usage_error(f"--axis {axis.name} is given twice")
            if axis.name == described.compare and described.reference not in (None, *axis.values):
                # The reference is not measured: the first value replaces it.
                described = dataclasses.replace(described, reference=None)
        return described.with_axes(*axes)


def sampling_settings(texts: tuple[str, ...]) -> dict[str, object]:
    """Sampling settings from ``NAME=VALUE``."""
    from ...study.definition.messages import did_you_mean
    from ...study.definition.settings import Sampling

    values: dict[str, object] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or name not in Sampling.names():
            known = ", ".join(Sampling.names())
            raise usage_error(
                f"--set {shorten(text)}: expected NAME=VALUE with one of {known}{did_you_mean(name, Sampling.names())}"
            )
        values[name] = _value(value)
        if isinstance(values[name], float) and not math.isfinite(values[name]):  # type: ignore[arg-type]  # a float
            raise usage_error(f"--set {shorten(text)}: expected a finite number")
    return values


def _value(text: str) -> object:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def measure(
    described: Study,
    folder: Path,
    devices: tuple[str, ...],
    validation: bool | None,
    *,
    quiet: bool,
    scheduler: str | None = None,
    kept: bool = True,
) -> int:
    """Runs a study and prints the outcome; returns the exit status. ``kept``: the user has named the folder of the
    results.
    """
    from ...study.definition.expansion import expand
    from ...study.results.results import Results
    from ...study.sampling.runner import default_devices, run_study
    from .progress import StudyProgress

    with usage():
        points = expand(described, devices or described.devices or default_devices())
    waiting = _waiting(described, points, folder)
    where = f"{printable(str(folder))}: " if kept else ""
    if len(waiting) < len(points) and not quiet:
        left = f"the other {len(waiting)} are measured" if waiting else "nothing is left to measure"
        note(f"{where}{len(points) - len(waiting)} of {len(points)} points are done already; {left}")
    with StudyProgress(len(waiting), quiet=quiet) as progress:
        try:
            if scheduler is not None:
                from ...study.cluster.run import run_on_cluster

                outcome = run_on_cluster(
                    described, folder, scheduler, devices=devices, progress=progress, validation=validation
                )
            else:
                outcome = run_study(described, folder, devices=devices, progress=progress, validation=validation)
        except KeyboardInterrupt:
            if kept:
                kept_in = printable(str(folder))
                note(f"interrupted; results so far are in {kept_in}, and the same command resumes from there")
            raise
    # Of all runs: a point may be too noisy since an earlier one.
    with Results.open(folder) as results:
        counts = Counter(str(one.status) for one in results.points)
    done, noisy, failed, skipped = (counts[status] for status in ("done", "noisy", "failed", "skipped"))
    if not quiet:
        seen = (
            (outcome.starved, "waited for a core"),
            (outcome.preempted, "preempted"),
            (outcome.throttled, "taken while the reference ran at another speed"),
        )
        disturbed = "".join(f", {count} {what}" for count, what in seen if count)
        note(
            f"{where}{done} points done, {noisy} too noisy, {failed} failed, {skipped} skipped; "
            f"{outcome.samples} samples{disturbed}"
        )
    if failed or (skipped and not done and not noisy):
        return _FAILED
    return NOISY if noisy else 0


def _waiting(described: Study, points: tuple[Point, ...], folder: Path) -> list[Point]:
    """The unfinished points; all of them if the folder has no results, or another study's, which is refused later."""
    from ...study.definition.study_file import study_as_dict
    from ...study.results.results import Results
    from ...study.results.store import Store
    from ...study.sampling.runner import pending_points

    if not Store.exists(folder):
        return list(points)
    with Results.open(folder) as before:
        same = [one.point.key for one in before.points] == [one.key for one in points]
        if not same or before.study != study_as_dict(described):
            return list(points)
        return pending_points(points, [one.status for one in before.points])
