"""Statistics of samples: summaries with intervals, outliers, fitted lines, and comparisons of two runs.

Imports: ``status`` only.

Read: summary, bootstrap, outliers, tick, comparison, fit.
"""

# Loaded on first use, with SciPy and Vulkan.
from typing import TYPE_CHECKING

from ...lazy import lazy_exports

if TYPE_CHECKING:
    from .comparison import Comparison, Verdict, compare
    from .fit import Line, fit_line
    from .summary import Summary, summarize

__all__ = ["Comparison", "Line", "Summary", "Verdict", "compare", "fit_line", "summarize"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        ".comparison": (
            "Comparison",
            "Verdict",
            "compare",
        ),
        ".fit": (
            "Line",
            "fit_line",
        ),
        ".summary": (
            "Summary",
            "summarize",
        ),
    },
)
