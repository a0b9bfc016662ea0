"""Distributions: the spread of all points in one chart, a histogram of each, and the medians of repeats of a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from plotly import graph_objects as go

from ...results.analysis import PointAnalysis, StudyAnalysis
from ...statistics.summary import classify
from .chart import (
    MAX_ROWS,
    Chart,
    evenly,
    label,
    name_rows,
    new_figure,
    point_label,
    samples_text,
    style_ratio_axis,
    style_value_axis,
)
from .palette import FLAGS, INK, MUTED, SERIES, SYMBOLS, faded
from .units import time_text, time_unit

_MAX_HISTOGRAMS: Final = 24
_MAX_OUTLIERS: Final = 3000
_MAX_BINS: Final = 48
_ECDF_STEPS: Final = 240
_SEVERE, _MILD = FLAGS["preempted"], FLAGS["throttled"]


def spread_charts(analysis: StudyAnalysis) -> list[Chart]:
    """Draws the points' boxes on one axis of time, a chart for each duration that is a headline."""
    charts = []
    for measure in dict.fromkeys(point.point.measure for point in analysis.measured):
        points = [point for point in analysis.measured if point.point.measure == measure]
        charts.append(_spread(*evenly(points, MAX_ROWS, "points"), measure))
    return charts


def _spread(shown: Sequence[PointAnalysis], cut: str, measure: str) -> Chart:
    several = len({point.point.device for point in shown}) > 1
    values = [point.values()[np.isfinite(point.values())] for point in shown]
    unit = time_unit(point.median for point in shown)
    classes = [classify(value) for value in values]
    whiskers = [value[np.abs(outliers.classes) == 0] for value, outliers in zip(values, classes, strict=True)]
    quartiles = np.array([np.quantile(value, [0.25, 0.5, 0.75]) for value in values]) / unit.ns
    places = list(range(len(shown)))
    figure = go.Figure()
    thinned = 0
    every = max(1, -(-sum(outliers.counts.outliers for outliers in classes) // _MAX_OUTLIERS))
    for name, colour, chosen in (("mild outlier", _MILD, 1), ("severe outlier", _SEVERE, 2)):
        x: list[float] = []
        y: list[int] = []
        for index, value, outliers in zip(places, values, classes, strict=True):
            beyond = np.sort(value[np.abs(outliers.classes) == chosen])
            thinned += beyond.size - beyond[::every].size
            x += (beyond[::every] / unit.ns).tolist()
            y += [index] * beyond[::every].size
        if x:
            figure.add_scatter(
                x=np.array(x, dtype=np.float32),
                y=y,
                mode="markers",
                name=name,
                marker={
                    "color": colour,
                    "size": 4.5,
                    "opacity": 0.55,
                    "symbol": "circle" if chosen == 1 else "x-thin-open",
                },
                hovertemplate=f"%{{x:.4g}} {unit.name}<extra>{name}</extra>",
            )
    figure.add_box(
        y=places,
        q1=quartiles[:, 0],
        median=quartiles[:, 1],
        q3=quartiles[:, 2],
        lowerfence=[float(within.min() if within.size else 0) / unit.ns for within in whiskers],
        upperfence=[float(within.max() if within.size else 0) / unit.ns for within in whiskers],
        orientation="h",
        width=0.56,
        line={"color": SERIES[0], "width": 1.4},
        fillcolor=faded(SERIES[0], 0.22),
        name="quartiles and whiskers",
        showlegend=True,
        hoverinfo="x",
    )
    new_figure(figure, 110 + (20 if len(shown) > 20 else 26) * len(shown), left=80)
    figure.update_layout(legend_itemsizing="constant")
    span = np.concatenate(values) / unit.ns
    figure.update_xaxes(title_text=f"{measure}, {unit.name}")
    figure.update_xaxes(style_value_axis([float(span.min()), float(span.max())]))
    name_rows(figure, [point_label(point.point, device=several) for point in shown])
    text = (
        "The box holds the middle half of the samples, the line in it is the median; whiskers end at the last samples "
        "within Tukey's inner fences (1.5 interquartile ranges), those beyond are mild outliers, beyond 3 severe ones; "
        f"{samples_text(shown)}. Outliers are counted and shown, never dropped."
    )
    if thinned:
        text += f" {thinned:,} outliers of many are not drawn."
    return Chart(f"Spread of {measure}", text + cut, figure)


def histogram_charts(analysis: StudyAnalysis) -> tuple[list[Chart], str]:
    """Draws a small chart per point, its histogram and cumulative distribution; returns also a sentence if some are
    left out.
    """
    shown, cut = evenly(analysis.measured, _MAX_HISTOGRAMS, "points")
    return [_histogram(point) for point in shown], cut


def _histogram(point: PointAnalysis) -> Chart:
    values = point.values()
    values = np.sort(values[np.isfinite(values)])
    others = point.result.values()
    others = others[np.isfinite(others)]
    outliers = classify(values)
    unit = time_unit([float(np.median(values))])
    # Unless they are many, severe outliers would squeeze the body into one bar.
    high = max(float(np.quantile(values, 0.9)), min(outliers.fences[3], float(values[-1])))
    high = min(high, float(values[-1]))
    low = max(float(values[0]), min(outliers.fences[0], float(np.quantile(values, 0.1))))
    margin = 0.03 * (high - low) or max(0.01 * high, 1.0)
    low, high = low - margin, high + margin
    inside = values[(values >= low) & (values <= high)]
    bins = np.histogram_bin_edges(inside, bins="auto", range=(low, high))
    if bins.size > _MAX_BINS + 1:
        bins = np.linspace(low, high, _MAX_BINS + 1)
    elif bins.size < 9:
        bins = np.linspace(low, high, 9)
    counts, _ = np.histogram(values, bins)
    everything, _ = np.histogram(others, bins)
    middles, width = (bins[:-1] + bins[1:]) / 2 / unit.ns, float(bins[1] - bins[0]) / unit.ns
    figure = go.Figure()
    bar = {
        "width": width * 0.94,
        "hovertemplate": f"%{{x:.4g}} {unit.name}: %{{y}} samples<extra>%{{fullData.name}}</extra>",
    }
    figure.add_bar(
        x=middles, y=counts, name="samples in the statistics", marker={"color": SERIES[0], "opacity": 0.75}, **bar
    )
    if int((everything - counts).sum()):
        figure.add_bar(
            x=middles,
            y=everything - counts,
            name="left out, disturbed",
            marker={"color": MUTED, "opacity": 0.35},
            **bar,
        )
    steps = np.unique(np.linspace(0, values.size - 1, min(values.size, _ECDF_STEPS)).round().astype(int))
    figure.add_scatter(
        x=(values[steps] / unit.ns).astype(np.float32),
        y=100 * (steps + 1) / values.size,
        yaxis="y2",
        mode="lines",
        name="cumulative",
        line={"color": INK, "width": 1.3, "shape": "hv"},
        hovertemplate=f"%{{y:.3g}} % within %{{x:.4g}} {unit.name}<extra></extra>",
    )
    new_figure(figure, 236, legend=False, left=44)
    figure.update_layout(
        barmode="stack",
        margin={"l": 44, "r": 40, "t": 8, "b": 42},
        yaxis2={
            "overlaying": "y",
            "side": "right",
            "range": [0, 104],
            "tickvals": [0, 25, 50, 75, 100],
            "ticktext": ["0", "", "50 %", "", "100"],
            "tickfont": {"size": 10.5, "color": MUTED},
            "showgrid": False,
            "zeroline": False,
        },
    )
    figure.update_xaxes(
        title_text=f"{point.point.measure}, {unit.name}",
        range=[low / unit.ns, high / unit.ns],
        showgrid=False,
        nticks=6,
    )
    figure.update_yaxes(rangemode="tozero", nticks=4, selector={"side": None})
    for fence, colour in zip(outliers.fences, (_SEVERE, _MILD, _MILD, _SEVERE), strict=True):
        if low < fence < high:
            figure.add_vline(fence / unit.ns, line={"color": colour, "dash": "dot", "width": 1.2})
    summary = point.summary()
    if summary is not None:
        left, right = (end / unit.ns for end in summary.median_interval)
        if np.isfinite(left) and right > left:
            figure.add_vrect(left, right, line_width=0, layer="below", fillcolor=faded(SERIES[1], 0.22))
        figure.add_vline(summary.median / unit.ns, line={"color": SERIES[1], "dash": "solid", "width": 1.6})
    counted = outliers.counts
    beyond = int(np.count_nonzero(values > high) + np.count_nonzero(values < low))
    text = f"{point.samples_used[:1].upper()}{point.samples_used[1:]}. Median {time_text(point.median)}"
    if counted.outliers:
        severe = counted.low_severe + counted.high_severe
        text += f"; {counted.outliers} outliers, {severe} of them severe"
    if beyond:
        text += f"; {beyond} beyond the edges, up to {time_text(float(values[-1]), 3)}"
    several = len(point.point.axes) == 0
    return Chart(point_label(point.point, device=several), text + ".", figure, small=True)


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
        figure.add_scatter(
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
