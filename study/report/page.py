"""The report as one self-contained HTML file, light or dark as the reader prefers.

>>> from pumice.study import Results, write_report
>>> with Results.open("results") as results:
...     write_report(results, "report.html")
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from ...base.files import write_whole
from ...runtime.profiling.profile import Profile
from ..results.analysis import StudyAnalysis
from ..results.comparison.machine_record import Part
from ..results.results import Results
from ..results.storage.records import DISTURBED
from .charts.chart import point_label
from .charts.comparisons import (
    ComparedPoints,
    ComparedSides,
    compare_across,
    compare_with_run,
    compared_sides,
    forest_chart,
    pair_charts,
    ratio_text,
    side_rows,
)
from .charts.distributions import histogram_charts, repeat_charts, spread_charts
from .charts.flame import flame_chart
from .charts.heat_map import heat_map_charts
from .charts.point_rows import Column, best_text, point_table
from .charts.roofline import roofline_charts
from .charts.scaling import headline_charts
from .charts.sequence import sequence_charts
from .charts.series import FittedLine, fit_rows, fitted_lines
from .charts.stacks import stack_charts
from .charts.units import number_text, plain_text
from .overview import clock_qualities, facts, observation_rows, problems, verdict, warnings
from .template import Section, Table, render_page

_MAX_NOTES: Final = 500


def write_report(
    results: Results,
    path: str | os.PathLike[str],
    *,
    compare_with: Results | None = None,
    across: Collection[Part] = (),
    profiles: Mapping[int, Profile] | None = None,
) -> Path:
    """Writes the report of a study to one HTML file, atomically.

    Args:
        results: the results of the study, which may still run.
        path: the path of the file, which is replaced if it exists.
        compare_with: an earlier run of the same study, whose points are compared with these.
        across: the differences of ``compare_with`` to compare; see ``compare_results``.
        profiles: the profiles of calls of programs, by the index of their point: each gets a flame view.

    Returns:
        The path of the file.

    Raises:
        IncompatibleError: the study is of a newer version of the format.
        FailedPreconditionError: the runs have no point in common.
        NotFoundError, PermissionDeniedError, ResourceExhaustedError: there is no such folder, it is not writable, or
            the disk is full.
    """
    text = render_report(results, compare_with=compare_with, across=across, profiles=profiles)
    # Lone surrogates, as from a file's name, cannot be encoded.
    write_whole(path, lambda file: file.write(text.encode("utf-8", errors="replace")))
    return Path(path)


def render_report(
    results: Results,
    *,
    compare_with: Results | None = None,
    across: Collection[Part] = (),
    profiles: Mapping[int, Profile] | None = None,
) -> str:
    """Returns the report's HTML; see ``write_report``."""
    analysis = StudyAnalysis(results)
    study = analysis.study
    compared = [(f"Across {study.compare}", compare_across(analysis))]
    if compare_with is not None:
        earlier = compare_with_run(results, compare_with, across)
        compared.append((f"With the run of {compare_with.created}", earlier))
    table = point_table(analysis)
    sides = compared_sides(analysis)
    return render_page(
        "report.html.j2",
        name=study.name,
        title=study.title or study.name,
        question=study.question,
        reading=study.reading,
        verdict="; ".join(filter(None, [sides.verdict if sides is not None else "", verdict(analysis)])),
        warnings=warnings(analysis),
        facts=facts(analysis),
        sections=_sections(analysis, [(title, rows) for title, rows in compared if rows], profiles or {}, sides),
        problems=problems(analysis),
        table=table,
        confidence=plain_text(100 * study.sampling.confidence),
        disturbed=" or ".join(flag.name.lower() for flag in DISTURBED if flag.name),
        best=[(point_label(best.point.point, device=True), best_text(best)) for best in table.best],
        raw=_raw_facts(analysis),
        source=str(results.path),
    )


def _sections(
    analysis: StudyAnalysis,
    compared: Sequence[tuple[str, Sequence[ComparedPoints]]],
    profiles: Mapping[int, Profile],
    sides: ComparedSides | None,
) -> list[Section]:
    lines = fitted_lines(analysis)
    forests = [forest_chart(rows, title) for title, rows in compared]
    histograms, cut = histogram_charts(analysis)
    bars = (
        "Bars count samples (left axis), the stepped line is their cumulative share (right axis); grey ones are "
        "disturbed and not in the statistics. The vertical line is the median, the band its interval; dotted lines are "
        "Tukey's fences, beyond which samples are mild and severe outliers."
    )
    names = {point.point.index: point.point.label for point in analysis.points}
    sections = (
        *(_side_sections(sides) if sides is not None else ()),
        Section("headline", "Headline", headline_charts(analysis), [_fit_table(lines)] if lines else []),
        Section("planes", "Two axes", heat_map_charts(analysis)),
        Section("comparison", "Comparison", forests, [_comparison_table(*part) for part in compared]),
        Section("stacks", "Latency stacks", stack_charts(analysis)),
        Section("calls", "Calls", [flame_chart(part, names[point]) for point, part in profiles.items()]),
        Section("apart", "Taken apart from the samples", [], _observation_tables(analysis)),
        Section("roofline", "Roofline", roofline_charts(analysis)),
        Section("spread", "Distributions", spread_charts(analysis)),
        Section(
            "histograms",
            "Each point",
            histograms,
            text=bars + cut,
        ),
        Section("repeats", "Runs", repeat_charts(analysis)),
        Section("time", "Over time", sequence_charts(analysis)),
    )
    return [part for part in sections if part.charts or part.tables]


def _side_sections(sides: ComparedSides) -> list[Section]:
    """Returns sections with the verdicts of the two sides, and their pairs of blocks."""
    columns = ("point", "verdict", "ratio with interval", "samples", "notes")
    table = Table(
        "New over old, of blocks measured in turns, in random order.",
        tuple(
            Column(name, numeric=name in ("ratio with interval", "samples"), wraps=name == "notes") for name in columns
        ),
        side_rows(sides),
    )
    pairs, cut = pair_charts(sides)
    text = (
        "Each dot is a pair of blocks: the ratio of their medians, new over old, in the order of the run. Colours "
        "alternate with rounds, before each of which both sides were opened afresh; a line is at the median of each. "
        "The band is the interval of the ratio, the bars at the right are the distribution."
    )
    forests = [forest_chart(sides.rows, "New over old")] if sides.rows else []
    return [
        Section("sides", "Two sides", forests, [table], f"{sides.verdict}."),
        Section("pairs", "Pairs of blocks", pairs, text=text + cut),
    ]


def _comparison_table(title: str, rows: Sequence[ComparedPoints]) -> Table:
    columns = (
        *(Column("point", numeric=False), Column("reference", numeric=False), Column("verdict", numeric=False)),
        *(Column("ratio of medians"), Column("effect (Cliff's delta)"), Column("p"), Column("samples")),
        Column("notes", numeric=False, wraps=True),
    )
    cells = [
        (
            row.name,
            row.reference,
            str(row.comparison.verdict),
            ratio_text(row.comparison),
            number_text(row.comparison.effect, 2),
            number_text(row.comparison.p_value, 2),
            f"{row.comparison.count_a} and {row.comparison.count_b}",
            "; ".join(row.comparison.remarks),
        )
        for row in rows
    ]
    return Table(f"{title}: verdicts", columns, cells)


def _fit_table(lines: Sequence[FittedLine]) -> Table:
    columns = (
        *(Column("axis", numeric=False), Column("line", numeric=False), Column("marginal cost"), Column("interval")),
        *(Column("fixed cost"), Column("interval"), Column("R²"), Column("misfit")),
    )
    text = (
        "Fitted lines: the marginal cost is the slope, per unit of the axis; the fixed cost is the intercept. "
        f"Intervals are at {plain_text(100 * lines[0].line.confidence)} %. A misfit well above 1 means that points "
        "are off the line by more than their errors; intervals are widened by it."
    )
    return Table(text, columns, fit_rows(lines))


def _observation_tables(analysis: StudyAnalysis) -> list[Table]:
    rows = observation_rows(analysis, analysis.results.observations)
    names = ("point", "of", "figure", "value", "description")
    columns = tuple(Column(name, numeric=name == "value", wraps=name == "description") for name in names)
    text = "What drivers and meters say, taken after the samples in runs of their own; names are the driver's."
    return [Table(text, columns, rows)] if rows else []


def _raw_facts(analysis: StudyAnalysis) -> list[tuple[str, str, bool]]:
    """Returns titles with texts, and whether these are open at first."""
    results = analysis.results
    sections: list[tuple[str, str, bool]] = []
    if results.text is not None:
        sections.append(("The study's TOML text", results.text, False))
    sections.append(("The study as JSON", _json(dict(results.study)), False))
    for run in results.runs:
        sections.append((f"Run {run.number}: command, environment", _json(dataclasses.asdict(run)), False))
    for record in results.devices:
        sections.append((f"Device {record.device} in run {record.run}", _json(dataclasses.asdict(record)), False))
    clocks = "\n".join(f"run {quality.run}, {quality.device}: {quality.text}" for quality in clock_qualities(analysis))
    if clocks:
        sections.append(("Clock fits", clocks, False))
    if results.peaks:
        sections.append(("Measured peaks", _json([dataclasses.asdict(peak) for peak in results.peaks]), False))
    notes = results.notes
    if notes:
        lines = [
            f"{note.created} run {note.run}{'' if note.point is None else f' point {note.point}'} {note.kind}: "
            f"{note.text}"
            for note in notes[:_MAX_NOTES]
        ]
        if len(notes) > _MAX_NOTES:
            lines.append(f"… and {len(notes) - _MAX_NOTES} more")
        sections.append((f"Notes ({len(notes)})", "\n".join(lines), len(notes) <= 20))
    failures = [f"{point.point.label}: {point.result.error}" for point in analysis.points if point.result.error]
    if failures:
        sections.append((f"Failures ({len(failures)})", "\n".join(failures), False))
    return sections


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)
