"""The history of a study's points over commits: results of several folders in order, with their change points.

Results of two sides give ratios, results of one side times. A point's history is of ratios if all its results have two
sides; its line is then the product of ratios along the versions (``change_points``), relative to the first version.
Versions are distinguished by their programs (the results' files) and settings, not by commits: equal programs are one
version.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, PumiceError, shown
from ..definition.kept_file import AGAINST
from ..definition.sample import MEASURES
from ..statistics.bootstrap import Interval
from ..statistics.change_points import Change, changes_in_ratios, changes_in_times, place_confidence
from ..statistics.comparison import Comparison
from .analysis import StudyAnalysis
from .comparison.comparability import reference_ratio
from .comparison.machine_record import Recorded, recorded
from .comparison.results_comparison import compare_sides
from .comparison.revision import Revision, commit_order, revision_of
from .results import Results
from .storage.database import RESULTS_FILE
from .storage.point_result import PointResult

# Settings that name files; versions are distinguished by the files' contents.
_FILES: Final = ("source", "parameters", "include_dirs")
_UNKNOWN: Final = Interval(math.nan, math.nan)
_CONFIDENCE: Final = 0.99

_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One results folder of a point's history.

    Attributes:
        folder: the folder of the results.
        started: the first run; ISO 8601.
        revision: the revision of the study's files; ``None`` if it is not known.
        status: the status of the point.
        median, median_interval: the median of the new side and its interval, in nanoseconds, at the study's confidence.
        ratio, ratio_interval: the ratio new over old of results with two sides, and its interval at 99 %; NaN
            otherwise.
        level, level_interval: the level of the line and its interval: for ratios the version's time relative to the
            first one's, else as ``median``.
        related: whether ``level`` is related to those before: the old side of a ratio is an earlier entry's new one, or
            the same as an earlier entry's old one. If not, it is taken to be the version before.
    """

    folder: Path
    started: str
    revision: Revision | None
    status: str
    median: float
    median_interval: Interval
    ratio: float = math.nan
    ratio_interval: Interval = _UNKNOWN
    level: float = math.nan
    level_interval: Interval = _UNKNOWN
    related: bool = True


@dataclass(frozen=True, slots=True)
class PointHistory:
    """The history of a point on a device.

    Attributes:
        study, point, device, measure: the study's name, the point's label, the device's name, and the segment.
        by: whether the line is of ratios or of times.
        entries: the entries in order, the first commit first.
        changes: the changes; their ``start`` is the index of the first entry of a new level.
    """

    study: str
    point: str
    device: str
    measure: str
    by: Literal["ratios", "times"]
    entries: Sequence[HistoryEntry]
    changes: Sequence[Change]


@dataclass(frozen=True, slots=True)
class History:
    """Histories by study, point and device. ``order`` is the order of entries; ``unread`` has the unreadable folders
    with the reason.
    """

    points: Sequence[PointHistory]
    order: Literal["commits", "commit times", "run times"]
    unread: Sequence[tuple[Path, str]]


@dataclass(frozen=True, slots=True)
class _Head:
    """A results folder, and the points with samples that it has."""

    folder: Path
    started: str
    revision: Revision | None
    points: Mapping[_Key, int]


@dataclass(frozen=True, slots=True)
class _Found:
    """An entry with the data for the detection of change points."""

    entry: HistoryEntry
    point: PointResult
    state: Recorded
    versions: tuple[str, str]
    half_width: float


def read_history(folders: Iterable[Path], *, measure: str = "headline") -> History:
    """Reads the history of the results in and below some folders.

    Args:
        folders: the folders that are searched for results.
        measure: a segment or ``"total"``; ``"headline"`` for the measure of each point.

    Raises:
        InvalidArgumentError: there is no such measure.
    """
    if measure not in ("headline", *MEASURES):
        raise InvalidArgumentError(f"a history is of headline, {', '.join(MEASURES)}; got {shown(measure)}")
    places = list(dict.fromkeys(path.parent for folder in folders for path in sorted(folder.rglob(RESULTS_FILE))))
    heads, unread = [], []
    for index in places:
        try:
            heads.append(_head(index))
        except PumiceError as error:
            unread.append((index, error.message))
    heads, order = _in_order(heads)
    points: dict[_Key, list[_Found]] = {}
    longest = max((sum(key in head.points for head in heads) for head in heads for key in head.points), default=1)
    for head in heads:
        try:
            read = _read(head, measure, place_confidence(longest))
        except PumiceError as error:
            unread.append((head.folder, error.message))
            continue
        for key, entry in read.items():
            points.setdefault(key, []).append(entry)
    return History([_point_history(key, entries, measure) for key, entries in points.items()], order, unread)


def _head(folder: Path) -> _Head:
    with Results.open(folder) as results:
        runs, names = results.runs, {device.device: device.name for device in results.devices}
        revisions = [revision_of(run.environment.get("revision")) for run in runs]
        points = {
            (results.name, names.get(result.point.device, result.point.device), result.point.key): result.point.index
            for result in results.points
            if not result.point.is_baseline and not result.point.is_against
        }
        started = runs[0].started if runs else results.created
        return _Head(folder, started, next((revision for revision in revisions if revision is not None), None), points)


def _in_order(heads: list[_Head]) -> tuple[list[_Head], Literal["commits", "commit times", "run times"]]:
    revisions = [head.revision for head in heads]
    if not all(revisions):
        return sorted(heads, key=lambda head: _seconds(head.started)), "run times"
    places = commit_order(
        (*(head.folder for head in heads[:1]), Path.cwd()),
        [revision.commit for revision in revisions if revision is not None],
    )

    def key(head: _Head) -> tuple[float, bool, float]:
        assert head.revision is not None
        order = _seconds(head.revision.time) if places is None else places[head.revision.commit]
        return order, head.revision.dirty, _seconds(head.started)

    return sorted(heads, key=key), "commit times" if places is None else "commits"


def _seconds(text: str) -> float:
    """Parses ISO 8601 as seconds; returns 0 for any other text."""
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def _read(head: _Head, measure: str, confidence: float) -> dict[_Key, _Found]:
    """Reads the entries of a folder: the points with samples of the measure."""
    entries: dict[_Key, _Found] = {}
    with Results.open(head.folder) as results:
        analysis = StudyAnalysis(results)
        two = any(result.against for result in results.points)
        ratios, strict = (_ratios(results, measure, level) if two else {} for level in (_CONFIDENCE, confidence))
        versions = _version(results, against=True), _version(results, against=False)
        for key, index in head.points.items():
            analysed = analysis.points[index]
            summary = analysed.summary(measure)
            if summary is None or not summary.median > 0:
                continue
            entry = HistoryEntry(
                head.folder, head.started, head.revision, str(analysed.status), summary.median, summary.median_interval
            )
            half = math.inf
            if index in ratios:
                entry = dataclasses.replace(entry, ratio=ratios[index].ratio, ratio_interval=ratios[index].interval)
                half = _half_width(strict[index].interval) if index in strict else math.inf
            entries[key] = _Found(entry, analysed.result, recorded(results, analysed.result), versions, half)
    return entries


def _ratios(results: Results, measure: str, confidence: float) -> dict[int, Comparison]:
    """Compares both sides; returns the comparisons that have a ratio, by the index of the new side's point."""
    points = compare_sides(results, measure=measure, confidence=confidence).points
    comparisons = {point.b.point.index: point.comparison for point in points}
    return {
        index: comparison
        for index, comparison in comparisons.items()
        if comparison is not None and 0 < comparison.ratio < math.inf
    }


def _half_width(interval: Interval) -> float:
    """Returns half the width of the interval's logarithm; infinite if it is unknown."""
    low, high = interval
    return math.log(high / low) / 2 if 0 < low < high < math.inf else math.inf


def _version(results: Results, *, against: bool) -> str:
    """Identifies the programs and settings of a side."""
    described = results.study.get("against") if against else results.study
    targets = described.get("targets", []) if isinstance(described, Mapping) else []
    settings = [
        {name: value for name, value in target.items() if name not in _FILES}
        for target in (targets if isinstance(targets, list) else [])
        if isinstance(target, Mapping)
    ]
    digests = sorted(file.sha256 for file in results.files if file.name.startswith(AGAINST) is against)
    return json.dumps([digests, settings], sort_keys=True)


def _point_history(key: _Key, history: Sequence[_Found], measure: str) -> PointHistory:
    entries = [item.entry for item in history]
    again = [index for index in range(1, len(history)) if _is_again(history[index - 1], history[index])]
    by: Literal["ratios", "times"] = "ratios" if all(math.isfinite(entry.ratio) for entry in entries) else "times"
    if by == "ratios":
        versions = [item.versions for item in history]
        halves = [item.half_width for item in history]
        changes = changes_in_ratios(versions, [entry.ratio for entry in entries], halves, again=again)
        entries = _levels(entries, versions, again)
    else:
        ratios = [reference_ratio(history[0].state, item.state) for item in history]
        references = [math.nan if item is None else item.ratio for item in ratios]
        changes = changes_in_times([entry.median for entry in entries], references, again=again)
        entries = [
            dataclasses.replace(entry, level=entry.median, level_interval=entry.median_interval) for entry in entries
        ]
    point = history[-1].point.point
    return PointHistory(
        key[0], point.label, key[1], point.measure if measure not in MEASURES else measure, by, entries, changes
    )


def _is_again(before: _Found, after: _Found) -> bool:
    """Whether two entries are of the same version. Equal programs are not enough, as a copy has no program."""
    first, second = before.entry.revision, after.entry.revision
    if first is None or second is None or first.dirty or second.dirty:
        return False
    return first.commit == second.commit and before.versions[1] == after.versions[1]


def _levels(
    entries: Sequence[HistoryEntry], versions: Sequence[tuple[str, str]], again: Collection[int]
) -> list[HistoryEntry]:
    """Sets the level of each entry: the product of the ratios up to its version. Ratios of a version are pooled."""
    known: dict[str, tuple[float, float]] = {}
    leveled: list[HistoryEntry] = []
    last = (0.0, 0.0)
    begin = 0
    while begin < len(entries):
        end = next((index for index in range(begin + 1, len(entries)) if index not in again), len(entries))
        group = range(begin, end)
        related = [versions[index][0] in known or not index for index in group]
        olds = [known.setdefault(versions[index][0], last) for index in group]
        steps = [level + math.log(entries[index].ratio) for (level, _), index in zip(olds, group, strict=True)]
        halves = [_half_width(entries[index].ratio_interval) for index in group]
        weights = [1 / half**2 if math.isfinite(half) else 0.0 for half in halves]
        if sum(weights):
            level = sum(step * weight for step, weight in zip(steps, weights, strict=True)) / sum(weights)
            last = level, max(variance for _, variance in olds) + 1 / sum(weights)
        else:
            last = sum(steps) / len(steps), math.inf
        known.setdefault(versions[begin][1], last)
        reach = math.sqrt(last[1])
        ends = Interval(math.exp(last[0] - reach), math.exp(last[0] + reach)) if math.isfinite(reach) else _UNKNOWN
        for index, is_related in zip(group, related, strict=True):
            leveled.append(
                dataclasses.replace(entries[index], level=math.exp(last[0]), level_interval=ends, related=is_related)
            )
        begin = end
    return leveled
