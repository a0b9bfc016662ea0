"""The records of the machine made by a study's runs while they measured a point."""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from ....base.lazy_dataclass import dataclass
from ..storage.point_result import PointResult
from ..storage.records import ClockRecord, ReferenceRecord, StateRecord
from ..storage.stored_results import StoredResults

_Array = npt.NDArray[np.float64]

Part = Literal["device", "driver", "host"]
PARTS: Final[tuple[Part, ...]] = ("device", "driver", "host")
"""The parts of a machine across which results may be compared."""

# A state describes the half second before it.
_AROUND_NS: Final = 600_000_000
_SPANS: Final = ((1440, "day"), (60, "hour"), (1, "minute"))


@dataclass(frozen=True, slots=True)
class RunState:
    """The records of one run of a study, over all resumptions, while it measured a point: nanoseconds of the references
    by load, states of the machine, and MHz of the device; and when it began, ISO 8601.
    """

    own: Mapping[str, _Array]
    compute: Mapping[str, _Array]
    states: Sequence[StateRecord]
    frequency_mhz: _Array
    memory_mhz: _Array
    began: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The records of one side's runs while they measured a point.

    Attributes:
        host, device, driver: the names, joined if the runs differ.
        software: whether the device is the host's processor.
        measure: the point's measure.
        headline_ns: the median of that measure, in nanoseconds.
        runs: the records of each run that has samples of the point.
    """

    host: str
    device: str
    driver: str
    software: bool
    measure: str
    headline_ns: float
    runs: Sequence[RunState]

    @property
    def is_of_host(self) -> bool:
        """Whether the measured time includes work of the host."""
        return self.software or self.measure != "execute"

    @property
    def minutes(self) -> float:
        """The minutes between the starts of the first and the last run; NaN if unknown."""
        try:
            times = [datetime.datetime.fromisoformat(run.began) for run in self.runs]
        except ValueError:
            return math.nan
        return (max(times) - min(times)).total_seconds() / 60

    @property
    def within(self) -> str:
        """A clause such as `` begun within 3 minutes``; empty if it is not known."""
        minutes = self.minutes
        if math.isnan(minutes):
            return ""
        unit, name = next((span for span in _SPANS if minutes >= span[0]), _SPANS[-1])
        count = max(1, math.ceil(minutes / unit))
        return f" begun within {count} {name}" + ("s" if count > 1 else "")


def recorded(results: StoredResults, result: PointResult) -> Recorded:
    """Collects the runs' records of the machine from the time when they measured a point of these results."""
    numbers, repeats, started = result.runs, result.repeat, result.integers("started_ns")
    records = {run.number: run for run in results.runs}
    windows = {}
    for run in np.unique(numbers).tolist():
        mine = started[numbers == run]
        windows[run] = int(mine.min()) - _AROUND_NS, int(mine.max()) + _AROUND_NS
    devices = [device for device in results.devices if device.run in windows and device.device == result.point.device]
    tables, measured_by = _tables(results), hosts(results)
    states = []
    for repeat in np.unique(repeats).tolist():
        resumed = {run: windows[run] for run in np.unique(numbers[repeats == repeat]).tolist()}
        states.append(_of_run(resumed, min(records[run].started for run in resumed), result, *tables))
    values = result.values()
    return Recorded(
        host=_names(measured_by.get((run, result.point.index), records[run].host) for run in windows),
        device=_names(device.name for device in devices),
        driver=_names(device.driver for device in devices),
        software=any(device.facts.get("type") == "CPU" for device in devices),
        measure=result.point.measure,
        headline_ns=float(np.nanmedian(values)) if np.isfinite(values).any() else math.nan,
        runs=states,
    )


@functools.lru_cache(maxsize=2)
def hosts(results: StoredResults) -> Mapping[tuple[int, int | None], str]:
    """Returns the host that measured each point on a cluster, by run and point. Cached for all points."""
    return {(note.run, note.point): note.text for note in results.notes if note.kind == "host"}


@functools.lru_cache(maxsize=2)
def _tables(
    results: StoredResults,
) -> tuple[Sequence[ReferenceRecord], Sequence[StateRecord], Sequence[ClockRecord]]:
    """Reads the tables once for all points."""
    return results.references, results.states, results.clocks


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names)))


def _of_run(
    windows: Mapping[int, tuple[int, int]],
    began: str,
    result: PointResult,
    references: Sequence[ReferenceRecord],
    states: Sequence[StateRecord],
    clocks: Sequence[ClockRecord],
) -> RunState:
    """Collects the records of a run and its resumptions, each within a window of its clock."""

    def within(run: int, when: int) -> bool:
        return run in windows and windows[run][0] <= when <= windows[run][1]

    own: dict[str, list[float]] = {}
    compute: dict[str, list[float]] = {}
    for reading in references:
        if not within(reading.run, reading.started_ns):
            continue
        if reading.kind == "own" and reading.point == result.point.index:
            own.setdefault(reading.load, []).append(reading.duration_ns)
        elif reading.kind == "compute" and reading.device == result.point.device:
            compute.setdefault(reading.load, []).append(reading.duration_ns)
    mine = [clock for clock in clocks if clock.device == result.point.device and within(clock.run, clock.host_ns)]
    return RunState(
        {load: np.array(times) for load, times in own.items()},
        {load: np.array(times) for load, times in compute.items()},
        [state for state in states if within(state.run, state.host_ns)],
        np.array([point.frequency_mhz for point in mine if point.frequency_mhz]),
        np.array([point.memory_mhz for point in mine if point.memory_mhz]),
        began,
    )


def unlike(a: Recorded, b: Recorded) -> dict[Part, str]:
    """Returns a sentence for each of device, driver and host in which the sides differ."""
    texts: dict[Part, str] = {}
    for part in PARTS:
        first, second = getattr(a, part), getattr(b, part)
        if first != second:
            texts[part] = f"another {part}: {second or 'unknown'} in the second runs, {first or 'unknown'} in the first"
    return texts
