"""Samples over time with the reference kernel and clock rates, which shows drift and throttling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from plotly import graph_objects as go
from plotly.subplots import make_subplots

from ...results.analysis import PointAnalysis, StudyAnalysis
from ...results.storage.records import ClockRecord, ReferenceRecord, SampleFlag
from .chart import Chart, label, new_figure, point_label, style_log_axis
from .palette import FLAGS, INK, MUTED
from .units import time_unit

_MAX_SAMPLES: Final = 8000
_HEIGHT, _LOW, _GAP = (
    260,
    100,
    22,
)  # pixels: the samples' row, the rows below (which must hold their titles), and the gap

_RATES: Final = (("frequency_mhz", "device clock"), ("memory_mhz", "memory clock"), ("cpu_mhz", "CPU clock"))

Array = npt.NDArray[np.float64]


def sequence_charts(analysis: StudyAnalysis) -> list[Chart]:
    """Draws a chart for each device and run: samples relative to their point's median, the reference kernel, clock
    rates.
    """
    devices = dict.fromkeys(point.point.device for point in analysis.measured)
    charts = []
    for device in devices:
        points = [point for point in analysis.measured if point.point.device == device and point.median]
        runs = sorted({run for point in points for run in np.unique(point.result.runs).tolist()})
        charts += [_chart(analysis, device, run, points, len(runs) > 1, len(devices) > 1) for run in runs]
    return charts


def _chart(
    analysis: StudyAnalysis, device: str, run: int, points: Sequence[PointAnalysis], runs: bool, devices: bool
) -> Chart:
    started, ratio, flags, names = _samples(points, run)
    begin = int(started.min())
    references = _of_one_load(
        [reading for reading in analysis.results.references if (reading.run, reading.device) == (run, device)]
    )
    rates = _rates(
        [reading for reading in analysis.results.clocks if (reading.run, reading.device) == (run, device)], begin
    )
    rows = 1 + bool(references) + bool(rates)
    figure = make_subplots(
        rows=rows,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=_GAP / (_HEIGHT + (rows - 1) * (_LOW + _GAP)),
        row_heights=[_HEIGHT, _LOW, _LOW][:rows],
    )
    every = max(1, -(-started.size // _MAX_SAMPLES))
    seconds = (started - begin) / 1e9
    for name, chosen in _by_flag(flags):
        places = np.flatnonzero(chosen)[::every]
        if places.size:
            figure.add_scatter(
                x=seconds[places].astype(np.float32),
                y=ratio[places].astype(np.float32),
                mode="markers",
                name=f"{name} ({int(chosen.sum()):,})",
                marker={"color": FLAGS[name], "size": 4, "opacity": 0.55, "line": {"width": 0}},
                customdata=names[places],
                hovertemplate="<b>%{customdata}</b><br>%{x:.3f} s, %{y:.4g} times its median<extra>"
                + name
                + "</extra>",
                row=1,
                col=1,
            )
    row = 1
    if references:
        row += 1
        unit = _add_reference(figure, references, begin, row)
    if rates:
        row += 1
        for (name, x, y), dash in zip(rates, ("solid", "dash", "dot"), strict=False):
            line = {"color": INK, "width": 1.4, "dash": dash}
            # A single rate is named by the axis.
            trace = go.Scatter(
                x=x, y=y, mode="lines", name=name, line=line, showlegend=len(rates) > 1, hovertemplate="%{y:.5g} MHz"
            )
            figure.add_trace(trace, row=row, col=1)
    new_figure(figure, 96 + _HEIGHT + (rows - 1) * (_LOW + _GAP), left=72)
    figure.update_layout(legend_itemsizing="constant")
    figure.update_xaxes(rangemode="tozero")
    figure.update_xaxes(title_text=f"seconds since run {run} began to sample", row=rows, col=1)
    low, high = float(ratio.min()), float(ratio.max())
    figure.update_yaxes(title_text="over the median", row=1, col=1)
    if high > 10 * max(low, 1e-9) or high > 4:
        figure.update_yaxes(style_log_axis(max(low, 1e-3), high), row=1, col=1)
    if references:
        figure.update_yaxes(title_text=f"reference, {unit}", rangemode="tozero", nticks=4, row=2, col=1)
    if rates:
        figure.update_yaxes(title_text=f"{rates[0][0]}, MHz" if len(rates) == 1 else "MHz", nticks=4, row=rows, col=1)
    where = f" on {device}" if devices else ""
    title = f"Samples over time{where}{f', run {run}' if runs else ''}"
    return Chart(title, _caption(started.size, every, len(points), bool(references), rates), figure)


def _samples(
    points: Sequence[PointAnalysis], run: int
) -> tuple[npt.NDArray[np.int64], Array, npt.NDArray[np.int64], npt.NDArray[np.object_]]:
    """Returns the time, the ratio to the point's median, the flags and the point of every sample of a run, in time
    order.
    """
    started, ratio, flags, names = [], [], [], []
    for point in points:
        result = point.result
        mine = (result.runs == run) & np.isfinite(result.values())
        started.append(result.integers("started_ns")[mine])
        ratio.append(result.values()[mine] / (point.median or 1.0))
        flags.append(result.flags[mine])
        names.append(np.full(int(mine.sum()), label(point_label(point.point)), dtype=object))
    order = np.argsort(np.concatenate(started), kind="stable")
    return (
        np.concatenate(started)[order],
        np.concatenate(ratio)[order],
        np.concatenate(flags)[order],
        np.concatenate(names)[order],
    )


def _by_flag(flags: npt.NDArray[np.int64]) -> list[tuple[str, npt.NDArray[np.bool_]]]:
    """Assigns each sample to its most severe flag; the most severe are drawn last."""
    groups, left = [], np.ones(flags.size, dtype=np.bool_)
    for flag in (SampleFlag.THROTTLED, SampleFlag.STARVED, SampleFlag.PREEMPTED, SampleFlag.CLOCK_UNSURE):
        flagged = left & (flags & int(flag) != 0)
        left &= ~flagged
        groups.append((str(flag.name).lower().replace("_", " "), flagged))
    return [("undisturbed", left), *groups]


def _of_one_load(references: Sequence[ReferenceRecord]) -> Sequence[ReferenceRecord]:
    """Returns the readings of the reference of one workgroup with the most arithmetic, which take longest."""
    loads: dict[str, list[ReferenceRecord]] = {}
    for reading in references:
        if reading.kind == "compute":
            loads.setdefault(reading.load, []).append(reading)
    return max(loads.values(), key=lambda readings: np.median([item.duration_ns for item in readings]), default=[])


def _add_reference(figure: go.Figure, references: Sequence[ReferenceRecord], begin: int, row: int) -> str:
    """Adds the reference kernel's times, and their median; returns the name of their unit."""
    unit = time_unit([float(np.median([reading.duration_ns for reading in references]))])
    every = max(1, -(-len(references) // _MAX_SAMPLES))
    shown = references[::every]
    x = np.array([(point.started_ns - begin) / 1e9 for point in shown])
    y = np.array([point.duration_ns / unit.ns for point in shown])
    trace = go.Scatter(
        x=x.astype(np.float32),
        y=y.astype(np.float32),
        mode="lines+markers",
        line={"color": MUTED, "width": 1},
        marker={"color": MUTED, "size": 3},
        showlegend=False,
        hovertemplate=f"%{{x:.3f}} s: %{{y:.4g}} {unit.name}<extra>reference kernel</extra>",
    )
    figure.add_trace(trace, row=row, col=1)
    return unit.name


def _rates(clocks: Sequence[ClockRecord], begin: int) -> list[tuple[str, list[float], list[float]]]:
    rates = []
    for field, name in _RATES:
        readings = [(clock.host_ns, getattr(clock, field)) for clock in clocks if getattr(clock, field) is not None]
        if len(readings) > 1:
            rates.append((name, [(when - begin) / 1e9 for when, _ in readings], [rate for _, rate in readings]))
    return rates


def _caption(count: int, every: int, points: int, references: bool, rates: Sequence[object]) -> str:
    text = (
        f"Every sample of {points} points, disturbed ones too, over the median of its point; blocks of different "
        "points alternate, so that a change of the machine affects all of them."
    )
    if every > 1:
        text += f" Every {every}. of {count:,} samples is drawn."
    if references:
        text += " Below, the reference kernel: the same work throughout, so that it changes only with the machine."
    if not rates:
        text += " Clock rates are not known."
    return text
