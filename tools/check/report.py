"""The verdict on a device, by area and as a whole, and the report as JSON."""

from __future__ import annotations

import datetime
import enum
import importlib.metadata
import os
import platform
from collections import Counter
from pathlib import Path
from typing import Any, Final

from ...base.lazy_dataclass import dataclass
from .case import AREAS, CaseResult, Ending
from .trial import Trial

_FORMAT: Final = 1


class Assessment(enum.Enum):
    """The verdict on an area, or on the device."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "not checked"


@dataclass(frozen=True, slots=True)
class AreaReport:
    """The cases of an area, and their consequences.

    Attributes:
        assessment: BAD if a case is bad; UNKNOWN if the time did not suffice for a single case.
    """

    area: str
    outcomes: dict[str, CaseResult]
    assessment: Assessment

    @property
    def title(self) -> str:
        return AREAS[self.area]

    def counts(self) -> dict[Ending, int]:
        total = Counter(outcome.ending for outcome in self.outcomes.values())
        return {ending: total[ending] for ending in Ending if total[ending]}


@dataclass(frozen=True, slots=True)
class Report:
    """The results of a trial of a device.

    Attributes:
        assessment: BAD if an area is bad, UNKNOWN if an area was not tried.
    """

    trial: Trial
    started: str
    areas: tuple[AreaReport, ...]
    assessment: Assessment

    @classmethod
    def of(cls, trial: Trial) -> Report:
        areas = []
        for area in AREAS:
            outcomes = {name: outcome for name, outcome in trial.outcomes.items() if name.partition("/")[0] == area}
            if outcomes:
                areas.append(AreaReport(area, outcomes, _assessed([outcome.ending for outcome in outcomes.values()])))
        assessments = {area.assessment for area in areas}
        whole = next((worse for worse in (Assessment.BAD, Assessment.UNKNOWN) if worse in assessments), Assessment.GOOD)
        now = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=trial.seconds)
        return cls(trial, now.isoformat(timespec="seconds"), tuple(areas), whole)

    def to_json(self) -> dict[str, Any]:
        """Returns the report as data, with the home folder abbreviated, as other people read the file."""
        return {
            "format": _FORMAT,
            "pumice": importlib.metadata.version("pumice"),
            "started": self.started,
            "seconds": round(self.trial.seconds, 1),
            "verdict": self.assessment.value,
            "host": host_facts(),
            "device": {key: self.trial.device[key] for key in ("uri", "name")},
            "areas": {
                area.area: {
                    "verdict": area.assessment.value,
                    **{ending.value: count for ending, count in area.counts().items()},
                }
                for area in self.areas
            },
            "cases": {
                name: {
                    "ending": outcome.ending.value,
                    "seconds": round(outcome.seconds, 3),
                    **({"message": without_home(outcome.message)} if outcome.message else {}),
                    **({"figures": dict(outcome.figures)} if outcome.figures else {}),
                }
                for area in self.areas
                for name, outcome in area.outcomes.items()
            },
            "profile": self.trial.device["profile"],
        }


def host_facts() -> dict[str, str]:
    """Returns facts about the machine that may matter, but nothing that identifies its user."""
    settings = {name: value for name, value in sorted(os.environ.items()) if name.startswith(("PUMICE_", "VK_"))}
    facts = {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "Python": platform.python_version(),
        "CPUs": str(os.cpu_count()),
    }
    if settings:
        facts["settings"] = without_home(", ".join(f"{name}={value}" for name, value in settings.items()))
    return facts


def without_home(text: str) -> str:
    """Replaces the home folder by ``~``."""
    home = str(Path.home())
    return text.replace(home, "~") if len(home) > 1 else text


def _assessed(endings: list[Ending]) -> Assessment:
    if any(ending.is_bad for ending in endings):
        return Assessment.BAD
    return Assessment.UNKNOWN if all(ending is Ending.NOT_RUN for ending in endings) else Assessment.GOOD
