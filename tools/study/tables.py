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
        print_json([{"name": one.name, "title": one.title, "question": one.question.strip()} for one in studies])
        return
    rows = [(one.name, _first_sentence(one.question) or one.title) for one in studies]
    print_table(("study", "question"), rows, prose=True)
    note("show one with pumice study show NAME, measure it with pumice study run NAME")


def print_result_list(folder: Path, as_json: bool) -> None:
    """Prints the results in and below a folder."""
    if not folder.is_dir():
        raise NotFoundError(f"there is no folder {folder}")
    found = [path.parent for path in sorted(folder.rglob("results.sqlite"))]
    if not found:
        raise NotFoundError(f"there are no results in {folder} or below it")
    rows: list[dict[str, object]] = []
    for path in found:
        try:
            with Results.open(path) as results:
                states = [str(one.status) for one in results.points]
                rows.append(
                    {
                        "folder": str(path),
                        "study": results.name,
                        "devices": sorted({one.name for one in results.devices}),
                        "begun": results.created,
                        "points": len(states),
                        "done": states.count("done"),
                        "samples": sum(one.count for one in results.points),
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
    """Prints what a study measures, and how to read its results."""
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
            *(("target", f"{one.name} ({one.kind})") for one in study.targets),
            *(("axis", f"{one.name}: {', '.join(map(str, one.values))}") for one in study.axes),
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
            "runs": [dataclasses.asdict(one) | {"environment": dict(one.environment)} for one in results.runs],
            "devices": [dataclasses.asdict(one) | {"facts": dict(one.facts)} for one in results.devices],
            "points": [
                {
                    "index": one.point.index,
                    "target": one.point.target,
                    "device": one.point.device,
                    "axes": dict(one.point.axes),
                    "status": str(one.status),
                    "reason": one.reason,
                    "samples": one.count,
                }
                for one in results.points
            ],
            "notes": [dataclasses.asdict(one) for one in results.notes],
        }
        if as_json:
            print_json(facts)
            return
        heading(f"{folder}: {results.name}")
        shown = [("begun", results.created)]
        runs = results.runs
        repeats = len({one.repeat for one in runs})
        for run in runs:
            ended = f"{run.started} to {run.ended or '?'} on {run.host}: {run.outcome or 'not ended'}"
            revision = revision_of(run.environment.get("revision"))
            of = [f"repeat {run.repeat}"] * (repeats > 1) + ([f"commit {revision.name}"] if revision else [])
            shown.append((f"run {run.number}", ", ".join([ended, *of])))
        if repeats > 1:
            shown.append(("repeats", f"{repeats} of the study, in {len(runs)} runs"))
        # A line for each that differs, not for each run.
        devices = dict.fromkeys(f"{one.device}: {one.name}, {one.driver}" for one in results.devices)
        shown += [("device", text) for text in devices]
        pairs = sum(one.against is not None for one in results.points)
        if pairs:
            shown.append(("sides", f"two: {pairs} of the points are measured in turns with the old side's"))
        if state := machine_text(results.states):
            shown.append(("machine", f"{state} (medians)"))
        shown += [("note", one.text) for one in results.notes if one.kind != "host"]
        print_facts(shown)
        print_table(
            ("point", "status", "samples", ""),
            [(one.point.label, str(one.status), str(one.count), one.reason) for one in results.points],
        )


def results_json(results: Results) -> dict[str, object]:
    """Returns the results as ``pumice study export --json`` writes them."""
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
    """Prints a row for each point, the reasons of those that are unclear, notes, and the summary. Of a point without an
    interval the notes, which are of the interval, are left to the JSON.
    """
    found = judged.comparison
    rows = []
    for one in judged.points:
        compared = one.point.comparison
        apart = compared is None or compared.how != "paired"  # the two sides of a pair are noisy together: a note
        noisy = [name for name, side in _sides(one.point) if apart and side.status is PointStatus.NOISY]
        rows.append(
            (
                one.label,
                one.verdict,
                one.ratio,
                one.interval,
                _HOW[compared.how] if compared else "-",
                f"{compared.effect:+.2f}" if compared and math.isfinite(compared.effect) else "-",
                f"{compared.count_a} and {compared.count_b}" if compared else "-",
                " and ".join(map(str, one.left_out)) or "-",
                f"too noisy: {' and '.join(noisy)}" if noisy else "",
            )
        )
    columns = ("point", "verdict", "ratio", "interval", "compared", "effect", "samples", "left out", "")
    print_table(columns, rows)
    reasons = [(one.label, one.reason) for one in judged.points if one.outcome in (Outcome.UNCLEAR, Outcome.SKIPPED)]
    notes = [
        (one.label, text)
        for one in judged.points
        if one.point.comparison and one.interval != "-"
        for text in one.point.comparison.notes
    ]
    for line in (*said_once(reasons), *said_once(notes)):
        put(line)
    put(judged.summary)
    for text in found.unpaired:
        note(printable(text))
    for text in found.notes:
        note(printable(text if " differ in " in text else f"they differ in {text}"))


def _sides(one: PointComparison) -> tuple[tuple[str, PointResult], ...]:
    names = ("old", "new") if one.a.point.is_against else ("first", "second")
    return (names[0], one.a), (names[1], one.b)


def print_comparison_json(judged: Judgement, within: Mapping[str, object] | None = None) -> None:
    """Prints a comparison as JSON, as ``comparison`` in another document if that is given."""

    def number(value: float) -> float | None:
        return value if math.isfinite(value) else None

    found = judged.comparison
    points = []
    for judged_point in judged.points:
        one = judged_point.point
        compared = one.comparison
        point: dict[str, object] = {
            "point": one.b.point.label,
            "target": one.b.point.target,
            "axes": dict(one.b.point.axes),
            "device": one.b.point.device,
            "verdict": str(compared.verdict) if compared else None,
            "why_not": one.why_not,
            "outcome": str(judged_point.outcome),
            "status": [str(one.a.status), str(one.b.status)],
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
    only = {"only_in_first": list(found.only_a), "only_in_second": list(found.only_b)}
    gate = {"verdict": judged.verdict, "fail_on": judged.fail_on, "tolerate": judged.tolerate, "exit": judged.status}
    compared_what = {"measure": found.measure, "statistic": found.statistic}
    document = {"points": points, **only, "differences": list(found.notes), **compared_what, "gate": gate}
    print_json(document if within is None else {**within, "comparison": document})


def print_peaks(found: Mapping[str, Peaks], as_json: bool) -> None:
    """Prints measured peaks by device."""
    if as_json:
        print_json({name: dataclasses.asdict(one) for name, one in found.items()})
        return
    rows = []
    for name, one in found.items():
        for unit, value in one.peaks.items():
            details = one.details.get(unit)
            how = details.get("by", "") if isinstance(details, dict) else ""
            rows.append((name, f"{value:.4g} {unit}", str(how)))
    print_table(("device", "peak", "by"), rows)
