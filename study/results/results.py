"""The results of a study, with the figures that are computed from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...base.notebook import figure_text, html_table, interval_text
from ...status import UnavailableError
from .storage.stored_results import StoredResults

if TYPE_CHECKING:
    import pandas

    from .best import Best


_MAX_ROWS: Final = 60  # each takes a bootstrap


class Results(StoredResults):
    """The results in one folder, with computed figures; see ``StoredResults`` for the stored ones."""

    def best(self, by: str | None = None, *, per: str | Sequence[str] = ("device",)) -> tuple[Best, ...]:
        """Finds the best point of each group, and the points that are not distinguishable from it.

        Args:
            by: a figure, or ``"headline"`` for the median of the headline per dispatch; None for GFLOP/s, else GB/s,
                if all points of a group have it, else the headline. The highest figure is best if it falls as times
                grow, otherwise the lowest.
            per: the settings that the points of a group share, besides the measured segment: any of ``"target"``,
                ``"device"`` and the names of axes.

        Returns:
            A ``Best`` for each group with a measured point, in the order of points, without baselines and other sides.
            A figure is as uncertain as the headline, whose ratio is compared as ``study report`` compares points.

        Raises:
            InvalidArgumentError: there is no such figure or name, or the figure does not depend on the times.
        """
        from .analysis import StudyAnalysis
        from .best import find_best

        return find_best(StudyAnalysis(self), by, per)

    def to_pandas(self, *, raw: bool = False) -> pandas.DataFrame:
        """Returns the results as a data frame, with the columns of exports.

        Args:
            raw: whether to return one row per sample, of all phases, instead of one row per point.

        Raises:
            UnavailableError: pandas is not installed.
        """
        try:
            import pandas  # noqa: F401  # for Arrow, whose message does not say what to install
        except ImportError as error:
            raise UnavailableError("data frames need pandas: pip install 'pumice[pandas]'") from error
        import pyarrow

        from .export import points_table, sample_batches, sample_schema

        if raw:
            return pyarrow.Table.from_batches(sample_batches(self), sample_schema(self)).to_pandas()
        return points_table(self).to_pandas()

    def _repr_html_(self) -> str:
        """Returns a table for notebooks: a row per point with the median of its headline; the best points are marked.

        Points on a numeric axis also have a plot.
        """
        from .analysis import StudyAnalysis
        from .best import find_best
        from .comparison.series import Plotted, series_plot

        analysis = StudyAnalysis(self)
        shown = [point for point in analysis.points if not point.point.is_baseline]
        points = shown[:_MAX_ROWS]
        figures = list(dict.fromkeys(name for point in points for name in point.figures))
        best = {best.point.point.index for best in find_best(analysis, ties=False) if best.count > 1}
        # The common settings of all points are in the title, so that narrow pages have room for figures.
        measures, devices = [point.point.measure for point in points], [point.point.device for point in points]
        several = {"measure": measures, "device": devices}
        several = {name: texts for name, texts in several.items() if len(set(texts)) > 1}
        heading = analysis.study.title or self.name
        heading += f": {measures[0]}" if points and "measure" not in several else ""
        heading += f" on {devices[0]}" if points and "device" not in several else ""
        rows, plotted = [], []
        for index, point in enumerate(points):
            mark = " ★" if point.point.index in best else ""
            texts = (f"{point.point.label}{mark}", *(texts[index] for texts in several.values()), point.status_text)
            summary, median = point.summary(), None if point.median is None else point.median / 1e3
            low, high = (math.nan, math.nan) if summary is None else (end / 1e3 for end in summary.median_interval)
            values = [figure_text(point.figures.get(name)) for name in figures]
            rows.append((*texts, figure_text(median), interval_text(low, high), str(point.kept), *values))
            if median is not None and not point.point.is_against:
                title = f"median of {point.point.measure}, µs"
                plotted.append(Plotted(point.point, point.axes, title, median, (low, high)))
        columns = ("point", *several, "status", "median, µs", "interval", "samples", *figures)
        more = [f"{_MAX_ROWS} of {len(shown)} points; to_pandas() has all"] if len(shown) > _MAX_ROWS else []
        table = html_table(columns, rows, title=heading, notes=more, texts=("status", *several))
        return table + series_plot(plotted, first=analysis.study.fit)
