"""The timing report: the durations of the tests on each device, slowest first, as a page of Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Final

from ..base.lazy_dataclass import dataclass

_SHOWN: Final = 50
_PHASES: Final = ("setup", "call", "teardown")


@dataclass(slots=True)
class TimedTest:
    """One test: its seconds by phase, and its outcome."""

    seconds: dict[str, float] = field(default_factory=dict)
    outcome: str = "passed"

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


def write_times(path: Path, header: str, times: Mapping[str, TimedTest]) -> None:
    """Writes the report."""
    slowest = sorted(times.items(), key=lambda item: -item[1].total)
    total = sum(entry.total for _, entry in slowest)
    lines = [
        "# Tests with pumice",
        "",
        f"{header}. {len(times)} tests, {total:.2f} s in all.",
        "",
        f"| test | {' | '.join(f'{phase} s' for phase in _PHASES)} | outcome |",
        "| -- |" + " --: |" * len(_PHASES) + " -- |",
    ]
    for name, entry in slowest[:_SHOWN]:
        cells = [f"{entry.seconds.get(phase, 0.0):.3f}" for phase in _PHASES]
        escaped = name.replace("|", "\\|")
        lines.append(f"| {escaped} | {' | '.join(cells)} | {entry.outcome} |")
    if len(slowest) > _SHOWN:
        lines += ["", f"and {len(slowest) - _SHOWN} more, none of them slower."]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
