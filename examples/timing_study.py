"""A timing study made in Python: how a kernel's time grows with its size, with a line through it and figures from it.

Needs the study extra: pip install 'pumice[study]'.
"""

import tempfile
from pathlib import Path

from pumice.study import Axis, Results, Sampling, Study, Target, fit_line, run_study, summarize, write_report

study = Study(
    "saxpy-size",
    (
        Target(
            "saxpy",
            "kernel",
            {
                "source": "builtin:examples/saxpy",
                "bindings": [{"shape": "$n"}, {"shape": "$n"}],
                "push": {"a": 2.0},
            },
        ),
    ),
    axes=(Axis.powers_of_two("n", 1 << 12, 1 << 18),),
    derived={"bytes": "12 * n", "flops": "2 * n"},
    fit=("n",),
    sampling=Sampling(time_limit=0.5, max_samples=300),
)

with tempfile.TemporaryDirectory() as folder:
    outcome = run_study(study, folder)
    with Results.open(folder) as results:
        samples = {}
        for point in results.points:
            times = point.values("execute", keep=point.keep)
            summary = summarize(times, blocks=point.blocks_of(keep=point.keep))
            low, high = summary.median_interval
            figures = results.figures(point, keep=point.keep)
            samples[point.point.axes["n"]] = times
            print(
                f"n = {point.point.axes['n']:>7}: {summary.median / 1e3:8.1f} us [{low / 1e3:.1f}, {high / 1e3:.1f}], "
                f"{figures['GB/s']:.2f} GB/s"
            )
        line = fit_line(list(samples), list(samples.values()))
        print(f"{line.slope:.3f} ns an element and {line.intercept / 1e3:.1f} us a dispatch")
        report = write_report(results, Path(folder) / "report.html")
        print(f"the report is one file of {report.stat().st_size / 1e6:.1f} MB")
    assert not outcome.failed
    assert len(samples) == 7
