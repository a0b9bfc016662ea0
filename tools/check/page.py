"""The report of a check as one HTML file, without scripts."""

from __future__ import annotations

import html
import importlib.metadata
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any, Final

from ...study import report as study_report
from .case import CaseResult, Ending
from .report import AreaReport, Assessment, Report, host_facts, without_home

_ASSESSMENTS: Final = {
    Assessment.GOOD: "Everything that was tried works.",
    Assessment.BAD: "Something is wrong on this device.",
    Assessment.UNKNOWN: "Nothing is wrong, but the time did not suffice for every area.",
}
# Classes of the style sheet of studies' reports.
_CLASSES: Final = {
    Ending.PASSED: "done",
    Ending.FAILED: "failed",
    Ending.CRASHED: "failed",
    Ending.HUNG: "failed",
    Ending.SKIPPED: "skipped",
    Ending.NOT_RUN: "noisy",
}
_STYLE: Final = """
.shares { display: flex; height: 10px; width: 180px; border-radius: 5px; overflow: hidden; }
.shares { background: var(--soft); margin-top: 5px; }
.shares i { display: block; }
.shares .done { background: var(--done); } .shares .failed { background: var(--failed); }
.shares .skipped { background: var(--line); } .shares .noisy { background: var(--warn-line); }
.whole { border-left: 4px solid var(--done); padding: 4px 14px; margin: 14px 0; }
.whole.bad { border-color: var(--failed); } .whole.unknown { border-color: var(--warn-line); }
.cases td:nth-child(4), .figures td:nth-child(3) { white-space: normal; min-width: 300px; overflow-wrap: anywhere; }
.problem { margin: 16px 0; } .problem h3 { margin-bottom: 6px; }
@media print { .shares i { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def render(report: Report) -> str:
    """Returns the page."""
    device, trial = report.trial.device, report.trial
    profile = device["profile"]
    style = (files(study_report) / "templates" / "report.css").read_text(encoding="utf-8")
    version = importlib.metadata.version("pumice")
    driver = " ".join(str(profile.get(key) or "") for key in ("driver_name", "driver_info")).strip()
    facts = {
        "Driver": driver or "unknown",
        "Vulkan": ".".join(map(str, profile["api_version"])),
        "URI": device["uri"],
        **{name[:1].upper() + name[1:]: text for name, text in host_facts().items()},
        "Started": f"{report.started}, took {trial.seconds:.0f} s",
        "pumice": version,
    }
    kind = {Assessment.GOOD: "", Assessment.BAD: " bad", Assessment.UNKNOWN: " unknown"}[report.assessment]
    problems = [(name, outcome) for name, outcome in trial.outcomes.items() if outcome.ending.is_bad]
    parts = [
        f'<p class="kicker">pumice check</p><h1>{_text(device["name"])}</h1>',
        f'<div class="whole{kind}"><p class="verdict">{_text(_ASSESSMENTS[report.assessment])}</p>'
        f"<p>{_text(_counted(report.areas))}</p></div>",
        _facts(facts),
        "<section><h2>Areas</h2>",
        _table(("area", "verdict", "", "cases"), map(_area_row, report.areas)),
        "</section>",
        *([f"<section><h2>What is wrong</h2>{''.join(map(_problem, problems))}</section>"] if problems else []),
        *_figures(report),
        f"<section><h2>Every case</h2>{''.join(map(_cases, report.areas))}</section>",
        "<section><h2>The device</h2><details><summary>Profile</summary>"
        f"<pre>{_text(json.dumps(profile, indent=1))}</pre></details></section>",
        f"<footer>Made by pumice {_text(version)}.</footer>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>pumice check: {_text(device['name'])}</title>\n<style>{style}{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _text(text: Any) -> str:
    return html.escape(without_home(str(text)))


def _counted(areas: Sequence[AreaReport]) -> str:
    total: dict[Ending, int] = {}
    for area in areas:
        for ending, count in area.counts().items():
            total[ending] = total.get(ending, 0) + count
    listed = ", ".join(f"{total[ending]} {ending.value}" for ending in Ending if ending in total)
    return f"{sum(total.values())} cases: {listed}."


def _facts(facts: dict[str, str]) -> str:
    return f'<dl class="facts">{"".join(f"<dt>{_text(n)}</dt><dd>{_text(v)}</dd>" for n, v in facts.items())}</dl>'


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """Returns a table; cells are HTML."""
    head = "".join(f'<th scope="col">{_text(column)}</th>' for column in columns)
    body = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    table = f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>'
    return f'<div class="scroll">{table}</div>'


def _area_row(area: AreaReport) -> tuple[str, ...]:
    kind = {Assessment.GOOD: "done", Assessment.BAD: "failed", Assessment.UNKNOWN: "noisy"}[area.assessment]
    counts, total = area.counts(), len(area.outcomes)
    shares = "".join(
        f'<i class="{_CLASSES[ending]}" style="width:{100 * count / total:.2f}%"></i>'
        for ending, count in counts.items()
    )
    listed = ", ".join(f"{count} {ending.value}" for ending, count in counts.items())
    return (
        _text(area.title),
        f'<span class="status {kind}">{area.assessment.value}</span>',
        f'<div class="shares">{shares}</div>',
        _text(listed),
    )


def _problem(problem: tuple[str, CaseResult]) -> str:
    name, outcome = problem
    return (
        f'<div class="problem"><h3>{_text(name)} <span class="status failed">{outcome.ending.value}</span></h3>'
        f"<pre>{_text(outcome.message)}</pre></div>"
    )


def _figures(report: Report) -> list[str]:
    rows = [
        (_text(name), _text(quantity), _text(_figure_text(figure)))
        for area in report.areas
        for name, outcome in area.outcomes.items()
        for quantity, figure in (outcome.figures or {}).items()
    ]
    return (
        [f"<section><h2>Figures</h2>{_table(('case', 'figure', 'value'), rows, 'figures')}</section>"] if rows else []
    )


def _figure_text(figure: float | str) -> str:
    if isinstance(figure, str):
        return figure
    return f"{figure:,.0f}" if figure == int(figure) or abs(figure) >= 1000 else f"{figure:.4g}"


def _cases(area: AreaReport) -> str:
    rows = [
        (
            _text(name.partition("/")[2]),
            f'<span class="status {_CLASSES[outcome.ending]}">{outcome.ending.value}</span>',
            f"{outcome.seconds:.2f} s" if outcome.seconds else "",
            "" if outcome.ending.is_bad else _text(outcome.message),
        )
        for name, outcome in area.outcomes.items()
    ]
    table = _table(("case", "ended", "time", "reason"), rows, "cases")
    return f"<details><summary>{_text(area.title)} ({len(rows)})</summary>{table}</details>"
