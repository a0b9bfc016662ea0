"""Makes the pictures of docs/dispatch-timing.md: runs small studies and draws them with the report's charts.

    python docs/pictures/make.py [--device lavapipe] [--keep DIR]

It needs the ``study`` extra and Chromium (``apt-get install chromium``), which turns charts into PNG files. Run nothing
else on the machine meanwhile: it would show in the pictures.
"""

from __future__ import annotations

import multiprocessing
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
from plotly import graph_objects as go

from pumice.study import Axis, Results, Sampling, Study, Target, run_study
from pumice.study.report.charts.chart import new_figure, style_log_axis
from pumice.study.report.charts.palette import MUTED, SERIES
from pumice.study.report.charts.scaling import headline_charts
from pumice.study.report.charts.sequence import sequence_charts
from pumice.study.report.charts.stacks import stack_charts
from pumice.study.results.analysis import StudyAnalysis

_HERE: Final = Path(__file__).parent
_WIDTH: Final = 1000
_QUIET: Final = Sampling(time_limit=3.0, max_samples=600)


def _vector(count: int, outputs: int = 1) -> list[dict[str, object]]:
    return [{"shape": [count], "dtype": "f32"}] * 2 + [{"shape": [count], "dtype": "f32", "init": "zeros"}] * outputs


def _mul(name: str = "mul", count: int = 4096, **settings: object) -> Target:
    return Target(name, "kernel", {"source": "builtin:mul", "bindings": _vector(count), **settings})


_EMPTY: Final = Target("empty", "kernel", {"source": "builtin:builtin/empty", "groups": 1})


def _segments() -> Study:
    return Study(
        "segments",
        (
            _EMPTY,
            _mul("mul, 256 elements", 256),
            _mul("mul, 65536 elements", 65536),
            _mul("mul, inputs written, result read", 65536, update=True, read=True),
            _mul("mul, recorded anew", 65536, record="each"),
        ),
        sampling=_QUIET,
    )


def _batch() -> Study:
    return Study(
        "batch",
        (_EMPTY, _mul()),
        axes=(Axis.powers_of_two("batch", 1, 64), Axis("barrier", ("between", "none"))),
        fit=("batch",),
        sampling=_QUIET,
    )


def _timestamps() -> Study:
    none = Target("without", "kernel", {**_EMPTY.settings, "timestamps": "none"}, "device")
    return Study(
        "timestamps", (Target("with", "kernel", _EMPTY.settings, "device"), none), sampling=Sampling(max_samples=1500)
    )


def _sequence() -> Study:
    return Study("sequence", (_mul(),), sampling=Sampling(max_samples=400, min_samples=400, warmup_count=20))


def _disturbance() -> Study:
    sampling = Sampling(time_limit=6.0, max_samples=6000, min_samples=6000, relative_error=0.0)
    return Study("disturbance", (_mul(count=65536),), sampling=sampling)


def _burn(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def _with_load(study: Study, folder: Path, device: str) -> None:
    """Two programs compute for a second and a half in the middle of the run."""

    def load() -> None:
        time.sleep(1.5)
        context = multiprocessing.get_context("spawn")
        programs = [context.Process(target=_burn, args=(1.5,)) for _ in range(2)]
        for program in programs:
            program.start()
        for program in programs:
            program.join()

    thread = threading.Thread(target=load)
    thread.start()
    run_study(study, folder, devices=(device,))
    thread.join()


def _sequence_figure(results: Results) -> go.Figure:
    point = results.points[0]
    figure = new_figure(go.Figure(), 380)
    start = 0
    for phase, name, colour in (
        ("first", "first call", SERIES[1]),
        ("warmup", "warm-up", MUTED),
        ("sample", "samples", SERIES[0]),
    ):
        values = point.values("total", phase) / 1e3
        figure.add_scatter(
            x=np.arange(start, start + len(values)),
            y=values,
            mode="markers",
            name=name,
            marker={"size": 11 if phase == "first" else 5, "color": colour},
        )
        start += len(values)
    everything = np.concatenate([point.values("total", phase) for phase in ("first", "warmup", "sample")]) / 1e3
    figure.update_yaxes(**style_log_axis(float(everything.min()), float(everything.max())), title_text="total, µs")
    figure.update_xaxes(title_text="samples in the order they were taken")
    return figure


def _timestamps_figure(results: Results) -> go.Figure:
    figure = new_figure(go.Figure(), 360)
    values = {one.point.target: one.values("device", keep=one.keep) / 1e3 for one in results.points}
    most = float(np.quantile(np.concatenate(list(values.values())), 0.93))
    for index, (name, times) in enumerate(values.items()):
        figure.add_histogram(
            x=times[times <= most],
            name=f"{name} timestamps: median {np.median(times):.1f} µs",
            marker={"color": SERIES[index]},
            opacity=0.75,
            xbins={"start": 0, "end": most, "size": most / 90},
        )
    figure.update_layout(barmode="overlay")
    figure.update_xaxes(title_text="submit returned to host awake, µs")
    figure.update_yaxes(title_text="samples")
    return figure


_PICTURES: Final[dict[str, tuple[Callable[[], Study], Callable[[Results], go.Figure]]]] = {
    "segments": (_segments, lambda results: stack_charts(StudyAnalysis(results))[0].figure),
    "batch": (_batch, lambda results: headline_charts(StudyAnalysis(results))[0].figure),
    "timestamps": (_timestamps, _timestamps_figure),
    "sequence": (_sequence, _sequence_figure),
    "disturbance": (_disturbance, lambda results: sequence_charts(StudyAnalysis(results))[0].figure),
}


def _draw(figure: Any, path: Path) -> None:
    """The figure as a PNG file, as Chromium shows it."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise click.ClickException("Chromium is not installed: apt-get install chromium")
    height = int(figure.layout.height or 450)
    figure.update_layout(width=_WIDTH, height=height, paper_bgcolor="white", plot_bgcolor="white")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        plot = figure.to_html(full_html=False, include_plotlyjs=True, config={"displayModeBar": False})
        page.write_text(f'<!doctype html><meta charset="utf-8"><body style="margin:0;background:white">{plot}', "utf-8")
        subprocess.run(
            [
                *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
                *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
                *(f"--user-data-dir={folder}/profile", f"--window-size={_WIDTH},{height}", "--hide-scrollbars"),
                *("--virtual-time-budget=5000", f"--screenshot={path}", page.as_uri()),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )


@click.command()
@click.option("--device", default="lavapipe", show_default=True, help="Where the studies run.")
@click.option(
    "--keep", type=click.Path(path_type=Path), help="Keep the results there, and draw those that are there already."
)
@click.argument("names", nargs=-1, type=click.Choice(list(_PICTURES)))
def main(device: str, keep: Path | None, names: tuple[str, ...]) -> None:
    """Measure, and write the pictures beside this program."""
    with tempfile.TemporaryDirectory() as folder:
        for name in names or _PICTURES:
            make, draw = _PICTURES[name]
            results = (keep or Path(folder)) / name
            if name == "disturbance" and not results.is_dir():
                _with_load(make(), results, device)
            else:
                run_study(make(), results, devices=(device,))
            with Results.open(results) as measured:
                _draw(draw(measured), _HERE / f"{name}.png")
            click.echo(f"{name}.png")


if __name__ == "__main__":
    main()
