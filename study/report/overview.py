"""The overview of a study: verdict, warnings, problems, the machine and its clocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...hal.clock import ClockCalibration
from ...runtime.profiling.clock import ClockRelation
from ..results.analysis import StudyAnalysis
from ..results.storage.records import DISTURBED, PointStatus, SampleFlag, StateRecord
from .charts.units import bound_text, percent_text, plain_text, time_text

_SAID: Final[Mapping[PointStatus, str]] = {
    PointStatus.NOISY: "too noisy",
    PointStatus.FAILED: "failed",
    PointStatus.SKIPPED: "skipped",
    PointStatus.SAMPLING: "not finished",
    PointStatus.PENDING: "not begun",
}


@dataclass(frozen=True, slots=True)
class ClockQuality:
    """How well the clocks of a device and the host are related in a run; ``None`` without device times."""

    run: int
    device: str
    relation: ClockRelation | None

    @property
    def text(self) -> str:
        clock = self.relation
        if clock is None:
            return "no device timestamps"
        how = "calibrated by the driver" if clock.calibrated else "bracketed by submissions, not calibrated"
        parts = [how, f"{len(clock.readings)} readings", f"deviation ≤ {bound_text(clock.deviation_ns)}"]
        if clock.residual_ns is not None:
            parts += [f"drift {clock.drift_text}", f"residuals ≤ {bound_text(clock.residual_ns)}"]
        return ", ".join(parts)


def clock_qualities(analysis: StudyAnalysis) -> list[ClockQuality]:
    results = analysis.results
    readings: dict[tuple[int, str], list[ClockCalibration]] = {(one.run, one.device): [] for one in results.devices}
    facts = {(one.run, one.device): one.facts for one in results.devices}
    for one in results.clocks:
        if one.device_ticks is None or one.ns_per_tick is None:
            continue
        timestamps = facts.get((one.run, one.device), {}).get("timestamps")
        known: Mapping[str, object] = timestamps if isinstance(timestamps, Mapping) else {}
        bits = known.get("valid_bits")
        readings.setdefault((one.run, one.device), []).append(
            ClockCalibration(
                device_ticks=one.device_ticks,
                host_ns=one.host_ns,
                max_deviation_ns=round(one.deviation_ns or 0),
                ns_per_tick=one.ns_per_tick,
                valid_bits=bits if isinstance(bits, int) and bits > 0 else 64,
                host_clock=str(known.get("host_clock") or ""),
                calibrated=bool(one.calibrated),
            )
        )
    return [
        ClockQuality(run, device, ClockRelation(device, tuple(each)) if each else None)
        for (run, device), each in readings.items()
    ]


_SEEN: Final = {
    SampleFlag.STARVED: "waited for a core",
    SampleFlag.PREEMPTED: "had a thread preempted",
    SampleFlag.THROTTLED: "were taken while the reference ran at another speed",
    SampleFlag.CLOCK_UNSURE: "have device times in doubt",
}


def seen(total: int, flagged: Mapping[SampleFlag, int]) -> str:
    """Says what share of the samples was disturbed, by kind; empty for none."""
    return ", ".join(f"{percent_text(flagged[flag] / total)} {what}" for flag, what in _SEEN.items() if flagged[flag])


_FIGURES: Final = (
    ("others", "{} of the processor went to other processes"),
    ("steal", "{} to other virtual machines"),
    ("run_delay", "threads waited for a core {} of their time"),
    ("pressure", "some task waited for one {} of the time"),
)


def machine_text(states: Sequence[StateRecord]) -> str:
    """Says the median of each known figure of the machine's state; empty if nothing is known."""

    def median(name: str) -> float | None:
        known = [value for value in (getattr(one, name) for one in states) if value is not None]
        return float(np.median(known)) if known else None

    parts = [text.format(percent_text(value)) for name, text in _FIGURES if (value := median(name)) is not None]
    if (wake := median("wake_ns")) is not None:
        late = median("wake_p90_ns")
        parts.append(
            f"wake-ups took {time_text(wake, 2)}" + (f", one of ten over {time_text(late, 2)}" if late else "")
        )
    return "; ".join(parts)


def disturbances(analysis: StudyAnalysis) -> tuple[int, Mapping[SampleFlag, int]]:
    """Counts all samples, those of baselines included, and the samples with each flag."""
    total = sum(one.total for one in analysis.points)
    return total, {flag: sum(one.flagged(flag) for one in analysis.points) for flag in SampleFlag}


def verdict(analysis: StudyAnalysis) -> str:
    """Sums a study up: ``34 of 36 points done, 1 too noisy, 1 failed; of the samples 2.1 % waited for a core; …``."""
    counts = Counter(one.status for one in analysis.points)
    parts = [f"{counts[PointStatus.DONE]} of {len(analysis.points)} points done"]
    parts += [f"{counts[status]} {said}" for status, said in _SAID.items() if counts[status]]
    said = [", ".join(parts)]
    total, flagged = disturbances(analysis)
    if total:
        disturbed = seen(total, flagged)
        said.append(f"of the samples {disturbed}" if disturbed else f"none of {total:,} samples disturbed")
    clocks = [one.relation for one in clock_qualities(analysis) if one.relation is not None]
    if clocks:
        drifting = [one for one in clocks if one.residual_ns is not None]
        clock = f"clock deviation ≤ {bound_text(max(one.deviation_ns for one in clocks))}"
        if drifting:
            clock += f", drift {max(drifting, key=lambda one: abs(one.drift_ppm or 0)).drift_text}"
        said.append(clock)
    elif total:
        said.append("no device timestamps")
    return "; ".join(said)


def warnings(analysis: StudyAnalysis) -> list[str]:
    """Returns what readers must know before they trust the figures, a sentence each."""
    found = []
    for device in dict.fromkeys(one.device for one in analysis.results.devices):
        record = [one for one in analysis.results.devices if one.device == device][-1]
        if record.facts.get("type") == "CPU":
            found.append(
                f"{record.name} is the CPU itself: device times are CPU times, and the measurement competes for its "
                "cores."
            )
    loose = [one for one in clock_qualities(analysis) if one.relation is not None and not one.relation.calibrated]
    for device in dict.fromkeys(one.device for one in loose):
        found.append(
            f"The clocks of {device} and of the host are not calibrated: queue and wake are known within bounds "
            "only, those of deviation."
        )
    sampled = {(run, one.point.device) for one in analysis.measured for run in np.unique(one.result.runs).tolist()}
    untimed = [one for one in clock_qualities(analysis) if one.relation is None and (one.run, one.device) in sampled]
    for device in dict.fromkeys(one.device for one in untimed):
        found.append(f"{device} has no timestamps: the time between submit and awake is not divided.")
    if not any(one.ended for one in analysis.results.runs) and analysis.results.runs:
        found.append("No run of this study has ended yet: the report shows a moment of it.")
    overlapping = sum(1 for one in analysis.measured if one.overlapping)
    if overlapping:
        found.append(
            f"Dispatches may overlap at {overlapping} points: a sample's time divided by its dispatches is the "
            "marginal cost of a dispatch, not its duration. The table marks them."
        )
    all_used = sum(1 for one in analysis.points if one.uses_disturbed)
    total, _ = disturbances(analysis)
    disturbed = sum(one.flagged(DISTURBED) for one in analysis.points)
    if all_used:
        measured = sum(1 for one in analysis.points if one.total)
        where = "all points" if all_used == measured else f"{all_used} of {measured} points"
        others = "" if all_used == measured else "; at the others disturbed ones are left out"
        found.append(
            f"{percent_text(disturbed / total)} of all samples are disturbed. At {where} these are more than half, and "
            f"statistics there are of all samples, disturbed ones too{others}. A quieter machine would tell more."
        )
    return found


class Problem(NamedTuple):
    """Points with the same status and reason."""

    status: PointStatus
    reason: str
    points: list[str]


def problems(analysis: StudyAnalysis) -> list[Problem]:
    """Groups the points that are not done by status and reason."""
    groups: dict[tuple[PointStatus, str], list[str]] = {}
    for one in analysis.points:
        if one.status is not PointStatus.DONE:
            # The figures in the reason of a noisy point are in the table.
            reason = one.result.reason.split(":")[0] if one.status is PointStatus.NOISY else one.result.reason
            groups.setdefault((one.status, reason), []).append(one.point.label)
    return [Problem(*key, points) for key, points in groups.items()]


def facts(analysis: StudyAnalysis) -> list[tuple[str, str]]:
    """Returns the machine, the versions and the settings as named texts."""
    results = analysis.results
    rows = [("Study", f"{results.name}, begun {results.created}")]
    for record in {one.device: one for one in results.devices}.values():
        name = record.name if record.device == record.name else f"{record.name} ({record.device})"
        rows.append(("Device", f"{name}, {str(record.facts.get('type', 'type unknown')).replace('_', ' ')}"))
        version = record.facts.get("api_version")
        rows.append(("Driver", f"{record.driver}{f', Vulkan {version}' if version else ''}"))
    for quality in clock_qualities(analysis):
        where = f"{quality.device}, run {quality.run}: " if len(results.devices) > 1 else ""
        rows.append(("Clocks", where + quality.text))
    if results.runs:
        run = results.runs[-1]
        cpu = run.environment.get("cpu")
        known: Mapping[str, object] = cpu if isinstance(cpu, Mapping) else {}
        parts = [run.host, known.get("model"), f"{known['threads']} threads" if known.get("threads") else None]
        governor = known.get("governor")
        parts += [run.environment.get("os"), f"governor {governor}" if governor else None]
        rows.append(("Host", ", ".join(str(part) for part in parts if part)))
        if state := machine_text(results.states):
            rows.append(("State", f"{state} (medians)"))
        packages = run.environment.get("packages")
        versions = packages.items() if isinstance(packages, Mapping) else ()
        python = str(run.environment.get("python") or f"Python {run.python}")
        told = [f"pumice {run.pumice}", python, *(f"{name} {each}" for name, each in versions)]
        rows.append(("Versions", ", ".join(told)))
        runs = [f"{one.number}: {one.started}, {one.outcome or 'not ended'}" for one in results.runs]
        rows.append(("Runs", "; ".join(runs)))
    sampling = analysis.study.sampling
    criterion = "standard error of the median" if sampling.criterion == "error" else "change of entropy"
    noisy = f"{plain_text(100 * sampling.noise_limit)} %"
    if analysis.study.against is not None:
        noisy += f", and of pairs if their ratio is not known to ±{plain_text(100 * sampling.resolution)} %"
    text = (
        f"{sampling.min_samples} to {sampling.max_samples} samples a point, at most {plain_text(sampling.time_limit)} "
        f"s; done at a relative {criterion} of {plain_text(100 * sampling.relative_error)} %, too noisy above {noisy}; "
        f"blocks of {sampling.block}, {sampling.interleave} points interleaved, {sampling.cache} caches"
    )
    rows.append(("Sampling", text))
    counts = [one.total for one in analysis.points if one.total]
    if counts:
        rows.append(("Samples", f"{sum(counts):,} of {len(counts)} points, median {int(np.median(counts))} a point"))
    return rows
