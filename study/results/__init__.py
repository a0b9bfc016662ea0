"""Results of studies: an append-only SQLite file, its reading, analysis, comparison and export.

Imports: ``study.definition``, ``study.statistics`` and ``status``.

Read: sink, store, results_file, database, schema, rows, results, point_result, analysis, results_comparison, tables,
export.
"""

# Loaded on first use, with SciPy and Vulkan.
from typing import TYPE_CHECKING

from ...lazy import lazy_exports

if TYPE_CHECKING:
    from .export import export_results
    from .flags import SampleFlag
    from .point_result import PointResult
    from .point_status import PointStatus
    from .results import Results
    from .results_comparison import PointComparison, ResultsComparison, compare_results

__all__ = [
    "PointComparison",
    "PointResult",
    "PointStatus",
    "Results",
    "ResultsComparison",
    "SampleFlag",
    "compare_results",
    "export_results",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        ".results_comparison": (
            "PointComparison",
            "ResultsComparison",
            "compare_results",
        ),
        ".export": ("export_results",),
        ".flags": ("SampleFlag",),
        ".point_result": ("PointResult",),
        ".point_status": ("PointStatus",),
        ".results": ("Results",),
    },
)
