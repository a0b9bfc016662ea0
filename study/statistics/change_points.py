"""Change points of a history: the entries at which a point becomes slower or faster. docs/design/study.md has the
reasons.

A history has an entry for each measurement, in order. Entries are either

- **ratios** of two versions that were measured in turns. Versions are nodes, entries edges with a log ratio and its
  interval. A level for each stretch between changes, and one for each baseline, are fitted to all edges by weighted
  least squares; a step at an entry is an additional unknown. An entry is marked if the step's interval, which allows
  for all entries of the history, excludes 0; the first entry is examined last. If neighbours scatter more than their
  intervals imply, all intervals are widened by that factor;
- **times**, each from a separate run. A permutation test of ranks compares both sides of an entry, which needs several
  on each. The step must also be several times that of the reference kernel; without a reference nothing is marked.

Entries are marked one at a time, the clearest first, and each stretch is then searched again. An entry that measures a
version again is never marked.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from typing import Final

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError
from .bootstrap import Interval

FALSE_MARKS: Final = 0.01
"""The probability that a history without changes has a mark."""

# A state is seen by the reference kernel in part: at least a third of its effect.
_SEEN = 3
_RESAMPLES = 4999
# The smallest change that counts.
_THRESHOLD = 0.01
# The median of the absolute values of a normal distribution of variance 1.
_MEDIAN_NORMAL = 0.6745
# Of the scatter. There are fewer, but with their quantiles of t no change of a short history could be found.
_FREEDOM = 30

_Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of level.

    Attributes:
        start: the index of the first entry of the new level.
        ratio: the new level over the old one.
        interval: the interval of ``ratio``, allowing for all entries of the history; NaN for times.
    """

    start: int
    ratio: float
    interval: Interval


def place_confidence(entries: int) -> float:
    """Returns the confidence level at each position for a total error rate of ``FALSE_MARKS``."""
    return 1 - FALSE_MARKS / max(entries, 1)


def changes_in_ratios(
    versions: Sequence[tuple[Hashable, Hashable]],
    ratios: ArrayLike,
    half_widths: ArrayLike,
    *,
    again: Collection[int] = (),
) -> list[Change]:
    """Finds the change points of a history of ratios.

    Args:
        versions: the old and the new version of each entry; equal versions have equal names.
        ratios: the ratios new over old.
        half_widths: the half-width of the interval of each ratio's logarithm at the level
            ``place_confidence(len(ratios))``; infinite for an entry without information.
        again: the indices of entries that measure the new version of the entry before again: no change begins there.

    Raises:
        InvalidArgumentError: the lengths differ, or a ratio or half-width is not positive.
    """
    logs, halves = np.log(_positive(ratios, "ratios")), _positive(half_widths, "half-widths", infinite=True)
    if not len(versions) == logs.size == halves.size:
        raise InvalidArgumentError(f"{len(versions)} pairs of versions, {logs.size} ratios, {halves.size} half-widths")
    known = halves[np.isfinite(halves)]
    if known.size:
        # An interval that is much narrower than the others is so by chance.
        halves = np.maximum(halves, np.median(known))
    network = _Network(versions, logs, halves)
    widening = network.widening()
    changes: list[Change] = []

    def change_at(entry: int) -> tuple[float, Change] | None:
        """Returns the clarity of a change at a position, and the change; None if it does not count."""
        step, half = network.step(entry, [*(change.start for change in changes)])
        reach = half * widening
        if not abs(step) > reach or abs(math.expm1(step)) < _THRESHOLD:
            return None
        ends = Interval(math.exp(step - reach), math.exp(step + reach))
        return abs(step) / reach, Change(entry, math.exp(step), ends)

    stretches = [(0, logs.size)]
    while stretches:
        begin, end = stretches.pop()
        candidates = [change_at(index) for index in range(begin + 1, end) if index not in again]
        best = max(
            (candidate for candidate in candidates if candidate is not None),
            key=lambda candidate: candidate[0],
            default=None,
        )
        if best is not None:
            changes.append(best[1])
            stretches += [(begin, best[1].start), (best[1].start, end)]
    first = change_at(0) if logs.size else None
    if first is not None:
        changes.append(first[1])
    return sorted(changes, key=lambda candidate: candidate.start)


class _Network:
    """Versions and the measured ratios between them."""

    def __init__(self, versions: Sequence[tuple[Hashable, Hashable]], logs: _Numbers, halves: _Numbers) -> None:
        self._logs = logs
        self._weights = 1 / halves
        self._count = logs.size
        measured: dict[Hashable, int] = {}
        baselines: dict[Hashable, int] = {}
        self._old = np.zeros(self._count, dtype=int)
        """The entry whose new version is each entry's old one; indices from the number of entries on are baselines."""
        for index, (old, new) in enumerate(versions):
            known = measured.get(old)
            self._old[index] = self._count + baselines.setdefault(old, len(baselines)) if known is None else known
            measured[new] = index
        self._baselines = len(baselines)

    def _edges(self, levels: NDArray[np.int64]) -> _Numbers:
        """Returns the weighted design matrix: a row per entry, a column per level. ``levels`` has the level of each
        entry, then of each baseline.
        """
        design = np.zeros((self._count, int(levels.max()) + 1))
        rows = np.arange(self._count)
        np.add.at(design, (rows, levels[: self._count]), 1.0)
        np.add.at(design, (rows, levels[self._old]), -1.0)
        return design * self._weights[:, None]

    def _step(self, levels: NDArray[np.int64], entry: int) -> tuple[float, float]:
        """Returns the step of a level split at an entry, and its half-width; infinite if nothing determines it."""
        before = self._edges(levels)
        divided = levels.copy()
        after = np.flatnonzero(levels[: self._count] == levels[entry])
        divided[after[after >= entry]] = levels.max() + 1
        column = self._edges(divided)[:, -1]
        rest = column - before @ np.linalg.lstsq(before, column, rcond=None)[0]
        information = float(rest @ rest)
        if information < 1e-9 * max(float(column @ column), np.finfo(float).tiny):
            return 0.0, math.inf
        return float(rest @ (self._logs * self._weights)) / information, 1 / math.sqrt(information)

    def step(self, entry: int, changes: Sequence[int]) -> tuple[float, float]:
        """Returns the log of the step at an entry, given changes at other entries, and its half-width.

        At the first entry the step starts from that entry's old version.
        """
        levels = np.searchsorted(np.sort(np.asarray(changes, dtype=int)), np.arange(self._count), side="right")
        baselines = levels.max() + 1 + np.arange(self._baselines)
        if not entry:
            baselines[0] = levels[0]
        return self._step(np.concatenate([levels, baselines]), entry)

    def widening(self) -> float:
        """Returns the factor, at least 1, by which neighbours scatter more than their intervals imply."""
        ratios = []
        for index in range(1, self._count):
            levels = np.arange(self._count + self._baselines)
            levels[index] = index - 1
            levels = np.unique(levels, return_inverse=True)[1]
            step, half = self._step(levels, index)
            if math.isfinite(half):
                ratios.append(abs(step) / half)
        if not ratios:
            return 1.0
        expected = _MEDIAN_NORMAL / float(scipy.special.stdtrit(_FREEDOM, (1 + place_confidence(self._count)) / 2))
        return max(1.0, float(np.median(ratios)) / expected)


def changes_in_times(
    times: ArrayLike,
    references: ArrayLike,
    *,
    again: Collection[int] = (),
) -> list[Change]:
    """Finds the change points of a history of times.

    Args:
        times: a positive figure of each entry, such as the median, in one unit.
        references: the time of the same reference kernel for each entry; NaN where it is not known. A place is marked
            only if some are known on both sides of it.
        again: the indices of entries that measure the version of the entry before: no change begins there.

    Raises:
        InvalidArgumentError: a time is not positive, or the lengths differ.
    """
    logs = np.log(_positive(times, "times"))
    seen = np.log(np.asarray(references, dtype=np.float64))
    if seen.shape != logs.shape:
        raise InvalidArgumentError(f"a reference for each time: got {seen.size} and {logs.size}")
    changes: list[Change] = []
    stretches = [(0, logs.size)]
    while stretches:
        begin, end = stretches.pop()
        part = logs[begin:end]
        places = np.array([index for index in range(begin + 1, end) if index not in again])
        if part.size < 4 or np.ptp(part) == 0 or not places.size:
            continue
        ranks = scipy.stats.rankdata(part)
        entry = int(places[np.argmax(_contrasts(ranks, places - begin))])
        # A stretch has its share of false marks.
        if _p_value(ranks, places - begin) > FALSE_MARKS * part.size / logs.size:
            continue
        step = float(np.median(logs[entry:end]) - np.median(logs[begin:entry]))
        moved = _median(seen[entry:end]) - _median(seen[begin:entry])
        # Also false if the reference's change is unknown.
        if abs(math.expm1(step)) < _THRESHOLD or not abs(step) > _SEEN * abs(moved):
            continue
        changes.append(Change(entry, math.exp(step), Interval(math.nan, math.nan)))
        stretches += [(begin, entry), (entry, end)]
    return sorted(changes, key=lambda change: change.start)


def _contrasts(ranks: _Numbers, before: NDArray[np.int64]) -> _Numbers:
    """Returns the absolute standardised Mann-Whitney statistic of ranks along the last axis, at each split."""
    count = ranks.shape[-1]
    sums = np.cumsum(ranks, axis=-1)[..., before - 1] - before * (count + 1) / 2
    contrasts: _Numbers = np.abs(sums) / np.sqrt(before * (count - before) * (count + 1) / 12)
    return contrasts


def _p_value(ranks: _Numbers, before: NDArray[np.int64]) -> float:
    """Returns the p-value of the largest contrast, by permutation."""

    def largest(values: _Numbers, axis: int) -> _Numbers:
        return np.asarray(np.max(_contrasts(np.moveaxis(values, axis, -1), before), axis=-1))

    test = scipy.stats.permutation_test(
        (ranks,),
        largest,
        permutation_type="pairings",
        vectorized=True,
        n_resamples=_RESAMPLES,
        alternative="greater",
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)


def _median(values: _Numbers) -> float:
    """Returns the median of the finite values; NaN for none."""
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else math.nan


def _positive(values: ArrayLike, name: str, *, infinite: bool = False) -> _Numbers:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not np.all(numbers > 0) or not (infinite or np.all(np.isfinite(numbers))):
        raise InvalidArgumentError(f"{name} are positive numbers in one dimension, got shape {numbers.shape}")
    return numbers
