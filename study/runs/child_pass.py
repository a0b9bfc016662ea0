"""Measures a pass in a child process, and stores the measurements; ``child_run`` is the child's side."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict

from ...base.child_process import ChildProcess
from ..definition.study_file import study_as_dict
from ..results.storage.records import PointStatus
from ..results.storage.rows import point_row
from ..results.storage.sink import Sink
from ..sampling.passes import Pass
from ..sampling.sampler import Progress, SampleRun
from ..sampling.turns import Prior


def measure_in(
    child: ChildProcess,
    part: Pass,
    sink: Sink,
    progress: Progress | None,
    priors: Mapping[int, Prior],
    with_peaks: Collection[str],
    validation: bool | None,
) -> SampleRun:
    """Measures a pass in a new child, as ``runner.measure_points`` does in this process. AbortedError: the child has
    ended.
    """
    study = part.study
    child.send(
        {
            "task": "measure",
            "repeat": part.repeat,
            "study": study_as_dict(study),
            "folders": [str(side.folder.absolute()) for side in (study, study.against) if side is not None],
            "points": [point_row(point) for point in part.points],
            "priors": {index: _plain(prior) for index, prior in priors.items()},
            "with_peaks": list(with_peaks),
            "validation": validation,
        }
    )
    points = {point.index: point for point in part.points}
    while True:
        match child.receive():
            case {"write": [table, doing, rows]}:
                sink.write(table, doing, rows)
                child.send({})
            case {"advance": [index, fraction]}:
                if progress is not None:
                    progress.advance(points[index], fraction)
            case {"finished": [index, status, reason]}:
                if progress is not None:
                    progress.finished(points[index], PointStatus(status), reason)
            case {"run": run}:
                failed = {name: {int(index): why for index, why in run[name].items()} for name in ("failed", "skipped")}
                return SampleRun(**run | failed)


def _plain(prior: Prior) -> dict[str, object]:
    """Returns a prior, whose sequences may be arrays, as JSON values."""
    return {name: list(value) if not isinstance(value, int) else value for name, value in asdict(prior).items()}
