"""Compares results point by point: the two sides of one study, or two results."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from ....base.lazy_dataclass import dataclass
from ....base.notebook import figure_text, html_table, interval_text
from ....status import FailedPreconditionError, InvalidArgumentError, shown
from ...definition.expansion import unpaired
from ...definition.settings import Process
from ...statistics.comparison import Comparison
from ..storage.point_result import PointResult
from ..storage.stored_results import StoredResults
from .machine_record import PARTS, Part
from .point_comparison import compare_apart, compare_in_turns, criteria_of, no_comparison_reason
from .revision import revision_of

_MAX_DIFFERENCES: Final = 5
_MAX_TEXT: Final = 40


def result_differences(a: StoredResults, b: StoredResults) -> list[str]:
    """Lists the differences of two results besides their times."""
    texts: list[str] = []
    for name, left, right in (
        ("device", {device.name for device in a.devices}, {device.name for device in b.devices}),
        ("driver", {device.driver for device in a.devices}, {device.driver for device in b.devices}),
        ("pumice", {run.pumice for run in a.runs}, {run.pumice for run in b.runs}),
        ("host", {run.host for run in a.runs}, {run.host for run in b.runs}),
        ("commit", _commits(a, "revision"), _commits(b, "revision")),
    ):
        texts += _one_each(name, left, right)
    for key in ("sampling", "targets"):
        if text := _differing(a.study.get(key), b.study.get(key)):
            texts.append(f"the studies differ in {key}: {text}")
    return texts


def side_differences(results: StoredResults) -> list[str]:
    """Lists the differences of a study's sides besides their sources, which are meant to differ."""
    texts = [*dict.fromkeys(note.text for note in results.notes if note.kind == "sides")]
    texts += _one_each("commit", *(_commits(results, name) for name in ("against_revision", "revision")))
    other = results.study.get("against")
    if isinstance(other, Mapping):
        for part, default in (("targets", None), ("process", dataclasses.asdict(Process()))):
            first, second = (side.get(part, default) for side in (other, results.study))
            if text := _differing(first, second, without="source"):
                texts.append(f"the sides differ in {part}: {text}")
    return texts


def _one_each(name: str, left: set[str], right: set[str]) -> list[str]:
    """Returns a text such as ``["host: a and b"]``; empty if both sets are equal, or one is empty."""
    sides = [", ".join(sorted(side)) for side in (left, right)]
    return [f"{name}: {' and '.join(sides)}"] if all(sides) and left != right else []


def _commits(results: StoredResults, name: str) -> set[str]:
    """Returns the commits that the runs recorded of a side: ``"revision"`` or ``"against_revision"``."""
    revisions = [revision_of(run.environment.get(name)) for run in results.runs]
    return {revision.name for revision in revisions if revision is not None}


def _differing(a: object, b: object, *, without: str = "") -> str:
    """Lists the settings in which parts of two studies differ, with their values; empty for none. The setting
    ``without`` is left out, and names of one file in two trees are equal.
    """
    first, second = _settings(a, ""), _settings(b, "")
    names = [
        name
        for name in {**first, **second}
        if not _is_same(first.get(name), second.get(name)) and name.rpartition(".")[2] != without
    ]
    texts = [f"{name} {_text(first, name)} and {_text(second, name)}" for name in names[:_MAX_DIFFERENCES]]
    more = f", and {len(names) - _MAX_DIFFERENCES} more" if len(names) > _MAX_DIFFERENCES else ""
    return "; ".join(texts) + more


def _is_same(a: object, b: object) -> bool:
    """Whether two values are equal, or name one place: relative to a tree in one study, absolute in the other, as of a
    revision in a worktree.
    """
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_is_same, a, b))
    if isinstance(a, str) and isinstance(b, str) and a != b:
        inner, outer = sorted((PurePath(a), PurePath(b)), key=PurePath.is_absolute)
        within = outer.parts[-len(inner.parts) :] == inner.parts
        return bool(inner.parts) and within and outer.is_absolute() and not inner.is_absolute()
    return a == b


def _settings(value: object, name: str) -> dict[str, object]:
    """Flattens a part of a study to settings by name, such as ``"mul.push.factor"``."""
    if isinstance(value, Mapping):
        named = value.items()
    elif isinstance(value, list) and all(isinstance(item, Mapping) and "name" in item for item in value):
        named = {item["name"]: {key: inner for key, inner in item.items() if key != "name"} for item in value}.items()
    else:
        return {name: value}
    return {
        key: item for part, inner in named for key, item in _settings(inner, f"{name}.{part}" if name else part).items()
    }


def _text(settings: Mapping[str, object], name: str) -> str:
    text = json.dumps(settings[name]) if name in settings else "-"
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"


_MAX_LABELS: Final = 10


@dataclass(frozen=True, slots=True)
class PointComparison:
    """A point of both sides.

    Attributes:
        key: the identity of the point in both sides.
        a, b: the point on the first and the second side.
        comparison: the comparison of the samples; None if a side has no samples.
        why_not: the reason if there is no comparison.
    """

    key: str
    a: PointResult
    b: PointResult
    comparison: Comparison | None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class ResultsComparison:
    """Two compared sides.

    Attributes:
        points: the points that both sides have, in the order of the first.
        only_a, only_b: the labels of points that the other side lacks.
        by_device: whether points are compared only on the same device.
        notes: the other differences: device, driver, versions, settings.
        measure: the compared segment, ``"total"``, or ``"headline"`` for the measure of each point.
        statistic: the compared figure, one of ``samples.STATISTICS``.
        folder: the folder of the second side's file names, as its last run recorded it.
    """

    points: Sequence[PointComparison]
    only_a: Sequence[str]
    only_b: Sequence[str]
    by_device: bool
    notes: Sequence[str]
    measure: str = "headline"
    statistic: str = "median"
    folder: str = ""

    @property
    def unpaired(self) -> list[str]:
        """A sentence for each side with points that the other side lacks."""
        sides = ("on the old side", "on the new side") if self._in_turns else ("in the first", "in the second")
        sentences = []
        for side, labels in zip(sides, (self.only_a, self.only_b), strict=True):
            if labels:
                more = f", and {len(labels) - _MAX_LABELS} more" if len(labels) > _MAX_LABELS else ""
                sentences.append(f"only {side}: {', '.join(labels[:_MAX_LABELS])}{more}")
        return sentences

    @property
    def _in_turns(self) -> bool:
        return any(result.a.point.is_against for result in self.points)

    def __repr__(self) -> str:
        compared = [result.comparison for result in self.points]
        counts = Counter("not compared" if comparison is None else str(comparison.verdict) for comparison in compared)
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        return f"<ResultsComparison of {len(compared)} points: {verdicts}>"

    def _repr_html_(self) -> str:
        """Returns a table for notebooks, a row per point. Points on a numeric axis have a plot of their ratios, too."""
        from .series import Plotted, series_plot

        ratio = "ratio" if self.statistic == "median" else f"ratio of {self.statistic}"
        sides = "new over old" if self._in_turns else "second over first"
        rows, ratios = [], []
        for result in self.points:
            point, comparison = result.b.point, result.comparison
            name = f"{point.label} on {point.device}" if self.by_device else point.label
            if comparison is None:
                rows.append((name, "—", "—", "—", "—", result.why_not))
                continue
            figures = (
                figure_text(comparison.ratio),
                interval_text(*comparison.interval),
                f"{comparison.count_a}, {comparison.count_b}",
            )
            rows.append((name, str(comparison.verdict), *figures, "; ".join(comparison.remarks)))
            if math.isfinite(comparison.ratio):
                ratios.append(Plotted(point, point.axes, f"{ratio}, {sides}", comparison.ratio, comparison.interval))
        columns = ("point", "verdict", ratio, "interval", "samples", "notes")
        measures = {result.b.point.measure for result in self.points}
        measure = measures.pop() if self.measure == "headline" and len(measures) == 1 else self.measure
        notes = [*self.notes, *self.unpaired]
        table = html_table(columns, rows, title=f"{measure}, {sides}", notes=notes, texts=("verdict", "notes"))
        return table + series_plot(ratios)


def compare_results(
    a: StoredResults,
    b: StoredResults,
    *,
    across: Collection[Part] = (),
    measure: str = "headline",
    confidence: float = 0.99,
    resolution: float = 0.025,
    threshold: float = 0.01,
) -> ResultsComparison:
    """Compares the points that both results have.

    For results with two sides, the new side counts; results compared with themselves are compared by ``compare_sides``.

    Args:
        a, b: the results; the second are compared with the first.
        across: the differences that are compared, of ``"device"``, ``"driver"`` and ``"host"``. Results that differ in
            another of them are UNCLEAR, as no reference tells their machine's states apart; so are fewer than five runs
            of either.
        measure: a segment, ``"total"``, or ``"headline"`` for the measure of each point; one of ``samples.STATISTICS``
            instead of its median, such as ``"p99"``; or both, such as ``"wake:p99"``.
        confidence, resolution, threshold: the same as for ``comparison.compare``.

    Raises:
        FailedPreconditionError: the results have no point in common.
        InvalidArgumentError: a parameter is out of range, or points measure different things.
    """
    limits = {"confidence": confidence, "resolution": resolution, "threshold": threshold}
    if wrong := set(across) - set(PARTS):
        raise InvalidArgumentError(f"results are compared across {', '.join(PARTS)}; got {shown(', '.join(wrong))}")
    if a.path == b.path and any(point.against for point in b.points):
        return compare_sides(b, measure=measure, **limits)
    criteria = criteria_of(measure, **limits)
    by_device = any(len({point.point.device for point in side.points}) > 1 for side in (a, b))
    first, second = _keyed(a, by_device), _keyed(b, by_device)
    common = [key for key in first if key in second]
    if not common:
        shown_a = ", ".join(point.point.label for point in a.points[:3]) or "none"
        shown_b = ", ".join(point.point.label for point in b.points[:3]) or "none"
        raise FailedPreconditionError(
            f"the results have no point in common: the first has {shown_a}, …, the second {shown_b}, …"
        )
    points = []
    for key in common:
        former, two = first[key], second[key]
        why_not = no_comparison_reason(former, two, criteria.segment, ("first", "second"))
        comparison = None if why_not else compare_apart((a, former), (b, two), criteria, across)
        points.append(PointComparison(key, former, two, comparison, why_not))
    return ResultsComparison(
        points,
        [first[key].point.label for key in first if key not in second],
        [second[key].point.label for key in second if key not in first],
        by_device,
        result_differences(a, b),
        criteria.segment,
        criteria.statistic,
        _folder(b),
    )


def compare_sides(
    results: StoredResults,
    *,
    measure: str = "headline",
    confidence: float = 0.99,
    resolution: float = 0.025,
    threshold: float = 0.01,
) -> ResultsComparison:
    """Compares the two sides of a study that were measured in turns: ``a`` is the old one; see ``compare_results``.

    Raises:
        FailedPreconditionError: the study has one side only.
        InvalidArgumentError: a parameter is out of range, or points measure different things.
    """
    limits = {"confidence": confidence, "resolution": resolution, "threshold": threshold}
    criteria = criteria_of(measure, **limits)
    mine = [result for result in results.points if not result.point.is_baseline and not result.point.is_against]
    if not any(point.against for point in mine):
        raise FailedPreconditionError(
            f"{results.path} has one side only; measure two in turns with --against, or compare it with other results"
        )
    by_device = len({point.point.device for point in mine}) > 1
    other = results.study.get("against")
    apart = "process" in results.study or (isinstance(other, Mapping) and "process" in other)
    points = []
    for new in mine:
        old = new.against
        if old is not None:
            key = f"{new.point.device} {new.point.key}" if by_device else new.point.key
            why_not = no_comparison_reason(old, new, criteria.segment, ("old", "new"))
            compared = None if why_not else compare_in_turns(old, new, criteria, apart=apart)
            points.append(PointComparison(key, old, new, compared, why_not))
    only_a: list[str] = []
    if results.study.get("against") is not None:
        # Points that were never measured are known only from the study.
        devices = list(dict.fromkeys(point.point.device for point in mine))
        only_a = [point.label for point in unpaired(results.as_study(), devices)]
    only_b = [point.point.label for point in mine if point.against is None]
    notes = side_differences(results)
    return ResultsComparison(
        points, only_a, only_b, by_device, notes, criteria.segment, criteria.statistic, _folder(results)
    )


def _folder(results: StoredResults) -> str:
    return str(results.runs[-1].environment.get("folder", "")) if results.runs else ""


def _keyed(results: StoredResults, by_device: bool) -> dict[str, PointResult]:
    keyed = {}
    for result in results.points:
        if not result.point.is_baseline and not result.point.is_against:
            keyed[f"{result.point.device} {result.point.key}" if by_device else result.point.key] = result
    return keyed
