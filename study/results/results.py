"""The results of a study, and what is computed from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...base.notebook import Mark, figure_text, html_table, interval_text
from ...status import UnavailableError
from .analysis import Keep
from .storage.stored_results import StoredResults

if TYPE_CHECKING:
    import pandas

    from .analysis import PointAnalysis
    from .best import Best


_MAX_ROWS: Final = 60  # each of them takes a bootstrap


class Results(StoredResults):
    """The results in one folder, with what is computed from them; see ``StoredResults`` for what is stored."""

    def best(
        self, by: str | None = None, *, per: str | Sequence[str] = ("device",), keep: Keep = "kept"
    ) -> tuple[Best, ...]:
        """The best point of each group, and which others are not told apart from it.

        Args:
            by: a figure, or ``"headline"`` for the median of the headline, of one dispatch; ``None`` for GFLOP/s, else
                GB/s, if all points of a group have it, else the headline. Of figures that fall as times grow the
                highest is the best, of others the lowest.
            per: what the points of a group have in common, of ``"target"``, ``"device"`` and the names of axes, besides
                the segment that they measure; one of them, or several.
            keep: which samples count: as in ``export_results``.

        Returns:
            A ``Best`` for each group with a measured point, in the order of points, without baselines and other sides.
            A figure is known as far as the headline is, whose ratio is compared as ``study report`` compares points.

        Raises:
            InvalidArgumentError: no such figure or name, or a figure that does not depend on the times.
        """
        from .analysis import StudyAnalysis
        from .best import find_best

        return find_best(StudyAnalysis(self, keep), by, per)

    def to_pandas(self, *, raw: bool = False, keep: Keep = "kept") -> pandas.DataFrame:
        """The results as a data frame, with the columns of exports.

        Args:
            raw: one row a sample, of all phases, instead of one a point.
            keep: which samples are in the statistics of points: as in ``export_results``.

        Raises:
            UnavailableError: pandas is not installed.
        """
        try:
            import pandas  # noqa: F401  # for Arrow, whose message does not say what to install
        except ImportError as error:
            raise UnavailableError("data frames need pandas: pip install 'pumice[pandas]'") from error
        import pyarrow

        from .tables import points_table, sample_batches, sample_schema

        table = pyarrow.Table.from_batches(sample_batches(self), sample_schema(self)) if raw else None
        return (points_table(self, keep=keep) if table is None else table).to_pandas()

    def _repr_html_(self) -> str:
        """A table for notebooks: a row a point, with the medians of the headline; the best ones are marked. Over a
        numeric axis there is a plot, too.
        """
        from .analysis import StudyAnalysis
        from .best import find_best
        from .comparison.series import series_plot

        analysis = StudyAnalysis(self)
        shown = [one for one in analysis.points if not one.point.is_baseline]
        points = shown[:_MAX_ROWS]
        figures = list(dict.fromkeys(name for one in points for name in one.figures))
        best = {one.point.point.index for one in find_best(analysis, ties=False) if one.count > 1}
        # What is the same for all points stands in the title, so that narrow pages have room for figures.
        measures, devices = [one.point.measure for one in points], [one.point.device for one in points]
        several = {"measure": measures, "device": devices}
        several = {name: texts for name, texts in several.items() if len(set(texts)) > 1}
        title = analysis.study.title or self.name
        title += f": {measures[0]}" if points and "measure" not in several else ""
        title += f" on {devices[0]}" if points and "device" not in several else ""
        rows = []
        for place, one in enumerate(points):
            mark = " ★" if one.point.index in best else ""
            texts = (f"{one.point.label}{mark}", *(each[place] for each in several.values()), one.status_text)
            summary = one.summary()
            ends = (math.nan, math.nan) if summary is None else summary.median_interval
            median = None if one.median is None else one.median / 1e3
            times = (figure_text(median), interval_text(*(end / 1e3 for end in ends)))
            values = [figure_text(one.figures.get(name)) for name in figures]
            rows.append((*texts, *times, str(one.kept), *values))
        columns = ("point", *several, "status", "median, µs", "interval", "samples", *figures)
        more = [f"{_MAX_ROWS} of {len(shown)} points; to_pandas() has all"] if len(shown) > _MAX_ROWS else []
        table = html_table(columns, rows, title=title, notes=more, texts=("status", *several))
        indices = {one.point.index for one in points}
        measured = [one for one in analysis.measured if one.point.index in indices]
        return table + series_plot(
            measured, _mark, lambda one: f"median of {one.point.measure}, µs", first=analysis.study.fit
        )


def _mark(one: PointAnalysis, x: float) -> Mark:
    summary = one.summary()
    assert summary is not None and one.median is not None  # it was measured
    return Mark(x, one.median / 1e3, *(end / 1e3 for end in summary.median_interval))
