"""Charts: figures with a title, and a caption on what they show and how the data was processed."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from ....base.lazy_dataclass import dataclass
from ...definition.point import AxisValue, Point
from ...results.analysis import PointAnalysis
from .palette import FAINT, INK, MUTED
from .units import TimeUnit, count_text, number_text, plain_text, time_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", "Helvetica Neue", Arial, sans-serif'
"""The font of figures and page."""

MAX_ROWS: Final = 60
"""The largest number of points that a chart has rows for."""

_MAX_LABEL: Final = 64

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Chart:
    """A Plotly figure with a title above and a caption below it; ``small`` charts are placed side by side."""

    title: str
    caption: str
    figure: Figure
    small: bool = False


def evenly(items: Sequence[_Item], most: int, noun: str) -> tuple[list[_Item], str]:
    """Selects at most ``most`` items, evenly spaced, the first and the last included; returns also a sentence if some
    are left out.
    """
    if len(items) <= most:
        return list(items), ""
    chosen = [items[round(index * (len(items) - 1) / (most - 1))] for index in range(most)]
    return chosen, f" {most} of {len(items)} {noun} are shown, evenly chosen."


def label(text: str) -> str:
    """Escapes a text for Plotly, cut to the width of a legend."""
    shown = text if len(text) <= _MAX_LABEL else f"{text[: _MAX_LABEL - 1]}…"
    return html.escape(" ".join(shown.split()), quote=False)


def lines(text: str) -> str:
    """Escapes a text for Plotly, wrapped to the width of a legend."""
    return "<br>".join(html.escape(line, quote=False) for line in textwrap.wrap(text, _MAX_LABEL))


def point_label(point: Point, without: Iterable[str] = (), *, device: bool = False, target: bool = True) -> str:
    """Names a point on an axis or in a legend: ``mul batch=8 barrier=none``; ``without`` lists axes to leave out."""
    left_out = set(without)
    parts = [point.target] if target else []
    parts += [f"{name}={value_text(value)}" for name, value in point.axes.items() if name not in left_out]
    if device and "device" not in point.axes:
        parts.append(f"on {point.device}")
    if point.is_against:
        parts.append("(old)")
    return " ".join(parts) or point.target


def value_text(value: AxisValue) -> str:
    return number_text(value) if isinstance(value, float) else str(value)


def new_figure(figure: Figure, height: int, *, legend: bool = True, left: int = 64) -> Figure:
    """Gives a figure the report's style: no title, the legend above the plot."""
    figure.update_layout(
        height=height,
        autosize=True,
        template="none",
        font={"family": FONT, "size": 12, "color": INK},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": left, "r": 24, "t": 44 if legend else 20, "b": 52},
        showlegend=legend,
        legend={
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "font": {"size": 12, "color": INK},
            "bgcolor": "rgba(0,0,0,0)",
        },
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": MUTED, "activecolor": INK},
        hoverlabel={"font": {"family": FONT, "size": 12}, "align": "left", "namelength": -1},
        hovermode="closest",
    )
    axis = {
        "showgrid": True,
        "gridcolor": FAINT,
        "gridwidth": 1,
        "zeroline": False,
        "showline": True,
        "linecolor": MUTED,
        "linewidth": 1,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": MUTED,
        "tickfont": {"size": 11.5, "color": MUTED},
        "title": {"font": {"size": 12.5, "color": INK}, "standoff": 8},
        "automargin": True,
    }
    figure.update_xaxes(tickangle=0, **axis)
    figure.update_yaxes(**axis)
    return figure


def is_wide(values: Iterable[float]) -> bool:
    """Whether values need a logarithmic axis: they are positive and span more than a decade."""
    known = [value for value in values if math.isfinite(value)]
    return bool(known) and min(known) > 0 and max(known) > 10 * min(known)


def name_rows(figure: Figure, names: Sequence[str], **subplot: int) -> None:
    """Names the rows of a figure with horizontal bars or boxes, the first row at the top. On narrow pages the names are
    above the bars.
    """
    figure.update_layout(meta={"rows": True})
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(names))),
        ticktext=[label(name) for name in names],
        range=[len(names) - 0.4, -0.6],
        showgrid=False,
        ticks="",
        **subplot,
    )


def error_bars(
    values: Sequence[float], ends: Sequence[tuple[float, float]], colour: str, thickness: float = 1.3
) -> dict[str, object]:
    """Describes error bars for Plotly, from each value to the ends of its interval."""
    return {
        "type": "data",
        "array": [high - value for (_, high), value in zip(ends, values, strict=True)],
        "arrayminus": [value - low for (low, _), value in zip(ends, values, strict=True)],
        "thickness": thickness,
        "width": 4,
        "color": colour,
    }


def style_value_axis(values: Iterable[float]) -> dict[str, object]:
    """Describes an axis of measured values: from 0, or logarithmic if they span more than a decade."""
    known = [value for value in values if math.isfinite(value)]
    if is_wide(known):
        return style_log_axis(min(known), max(known))
    return {"rangemode": "tozero", "range": [0, 1.08 * max(known, default=1.0) or 1.0]}


def style_log_axis(low: float, high: float, ticks: Sequence[float] | None = None) -> dict[str, object]:
    """Describes a logarithmic axis with round tick labels, or with ``ticks`` if these are few."""
    low, high = math.log10(low), math.log10(high)
    margin = max(0.04 * (high - low), 0.03)
    if ticks is None or len(ticks) > 12:
        steps = (1, 2, 5) if high - low <= 2.2 else (1, 3) if high - low <= 3.5 else (1,)
        every = max(1, math.ceil((high - low) / 8))
        ticks = [step * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1, every) for step in steps]
        text = [number_text(value, 1) if value < 1e4 else count_text(value) for value in ticks]
    else:
        text = [count_text(value) for value in ticks]
    return {
        "type": "log",
        "range": [low - margin, high + margin],
        "tickmode": "array",
        "tickvals": list(ticks),
        "ticktext": text,
    }


def style_ratio_axis(low: float, high: float, margin: float = 0.0) -> dict[str, object]:
    """Describes a logarithmic axis of ratios, extended at both ends by a share of its length."""
    ends = math.log10(low), math.log10(high)
    reach = max(margin * (ends[1] - ends[0]), 0.004) if margin else 0.0
    limits = [ends[0] - reach, ends[1] + reach]
    ticks = _ratio_ticks(*(10**end for end in limits))
    text = [plain_text(tick) for tick in ticks]
    return {"type": "log", "range": limits, "tickmode": "array", "tickvals": ticks, "ticktext": text}


def _ratio_ticks(low: float, high: float) -> list[float]:
    """Returns a few round ratios from low to high."""
    if high / low > 3:
        ticks = [
            step * 10.0**power for power in range(-4, 5) for step in (1, 2, 5) if low <= step * 10.0**power <= high
        ]
        return ticks if len(ticks) <= 9 else [10.0**power for power in range(-4, 5) if low <= 10.0**power <= high]
    step = next(step for step in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if (high - low) / step <= 8)
    return [count * step for count in range(math.ceil(low / step), math.floor(high / step) + 1)]


def samples_text(points: Sequence[PointAnalysis]) -> str:
    """Returns a text on the samples of several points that are in the statistics."""
    kept, total = sum(point.kept for point in points), sum(point.total for point in points)
    mixed = sum(1 for point in points if point.uses_disturbed)
    if mixed == len(points):
        return f"all {total:,} samples, as more than half were disturbed" + (" at every point" if mixed > 1 else "")
    if mixed:
        return (
            f"{kept:,} of {total:,} samples: undisturbed ones only, except at {mixed} of {len(points)} points where "
            "more than half were disturbed, which have all"
        )
    return (
        f"undisturbed samples only: {kept:,} of {total:,}" if kept < total else f"all {total:,} samples, none disturbed"
    )


def headline_caption(shown: Sequence[PointAnalysis], baselines: bool, fits: bool) -> str:
    confidence = 100 * shown[0].sampling.confidence
    text = f"Medians with {plain_text(confidence)} % intervals of the median (bootstrap)"
    if any(point.dispatches > 1 for point in shown):
        text += ", of a sample with all its dispatches"
    text += f"; {samples_text(shown)}."
    if fits:
        text += (
            " The fitted line is weighted least squares through the medians: its slope is the marginal cost, its "
            "intercept the fixed one (table below). Logarithmic axes bend it."
        )
    if baselines:
        text += " Dotted: the empty kernel in the same setting."
    return text


def interval_in(point: PointAnalysis, unit: TimeUnit) -> tuple[float, float]:
    summary, median = point.summary(), point.median or 0.0
    low, high = summary.median_interval if summary is not None else (median, median)
    return tuple((value if math.isfinite(value) else median) / unit.ns for value in (low, high))  # type: ignore[return-value]


def point_hover(point: PointAnalysis) -> str:
    summary = point.summary()
    if summary is None:
        return label(point.point.label)
    low, high = summary.median_interval
    lines = [
        f"<b>{label(point_label(point.point, device=True))}</b>",
        f"median {time_text(summary.median)} [{time_text(low)}, {time_text(high)}]",
        f"quartiles {time_text(summary.q1)} to {time_text(summary.q3)}",
        point.samples_used,
    ]
    if point.dispatches > 1:
        lines.insert(2, f"{time_text(point.per_dispatch)} a dispatch, {point.dispatches} dispatches")
    return "<br>".join(lines)
