"""The other side of a study: another study, or results, whose programs are measured again in turns with the new."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import usage
from .baselines import find_baseline

if TYPE_CHECKING:
    from ...study.definition.study import Study
    from .gate import Gate

# As many more samples than the fewest of a quantile, before it counts as too noisy.
_TIMES: Final = 10


def results_at(text: str, baselines: Path) -> Path | None:
    """The results that a text names, in a folder or as a baseline; ``None`` for none."""
    from ...study.results.database import results_path

    with contextlib.suppress(OSError, ValueError):  # of texts that are no path
        if text and results_path(text).is_file():
            return Path(text)
    return find_baseline(baselines, text)


def is_program(text: str) -> bool:
    """Whether a text is the name of a file that is no results."""
    from ...study.results.database import RESULTS_FILE

    try:
        return Path(text).is_file() and Path(text).name != RESULTS_FILE
    except (OSError, ValueError):
        return False


def read_results(folder: Path) -> Study:
    """The study of results, with the programs that they keep."""
    from ...study.results.results import Results

    with Results.open(folder) as results:
        return results.to_measure()


def read_side(text: str, baselines: Path, read_study: Callable[[str], Study]) -> Study:
    """The study that a text names: a file, results in a folder, a baseline or a study that comes with pumice."""
    found = None if is_program(text) else results_at(text, baselines)
    return read_study(text) if found is None else read_results(found)


def against(new: Study, old: Study, gate: Gate) -> Study:
    """The new side, to be measured in turns with the old one: on its devices, sampled by its settings, and as well and
    as often as the verdicts of a gate take unless its settings say otherwise.
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
        # What has one target is compared whatever its name.
        old = replace(old, targets=(replace(old.targets[0], name=new.targets[0].name),), compare=None, reference=None)
    old = replace(old, sampling=new.sampling, devices=(), baseline=False, peaks=False, against=None)
    with usage():
        return replace(new, against=old)
