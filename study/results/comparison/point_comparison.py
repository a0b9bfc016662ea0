"""Compares two points: those of one study, the two sides of a pair, or those of separate runs.

Points that were measured in turns are compared by their pairs of blocks. Points of separate runs are compared by runs,
if the runs' records of the machine allow it (``comparability``).

Disturbed samples of runs are left out on both sides or on neither: on both if at least half of the samples of each side
remain. Pairs keep all samples: their order is random, so which side is disturbed is random, too, and the remaining
blocks would be fewer and more unequal.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ....base.lazy_dataclass import dataclass
from ....status import InvalidArgumentError, shown
from ...statistics.bootstrap import Interval
from ...statistics.comparison import Comparison, Verdict, check_limits, compare
from ...statistics.paired import INSTANCES, ROUNDS, compare_pairs, fewest_pairs
from ...statistics.runs import RunSamples, compare_runs
from ...statistics.samples import STATISTICS, table_of_blocks
from ..storage.point_result import PointResult
from ..storage.records import DISTURBED, PointStatus, SampleFlag, kept
from ..storage.rows import DURATIONS
from ..storage.stored_results import StoredResults
from .comparability import incomparable_reason, no_reference_reason, notes, reference_ratio
from .machine_record import Part, Recorded, hosts, recorded, unlike

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class PairedBlocks(NamedTuple):
    """The samples of both points, pairs by samples, NaN where a block has fewer; the run of each pair, and its round.
    Pairs are of one round if neither point was reopened between them.
    """

    old: Array
    new: Array
    runs: Integers
    rounds: Integers


class _Blocks(NamedTuple):
    """The kept samples of a point by block, and each block's number, run, round, and begin."""

    table: Array
    numbers: Integers
    runs: Integers
    rounds: Integers
    started: Integers


def pairs_in_turns(old: PointResult, new: PointResult, measure: str, keep: SampleFlag | None) -> PairedBlocks:
    """Pairs the blocks of the two points of a pair that have the same run and number."""
    sides = [_blocks(side, measure, keep) for side in (old, new)]
    old_keys, new_keys = ((side.runs << 32) + side.numbers for side in sides)
    _, first, second = np.intersect1d(old_keys, new_keys, assume_unique=True, return_indices=True)
    return _paired(sides, first, second)


def pairs_of_neighbours(
    old: PointResult, new: PointResult, measure: str, keep: SampleFlag | None, apart: Collection[int] = ()
) -> PairedBlocks:
    """Pairs the blocks of two points of a study that took turns: neighbours in time, one of each point. The order of
    turns is random, and the rule treats both points alike. Runs in ``apart`` measured the points on two hosts, and
    have no common time.
    """
    sides = [_blocks(side, measure, keep) for side in (old, new)]
    side = np.repeat([0, 1], [len(side.runs) for side in sides])
    row = np.concatenate([np.arange(len(side.runs)) for side in sides])
    runs, started = (np.concatenate([getattr(side, name) for side in sides]) for name in ("runs", "started"))
    pairs: list[tuple[int, int]] = []
    waiting = -1
    for index in np.lexsort([started, runs]).tolist():
        if runs[index] in apart:
            continue
        if waiting >= 0 and side[waiting] != side[index] and runs[waiting] == runs[index]:
            first, second = (waiting, index) if side[index] else (index, waiting)
            pairs.append((row[first], row[second]))
            waiting = -1
        else:
            waiting = index
    chosen = np.array(pairs, np.int64).reshape(-1, 2)
    return _paired(sides, chosen[:, 0], chosen[:, 1])


def _blocks(result: PointResult, measure: str, keep: SampleFlag | None) -> _Blocks:
    labels = result.blocks_of(keep=keep)
    begins = np.unique(labels, return_index=True)[1]
    runs, numbers, started = (result.integers(name, keep=keep)[begins] for name in ("run", "block", "started_ns"))
    table = table_of_blocks(result.values(measure, keep=keep), labels)
    return _Blocks(table, numbers, runs, result.rounds_of(keep=keep)[begins], started)


def _paired(sides: list[_Blocks], first: Integers, second: Integers) -> PairedBlocks:
    old, new = sides
    # The sides of a pair are opened together; a point of an ordinary study is opened on its own.
    openings = np.stack([old.rounds[first], new.rounds[second]])
    rounds = np.unique(openings, axis=1, return_inverse=True)[1]
    return PairedBlocks(old.table[first], new.table[second], old.runs[first], rounds.reshape(-1).astype(np.int64))


_STATES: Final = 3.0
"""The allowance for a state of the machine, in multiples of its effect on the reference kernel: a point may be affected
about three times as much as the reference's load.
"""
_ANY_STATE: Final = math.log(2)
"""The difference between states of a shared machine, as a logarithm, if no record shows the state of a side."""
_SPREAD_MINUTES: Final = 60
"""Runs that are spread over this many minutes are in several states, if states last minutes."""

Measured = tuple[StoredResults, PointResult]
"""A point, and its results."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """The compared segment and statistic, and the limits of verdicts as keyword arguments of comparisons."""

    segment: str
    statistic: str
    limits: Mapping[str, Any]


def criteria_of(measure: str, **limits: float) -> Criteria:
    """Parses ``measure`` and checks the limits of ``compare_results``. InvalidArgumentError: no such measure, or out of
    range.
    """
    segment, _, statistic = measure.partition(":")
    if segment in STATISTICS and not statistic:
        segment, statistic = "headline", segment
    statistic = statistic or "median"
    if segment not in ("headline", *DURATIONS) or statistic not in STATISTICS:
        raise InvalidArgumentError(
            f"the measure is headline, {', '.join(DURATIONS)}, a statistic of the headline ("
            f"{', '.join(STATISTICS)}), or both, such as wake:p99; got {shown(measure)}"
        )
    check_limits(**limits)
    return Criteria(segment, statistic, limits)


def compare_points(results: StoredResults, old: PointResult, new: PointResult) -> Comparison:
    """Compares the headlines of two points of one study at the default limits, both with samples: by pairs of blocks if
    their blocks took turns. Otherwise points of two devices are compared by runs if there are several, and else by
    samples: the machine's state cannot be told apart from the devices' difference.
    """
    criteria = criteria_of("headline", confidence=0.99, resolution=0.025, threshold=0.01)
    names = (old.point.label, new.point.label)
    said = _disturbed(old, new, names)
    by = hosts(results)
    first, second = old.point.index, new.point.index
    apart = [run for (run, point), host in by.items() if point == first and by.get((run, second)) != host]
    pairs = pairs_of_neighbours(old, new, criteria.segment, None, apart)
    count = len(pairs.runs)
    fewer, more = sorted(len(np.unique(side.blocks)) for side in (old, new))
    # A point ends when it is known: its blocks after the end of the other point have no pair.
    if 2 * count >= fewer and count >= fewest_pairs(criteria.limits["confidence"]):
        result = _compare_paired(pairs, criteria)
    elif 2 * count >= more:
        sides = [_runs(side, criteria.segment, None) for side in (old, new)]
        result = compare_runs(sides[0], sides[1], **criteria.limits)
    elif old.point.device == new.point.device:
        return compare_apart((results, old), (results, new), criteria)
    elif min(np.unique(side.repeat).size for side in (old, new)) >= ROUNDS:
        return compare_apart((results, old), (results, new), criteria, across=("device", "driver"))
    else:
        values = [side.values(criteria.segment) for side in (old, new)]
        blocks_a, blocks_b = (side.blocks for side in (old, new))
        result = compare(*values, blocks_a=blocks_a, blocks_b=blocks_b, **criteria.limits)
        said.append("measured one after the other: the machine's state may have differed")
    return dataclasses.replace(result, notes=(*result.notes, *said))


def no_comparison_reason(a: PointResult, b: PointResult, segment: str, names: tuple[str, str]) -> str:
    """Returns the reason why two points have no comparison; empty if they have one.

    Raises for points that measure different things.
    """
    if segment == "headline" and a.point.measure != b.point.measure:
        raise InvalidArgumentError(
            f"{a.point.label} measures {a.point.measure} in the {names[0]} results and {b.point.measure} in the "
            f"{names[1]}"
        )
    for name, side in zip(names, (a, b), strict=True):
        if not side.count:
            return f"no samples in the {name} results ({side.status}: {side.reason})"
        if side.status is PointStatus.FAILED:
            return f"failed in the {name} results after {side.count} samples: {side.reason}"
        if np.all(np.isnan(side.values(segment))):
            return f"no {segment} in the {name} results"
    return ""


def compare_in_turns(old: PointResult, new: PointResult, criteria: Criteria, *, apart: bool = False) -> Comparison:
    """Compares the two points of a pair, both with samples. With ``apart`` each round of a side has a process of its
    own.
    """
    said = _disturbed(old, new, ("old", "new"))
    pairs = pairs_in_turns(old, new, criteria.segment, None)
    result = _compare_paired(pairs, criteria)
    processes = len(np.unique(pairs.rounds))
    if apart and processes < ROUNDS:
        result = _unclear(
            result,
            f"{processes} processes of each side tell too little of what differs between processes: it takes at least "
            f"{ROUNDS}; measure on (--continue, --more-time)",
        )
    if PointStatus.NOISY in (old.status, new.status):
        said.append("too noisy, which the interval of pairs includes")
    return dataclasses.replace(result, notes=(*result.notes, *said))


def _compare_paired(pairs: PairedBlocks, criteria: Criteria) -> Comparison:
    # With enough runs, these show what differs between processes.
    labels = pairs.runs if np.unique(pairs.runs).size >= ROUNDS else pairs.rounds
    return compare_pairs(pairs.old, pairs.new, labels, statistic=criteria.statistic, **criteria.limits)


def compare_apart(a: Measured, b: Measured, criteria: Criteria, across: Collection[Part] = ()) -> Comparison:
    """Compares two points of separate runs, both with samples; for ``across`` see ``compare_results``."""
    keep, said = _filtered_alike(a[1], b[1], ("first", "second"))
    runs = [_runs(side[1], criteria.segment, keep) for side in (a, b)]
    fewest = min(len(side) for side in runs)
    allowance, why, way = 0.0, "", "measure both in turns (--against)"
    source = "the machine's states, by the reference kernel"
    parts: Mapping[Part, str] = {}
    # Results that are compared with themselves share one state.
    if (a[0].path, a[1].point) != (b[0].path, b[1].point):
        states = recorded(*a), recorded(*b)
        parts = unlike(*states)
        if not parts.keys() <= set(across):
            why = "; ".join(parts.values())
            options = " ".join(f"--across {part}" for part in parts)
            more = f" and --runs {ROUNDS} of each" if fewest < ROUNDS else ""
            way = f"if that is what is compared, {options}{more}, else {way}"
        elif parts and fewest < ROUNDS:
            counts = f"{len(runs[0])} and {len(runs[1])} runs"
            why = f"{counts}, where another {' and another '.join(parts)} takes {ROUNDS} of each"
            way = f"--runs {ROUNDS}"
        elif parts:
            said += notes(*states)
            why, way = incomparable_reason(*states), "measure again while nothing else runs"
            # Two devices of one study take turns from run to run, and share the machine's states.
            apart = a[0].path != b[0].path
            if apart and any(state.is_of_host and not state.minutes >= _SPREAD_MINUTES for state in states):
                allowance, source = _ANY_STATE, "a state of the machine that lasts as long as the runs"
        else:
            said += notes(*states)
            allowance, why = _left_open(*states, confidence=criteria.limits["confidence"])
    limits = {"statistic": criteria.statistic, **criteria.limits}
    result = compare_runs(*runs, allowance=allowance, allowed_for=source, in_turns=not parts, **limits)
    noisy = [
        f"the {name} one was too noisy: {side[1].reason}"
        for name, side in (("first", a), ("second", b))
        if side[1].status is PointStatus.NOISY
    ]
    if noisy and fewest < 2:
        why = why or "; ".join(noisy)
    elif noisy:
        said += [f"{text}, which the interval of runs includes" for text in noisy]
    if why:
        result = _unclear(result, f"{why}: {way}")
    return dataclasses.replace(result, notes=(*result.notes, *said))


def _unclear(comparison: Comparison, why: str) -> Comparison:
    """Removes the verdict, and the interval, which a tolerance could let pass."""
    unknown = Interval(math.nan, math.nan)
    explanation = f"{Verdict.UNCLEAR}: {why}"
    return dataclasses.replace(comparison, verdict=Verdict.UNCLEAR, interval=unknown, explanation=explanation)


def _left_open(a: Recorded, b: Recorded, *, confidence: float) -> tuple[float, str]:
    """Returns the log ratio's allowance for states of the machine, and why the sides cannot be compared."""
    if why := incomparable_reason(a, b, confidence=confidence):
        return 0.0, why
    reference = reference_ratio(a, b, confidence=confidence)
    if reference is None or not reference.own:
        cause = no_reference_reason(a, b)
        return 0.0, f"no reference like this point's load tells whether the machine was in the same state ({cause})"
    low, high = (math.log(end) for end in reference.interval)
    observed, reach = _STATES * abs(math.log(reference.ratio)), (high - low) / 2
    # Each run's reference is one instance too, and may hide a state by as much as instances differ. Few runs leave that
    # open. With more runs the interval includes it, and a standard error is about a third of the interval.
    few = min(len(side.runs) for side in (a, b)) < ROUNDS
    return observed + (reach + INSTANCES if few else reach / 3), ""


def _runs(result: PointResult, segment: str, keep: SampleFlag | None) -> list[RunSamples]:
    """Returns the samples of each repeat, without NaNs."""
    values, repeats = result.values(segment, keep=keep), result.integers("repeat", keep=keep)
    blocks, rounds = result.blocks_of(keep=keep), result.rounds_of(keep=keep)
    known = ~np.isnan(values)
    chosen = [known & (repeats == repeat) for repeat in np.unique(repeats[known])]
    return [RunSamples(values[mine], blocks[mine], rounds[mine]) for mine in chosen]


def _filtered_alike(a: PointResult, b: PointResult, names: tuple[str, str]) -> tuple[SampleFlag | None, list[str]]:
    """Decides which samples of two points are compared, as ``keep`` of ``PointResult.values``; returns also notes on
    the disturbed samples of either side, by flag.
    """
    disturbed = [(side.flags & int(DISTURBED)) != 0 for side in (a, b)]
    if not any(np.any(mine) for mine in disturbed):
        return None, []
    few = [name for name, mine in zip(names, disturbed, strict=True) if kept(mine)[mine].any()]
    texts = _counts(a, b, names)
    if few:
        where = " and the ".join(few)
        return None, [f"disturbed samples are not left out, as most of the {where} ones are: {texts}"]
    return ~DISTURBED, [f"disturbed samples left out: {texts}"]


def _disturbed(a: PointResult, b: PointResult, names: tuple[str, str]) -> list[str]:
    """Returns a note on disturbed samples, where none are left out."""
    if not any(np.any(side.flags & int(DISTURBED)) for side in (a, b)):
        return []
    return [f"disturbed samples are compared too: {_counts(a, b, names)}"]


def _counts(a: PointResult, b: PointResult, names: tuple[str, str]) -> str:
    texts = []
    for name, side in zip(names, (a, b), strict=True):
        flags = side.flags & int(DISTURBED)
        counts = {flag.name or "": int(np.count_nonzero(flags & flag)) for flag in DISTURBED}
        shown_flags = ", ".join(f"{count} {flag.lower()}" for flag, count in counts.items() if count)
        texts.append(
            f"{np.count_nonzero(flags)} of {flags.size} {name} ones" + (f" ({shown_flags})" if shown_flags else "")
        )
    return ", ".join(texts)
