"""The other side of a study: another study, or results whose programs are measured again in turns."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import usage, usage_error
from .baselines import find_baseline

if TYPE_CHECKING:
    from ...study.definition.point import Point
    from ...study.definition.study import Study
    from .gate import Gate

# A point counts as too noisy after this many times the fewest samples of a quantile.
_TIMES: Final = 10


def results_at(text: str, baselines: Path) -> Path | None:
    """Finds the results with a name, in a folder or as a baseline; None if there are none."""
    from ...study.results.storage.database import results_path

    with contextlib.suppress(OSError, ValueError):  # a text that is not a path
        if text and results_path(text).is_file():
            return Path(text)
    return find_baseline(baselines, text)


def is_program(text: str) -> bool:
    """Whether a text is the name of a file other than results."""
    from ...study.results.storage.database import RESULTS_FILE

    try:
        return Path(text).is_file() and Path(text).name != RESULTS_FILE
    except (OSError, ValueError):
        return False


def read_results(folder: Path) -> Study:
    from ...study.results.results import Results

    with Results.open(folder) as results:
        return results.to_measure()


def read_side(text: str, baselines: Path, read_study: Callable[[str], Study]) -> Study:
    """Reads the study with a name: a file, results in a folder, a baseline, or a study that comes with pumice."""
    folder = None if is_program(text) else results_at(text, baselines)
    return read_study(text) if folder is None else read_results(folder)


def against(
    new: Study,
    old: Study,
    gate: Gate,
    *,
    alike: str = "the values of axes and settings that these have",
    named: str = "study's file in place of its results",
) -> Study:
    """Sets up the new side to be measured in turns with the old one: on its devices and with its sampling settings.

    Settings at their defaults become as strict as the gate's verdicts require.

    Args:
        new, old: the sides.
        gate: the gate of the verdicts.
        alike, named: the option that makes the sides alike, and the other side's name if unequal work is intended, for
            the message about results that do different work.
    """
    from ...study.definition.settings import Sampling
    from ...study.statistics.paired import fewest_paired_samples

    sampling, default = new.sampling, Sampling()
    wanted: dict[str, object] = {}
    if sampling.resolution == default.resolution:
        wanted["resolution"] = gate.resolution
    _, statistic = gate.check()
    if sampling.statistic == default.statistic != statistic:
        wanted["statistic"] = statistic
        if sampling.max_samples == default.max_samples:
            fewest = fewest_paired_samples(statistic, gate.confidence)
            wanted["max_samples"] = max(sampling.max_samples, _TIMES * fewest)
    with usage():
        new = new.with_sampling(**wanted)
    if len(new.targets) == len(old.targets) == 1:
        # Studies with a single target are compared whatever the target's name.
        old = replace(old, targets=(replace(old.targets[0], name=new.targets[0].name),), compare=None, reference=None)
    old = replace(old, sampling=new.sampling, devices=(), baseline=False, peaks=False, against=None)
    with usage():
        both = replace(new, against=old)
        if results := [side.kept.origin for side in (old, new) if side.kept is not None and side.kept.origin]:
            # A command does not show the settings with which results were measured.
            _check_work(both, results[0], f"give {alike}; or, if unequal work is meant, name the other {named}")
    return both


def _check_work(study: Study, results: str, ways: str) -> None:
    """Rejects two sides if a pair of points does unequal work."""
    from ...study.definition.expansion import expand

    points = expand(study, study.devices or ("vulkan",))
    unequal = []
    for new in points:
        if new.against is not None:
            works = (_work(points[new.against]), _work(new))
            fewer, more = sorted(works, key=Counter.total)
            if fewer - more:  # a side may have more bindings, such as those of intermediate results
                old_alone, new_alone = (", ".join(work - two) or "-" for work, two in (works, works[::-1]))
                unequal.append(f"{new.label}: {old_alone} on the old side, {new_alone} on the new side")
    if unequal:
        rest = f", and {len(unequal) - 1} more points" if unequal[1:] else ""
        raise usage_error(f"the sides do unequal work, as {results} are of another size: {unequal[0]}{rest}; {ways}")


def _work(point: Point) -> Counter[str]:
    """Describes the work of a sample: types of bindings or inputs if the settings specify them, the bytes of a copy,
    and the number of dispatches.
    """
    from ...study.definition.expansion import dispatches_of
    from ...study.definition.inputs import described_type

    settings = point.settings
    arrays = [
        array for name in ("bindings", "inputs") if isinstance(listed := settings.get(name), list) for array in listed
    ]
    work = Counter(text for array in arrays if (text := described_type(array)) is not None)
    work[f"samples of {dispatches_of(settings)}"] += 1
    if "bytes" in settings:
        work[f"{settings['bytes']} bytes"] += 1
    return work
