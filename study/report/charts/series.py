"""Lines fitted to series of points that differ on one axis only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....base.lazy_dataclass import dataclass
from ....status import InvalidArgumentError
from ...results.analysis import PointAnalysis, StudyAnalysis
from ...results.comparison.series import Key, axis_number, series_over
from ...statistics.fit import Line, fit_line
from .chart import value_text
from .units import number_text, time_text


@dataclass(frozen=True, slots=True)
class FittedLine:
    """A fitted line: its axis, the settings that its points share, and the duration."""

    axis: str
    series: str
    measure: str
    line: Line

    @property
    def text(self) -> str:
        line = self.line
        slope, fixed = (
            f"{time_text(value)} [{time_text(interval.low)}, {time_text(interval.high)}]"
            for value, interval in ((line.slope, line.slope_interval), (line.intercept, line.intercept_interval))
        )
        return f"marginal cost per {self.axis} {slope}, fixed cost {fixed}"


def fitted_lines(analysis: StudyAnalysis) -> list[FittedLine]:
    """Fits the lines that the study asks for (``Study.fit``), for series of several points."""
    fitted = []
    for axis in analysis.study.fit:
        for key, points in series_over(analysis.measured, axis).items():
            line = fit_series(points, axis)
            if line is not None:
                fitted.append(FittedLine(axis, key_text(key), points[0].point.measure, line))
    return fitted


def fit_rows(lines: Sequence[FittedLine]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for fitted in lines:
        line = fitted.line
        rows.append(
            (
                fitted.axis,
                fitted.series,
                time_text(line.slope),
                f"[{time_text(line.slope_interval.low)}, {time_text(line.slope_interval.high)}]",
                time_text(line.intercept),
                f"[{time_text(line.intercept_interval.low)}, {time_text(line.intercept_interval.high)}]",
                number_text(line.r_squared, 3),
                number_text(line.misfit, 2),
            )
        )
    return rows


def key_text(key: Key) -> str:
    return ", ".join(
        value_text(value) if name in ("target", "device") else f"{name} {value_text(value)}" for name, value in key
    )


def fit_series(points: Sequence[PointAnalysis], axis: str) -> Line | None:
    usable = [point for point in points if np.count_nonzero(np.isfinite(point.values())) >= 2]
    if len(usable) < 2:
        return None
    sampling = usable[0].sampling
    try:
        return fit_line(
            [axis_number(point, axis) for point in usable],
            [point.values() for point in usable],
            confidence=sampling.confidence,
            blocks=[point.blocks for point in usable],
            seed=sampling.seed,
        )
    except InvalidArgumentError:  # for example two points at one value
        return None
