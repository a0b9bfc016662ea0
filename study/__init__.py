"""Dispatch timing studies: what a dispatch costs, where the time goes, how it scales.

>>> from pumice.study import Axis, Results, Study, Target, run_study
>>> study = Study("mul", (Target("mul", "kernel", {"source": "mul.comp", "bindings": [{"shape": "$n"}] * 3}),),
...               axes=(Axis.powers_of_two("n", 1024, 65536),))
>>> run_study(study, "mul.results")
>>> with Results.open("mul.results") as results:
...     for point in results.points:
...         print(point.point.label, summarize(point.values(keep=point.keep)))

Needs the ``study`` extra: ``pip install 'pumice[study]'``; ``run_on_cluster`` needs ``cluster``. The design is in docs/design/study.md,
the schema of study files in docs/reference/study.md, that of results in docs/reference/results.md.
"""

# Looked up when first asked for: the command line shows its help without loading SciPy or Vulkan.
import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .axis import Axis
    from .cluster import run_on_cluster
    from .compare_results import PointComparison, ResultsComparison, compare_results
    from .comparison import Comparison, Verdict, compare
    from .expansion import derive, expand
    from .export import export_results
    from .fit import Line, fit_line
    from .flags import SampleFlag
    from .peaks import Peaks, measure_peaks
    from .point import Point
    from .point_result import PointResult
    from .point_status import PointStatus
    from .report import write_report
    from .results import Results
    from .runner import run_study
    from .sample import MEASURES, SEGMENTS, Sample
    from .sampler import Progress, SampleRun
    from .settings import Sampling
    from .study import Study, Target
    from .study_file import load_study, parse_study
    from .summary import Summary, summarize

__all__ = [
    "MEASURES",
    "SEGMENTS",
    "Axis",
    "Comparison",
    "Line",
    "Peaks",
    "Point",
    "PointComparison",
    "PointResult",
    "PointStatus",
    "Progress",
    "Results",
    "ResultsComparison",
    "Sample",
    "SampleFlag",
    "SampleRun",
    "Sampling",
    "Study",
    "Summary",
    "Target",
    "Verdict",
    "compare",
    "compare_results",
    "derive",
    "expand",
    "export_results",
    "fit_line",
    "load_study",
    "measure_peaks",
    "parse_study",
    "run_on_cluster",
    "run_study",
    "summarize",
    "write_report",
]

_HOMES: Final = {
    ".axis": ("Axis",),
    ".cluster": ("run_on_cluster",),
    ".compare_results": ("PointComparison", "ResultsComparison", "compare_results"),
    ".comparison": ("Comparison", "Verdict", "compare"),
    ".expansion": ("derive", "expand"),
    ".export": ("export_results",),
    ".fit": ("Line", "fit_line"),
    ".flags": ("SampleFlag",),
    ".peaks": ("Peaks", "measure_peaks"),
    ".point": ("Point",),
    ".point_result": ("PointResult",),
    ".point_status": ("PointStatus",),
    ".report": ("write_report",),
    ".results": ("Results",),
    ".runner": ("run_study",),
    ".sample": ("MEASURES", "SEGMENTS", "Sample"),
    ".sampler": ("Progress", "SampleRun"),
    ".settings": ("Sampling",),
    ".study": ("Study", "Target"),
    ".study_file": ("load_study", "parse_study"),
    ".summary": ("Summary", "summarize"),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            value: object = getattr(importlib.import_module(home, __name__), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
