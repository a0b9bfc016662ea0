"""Passes: the points that each repeat of a study still lacks."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError
from ..definition.point import Point, paired
from ..definition.study import Study
from ..results.storage.records import PointStatus

_NO_LIMIT: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Resumption:
    """The conditions under which a study continues in a folder.

    Attributes:
        runs: the number of times that the study is measured, each in a separate process; None for the number at its
            start.
        continue_noisy: whether to continue sampling points that were too noisy, with another ``time_limit`` and
            ``max_samples``.
        more_time: the seconds for which all measured points are sampled further, regardless of noise; with
            ``continue_noisy`` only noisy points, until they are quiet.

    Raises:
        InvalidArgumentError: a value is out of range.
    """

    runs: int | None = None
    continue_noisy: bool = False
    more_time: float | None = None

    def __post_init__(self) -> None:
        if self.runs is not None and self.runs < 1:
            raise InvalidArgumentError(f"runs is at least 1, got {self.runs}")
        if self.more_time is not None and not 0 < self.more_time < math.inf:
            raise InvalidArgumentError(f"more_time is a number of seconds above 0, got {self.more_time:g}")


@dataclass(frozen=True, slots=True)
class Pass:
    """Points of one repeat that are measured together, by ``study.sampling``. If ``continued``, their earlier samples
    do not count for ``max_samples``.
    """

    repeat: int
    study: Study
    points: tuple[Point, ...]
    continued: bool = False


def plan_passes(
    study: Study,
    points: Sequence[Point],
    statuses: Sequence[Sequence[PointStatus]],
    resumption: Resumption,
) -> list[Pass]:
    """Plans the remaining measurements: in each repeat the unfinished points, then those that are sampled further.

    Args:
        study: the study with the present sampling settings.
        points: the points of the study, all of them.
        statuses: the status of each point in each repeat that was begun.
        resumption: the resumption; see ``Resumption``.
    """
    passes = []
    for index in range(max(resumption.runs or 1, len(statuses))):
        known = statuses[index] if index < len(statuses) else [PointStatus.PENDING] * len(points)
        unfinished = [point for point, status in zip(points, known, strict=True) if not status.is_final]
        passes.append(Pass(index + 1, study, _with_other_sides(points, unfinished)))
        wanted = _continued(resumption)
        again = [point for point, status in zip(points, known, strict=True) if status in wanted]
        left = {point.index for point in passes[-1].points}
        chosen = tuple(point for point in _with_other_sides(points, again) if point.index not in left)
        passes.append(Pass(index + 1, study.with_sampling(**_limits(resumption)), chosen, continued=True))
    return [pass_ for pass_ in passes if pass_.points]


def _continued(resumption: Resumption) -> Collection[PointStatus]:
    if resumption.continue_noisy:
        return (PointStatus.NOISY,)
    return () if resumption.more_time is None else (PointStatus.NOISY, PointStatus.DONE)


def _limits(resumption: Resumption) -> dict[str, object]:
    """Returns the sampling settings that differ for points that are sampled further."""
    if resumption.more_time is None:
        return {}
    limits: dict[str, object] = {"time_limit": resumption.more_time, "max_samples": _NO_LIMIT}
    return limits if resumption.continue_noisy else limits | {"min_samples": _NO_LIMIT}


def _with_other_sides(points: Sequence[Point], chosen: Collection[Point]) -> tuple[Point, ...]:
    """Returns the chosen points and the other points of their pairs, in order."""
    indices = {point.index for point in chosen}
    sides = [pair for pair in paired(points) if any(point.index in indices for point in pair)]
    return tuple(sorted((point for side in sides for point in side), key=lambda point: point.index))
