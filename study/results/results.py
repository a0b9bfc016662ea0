"""The results of a study, and what is computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...notebook import figure_text, html_table
from ...status import UnavailableError
from .analysis import Keep
from .stored_results import StoredResults

if TYPE_CHECKING:
    import pandas

    from .best import Best


_MAX_ROWS: Final = 200


class Results(StoredResults):
    """The results in one folder, with what is computed from them; see ``StoredResults`` for what is stored."""

    def best(self, by: str | None = None, *, per: Sequence[str] = ("device",), keep: Keep = "kept") -> tuple[Best, ...]:
        """The best point of each group, and which others are not told apart from it.

        Args:
            by: a figure, or ``"headline"`` for the median of the headline, of one dispatch; ``None`` for GFLOP/s, else
                GB/s, if all points of a group have it, else the headline. Of figures that fall as times grow the
                highest is the best, of others the lowest.
            per: what the points of a group have in common, of ``"target"``, ``"device"`` and the names of axes, besides
                the segment that they measure.
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
        """A table for notebooks: a row a point, with the medians of the headline."""
        from .analysis import StudyAnalysis

        analysis = StudyAnalysis(self)
        shown = [one for one in analysis.points if not one.point.is_baseline]
        points = shown[:_MAX_ROWS]
        figures = list(dict.fromkeys(name for one in points for name in one.figures))
        rows = []
        for one in points:
            # Without a bootstrap, which takes seconds for many points.
            median = None if one.median is None else one.median / 1e3
            values = [figure_text(one.figures.get(name)) for name in figures]
            texts = (one.point.label, one.point.device, str(one.status), one.point.measure)
            rows.append((*texts, figure_text(median), str(one.kept), *values))
        columns = ("point", "device", "status", "measure", "median, µs", "samples", *figures)
        more = [f"{_MAX_ROWS} of {len(shown)} points"] if len(shown) > _MAX_ROWS else []
        return html_table(columns, rows, title=analysis.study.title or self.name, notes=more, texts=4)
