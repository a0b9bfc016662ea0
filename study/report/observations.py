"""Observations, the figures that are taken separately from samples, as text."""

from __future__ import annotations

from collections.abc import Sequence

from ..results.analysis import StudyAnalysis
from ..results.storage.records import ObservationRecord
from .charts.units import number_text


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
