"""The outputs of a gate for continuous integration: a summary in Markdown, a JUnit report, GitHub's annotations."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from tabulate import tabulate

from ...base.terminal import printable
from ...study.report.charts.units import time_text
from ...study.statistics.samples import STATISTICS
from ..output_files import store
from ..streams import note
from .judgement import JudgedPoint, Judgement, Outcome

_MARKS: Final = {Outcome.SLOWER: "❌", Outcome.UNCLEAR: "⚠️", Outcome.PASSED: "✅", Outcome.SKIPPED: "⏭️"}
# The most annotations of each level that GitHub shows for a step.
_MAX_ANNOTATIONS: Final = 10


# -- Markdown ----------------------------------------------------------------------------------------


def write_markdown(judged: Judgement, path: Path) -> None:
    """Writes the summary.

    Appends to the file of ``GITHUB_STEP_SUMMARY``, as other commands of the step write there too.
    """
    step = os.environ.get("GITHUB_STEP_SUMMARY")
    appended = bool(step) and path.resolve() == Path(str(step)).resolve()
    data = markdown(judged).encode("utf-8", errors="replace")
    store(path, lambda file: file.write(data), where="--markdown", append=appended)


def markdown(judged: Judgement) -> str:
    """Returns a heading with the verdict, a table of the points (worst first), and the reasons of unclear points."""
    order = list(Outcome)
    points = sorted(judged.points, key=lambda judged_point: order.index(judged_point.outcome))
    rows = []
    for point in points:
        times = (_cell(time_text(ns)) for ns in _times(judged, point))
        rows.append((_MARKS[point.outcome], _cell(point.label), point.verdict, *times, point.ratio, point.interval))
    headers = ("", "point", "verdict", "old", "new", "ratio", "interval")
    table = tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True)
    lines = [f"### {_cell(judged.summary)}", "", table, ""]
    lines += [f"- {_cell(point.label)}: {_cell(point.reason)}" for point in points if point.outcome is Outcome.UNCLEAR]
    notes = [f"- {_cell(text)}" for text in (*judged.comparison.unpaired, *judged.comparison.notes)]
    if notes:
        lines += ["", "They differ:", "", *notes]
    return "\n".join(lines).rstrip() + "\n\n"


def _times(judged: Judgement, judged_point: JudgedPoint) -> list[float | None]:
    """Returns the compared statistic of each side, in nanoseconds per dispatch."""
    comparison = judged.comparison
    values = [side.per_dispatch(comparison.measure) for side in (judged_point.point.a, judged_point.point.b)]
    known = [value[~np.isnan(value)] for value in values]
    return [float(np.quantile(point, STATISTICS[comparison.statistic])) if point.size else None for point in known]


def _cell(text: str) -> str:
    """Escapes a text for a table cell: no Markdown, HTML or line breaks."""
    text = " ".join(printable(text).split())
    for mark in "\\`*_|[]~$":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# -- JUnit -------------------------------------------------------------------------------------------


def write_junit(judged: Judgement, path: Path) -> None:
    """Writes a suite with a test case for each point: a failure if the gate fails, skipped if it is unclear without
    failing. Its time is the new side's.
    """
    from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

    suite = TestSuite("pumice")
    for compared in judged.points:
        _, ns = _times(judged, compared)
        case = TestCase(
            printable(compared.label), f"pumice.{printable(compared.point.b.point.target)}", (ns or 0.0) / 1e9
        )
        reason = printable(compared.reason)
        fails = judged.fails(compared)
        result: Failure | Skipped | None = None
        if fails:
            result = Failure(reason, compared.verdict)
        elif compared.outcome is not Outcome.PASSED:
            result = Skipped(reason, compared.verdict)
        if result is not None:
            result.text = reason  # GitLab shows the text, other services the message
            case.result = [result]
        else:
            case.system_out = reason
        suite.add_testcase(case)
    report = JUnitXml("pumice")
    report.add_testsuite(suite)
    store(path, functools.partial(report.write, pretty=True), where="--junit")


# -- GitHub ------------------------------------------------------------------------------------------


def write_annotations(judged: Judgement) -> None:
    """Writes workflow commands to stderr, which runners read as they do stdout: an error or warning for each slower or
    unclear point, a notice for each faster one, and the summary.
    """
    for line in workflow_commands(judged):
        note(line)


def workflow_commands(judged: Judgement) -> Iterator[str]:
    """Yields the workflow commands; the last command of a level has the number of further commands."""
    levels: dict[str, list[JudgedPoint]] = {"error": [], "warning": [], "notice": []}
    for compared in judged.points:
        if judged.fails(compared):
            levels["error"].append(compared)
        elif compared.outcome in (Outcome.SLOWER, Outcome.UNCLEAR):
            levels["warning"].append(compared)
        elif compared.verdict == "FASTER":
            levels["notice"].append(compared)
    for level, points in levels.items():
        room = _MAX_ANNOTATIONS - (level == "notice")  # the summary is also a notice
        shown = points if len(points) <= room else points[: room - 1]
        for point in shown:
            yield _command(
                level, f"{point.verdict}: {point.label}", point.reason, _source(point, judged.comparison.folder)
            )
        if len(points) > len(shown):
            rest = ", ".join(left_out.label for left_out in points[len(shown) :])
            yield _command(level, f"{len(points) - len(shown)} more", rest)
    yield _command("notice", "pumice", judged.summary)


def _command(level: str, title: str, message: str, file: str = "") -> str:
    """Formats a workflow command, escaped as GitHub's toolkit does (actions/toolkit, packages/core/src/command.ts)."""
    properties = [("file", file)] if file else []
    properties.append(("title", printable(title)))
    said = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties)
    return f"::{level} {said}::{_escaped(printable(message))}"


def _escaped(text: str, more: str = "") -> str:
    for mark in f"%\r\n{more}":
        text = text.replace(mark, f"%{ord(mark):02X}")
    return text


def _source(point: JudgedPoint, folder: str) -> str:
    """Returns the path of the kernel's or program's file relative to the checked-out repository; "" if it is outside.

    Studies name files relative to their folder.
    """
    source = point.point.b.point.settings.get("source")
    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    if not isinstance(source, str):
        return ""
    path = Path(folder, source).resolve()
    return path.relative_to(root).as_posix() if path.is_file() and path.is_relative_to(root) else ""
