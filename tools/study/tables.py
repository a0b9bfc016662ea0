"""Output of the commands about studies: tables or JSON."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...base.terminal import printable, said_once
from ...status import NotFoundError, PumiceError
from ...study.definition.expansion import expand
from ...study.definition.study import Study
from ...study.definition.study_file import load_study, study_as_dict
from ...study.results.comparison.revision import revision_of
from ...study.results.results import Results
from ...study.results.storage.point_result import PointResult
from ...study.results.storage.records import PointStatus
from ..errors import describe, usage
from ..streams import note, put
from ..tables import heading, print_facts, print_json, print_table
from .judgement import Judgement, Outcome

if TYPE_CHECKING:
    from ...study.results.comparison.results_comparison import PointComparison
    from ...study.workloads.peaks import Peaks


def _first_sentence(text: str) -> str:
    joined = " ".join(text.split())
    head, mark, _ = joined.partition("? ")
    return head + mark.strip() if mark else joined


def print_study_list(folder: Path, as_json: bool) -> None:
    """Prints the studies in a folder with their questions."""
    studies = [load_study(path) for path in sorted(folder.glob("*.toml"))]
    if as_json:
        print_json(
            [{"name": study.name, "title": study.title, "question": study.question.strip()} for study in studies]
        )
        return
    rows = [(study.name, _first_sentence(study.question) or study.title) for study in studies]
    print_table(("study", "question"), rows, prose=True)
    note("show one with pumice study show NAME, measure it with pumice study run NAME")


def print_result_list(folder: Path, as_json: bool) -> None:
    """Prints the results in and below a folder."""
    if not folder.is_dir():
        raise NotFoundError(f"there is no folder {folder}")
    folders = [path.parent for path in sorted(folder.rglob("results.sqlite"))]
    if not folders:
        raise NotFoundError(f"there are no results in {folder} or below it")
    rows: list[dict[str, object]] = []
    for path in folders:
        try:
            with Results.open(path) as results:
                states = [str(result.status) for result in results.points]
                rows.append(
                    {
                        "folder": str(path),
                        "study": results.name,
                        "devices": sorted({device.name for device in results.devices}),
                        "begun": results.created,
                        "points": len(states),
                        "done": states.count("done"),
                        "samples": sum(result.count for result in results.points),
                    }
                )
        except PumiceError as error:
            rows.append({"folder": str(path), "error": describe(error)})
    if as_json:
        print_json(rows)
        return
    table = [
        (str(row["folder"]), str(row["error"]), "", "", "", "")
        if "error" in row
        else (
            str(row["folder"]),
            str(row["study"]),
            ", ".join(row["devices"]),  # type: ignore[arg-type]
            str(row["begun"]),
            f"{row['done']} of {row['points']}",
            str(row["samples"]),
        )
        for row in rows
    ]
    print_table(("results", "study", "device", "begun", "points done", "samples"), table)


def print_study(study: Study, as_json: bool) -> None:
    """Prints a study's targets, and how to read its results."""
    with usage():
        count = len(expand(study, study.devices or ("vulkan",)))
    if as_json:
        print_json(study_as_dict(study))
        return
    heading(study.title or study.name)
    for paragraph in (study.question, study.reading):
        if paragraph.strip():
            put("\n" + " ".join(paragraph.split()))
    put()
    print_facts(
        [
            *(("target", f"{target.name} ({target.kind})") for target in study.targets),
            *(("axis", f"{axis.name}: {', '.join(map(str, axis.values))}") for axis in study.axes),
            *(("figure", f"{name} = {expression}") for name, expression in study.derived.items()),
            ("points", f"{count} on each device"),
        ]
    )
    if study.text:
        put("\n" + study.text.rstrip())


def print_result_facts(folder: Path, as_json: bool) -> None:
    """Prints the contents of results in a folder."""
    from ...study.report.overview import machine_text

    with Results.open(folder) as results:
        facts = {
            "study": results.name,
            "begun": results.created,
            "runs": [dataclasses.asdict(run) | {"environment": dict(run.environment)} for run in results.runs],
            "devices": [dataclasses.asdict(device) | {"facts": dict(device.facts)} for device in results.devices],
            "points": [
                {
                    "index": result.point.index,
                    "target": result.point.target,
                    "device": result.point.device,
                    "axes": dict(result.point.axes),
                    "status": str(result.status),
                    "reason": result.reason,
                    "samples": result.count,
                }
                for result in results.points
            ],
            "notes": [dataclasses.asdict(note) for note in results.notes],
        }
        if as_json:
            print_json(facts)
            return
        heading(f"{folder}: {results.name}")
        shown = [("begun", results.created)]
        runs = results.runs
        repeats = len({run.repeat for run in runs})
        for run in runs:
            ended = f"{run.started} to {run.ended or '?'} on {run.host}: {run.outcome or 'not ended'}"
            revision = revision_of(run.environment.get("revision"))
            of = [f"repeat {run.repeat}"] * (repeats > 1) + ([f"commit {revision.name}"] if revision else [])
            shown.append((f"run {run.number}", ", ".join([ended, *of])))
        if repeats > 1:
            shown.append(("repeats", f"{repeats} of the study, in {len(runs)} runs"))
        # A line for each different value, not for each run.
        devices = dict.fromkeys(f"{device.device}: {device.name}, {device.driver}" for device in results.devices)
        shown += [("device", text) for text in devices]
        pairs = sum(result.against is not None for result in results.points)
        if pairs:
            shown.append(("sides", f"two: {pairs} of the points are measured in turns with the old side's"))
        if state := machine_text(results.states):
            shown.append(("machine", f"{state} (medians)"))
        shown += [("note", note.text) for note in results.notes if note.kind != "host"]
        print_facts(shown)
        print_table(
            ("point", "status", "samples", ""),
            [(result.point.label, str(result.status), str(result.count), result.reason) for result in results.points],
        )


def results_json(results: Results) -> dict[str, object]:
    """Returns the results in the form of ``pumice study export --json``."""
    from ...study.results.export import export_to

    buffer = io.BytesIO()
    export_to(results, "json", buffer)
    document: dict[str, object] = json.loads(buffer.getvalue())
    return document


def print_bench(results: Results, as_json: bool, subtract_baseline: bool) -> None:
    """Prints the summary of ``pumice bench``."""
    if as_json:
        print_json(results_json(results))
        return
    from ...study.report.terminal import terminal_summary
    from ..tables import print_renderables

    print_renderables(terminal_summary(results, subtract_baseline=subtract_baseline))


_HOW: Final = {"paired": "in turns", "runs": "by runs", "samples": "by samples"}


def print_comparison(judged: Judgement) -> None:
    """Prints a row for each point, the reasons of those that are unclear, notes, and the summary.

    For a point without an interval, the notes, which concern the interval, are only in the JSON.
    """
    comparison = judged.comparison
    rows = []
    for judged_point in judged.points:
        compared = judged_point.point.comparison
        apart = compared is None or compared.how != "paired"  # a pair's sides are noisy together: a note
        noisy = [name for name, side in _sides(judged_point.point) if apart and side.status is PointStatus.NOISY]
        rows.append(
            (
                judged_point.label,
                judged_point.verdict,
                judged_point.ratio,
                judged_point.interval,
                _HOW[compared.how] if compared else "-",
                f"{compared.effect:+.2f}" if compared and math.isfinite(compared.effect) else "-",
                f"{compared.count_a} and {compared.count_b}" if compared else "-",
                " and ".join(map(str, judged_point.left_out)) or "-",
                f"too noisy: {' and '.join(noisy)}" if noisy else "",
            )
        )
    columns = ("point", "verdict", "ratio", "interval", "compared", "effect", "samples", "left out", "")
    print_table(columns, rows)
    reasons = [
        (compared.label, compared.reason)
        for compared in judged.points
        if compared.outcome in (Outcome.UNCLEAR, Outcome.SKIPPED)
    ]
    notes = [
        (compared.label, text)
        for compared in judged.points
        if compared.point.comparison and compared.interval != "-"
        for text in compared.point.comparison.notes
    ]
    for line in (*said_once(reasons), *said_once(notes)):
        put(line)
    put(judged.summary)
    for text in comparison.unpaired:
        note(printable(text))
    for text in comparison.notes:
        note(printable(text if " differ in " in text else f"they differ in {text}"))


def _sides(point: PointComparison) -> tuple[tuple[str, PointResult], ...]:
    names = ("old", "new") if point.a.point.is_against else ("first", "second")
    return (names[0], point.a), (names[1], point.b)


def print_comparison_json(judged: Judgement, within: Mapping[str, object] | None = None) -> None:
    """Prints a comparison as JSON, or as ``comparison`` in another document."""

    def number(value: float) -> float | None:
        return value if math.isfinite(value) else None

    comparison = judged.comparison
    points = []
    for judged_point in judged.points:
        pair = judged_point.point
        compared = pair.comparison
        point: dict[str, object] = {
            "point": pair.b.point.label,
            "target": pair.b.point.target,
            "axes": dict(pair.b.point.axes),
            "device": pair.b.point.device,
            "verdict": str(compared.verdict) if compared else None,
            "why_not": pair.why_not,
            "outcome": str(judged_point.outcome),
            "status": [str(pair.a.status), str(pair.b.status)],
        }
        if compared:
            point |= {
                "ratio": number(compared.ratio),
                "interval": [number(value) for value in compared.interval],
                "confidence": compared.confidence,
                "effect": number(compared.effect),
                "p_value": number(compared.p_value),
                "samples": [compared.count_a, compared.count_b],
                "explanation": compared.explanation,
                "how": compared.how,
                "notes": list(compared.notes),
                "left_out": list(judged_point.left_out),
            }
        points.append(point)
    only = {"only_in_first": list(comparison.only_a), "only_in_second": list(comparison.only_b)}
    gate = {"verdict": judged.verdict, "fail_on": judged.fail_on, "tolerate": judged.tolerate, "exit": judged.status}
    compared_what = {"measure": comparison.measure, "statistic": comparison.statistic}
    document = {"points": points, **only, "differences": list(comparison.notes), **compared_what, "gate": gate}
    print_json(document if within is None else {**within, "comparison": document})


def print_peaks(measured: Mapping[str, Peaks], as_json: bool) -> None:
    """Prints measured peaks by device."""
    if as_json:
        print_json({name: dataclasses.asdict(peaks) for name, peaks in measured.items()})
        return
    rows = []
    for name, peaks in measured.items():
        for unit, value in peaks.peaks.items():
            details = peaks.details.get(unit)
            how = details.get("by", "") if isinstance(details, dict) else ""
            rows.append((name, f"{value:.4g} {unit}", str(how)))
    print_table(("device", "peak", "by"), rows)
