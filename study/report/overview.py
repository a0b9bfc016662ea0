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
from ..results.storage.records import DISTURBED, ObservationRecord, PointStatus, SampleFlag, StateRecord
from .charts.units import bound_text, number_text, percent_text, plain_text, time_text

_SAID: Final[Mapping[PointStatus, str]] = {
    PointStatus.NOISY: "too noisy",
    PointStatus.FAILED: "failed",
    PointStatus.SKIPPED: "skipped",
    PointStatus.SAMPLING: "not finished",
    PointStatus.PENDING: "not begun",
}


@dataclass(frozen=True, slots=True)
class ClockQuality:
    """The quality of the relation between the device's and the host's clocks in a run; ``None``
    without device times.
    """

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
    readings: dict[tuple[int, str], list[ClockCalibration]] = {
        (device.run, device.device): [] for device in results.devices
    }
    facts = {(device.run, device.device): device.facts for device in results.devices}
    for reading in results.clocks:
        if reading.device_ticks is None or reading.ns_per_tick is None:
            continue
        timestamps = facts.get((reading.run, reading.device), {}).get("timestamps")
        known: Mapping[str, object] = timestamps if isinstance(timestamps, Mapping) else {}
        bits = known.get("valid_bits")
        readings.setdefault((reading.run, reading.device), []).append(
            ClockCalibration(
                device_ticks=reading.device_ticks,
                host_ns=reading.host_ns,
                max_deviation_ns=round(reading.deviation_ns or 0),
                ns_per_tick=reading.ns_per_tick,
                valid_bits=bits if isinstance(bits, int) and bits > 0 else 64,
                host_clock=str(known.get("host_clock") or ""),
                calibrated=bool(reading.calibrated),
            )
        )
    return [
        ClockQuality(run, device, ClockRelation(device, tuple(calibrations)) if calibrations else None)
        for (run, device), calibrations in readings.items()
    ]


_SEEN: Final = {
    SampleFlag.STARVED: "waited for a core",
    SampleFlag.PREEMPTED: "had a thread preempted",
    SampleFlag.THROTTLED: "were taken while the reference ran at another speed",
    SampleFlag.CLOCK_UNSURE: "have device times in doubt",
}


def disturbance_text(total: int, flagged: Mapping[SampleFlag, int]) -> str:
    """Returns the share of disturbed samples by kind, as text; empty for none."""
    return ", ".join(f"{percent_text(flagged[flag] / total)} {text}" for flag, text in _SEEN.items() if flagged[flag])


_FIGURES: Final = (
    ("others", "{} of the processor went to other processes"),
    ("steal", "{} to other virtual machines"),
    ("run_delay", "threads waited for a core {} of their time"),
    ("pressure", "some task waited for one {} of the time"),
)


def machine_text(states: Sequence[StateRecord]) -> str:
    """Returns the median of each known figure of the machine's state, as text; empty if nothing is known."""

    def median(name: str) -> float | None:
        known = [value for value in (getattr(state, name) for state in states) if value is not None]
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
    total = sum(point.total for point in analysis.points)
    return total, {flag: sum(point.flagged(flag) for point in analysis.points) for flag in SampleFlag}


def verdict(analysis: StudyAnalysis) -> str:
    """Sums a study up: ``34 of 36 points done, 1 too noisy, 1 failed; samples: 2.1 % waited for a core; …``."""
    counts = Counter(point.status for point in analysis.points)
    parts = [f"{counts[PointStatus.DONE]} of {len(analysis.points)} points done"]
    parts += [f"{counts[status]} {said}" for status, said in _SAID.items() if counts[status]]
    said = [", ".join(parts)]
    total, flagged = disturbances(analysis)
    if total:
        disturbed = disturbance_text(total, flagged)
        said.append(f"samples: {disturbed}" if disturbed else f"none of {total:,} samples disturbed")
    clocks = [quality.relation for quality in clock_qualities(analysis) if quality.relation is not None]
    if clocks:
        drifting = [relation for relation in clocks if relation.residual_ns is not None]
        clock = f"clock deviation ≤ {bound_text(max(relation.deviation_ns for relation in clocks))}"
        if drifting:
            clock += f", drift {max(drifting, key=lambda relation: abs(relation.drift_ppm or 0)).drift_text}"
        said.append(clock)
    elif total:
        said.append("no device timestamps")
    return "; ".join(said)


def warnings(analysis: StudyAnalysis) -> list[str]:
    """Returns warnings that readers need before they trust the figures, one sentence each."""
    texts = []
    for device in dict.fromkeys(device.device for device in analysis.results.devices):
        record = [clock for clock in analysis.results.devices if clock.device == device][-1]
        if record.facts.get("type") == "CPU":
            texts.append(
                f"{record.name} is the CPU itself: device times are CPU times, and the measurement competes for its "
                "cores."
            )
    loose = [
        quality
        for quality in clock_qualities(analysis)
        if quality.relation is not None and not quality.relation.calibrated
    ]
    for device in dict.fromkeys(clock.device for clock in loose):
        texts.append(
            f"The clocks of {device} and of the host are not calibrated: queue and wake are known within bounds "
            "only, those of deviation."
        )
    sampled = {
        (run, point.point.device) for point in analysis.measured for run in np.unique(point.result.runs).tolist()
    }
    untimed = [
        quality
        for quality in clock_qualities(analysis)
        if quality.relation is None and (quality.run, quality.device) in sampled
    ]
    for device in dict.fromkeys(clock.device for clock in untimed):
        texts.append(f"{device} has no timestamps: the time between submit and awake is not divided.")
    if not any(run.ended for run in analysis.results.runs) and analysis.results.runs:
        texts.append("No run of this study has ended yet: the report shows a moment of it.")
    overlapping = sum(1 for point in analysis.measured if point.overlapping)
    if overlapping:
        texts.append(
            f"Dispatches may overlap at {overlapping} points: a sample's time divided by its dispatches is the "
            "marginal cost of a dispatch, not its duration. The table marks them."
        )
    all_used = sum(1 for point in analysis.points if point.uses_disturbed)
    total, _ = disturbances(analysis)
    disturbed = sum(point.flagged(DISTURBED) for point in analysis.points)
    if all_used:
        measured = sum(1 for point in analysis.points if point.total)
        where = "all points" if all_used == measured else f"{all_used} of {measured} points"
        others = "" if all_used == measured else "; at the others disturbed ones are left out"
        texts.append(
            f"{percent_text(disturbed / total)} of all samples are disturbed. At {where} these are more than half, and "
            f"statistics there are of all samples, disturbed ones too{others}. A quieter machine would tell more."
        )
    return texts


class Problem(NamedTuple):
    """Points with the same status and reason."""

    status: PointStatus
    reason: str
    points: list[str]


def problems(analysis: StudyAnalysis) -> list[Problem]:
    """Groups the points that are not done by status and reason."""
    groups: dict[tuple[PointStatus, str], list[str]] = {}
    for point in analysis.points:
        if point.status is not PointStatus.DONE:
            # The figures in a noisy point's reason are in the table.
            reason = point.result.reason.split(":")[0] if point.status is PointStatus.NOISY else point.result.reason
            groups.setdefault((point.status, reason), []).append(point.point.label)
    return [Problem(*key, points) for key, points in groups.items()]


def facts(analysis: StudyAnalysis) -> list[tuple[str, str]]:
    """Returns the machine, the versions and the settings as named texts."""
    results = analysis.results
    rows = [("Study", f"{results.name}, begun {results.created}")]
    for record in {device.device: device for device in results.devices}.values():
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
        told = [f"pumice {run.pumice}", python, *(f"{name} {number}" for name, number in versions)]
        rows.append(("Versions", ", ".join(told)))
        runs = [f"{run.number}: {run.started}, {run.outcome or 'not ended'}" for run in results.runs]
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
    counts = [point.total for point in analysis.points if point.total]
    if counts:
        rows.append(("Samples", f"{sum(counts):,} of {len(counts)} points, median {int(np.median(counts))} a point"))
    return rows


def observation_rows(analysis: StudyAnalysis, observations: Sequence[ObservationRecord]) -> list[tuple[str, ...]]:
    """Returns the point, subject, name, value and description of each observation."""
    labels = {point.point.index: point.point.label for point in analysis.points}
    return [
        (
            labels[observation.point],
            observation.subject,
            observation.name,
            observation_text(observation),
            str(observation.details.get("description", "")),
        )
        for observation in observations
    ]


def observation_text(observation: ObservationRecord) -> str:
    """Formats the value with its unit."""
    value = observation.value
    return f"{value if isinstance(value, int) else number_text(value)} {observation.unit}".rstrip()


def observation_facts(observations: Sequence[ObservationRecord]) -> list[tuple[str, str]]:
    """Returns a line for each subject, with all its figures."""
    lines: dict[str, list[str]] = {}
    for observation in observations:
        lines.setdefault(observation.subject, []).append(f"{observation.name} {observation_text(observation)}")
    return [(subject, ", ".join(figures)) for subject, figures in lines.items()]
