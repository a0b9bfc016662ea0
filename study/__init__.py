"""Dispatch timing studies: what a dispatch costs, where its time goes, and how it scales.

>>> from pumice.study import Axis, Results, Study, Target, run_study
>>> study = Study("mul", (Target("mul", "kernel", {"source": "mul.comp", "bindings": [{"shape": "$n"}] * 3}),),
...               axes=(Axis.powers_of_two("n", 1024, 65536),))
>>> run_study(study, "mul.results")
>>> with Results.open("mul.results") as results:
...     for point in results.points:
...         print(point.point.label, summarize(point.values(keep=point.keep)))

Needs the ``study`` extra: ``pip install 'pumice[study]'``; ``run_on_cluster`` needs ``cluster``. The design is in
docs/design/study.md, study files are described in docs/reference/study.md, results in docs/reference/results.md.

Imports: ``runtime``, ``vm``, ``hal_vulkan``, ``shaders``, ``formats``, ``spirv`` and the ground.

Rooms, lower ones first: definition, statistics, workloads, results, sampling, cluster, report.
"""

# Loaded on first use: the command line shows its help without loading SciPy or Vulkan.
from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .cluster import run_on_cluster
    from .definition import (
        MEASURES,
        SEGMENTS,
        Axis,
        Point,
        Sample,
        Sampling,
        Study,
        Target,
        derive,
        expand,
        load_study,
        parse_study,
    )
    from .report import write_report
    from .results import (
        PointComparison,
        PointResult,
        PointStatus,
        Results,
        ResultsComparison,
        SampleFlag,
        compare_results,
        export_results,
    )
    from .sampling import Progress, SampleRun, run_study
    from .statistics import Comparison, Line, Summary, Verdict, compare, fit_line, summarize
    from .workloads import Peaks, measure_peaks

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

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        ".definition": (
            "Axis",
            "derive",
            "expand",
            "Point",
            "MEASURES",
            "SEGMENTS",
            "Sample",
            "Sampling",
            "Study",
            "Target",
            "load_study",
            "parse_study",
        ),
        ".statistics": (
            "Comparison",
            "Verdict",
            "compare",
            "Line",
            "fit_line",
            "Summary",
            "summarize",
        ),
        ".workloads": (
            "Peaks",
            "measure_peaks",
        ),
        ".results": (
            "PointComparison",
            "ResultsComparison",
            "compare_results",
            "export_results",
            "SampleFlag",
            "PointResult",
            "PointStatus",
            "Results",
        ),
        ".sampling": (
            "run_study",
            "Progress",
            "SampleRun",
        ),
        ".cluster": ("run_on_cluster",),
        ".report": ("write_report",),
    },
)
