"""Compares results point by point: the two sides of one study, or two results.

Points that were measured in turns are compared by their pairs of blocks, points of separate runs by runs, if what the
runs recorded of the machine lets them be compared (``comparability``).

Disturbed samples of runs are left out on both sides or on neither: on both as long as at least half of either side's
remain. Of pairs none are left out: order, and so which side is disturbed, is a coin's, and blocks of what remains would
be fewer and more unequal.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...notebook import figure_text, html_table
from ...records import dataclass
from ...status import FailedPreconditionError, InvalidArgumentError, shown
from ..definition.process import Process
from ..statistics.bootstrap import Interval
from ..statistics.comparison import Comparison, Verdict, check_limits, compare
from ..statistics.paired import INSTANCES, ROUNDS, compare_pairs, fewest_pairs
from ..statistics.runs import RunSamples, compare_runs
from ..statistics.samples import STATISTICS
from .comparability import Recorded, notes, recorded, reference_ratio, why_not_comparable
from .paired_blocks import PairedBlocks, pairs_in_turns, pairs_of_neighbours
from .point_result import PointResult
from .records import DISTURBED, PointStatus, SampleFlag, kept
from .revision import revision_of
from .rows import DURATIONS
from .stored_results import StoredResults

_STATES: Final = 3.0
"""How far a state of the machine leaves a ratio open, in ratios of the reference kernel: that sees of a state what its
own load does, and a point may see up to about three times as much."""

_MAX_DIFFERENCES: Final = 5
_MAX_TEXT: Final = 40


@dataclass(frozen=True, slots=True)
class PointComparison:
    """One point of both sides.

    Attributes:
        key: identifies the point in both.
        a, b: the point in either.
        comparison: of the samples; ``None`` if one of them has none.
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
        points: those that both have, in the order of the first.
        only_a, only_b: labels of points that the other one lacks.
        by_device: whether points are compared only on the same device.
        notes: other differences: device, driver, versions, settings.
        measure: the segment that was compared, ``"total"``, or ``"headline"`` for what each point measures.
        statistic: the one of ``samples.STATISTICS`` that was compared.
    """

    points: Sequence[PointComparison]
    only_a: Sequence[str]
    only_b: Sequence[str]
    by_device: bool
    notes: Sequence[str]
    measure: str = "headline"
    statistic: str = "median"

    def _repr_html_(self) -> str:
        """A table for notebooks: a row a point."""
        rows = []
        for one in self.points:
            point, found = one.b.point, one.comparison
            name = f"{point.label} on {point.device}" if self.by_device else point.label
            if found is None:
                rows.append((name, "—", one.why_not, "—", "—", "—"))
                continue
            low, high = (figure_text(end) for end in found.interval)
            why = "; ".join([found.explanation, *found.notes]) if found.verdict is Verdict.UNCLEAR else ""
            rows.append(
                (
                    name,
                    str(found.verdict),
                    why,
                    figure_text(found.ratio),
                    f"{low} … {high}",
                    f"{found.count_a}, {found.count_b}",
                )
            )
        ratio = "ratio" if self.statistic == "median" else f"ratio of {self.statistic}"
        lacks = [("only in the first", self.only_a), ("only in the second", self.only_b)]
        notes = [f"{what}: {', '.join(labels)}" for what, labels in lacks if labels]
        columns = ("point", "verdict", "why", ratio, "interval", "samples")
        return html_table(
            columns, rows, title=f"{self.measure}, second over first", notes=[*self.notes, *notes], texts=3
        )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is compared, and the limits of verdicts."""

    segment: str
    statistic: str
    limits: Mapping[str, Any]


def compare_results(
    a: StoredResults,
    b: StoredResults,
    *,
    measure: str = "headline",
    confidence: float = 0.99,
    resolution: float = 0.025,
    threshold: float = 0.01,
) -> ResultsComparison:
    """Compares the points that both results have. Of results with two sides the new one counts; results compared with
    themselves are compared by ``compare_sides``.

    Args:
        a, b: the first is what the second is compared with.
        measure: a segment, ``"total"``, or ``"headline"`` for what each point measures; one of
            ``samples.STATISTICS`` instead of its median, such as ``"p99"``; or both, such as ``"wake:p99"``.
        confidence, resolution, threshold: see ``comparison.compare``.

    Raises:
        FailedPreconditionError: they have no point in common.
        InvalidArgumentError: a parameter out of range, or points that measure different things.
    """
    limits = {"confidence": confidence, "resolution": resolution, "threshold": threshold}
    if a.path == b.path and any(one.against for one in b.points):
        return compare_sides(b, measure=measure, **limits)
    wanted = _wanted(measure, limits)
    by_device = any(len({point.point.device for point in each.points}) > 1 for each in (a, b))
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
        one, two = first[key], second[key]
        why_not = _why_not(one, two, wanted.segment, ("first", "second"))
        comparison = None if why_not else _of_runs((a, one), (b, two), wanted)
        points.append(PointComparison(key, one, two, comparison, why_not))
    return ResultsComparison(
        points,
        [first[key].point.label for key in first if key not in second],
        [second[key].point.label for key in second if key not in first],
        by_device,
        _differences(a, b),
        wanted.segment,
        wanted.statistic,
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
        InvalidArgumentError: a parameter out of range, or points that measure different things.
    """
    limits = {"confidence": confidence, "resolution": resolution, "threshold": threshold}
    wanted = _wanted(measure, limits)
    mine = [one for one in results.points if not one.point.is_baseline and not one.point.is_against]
    if not any(one.against for one in mine):
        raise FailedPreconditionError(
            f"{results.path} has one side only; measure two in turns with --against, or compare it with other results"
        )
    by_device = len({one.point.device for one in mine}) > 1
    points = []
    for new in mine:
        old = new.against
        if old is not None:
            key = f"{new.point.device} {new.point.key}" if by_device else new.point.key
            why_not = _why_not(old, new, wanted.segment, ("old", "new"))
            points.append(PointComparison(key, old, new, None if why_not else _in_turns(old, new, wanted), why_not))
    only = [one.point.label for one in mine if one.against is None]
    other = results.study.get("against")
    notes = [*dict.fromkeys(one.text for one in results.notes if one.kind == "sides")]
    notes += _one_each("commit", *(_commits(results, name) for name in ("against_revision", "revision")))
    if isinstance(other, Mapping):
        own = dataclasses.asdict(Process())
        for what, default in (("targets", None), ("process", own)):
            # Their sources differ, as they are meant to.
            first, second = (side.get(what, default) for side in (other, results.study))
            if text := _differing(first, second, without="source"):
                notes.append(f"the sides differ in {what}: {text}")
    return ResultsComparison(points, [], only, by_device, notes, wanted.segment, wanted.statistic)


def compare_points(results: StoredResults, old: PointResult, new: PointResult) -> Comparison:
    """Compares the headlines of two points of one study at the default limits, both with samples: by pairs of blocks
    if their blocks took turns. Points of different devices cannot; nothing tells their machine's states apart from what
    the devices differ by.
    """
    wanted = _wanted("headline", {"confidence": 0.99, "resolution": 0.025, "threshold": 0.01})
    names = (old.point.label, new.point.label)
    said = _disturbed(old, new, names)
    pairs = pairs_of_neighbours(old, new, wanted.segment, None)
    count = len(pairs.runs)
    took_turns = 2 * count >= max(len(np.unique(one.blocks)) for one in (old, new))
    if took_turns and count >= fewest_pairs(wanted.limits["confidence"]):
        found = _compare_paired(pairs, wanted)
    elif took_turns:
        sides = [_runs(one, wanted.segment, None) for one in (old, new)]
        found = compare_runs(sides[0], sides[1], **wanted.limits)
    elif old.point.device == new.point.device:
        return _of_runs((results, old), (results, new), wanted)
    else:
        first, second = (one.values(wanted.segment) for one in (old, new))
        blocks_a, blocks_b = (one.blocks for one in (old, new))
        found = compare(first, second, blocks_a=blocks_a, blocks_b=blocks_b, **wanted.limits)
        said.append("measured one after the other: the machine's state may have differed")
    return dataclasses.replace(found, notes=(*found.notes, *said))


def _compare_paired(pairs: PairedBlocks, wanted: _Wanted) -> Comparison:
    # What differs between processes the runs tell, where there are enough.
    labels = pairs.runs if np.unique(pairs.runs).size >= ROUNDS else pairs.rounds
    return compare_pairs(pairs.old, pairs.new, labels, statistic=wanted.statistic, **wanted.limits)


def check_comparison(measure: str, **limits: float) -> tuple[str, str]:
    """The segment and the statistic that ``measure`` names. InvalidArgumentError: it, or a limit, is none of
    ``compare_results``: to be known before anything is measured.
    """
    wanted = _wanted(measure, limits)
    return wanted.segment, wanted.statistic


def _wanted(measure: str, limits: Mapping[str, Any]) -> _Wanted:
    segment, _, statistic = measure.partition(":")
    if segment in STATISTICS and not statistic:
        segment, statistic = "headline", segment
    statistic = statistic or "median"
    if segment not in ("headline", *DURATIONS) or statistic not in STATISTICS:
        raise InvalidArgumentError(
            f"what is compared is headline, {', '.join(DURATIONS)}, a statistic of the headline ("
            f"{', '.join(STATISTICS)}), or both, such as wake:p99; got {shown(measure)}"
        )
    check_limits(**limits)
    return _Wanted(segment, statistic, limits)


def _keyed(results: StoredResults, by_device: bool) -> dict[str, PointResult]:
    keyed = {}
    for one in results.points:
        if not one.point.is_baseline and not one.point.is_against:
            keyed[f"{one.point.device} {one.point.key}" if by_device else one.point.key] = one
    return keyed


def _why_not(a: PointResult, b: PointResult, segment: str, names: tuple[str, str]) -> str:
    """Why two points have no comparison, or empty. Raises for points that measure different things."""
    if segment == "headline" and a.point.measure != b.point.measure:
        raise InvalidArgumentError(
            f"{a.point.label} measures {a.point.measure} in the {names[0]} results and {b.point.measure} in the "
            f"{names[1]}"
        )
    for name, one in zip(names, (a, b), strict=True):
        if not one.count:
            return f"no samples in the {name} results ({one.status}: {one.reason})"
        if one.status is PointStatus.FAILED:
            return f"failed in the {name} results after {one.count} samples: {one.reason}"
        if np.all(np.isnan(one.values(segment))):
            return f"no {segment} in the {name} results"
    return ""


def _in_turns(old: PointResult, new: PointResult, wanted: _Wanted) -> Comparison:
    said = _disturbed(old, new, ("old", "new"))
    pairs = pairs_in_turns(old, new, wanted.segment, None)
    found = _compare_paired(pairs, wanted)
    if PointStatus.NOISY in (old.status, new.status):
        said.append("too noisy, which the interval of pairs includes")
    return dataclasses.replace(found, notes=(*found.notes, *said))


def _of_runs(a: tuple[StoredResults, PointResult], b: tuple[StoredResults, PointResult], wanted: _Wanted) -> Comparison:
    keep, said = _filtered_alike(a[1], b[1], ("first", "second"))
    runs = [_runs(side[1], wanted.segment, keep) for side in (a, b)]
    allowance, why = 0.0, ""
    # Results compared with themselves are of one state.
    if (a[0].path, a[1].point) != (b[0].path, b[1].point):
        states = recorded(*a), recorded(*b)
        said += notes(*states)
        allowance, why = _left_open(*states, confidence=wanted.limits["confidence"])
    found = compare_runs(runs[0], runs[1], allowance=allowance, statistic=wanted.statistic, **wanted.limits)
    noisy = [
        f"the {name} one was too noisy: {side[1].reason}"
        for name, side in (("first", a), ("second", b))
        if side[1].status is PointStatus.NOISY
    ]
    if noisy and min(len(side) for side in runs) < 2:
        why = why or "; ".join(noisy)
    elif noisy:
        said += [f"{text}, which the interval of runs includes" for text in noisy]
    if why:
        why = f"{Verdict.UNCLEAR}: {why}: measure both in turns (--against)"
        unknown = Interval(math.nan, math.nan)
        found = dataclasses.replace(found, verdict=Verdict.UNCLEAR, interval=unknown, explanation=why)
    return dataclasses.replace(found, notes=(*found.notes, *said))


def _left_open(a: Recorded, b: Recorded, *, confidence: float) -> tuple[float, str]:
    """How far the states of the machine leave the log ratio open; and why the sides cannot be compared, or empty."""
    if why := why_not_comparable(a, b, confidence=confidence):
        return 0.0, why
    reference = reference_ratio(a, b, confidence=confidence)
    if reference is None or not reference.own:
        return 0.0, "no reference like this point's load tells whether the machine was in the same state"
    low, high = (math.log(end) for end in reference.interval)
    seen, reach = _STATES * abs(math.log(reference.ratio)), (high - low) / 2
    # Each run's reference is one instance too, and may hide a state by as much as instances differ: few runs leave that
    # open; of more the interval is so wide because of it, and a standard error is about a third of it.
    few = min(len(side.runs) for side in (a, b)) < ROUNDS
    return seen + (reach + INSTANCES if few else reach / 3), ""


def _runs(result: PointResult, segment: str, keep: SampleFlag | None) -> list[RunSamples]:
    """The samples of each repeat of the study, without NaNs."""
    values, repeats = result.values(segment, keep=keep), result.integers("repeat", keep=keep)
    blocks, rounds = result.blocks_of(keep=keep), result.rounds_of(keep=keep)
    known = ~np.isnan(values)
    chosen = [known & (repeats == repeat) for repeat in np.unique(repeats[known])]
    return [RunSamples(values[mine], blocks[mine], rounds[mine]) for mine in chosen]


def _filtered_alike(a: PointResult, b: PointResult, names: tuple[str, str]) -> tuple[SampleFlag | None, list[str]]:
    """Which samples of two points are compared, as ``keep`` of ``PointResult.values``, and what is left out, in words:
    of either side counts by flag.
    """
    disturbed = [(one.flags & int(DISTURBED)) != 0 for one in (a, b)]
    if not any(np.any(mine) for mine in disturbed):
        return None, []
    few = [name for name, mine in zip(names, disturbed, strict=True) if kept(mine)[mine].any()]
    texts = _counts(a, b, names)
    if few:
        where = " and the ".join(few)
        return None, [f"disturbed samples are not left out, as most of the {where} ones are: {texts}"]
    return ~DISTURBED, [f"disturbed samples left out: {texts}"]


def _disturbed(a: PointResult, b: PointResult, names: tuple[str, str]) -> list[str]:
    """What is said of disturbed samples where none are left out."""
    if not any(np.any(one.flags & int(DISTURBED)) for one in (a, b)):
        return []
    return [f"disturbed samples, none of them left out: {_counts(a, b, names)}"]


def _counts(a: PointResult, b: PointResult, names: tuple[str, str]) -> str:
    texts = []
    for name, one in zip(names, (a, b), strict=True):
        flags = one.flags & int(DISTURBED)
        counts = {flag.name or "": int(np.count_nonzero(flags & flag)) for flag in DISTURBED}
        shown_flags = ", ".join(f"{count} {flag.lower()}" for flag, count in counts.items() if count)
        texts.append(
            f"{np.count_nonzero(flags)} of {flags.size} {name} ones" + (f" ({shown_flags})" if shown_flags else "")
        )
    return ", ".join(texts)


def _differences(a: StoredResults, b: StoredResults) -> list[str]:
    found: list[str] = []
    for what, left, right in (
        ("device", {one.name for one in a.devices}, {one.name for one in b.devices}),
        ("driver", {one.driver for one in a.devices}, {one.driver for one in b.devices}),
        ("pumice", {one.pumice for one in a.runs}, {one.pumice for one in b.runs}),
        ("host", {one.host for one in a.runs}, {one.host for one in b.runs}),
        ("commit", _commits(a, "revision"), _commits(b, "revision")),
    ):
        found += _one_each(what, left, right)
    for key in ("sampling", "targets"):
        if text := _differing(a.study.get(key), b.study.get(key)):
            found.append(f"the studies differ in {key}: {text}")
    return found


def _one_each(what: str, left: set[str], right: set[str]) -> list[str]:
    """``["host: a and b"]``; empty where both have the same."""
    sides = [", ".join(sorted(one)) or "-" for one in (left, right)]
    return [f"{what}: {' and '.join(sides)}"] if left != right else []


def _commits(results: StoredResults, name: str) -> set[str]:
    """What the runs recorded of the commit of a side: ``"revision"`` or ``"against_revision"``."""
    found = [revision_of(run.environment.get(name)) for run in results.runs]
    return {one.name for one in found if one is not None}


def _differing(a: object, b: object, *, without: str = "") -> str:
    """The settings in which parts of two studies differ, with their values, except the one ``without``; empty for
    none.
    """
    first, second = _settings(a, ""), _settings(b, "")
    names = [
        name
        for name in {**first, **second}
        if first.get(name) != second.get(name) and name.rpartition(".")[2] != without
    ]
    texts = [f"{name} {_text(first, name)} and {_text(second, name)}" for name in names[:_MAX_DIFFERENCES]]
    more = f", and {len(names) - _MAX_DIFFERENCES} more" if len(names) > _MAX_DIFFERENCES else ""
    return "; ".join(texts) + more


def _settings(value: object, name: str) -> dict[str, object]:
    """The settings of a part of a study by name, such as ``"mul.push.factor"``."""
    if isinstance(value, Mapping):
        named = value.items()
    elif isinstance(value, list) and all(isinstance(one, Mapping) and "name" in one for one in value):
        named = {one["name"]: {key: each for key, each in one.items() if key != "name"} for one in value}.items()
    else:
        return {name: value}
    return {
        key: one for part, each in named for key, one in _settings(each, f"{name}.{part}" if name else part).items()
    }


def _text(settings: Mapping[str, object], name: str) -> str:
    text = json.dumps(settings[name]) if name in settings else "-"
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
