"""Dispatch timing studies: the cost of a dispatch, its division into segments, and how it scales.

>>> from pumice.study import Axis, Results, Study, Target, run_study
>>> study = Study("mul", (Target("mul", "kernel", {"source": "mul.comp", "bindings": [{"shape": "$n"}] * 3}),),
...               axes=(Axis.powers_of_two("n", 1024, 65536),))
>>> run_study(study, "mul.results")
>>> with Results.open("mul.results") as results:
...     for point in results.points:
...         print(point.point.label, summarize(point.values(keep=point.keep)))

Needs the ``study`` extra: ``pip install 'pumice[study]'``; ``run_on_cluster`` needs ``cluster``. The design is in
docs/design/study.md, study files are described in docs/reference/study.md, results in docs/reference/results.md.

Read: definition, statistics, workloads, results, machine, sampling, runs, cluster, report. These folders export
nothing, so that importing a part imports no other part.
"""

# Loaded on first use: the command line shows its help without loading SciPy or Vulkan.
from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports

if TYPE_CHECKING:
    from .cluster.run import run_on_cluster
    from .definition.axis import Axis
    from .definition.expansion import derive, expand
    from .definition.point import Point
    from .definition.sample import MEASURES, SEGMENTS, Sample
    from .definition.settings import Process, Sampling
    from .definition.study import Study, Target
    from .definition.study_file import load_study, parse_study
    from .report.charts.flame import flame_figure
    from .report.page import write_report
    from .results.best import Best
    from .results.comparison.results_comparison import (
        PointComparison,
        ResultsComparison,
        compare_results,
        compare_sides,
    )
    from .results.export import export_results
    from .results.results import Results
    from .results.storage.point_result import PointResult
    from .results.storage.records import PointStatus, SampleFlag
    from .runs.runner import RunProgress, run_study
    from .sampling.sampler import Progress, SampleRun
    from .statistics.comparison import Comparison, Verdict, compare
    from .statistics.fit import Line, fit_line
    from .statistics.summary import Summary, summarize
    from .workloads.peaks import Peaks, measure_peaks

__all__ = [
    "MEASURES",
    "SEGMENTS",
    "Axis",
    "Best",
    "Comparison",
    "Line",
    "Peaks",
    "Point",
    "PointComparison",
    "PointResult",
    "PointStatus",
    "Process",
    "Progress",
    "Results",
    "ResultsComparison",
    "RunProgress",
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
    "compare_sides",
    "derive",
    "expand",
    "export_results",
    "fit_line",
    "flame_figure",
    "load_study",
    "measure_peaks",
    "parse_study",
    "run_on_cluster",
    "run_study",
    "summarize",
    "write_report",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".cluster.run": ("run_on_cluster",),
            ".definition.axis": ("Axis",),
            ".definition.expansion": ("derive", "expand"),
            ".definition.point": ("Point",),
            ".definition.sample": ("MEASURES", "SEGMENTS", "Sample"),
            ".definition.settings": ("Process", "Sampling"),
            ".definition.study": ("Study", "Target"),
            ".definition.study_file": ("load_study", "parse_study"),
            ".report.charts.flame": ("flame_figure",),
            ".report.page": ("write_report",),
            ".results.best": ("Best",),
            ".results.export": ("export_results",),
            ".results.storage.point_result": ("PointResult",),
            ".results.storage.records": ("PointStatus", "SampleFlag"),
            ".results.results": ("Results",),
            ".results.comparison.results_comparison": (
                "PointComparison",
                "ResultsComparison",
                "compare_results",
                "compare_sides",
            ),
            ".runs.runner": ("RunProgress", "run_study"),
            ".sampling.sampler": ("Progress", "SampleRun"),
            ".statistics.comparison": ("Comparison", "Verdict", "compare"),
            ".statistics.fit": ("Line", "fit_line"),
            ".statistics.summary": ("Summary", "summarize"),
            ".workloads.peaks": ("Peaks", "measure_peaks"),
        },
    )
