"""Measuring a study for a command: its axes and settings from options, progress, and the exit status."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...base.terminal import printable
from ...status import shorten
from ..errors import usage, usage_error
from ..streams import note

if TYPE_CHECKING:
    from ...study.definition.study import Study
    from .gate import Gate
    from .judgement import Judgement

NOISY: Final = 3
"""Exit status if a point is too noisy."""

_FAILED: Final = 1


def with_axes(described: Study, texts: tuple[str, ...]) -> Study:
    """Returns the study with the axes of the command line."""
    from ...study.definition.axis import parse_axis

    with usage("--axis"):
        axes = [parse_axis(text) for text in texts]
        for axis in axes:
            if sum(axis.name == other.name for other in axes) > 1:
                raise usage_error(f"--axis {axis.name} is given twice")
            compared = axis.columns.get(described.compare or "")
            if compared is not None and described.reference not in (None, *compared):
                # The reference is not among the values: the first value replaces it.
                described = dataclasses.replace(described, reference=None)
        return described.with_axes(*axes)


def sampling_settings(texts: tuple[str, ...]) -> dict[str, object]:
    """Parses sampling settings from ``NAME=VALUE``."""
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
    reasons: bool = True,
    runs: int | None = None,
    continue_noisy: bool = False,
    more_time: float | None = None,
) -> int:
    """Runs a study and prints the outcome; returns the exit status. ``kept`` says that the user named the folder of the
    results. For ``reasons`` see ``StudyProgress``; for ``runs``, ``continue_noisy`` and ``more_time`` see
    ``Resumption``.
    """
    from ...study.definition.expansion import expand
    from ...study.results.results import Results
    from ...study.runs.runner import default_devices, run_study
    from .progress import StudyProgress

    with usage():
        expand(described, devices or described.devices or default_devices())
    where = f"{printable(str(folder))}: " if kept else ""
    how = {"runs": runs, "continue_noisy": continue_noisy, "more_time": more_time}
    with StudyProgress(where, quiet=quiet, reasons=reasons) as progress:
        common: Any = {"devices": devices, "progress": progress, "validation": validation, **how}
        try:
            if scheduler is not None:
                from ...study.cluster.run import run_on_cluster

                outcome = run_on_cluster(described, folder, scheduler, **common)
            else:
                outcome = run_study(described, folder, **common)
        except KeyboardInterrupt:
            if kept:
                kept_in = printable(str(folder))
                note(f"interrupted; results so far are in {kept_in}, and the same command resumes from there")
            raise
    # Over all runs, as a point may be too noisy since an earlier run. A pair's two points end together, and count once.
    with Results.open(folder) as results:
        counts = Counter(str(result.status) for result in results.points if not result.point.is_against)
    done, noisy, failed, skipped = (counts[status] for status in ("done", "noisy", "failed", "skipped"))
    if not quiet:
        seen = (
            (outcome.starved, "waited for a core"),
            (outcome.preempted, "preempted"),
            (outcome.throttled, "taken while the reference ran at another speed"),
        )
        disturbed = "".join(f", {count} {text}" for count, text in seen if count)
        note(
            f"{where}{done} points done, {noisy} too noisy, {failed} failed, {skipped} skipped; "
            f"{outcome.samples} samples{disturbed}"
        )
        if noisy and kept:
            note("the same command with --continue samples on what is too noisy")
    if failed or (skipped and not done and not noisy):
        return _FAILED
    return NOISY if noisy else 0


def compared(folder: Path, gate: Gate, status: int, *, with_results: bool = False) -> tuple[int, Judgement]:
    """Compares the two sides of the results in a folder, and returns the exit status and the gate's output. ``status``
    is that of ``measure``; ``with_results`` adds the results to JSON.
    """
    from ...study.results.comparison.results_comparison import compare_sides
    from ...study.results.results import Results
    from .tables import results_json

    with Results.open(folder) as results:
        with usage():
            comparison = compare_sides(results, **gate.limits)
        judged = gate.finish(comparison, results_json(results) if with_results and gate.as_json else None)
    # The verdict accounts for noise.
    return (_FAILED if status == _FAILED else judged.status), judged
