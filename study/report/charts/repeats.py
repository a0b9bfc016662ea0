"""Repeats of a study: the median of each run over the median of all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from plotly import graph_objects as go

from ...results.analysis import PointAnalysis, StudyAnalysis
from .chart import MAX_ROWS, Chart, evenly, label, name_rows, new_figure, point_label, samples_text, style_ratio_axis
from .palette import INK, SERIES, SYMBOLS
from .units import time_text


def repeat_charts(analysis: StudyAnalysis) -> list[Chart]:
    """Draws the median of each repeat, a row per point; none if the study ran once."""
    several = [point for point in analysis.measured if np.unique(_repeats(point)).size > 1]
    return [_chart(*evenly(several, MAX_ROWS, "points"))] if several else []


def _repeats(point: PointAnalysis) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    repeats: np.ndarray[tuple[int], np.dtype[np.int64]] = point.result.integers("repeat", keep=point.keep)
    return repeats


def _chart(shown: Sequence[PointAnalysis], cut: str) -> Chart:
    medians: dict[int, list[tuple[int, float, PointAnalysis]]] = {}
    for row, point in enumerate(shown):
        values, repeats = point.values(), _repeats(point)
        for repeat in np.unique(repeats).tolist():
            mine = values[(repeats == repeat) & np.isfinite(values)]
            if mine.size:
                medians.setdefault(repeat, []).append((row, float(np.median(mine)), point))
    figure = go.Figure()
    for index, (repeat, rows) in enumerate(sorted(medians.items())):
        style = index % len(SERIES)
        figure.add_trace(
            go.Scatter(
                x=[median / (analysis.median or median) for _, median, analysis in rows],
                y=[row for row, _, _ in rows],
                mode="markers",
                name=f"run {repeat}",
                marker={"color": SERIES[style], "symbol": SYMBOLS[style], "size": 8, "opacity": 0.85},
                text=[
                    f"<b>{label(point_label(analysis.point, device=True))}</b><br>run {repeat}: {time_text(median)} of "
                    f"{time_text(analysis.median)}"
                    for _, median, analysis in rows
                ],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    new_figure(figure, 110 + 24 * len(shown), left=80)
    ratios = [
        1.0,
        *(median / (analysis.median or median) for group in medians.values() for _, median, analysis in group),
    ]
    figure.update_xaxes(style_ratio_axis(min(ratios), max(ratios), 0.06), title_text="median of a run over that of all")
    several = len({point.point.device for point in shown}) > 1
    name_rows(figure, [point_label(point.point, device=several) for point in shown])
    figure.add_vline(x=1, line={"color": INK, "width": 1.2})
    text = (
        f"Each of {len(medians)} runs of the study had a process of its own; {samples_text(shown)}. What differs "
        "between runs (placement in memory, states of the machine) is more than the samples of one run tell."
    )
    return Chart("Medians of each run", text + cut, figure)
