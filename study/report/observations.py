"""Observations, the figures that are taken separately from samples, as text."""

from __future__ import annotations

from collections.abc import Sequence

from ..results.analysis import StudyAnalysis
from ..results.storage.records import ObservationRecord
from .charts.units import number_text


def observation_rows(analysis: StudyAnalysis, observations: Sequence[ObservationRecord]) -> list[tuple[str, ...]]:
    """Returns the point, subject, name, value and description of each observation."""
    labels = {one.point.index: one.point.label for one in analysis.points}
    return [
        (labels[one.point], one.subject, one.name, observation_text(one), str(one.details.get("description", "")))
        for one in observations
    ]


def observation_text(one: ObservationRecord) -> str:
    """Formats the value with its unit."""
    return f"{one.value if isinstance(one.value, int) else number_text(one.value)} {one.unit}".rstrip()


def observation_facts(observations: Sequence[ObservationRecord]) -> list[tuple[str, str]]:
    """Returns a line for each subject, with all its figures."""
    lines: dict[str, list[str]] = {}
    for one in observations:
        lines.setdefault(one.subject, []).append(f"{one.name} {observation_text(one)}")
    return [(subject, ", ".join(figures)) for subject, figures in lines.items()]
