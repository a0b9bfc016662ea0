"""Whether two sides that were measured in separate runs can be compared: by what the runs recorded of the machine.

Samples of one run do not tell what differs from run to run. These do:

- the **reference like the point's load**: it has to take as long on both sides. Without a load in common, the
  reference of one workgroup stands in for it;
- the **machine's state**: other processes, steal, pressure, waiting for a core, wake-ups, clocks. Only differences
  count that matter to the point: a wake-up of 250 µs is nothing to a kernel of 100 ms, and other processes are nothing
  to the execution on a device of its own.

Figures are compared over the time in which the point was sampled. What was not recorded is not held against a side:
``notes`` say so.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from ...records import dataclass
from ..statistics.bootstrap import Interval
from .point_result import PointResult
from .records import ClockRecord, ReferenceRecord, StateRecord
from .stored_results import StoredResults

_Array = npt.NDArray[np.float64]

# Readings of one run in succession share what disturbs them: a run counts as this many units at most.
_UNITS: Final = 10
_MIN_UNITS: Final = 3
# Runs of a side from which on they are the units.
_RUNS: Final = 3
# A reference that takes as much longer or shorter, with certainty.
_REFERENCE: Final = math.log(1.05)
# One that is not known better than this says nothing.
_VAGUE: Final = math.log(1.15)
# In the texts of loads that all runs have.
_BARE: Final = ", no arithmetic,"
# A state is of the half second before it, and of what the point was in.
_AROUND_NS: Final = 600_000_000


class ReferenceRatio(NamedTuple):
    """Times of the same reference, second side over first, with their interval; ``own``: it is like the point's load
    (of one workgroup otherwise).
    """

    ratio: float
    interval: Interval
    own: bool


@dataclass(frozen=True, slots=True)
class RunState:
    """What one run recorded while it measured a point: nanoseconds of the references by load, states of the machine,
    and MHz of the device.
    """

    own: Mapping[str, _Array]
    compute: Mapping[str, _Array]
    states: Sequence[StateRecord]
    frequency_mhz: _Array
    memory_mhz: _Array


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the runs of one side recorded of the machine while they measured a point.

    Attributes:
        host, device, driver: their names; several, in order, if the runs differ.
        software: whether the device is the host's processor.
        measure: what the point measures.
        headline_ns: its median.
        runs: what each run recorded, those with samples of the point.
    """

    host: str
    device: str
    driver: str
    software: bool
    measure: str
    headline_ns: float
    runs: Sequence[RunState]


def recorded(results: StoredResults, result: PointResult, runs: Collection[int] | None = None) -> Recorded:
    """What the runs, by default all, recorded while they measured a point of these results."""
    numbers, started = result.runs, result.integers("started_ns")
    chosen = [run for run in np.unique(numbers).tolist() if runs is None or run in runs]
    records = {one.number: one for one in results.runs}
    devices = [one for one in results.devices if one.run in chosen and one.device == result.point.device]
    values = result.values()[np.isin(numbers, chosen)]
    found = []
    references, states, clocks = _tables(results)
    for run in chosen:
        mine = started[numbers == run]
        window = (int(mine.min()) - _AROUND_NS, int(mine.max()) + _AROUND_NS)
        found.append(_of_run(run, window, result, references, states, clocks))
    return Recorded(
        host=_names(records[run].host for run in chosen),
        device=_names(one.name for one in devices),
        driver=_names(one.driver for one in devices),
        software=any(one.facts.get("type") == "CPU" for one in devices),
        measure=result.point.measure,
        headline_ns=float(np.nanmedian(values)) if np.isfinite(values).any() else math.nan,
        runs=found,
    )


@functools.lru_cache(maxsize=2)
def _tables(
    results: StoredResults,
) -> tuple[Sequence[ReferenceRecord], Sequence[StateRecord], Sequence[ClockRecord]]:
    """Read once for all points."""
    return results.references, results.states, results.clocks


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names)))


def _of_run(
    run: int,
    window: tuple[int, int],
    result: PointResult,
    references: Sequence[ReferenceRecord],
    states: Sequence[StateRecord],
    clocks: Sequence[ClockRecord],
) -> RunState:
    """What a run recorded within a window of its clock."""

    def within(when: int) -> bool:
        return window[0] <= when <= window[1]

    own: dict[str, list[float]] = {}
    compute: dict[str, list[float]] = {}
    for one in references:
        # Without a load (an earlier version's) it was chosen by the run's own speed.
        if one.run != run or not one.load or not within(one.started_ns):
            continue
        if one.kind == "own" and one.point == result.point.index:
            own.setdefault(one.load, []).append(one.duration_ns)
        elif one.kind == "compute" and one.device == result.point.device:
            compute.setdefault(one.load, []).append(one.duration_ns)
    mine = [one for one in clocks if one.run == run and one.device == result.point.device and within(one.host_ns)]
    return RunState(
        {load: np.array(times) for load, times in own.items()},
        {load: np.array(times) for load, times in compute.items()},
        [one for one in states if one.run == run and within(one.host_ns)],
        np.array([one.frequency_mhz for one in mine if one.frequency_mhz]),
        np.array([one.memory_mhz for one in mine if one.memory_mhz]),
    )


# -- references -------------------------------------------------------------------------------------------------------


def reference_ratio(a: Recorded, b: Recorded, *, confidence: float = 0.99) -> ReferenceRatio | None:
    """How much longer the reference took on the second side: that like the point's load if both sides have a load in
    common, else that of one workgroup; ``None`` without either.
    """
    for own in (True, False):
        sides = [[run.own if own else run.compute for run in side.runs] for side in (a, b)]
        loads = [set().union(*runs) for runs in sides]
        common = sorted(loads[0] & loads[1])
        # A load without arithmetic moves less than the point does: it stands in for others alone.
        common = [load for load in common if _BARE not in load] or common
        middles = {load: _middle(load, sides) for load in common}
        units = [_units(runs, middles) for runs in sides]
        if min(len(each) for each in units) >= _MIN_UNITS:
            return _ratio(units[0], units[1], confidence, own=own)
    return None


def _middle(load: str, sides: Sequence[Sequence[Mapping[str, _Array]]]) -> float:
    """What the logarithms of a load's times are relative to: halfway between the sides' medians."""
    times = [np.concatenate([run[load] for run in runs if load in run]) for runs in sides]
    return float(np.mean([np.median(np.log(each)) for each in times]))


def _units(runs: Sequence[Mapping[str, _Array]], middles: Mapping[str, float]) -> list[float]:
    """Logarithms of the times of one side, a figure for each unit: a run, or successive readings in a run."""
    found = []
    for run in runs:
        levels = [np.log(run[load]) - middle for load, middle in middles.items() if load in run]
        if levels:
            # Loads take turns: the readings of all in the order of time, nearly.
            order = np.argsort(np.concatenate([np.linspace(0, 1, each.size) for each in levels]), kind="stable")
            found.append(np.concatenate(levels)[order])
    if len(found) >= _RUNS:
        return [float(np.median(levels)) for levels in found]
    return [
        float(np.median(part))
        for levels in found
        for part in np.array_split(levels, min(levels.size, _UNITS // len(found)))
    ]


def _ratio(first: Sequence[float], second: Sequence[float], confidence: float, *, own: bool) -> ReferenceRatio:
    if np.ptp(first) == np.ptp(second) == 0:
        low = high = second[0] - first[0]
    else:
        low, high = scipy.stats.ttest_ind(second, first, equal_var=False).confidence_interval(confidence)
    middle = float(np.mean(second) - np.mean(first))
    return ReferenceRatio(math.exp(middle), Interval(math.exp(max(low, -100)), math.exp(min(high, 100))), own)


def _reference_differs(a: Recorded, b: Recorded, confidence: float) -> str:
    found = reference_ratio(a, b, confidence=confidence)
    if found is None:
        both = all(any(run.own or run.compute for run in side.runs) for side in (a, b))
        return "the references of the first and the second runs had no load in common" if both else ""
    ratio, (low, high), own = found
    what = "the reference like this point's load" if own else "the reference of one workgroup"
    bounds = f"{low:.2f} to {high:.2f}"
    if abs(math.log(ratio)) > _REFERENCE and not low <= 1 <= high:
        return f"{what} took {ratio:.2f} times as long in the second runs ({bounds})"
    if max(math.log(high), -math.log(low)) > _VAGUE:
        return f"{what} varies too much to tell whether the machine was the same: {ratio:.2f} times ({bounds})"
    return ""


# -- states -----------------------------------------------------------------------------------------------------------


def _state(side: Recorded, name: str) -> float | None:
    """The median of a figure over the runs' medians."""
    runs = [[getattr(one, name) for one in run.states if getattr(one, name) is not None] for run in side.runs]
    medians = [float(np.median(values)) for values in runs if values]
    return float(np.median(medians)) if medians else None


class _Share(NamedTuple):
    """A share of time, how much of it matters, and how to say it."""

    name: str
    limit: float
    text: str


_SHARES: Final = (
    _Share("steal", 0.05, "{b} of the processor went to other virtual machines in the second runs, {a} in the first"),
    _Share("others", 0.15, "{b} of the processor went to other processes in the second runs, {a} in the first"),
    _Share("run_delay", 0.15, "threads waited for a core {b} of their time in the second runs, {a} in the first"),
    _Share("pressure", 0.25, "tasks waited for a core in {b} of the time in the second runs, {a} in the first"),
)
# A wake-up counts from this share of the headline on, if it differs by as much.
_WAKES: Final = (("wake_ns", 0.05, 1.5, "wake-ups took"), ("wake_p90_ns", 0.1, 3.0, "one of ten wake-ups took over"))
_CLOCK: Final = 1.1
_DEVICE_CLOCK: Final = 1.03


def _states_differ(a: Recorded, b: Recorded) -> list[str]:
    """A text for each difference that matters to the point, the plainest cause first."""
    found: list[str] = []
    by_host = a.software or a.measure != "execute"
    if by_host:
        for share in _SHARES:
            values = _state(a, share.name), _state(b, share.name)
            if None not in values and abs(values[1] - values[0]) > share.limit:  # type: ignore[operator]  # not None
                found.append(share.text.format(a=f"{values[0]:.0%}", b=f"{values[1]:.0%}"))
    if a.measure not in ("execute", "create", "update", "record"):
        headline = min(a.headline_ns, b.headline_ns)
        for name, share_of, factor, text in _WAKES:
            first, second = _state(a, name), _state(b, name)
            if first is None or second is None:
                continue
            if abs(second - first) > share_of * headline and max(first, second) > factor * min(first, second):
                times = f"{_micro(second)} in the second runs, {_micro(first)} in the first"
                found.append(f"{text} {times}, and this point's time is {_micro(headline)}")
                break
    for what, read, factor in (
        ("device", lambda run: run.frequency_mhz, _DEVICE_CLOCK),
        ("device's memory", lambda run: run.memory_mhz, _DEVICE_CLOCK),
    ):
        found += _clocks_differ(what, _clock(a, read), _clock(b, read), factor)
    if by_host:
        found += _clocks_differ("processor", _state(a, "cpu_mhz"), _state(b, "cpu_mhz"), _CLOCK)
    return found


def _clock(side: Recorded, read: Callable[[RunState], _Array]) -> float | None:
    medians = [float(np.median(read(run))) for run in side.runs if read(run).size]
    return float(np.median(medians)) if medians else None


def _clocks_differ(what: str, first: float | None, second: float | None, factor: float) -> list[str]:
    if first is None or second is None or max(first, second) <= factor * min(first, second):
        return []
    return [f"other clocks: the {what} ran at {second:.0f} MHz in the second runs, at {first:.0f} MHz in the first"]


def _micro(ns: float) -> str:
    return f"{ns / 1e3:.3g} µs" if ns < 1e6 else f"{ns / 1e6:.3g} ms"


# -- judgement --------------------------------------------------------------------------------------------------------


def why_not_comparable(a: Recorded, b: Recorded, *, confidence: float = 0.99) -> str:
    """Why a difference between the sides may be the machine's: one sentence with figures; empty if nothing speaks
    against comparing them.
    """
    for what in ("host", "device", "driver"):
        first, second = getattr(a, what), getattr(b, what)
        if first != second:
            return f"another {what}: {second or 'unknown'} in the second runs, {first or 'unknown'} in the first"
    reference = _reference_differs(a, b, confidence)
    causes = _states_differ(a, b)
    return "; ".join([*([reference] if reference else []), *causes[:1]])


def notes(a: Recorded, b: Recorded) -> list[str]:
    """What could not be compared because it was not recorded."""
    unknown = [
        name for name, side in (("first", a), ("second", b)) if not any(run.states or run.own for run in side.runs)
    ]
    if unknown:
        return [f"the machine's state was not recorded in the {' and the '.join(unknown)} runs: it may have differed"]
    found = reference_ratio(a, b)
    if found is None:
        return ["no reference was read on both sides (reference = false): the machine may have changed"]
    return [] if found.own else ["the sides have no reference like this point's load in common: their loads differ"]
