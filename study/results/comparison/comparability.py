"""Decides whether two sides from separate runs can be compared, by the runs' records of the machine.

- The **reference like the point's load** must take as long on both sides. Without a common load, the reference of one
  workgroup replaces it.
- The **machine's state** counts if it matters to the point: other processes, steal, pressure, waiting for a core,
  wake-ups, clocks. A wake-up of 250 µs is nothing to a kernel of 100 ms, and other processes are nothing to the
  execution on a separate device.

Figures are from the time in which the point was sampled. Missing records do not count against a side; ``notes`` names
them.

Another device, driver or host is a difference like any other, unless it is compared. Then references, wake-ups and
clocks are no evidence, as they depend on what differs. Processor time of other programs still is evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from ...statistics.bootstrap import Interval
from .machine_record import Recorded, RunState, unlike

_Array = npt.NDArray[np.float64]

# Successive readings of one run share their disturbances: a run counts as this many units at most.
_UNITS: Final = 10
_MIN_UNITS: Final = 3
# The number of runs of a side from which runs are the units.
_RUNS: Final = 3
# A reference whose time changed by this factor, with certainty.
_REFERENCE: Final = math.log(1.05)
# A reference that is less well known than this proves nothing.
_VAGUE: Final = math.log(1.15)
# A part of the texts of loads that all runs have.
_BARE: Final = ", no arithmetic,"


class ReferenceRatio(NamedTuple):
    """The reference's time on the second side over that on the first, with its interval. ``own`` says that the
    reference is like the point's load, and not one workgroup.
    """

    ratio: float
    interval: Interval
    own: bool


# -- references -------------------------------------------------------------------------------------------------------


def reference_ratio(a: Recorded, b: Recorded, *, confidence: float = 0.99) -> ReferenceRatio | None:
    """Returns the reference's time on the second side over that on the first. The reference is like the point's load if
    both sides have a load in common, else one workgroup; None without either.
    """
    for own in (True, False):
        sides = [[run.own if own else run.compute for run in side.runs] for side in (a, b)]
        middles = {load: _middle(load, sides) for load in _common_loads(sides)}
        units = [_units(runs, middles) for runs in sides]
        if min(len(unit) for unit in units) >= _MIN_UNITS:
            return _ratio(units[0], units[1], confidence, own=own)
    return None


def _common_loads(sides: Sequence[Sequence[Mapping[str, _Array]]]) -> list[str]:
    loads = [set().union(*runs) for runs in sides]
    common = sorted(loads[0] & loads[1])
    # A load without arithmetic varies less than the point does: it is used only if there are no other loads.
    return [load for load in common if _BARE not in load] or common


def no_reference_reason(a: Recorded, b: Recorded) -> str:
    """Returns the reason why no reference like the point's load confirms the machine's state; empty if one does."""
    reference = reference_ratio(a, b)
    if reference is not None and reference.own:
        return ""
    sides = [[run.own for run in side.runs] for side in (a, b)]
    if missing := [name for name, runs in zip(("first", "second"), sides, strict=True) if not any(runs)]:
        return f"no reference like this point's load was read in the {' and the '.join(missing)} runs"
    if common := _common_loads(sides):
        counts = [sum(run[load].size for run in runs for load in common if load in run) for runs in sides]
        read = f"{counts[0]} in the first runs, {counts[1]} in the second"
        return f"too few readings of the reference like this point's load ({read}; it takes {_MIN_UNITS} of each)"
    return "the sides have no reference like this point's load in common: their loads differ"


def _middle(load: str, sides: Sequence[Sequence[Mapping[str, _Array]]]) -> float:
    """Returns the middle between the sides' medians of a load's log times; times are expressed relative to it."""
    times = [np.concatenate([run[load] for run in runs if load in run]) for runs in sides]
    return float(np.mean([np.median(np.log(time)) for time in times]))


def _units(runs: Sequence[Mapping[str, _Array]], middles: Mapping[str, float]) -> list[float]:
    """Returns a log time for each unit of one side: for each run, or for successive parts of a run."""
    ordered = []
    for run in runs:
        levels = [np.log(run[load]) - middle for load, middle in middles.items() if load in run]
        if levels:
            # Loads are read in turns; this orders the readings of all loads by time, approximately.
            order = np.argsort(np.concatenate([np.linspace(0, 1, level.size) for level in levels]), kind="stable")
            ordered.append(np.concatenate(levels)[order])
    if len(ordered) >= _RUNS:
        return [float(np.median(levels)) for levels in ordered]
    return [
        float(np.median(part))
        for levels in ordered
        for part in np.array_split(levels, min(levels.size, _UNITS // len(ordered)))
    ]


def _ratio(first: Sequence[float], second: Sequence[float], confidence: float, *, own: bool) -> ReferenceRatio:
    if np.ptp(first) == np.ptp(second) == 0:
        low = high = second[0] - first[0]
    else:
        low, high = scipy.stats.ttest_ind(second, first, equal_var=False).confidence_interval(confidence)
    middle = float(np.mean(second) - np.mean(first))
    return ReferenceRatio(math.exp(middle), Interval(math.exp(max(low, -100)), math.exp(min(high, 100))), own)


def _reference_differs(a: Recorded, b: Recorded, confidence: float) -> str:
    reference = reference_ratio(a, b, confidence=confidence)
    if reference is None:
        both = all(any(run.own or run.compute for run in side.runs) for side in (a, b))
        return "the references of the first and the second runs had no load in common" if both else ""
    ratio, (low, high), own = reference
    name = "the reference like this point's load" if own else "the reference of one workgroup"
    bounds = f"{low:.2f} to {high:.2f}"
    if abs(math.log(ratio)) > _REFERENCE and not low <= 1 <= high:
        return f"{name} took {ratio:.2f} times as long in the second runs ({bounds})"
    if max(math.log(high), -math.log(low)) > _VAGUE:
        return f"{name} varies too much to tell whether the machine was the same: {ratio:.2f} times ({bounds})"
    return ""


# -- states -----------------------------------------------------------------------------------------------------------


def _state(side: Recorded, name: str) -> float | None:
    runs = [[getattr(state, name) for state in run.states if getattr(state, name) is not None] for run in side.runs]
    medians = [float(np.median(values)) for values in runs if values]
    return float(np.median(medians)) if medians else None


class _Share(NamedTuple):
    """A share of time, the difference that matters, and its text."""

    name: str
    limit: float
    text: str


# Processor time of other programs, whatever the point runs on.
_TAKEN: Final = (
    _Share("steal", 0.05, "{b} of the processor went to other virtual machines in the second runs, {a} in the first"),
    _Share("others", 0.15, "{b} of the processor went to other processes in the second runs, {a} in the first"),
)
_WAITED: Final = (
    _Share("run_delay", 0.15, "threads waited for a core {b} of their time in the second runs, {a} in the first"),
    _Share("pressure", 0.25, "tasks waited for a core in {b} of the time in the second runs, {a} in the first"),
)
# A wake-up counts if it differs by at least this share of the headline, and by this factor.
_WAKES: Final = (("wake_ns", 0.05, 1.5, "wake-ups took"), ("wake_p90_ns", 0.1, 3.0, "one of ten wake-ups took over"))
_CLOCK: Final = 1.1
_DEVICE_CLOCK: Final = 1.03


def _shares_differ(a: Recorded, b: Recorded, shares: Iterable[_Share]) -> list[str]:
    """Describes each share that differs, if the host takes part in the point's measure."""
    if a.measure == "execute" and not (a.software or b.software):
        return []
    texts = []
    for share in shares:
        first, second = _state(a, share.name), _state(b, share.name)
        if first is not None and second is not None and abs(second - first) > share.limit:
            texts.append(share.text.format(a=f"{first:.0%}", b=f"{second:.0%}"))
    return texts


def _states_differ(a: Recorded, b: Recorded) -> list[str]:
    """Describes each difference that matters to the point, the plainest cause first."""
    texts = _shares_differ(a, b, (*_TAKEN, *_WAITED))
    if a.measure not in ("execute", "create", "update", "record"):
        headline = min(a.headline_ns, b.headline_ns)
        for name, share_of, factor, text in _WAKES:
            first, second = _state(a, name), _state(b, name)
            if first is None or second is None:
                continue
            if abs(second - first) > share_of * headline and max(first, second) > factor * min(first, second):
                times = f"{_micro(second)} in the second runs, {_micro(first)} in the first"
                texts.append(f"{text} {times}, and this point's time is {_micro(headline)}")
                break
    for part, read, factor in (
        ("device", lambda run: run.frequency_mhz, _DEVICE_CLOCK),
        ("device's memory", lambda run: run.memory_mhz, _DEVICE_CLOCK),
    ):
        texts += _clocks_differ(part, _clock(a, read), _clock(b, read), factor)
    if a.is_of_host:
        texts += _clocks_differ("processor", _state(a, "cpu_mhz"), _state(b, "cpu_mhz"), _CLOCK)
    return texts


def _clock(side: Recorded, read: Callable[[RunState], _Array]) -> float | None:
    medians = [float(np.median(read(run))) for run in side.runs if read(run).size]
    return float(np.median(medians)) if medians else None


def _clocks_differ(name: str, first: float | None, second: float | None, factor: float) -> list[str]:
    if first is None or second is None or max(first, second) <= factor * min(first, second):
        return []
    return [f"other clocks: the {name} ran at {second:.0f} MHz in the second runs, at {first:.0f} MHz in the first"]


def _micro(ns: float) -> str:
    return f"{ns / 1e3:.3g} µs" if ns < 1e6 else f"{ns / 1e6:.3g} ms"


# -- judgement --------------------------------------------------------------------------------------------------------


def incomparable_reason(a: Recorded, b: Recorded, *, confidence: float = 0.99) -> str:
    """Returns a sentence on why a difference between the sides may come from the machine's state.

    Empty if nothing suggests it. For sides that are ``unlike`` only the processor time of other programs is evidence.
    """
    if unlike(a, b):
        return "; ".join(_shares_differ(a, b, _TAKEN)[:1])
    reference = _reference_differs(a, b, confidence)
    causes = _states_differ(a, b)
    return "; ".join([*([reference] if reference else []), *causes[:1]])


def notes(a: Recorded, b: Recorded) -> list[str]:
    """Lists the facts that could not be compared, because they were not recorded or the sides are ``unlike``."""
    texts = []
    unknown = [
        name for name, side in (("first", a), ("second", b)) if not any(run.states or run.own for run in side.runs)
    ]
    if unknown:
        texts = [f"the machine's state was not recorded in the {' and the '.join(unknown)} runs: it may have differed"]
    if parts := unlike(a, b):
        spans = ", and ".join(f"{len(side.runs)} runs{side.within}" for side in (a, b))
        whose = " and ".join(f"the {part}'s" for part in parts)
        texts.append(
            f"the machine's state counts as {whose} as far as it lasted: {spans}; spread runs of a shared machine"
        )
    elif not unknown:
        texts += [text for text in [no_reference_reason(a, b)] if text]
    return texts
