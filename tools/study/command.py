"""``pumice study``: runs sweeps, stores their results, and reports, compares and exports results."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ..errors import needs_study_extra, usage, usage_error
from ..options import TIMED_DEVICE_HELP, complete_files, complete_timed_devices, given_options, validation_option
from ..streams import put
from .against import against, read_side
from .baselines import baselines_option, check_baselines, save_measured, save_option
from .gate import Gate, across_option, gating_options
from .history import history
from .measuring import compared, measure, sampling_settings, with_axes
from .measuring_options import (
    OBSERVING_OPTIONS,
    PROCESS_OPTIONS,
    RESUMPTION_OPTIONS,
    clocks_option,
    observers,
    observing_options,
    process_options,
    requested_clocks,
    resumption_options,
    take_observations,
    wants_processes,
    with_processes,
)
from .showing import complete_studies, export, list_, read_study, show

if TYPE_CHECKING:
    from ...study.results.comparison.machine_record import Part

_device_option = click.option(
    "--device",
    "devices",
    multiple=True,
    metavar="URI",
    shell_complete=complete_timed_devices,
    help=f"{TIMED_DEVICE_HELP} Repeatable; instead of the study's.",
)

_quiet_option = click.option(
    "--quiet", "-q", is_flag=True, help="Print only which points fail, are skipped or too noisy."
)


@click.group("study")
def study() -> None:
    """Timing studies: sweeps over sizes, depths and settings that store every sample.

    \b
      pumice study list                         the studies that come with pumice
      pumice study run batch-depth --out r      measure one of them, or a TOML file of your own
      pumice study report r --html              show the results
      pumice study compare r1 r2                compare two results
      pumice study ab r1 r2                     measure their programs in turns, and compare these
      pumice study history results              show results over commits
    """


@study.command("run", short_help="Measure a study.")
@click.argument("name", metavar="STUDY", shell_complete=complete_studies)
@_device_option
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Where results go; default: STUDY.results.")
@click.option(
    "--axis",
    "axes",
    multiple=True,
    metavar="NAME=VALUES",
    help="Other values: n=1,2,4, n=1:64:9, n=pow2:1:256, n=log:1:1000:4; together: tx,ty=8:8,16:4.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Another sampling setting, such as time_limit=1."
)
@click.option("--quick", is_flag=True, help="Sample each point for at most 0.3 s: a preview, not a measurement.")
@click.option(
    "--scheduler", metavar="ADDRESS", help="Spread it over the workers of a Dask scheduler, such as tcp://host:8786."
)
@clocks_option
@observing_options
@resumption_options
@click.option(
    "--against",
    "other",
    metavar="OLD",
    help="Measure another version in turns and compare: a study, results, or a baseline.",
)
@process_options
@gating_options()
@save_option
@baselines_option
@validation_option
@_quiet_option
@click.pass_context
@needs_study_extra()
def run(
    ctx: click.Context,
    /,
    name: str,
    devices: tuple[str, ...],
    out: Path | None,
    axes: tuple[str, ...],
    settings: tuple[str, ...],
    quick: bool,
    scheduler: str | None,
    other: str | None,
    save: str | None,
    baselines: Path,
    validation: bool | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Measure STUDY, a TOML file or one of `pumice study list`, and store every sample in DIR.

    An interrupted run resumes when it is started again with the same study and DIR; failed points are tried again.
    With --continue those that were too noisy are sampled on; --set time_limit, max_samples, noise_limit,
    relative_error, resolution and statistic may differ when a study resumes. Exit status 3 means that a point in DIR is
    too noisy, 1 that one failed; with --runs, in any of them.

    With --against, the verdict on each point is that of STUDY against the other version: SAME, FASTER, SLOWER (status
    4) or UNCLEAR (3). With --against-python or --against-env the other version may be the same study.
    """
    resumption = {name: options.pop(name) for name in RESUMPTION_OPTIONS}
    processes = {name: options.pop(name) for name in PROCESS_OPTIONS}
    lock_clocks = options.pop("lock_clocks")
    observing = {name: options.pop(name) for name in OBSERVING_OPTIONS}
    two_sided = other is not None or wants_processes(processes)
    for parameter in given_options(ctx):
        if not two_sided and parameter.name in options:
            raise usage_error(f"{parameter.opts[0]} is for verdicts; say what to compare with: --against OLD")
    gate = Gate(**options)
    gate.check()
    if save is not None:
        check_baselines(baselines)
    described = with_axes(read_study(name), axes)
    with usage("--set"):
        described = described.with_sampling(**{**(_QUICK if quick else {}), **sampling_settings(settings)})
    if other is not None:
        described = against(described, with_axes(read_side(other, baselines, read_study), axes), gate)
    described = with_processes(described, processes, gate)
    folder = out or Path(f"{described.name}.results")
    observed = observers(observing, described, devices, validation, scheduler=scheduler)
    with requested_clocks(lock_clocks, described, devices, validation, scheduler=scheduler):
        status = measure(described, folder, devices, validation, quiet=quiet, scheduler=scheduler, **resumption)
        take_observations(observed, described, folder, validation)
    judged = None
    if two_sided:
        status, judged = compared(folder, gate, status)
    if save is not None:
        save_measured(folder, baselines, save, status, judged)
    ctx.exit(status)


@study.command("ab", short_help="Measure two versions in turns, and compare them.")
@click.argument("old", shell_complete=complete_files)
@click.argument("new", shell_complete=complete_files)
@_device_option
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Where results go; default: NEW.ab.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Another sampling setting, such as time_limit=1."
)
@resumption_options
@process_options
@gating_options()
@baselines_option
@validation_option
@_quiet_option
@click.pass_context
@needs_study_extra()
def ab(
    ctx: click.Context,
    /,
    old: str,
    new: str,
    devices: tuple[str, ...],
    out: Path | None,
    settings: tuple[str, ...],
    baselines: Path,
    validation: bool | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Measure OLD and NEW in turns, and say of each point whether NEW is the SAME, FASTER, SLOWER, or UNCLEAR.

    Each is a TOML file, one of `pumice study list`, a folder with results, whose programs are measured again, or a
    baseline. Points pair by target and axes. Exit status as of `study compare`; 1 if a point failed.
    """
    resumption = {name: options.pop(name) for name in RESUMPTION_OPTIONS}
    processes = {name: options.pop(name) for name in PROCESS_OPTIONS}
    gate = Gate(**options)
    gate.check()
    described = read_side(new, baselines, read_study)
    with usage("--set"):
        described = described.with_sampling(**sampling_settings(settings))
    described = against(described, read_side(old, baselines, read_study), gate)
    described = with_processes(described, processes, gate)
    folder = out or Path(f"{described.name}.ab")
    status = measure(described, folder, devices, validation, quiet=quiet, **resumption)
    ctx.exit(compared(folder, gate, status)[0])


_QUICK: Final = {"time_limit": 0.3, "max_samples": 300, "warmup_time": 0.02}


@study.command("report", short_help="Show results.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--html", is_flag=True, help="Write DIR/report.html, a self-contained file.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the HTML there.")
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@click.option(
    "--compare-with",
    "earlier",
    type=click.Path(path_type=Path),
    metavar="DIR_A",
    help="Earlier results to compare with, in the HTML and for --fail-on.",
)
@click.option("--sort", metavar="NAME", help="Sort by a figure, headline or an axis: GB/s.")
@click.option("--best", is_flag=True, help="Show the best points alone, and those that are not told apart from them.")
@click.option(
    "--per",
    multiple=True,
    metavar="NAME",
    help="A best point for each target, device, or value of an axis; repeatable.",
)
@across_option
@gating_options(fail_on="never", leave_out=["as_json"])
@click.pass_context
@needs_study_extra()
def report(
    ctx: click.Context,
    /,
    folder: Path,
    html: bool,
    out: Path | None,
    show: bool,
    earlier: Path | None,
    sort: str | None,
    best: bool,
    per: tuple[str, ...],
    across: tuple[Part, ...],
    **options: Any,
) -> None:
    """Show the results in DIR: on the terminal, or as a page with plots.

    With --fail-on, --markdown, --junit or --github verdicts follow and set the exit status as for `study compare`: on
    the results of --compare-with, or on the other side of a study that measured two in turns.
    """
    from ...study.results.comparison.results_comparison import compare_results, compare_sides
    from ...study.results.results import Results

    gate = Gate(**options)
    gate.check()
    if across and earlier is None:
        raise usage_error("--across is for results of two machines; say which to compare with: --compare-with DIR_A")
    with contextlib.ExitStack() as stack:
        results = stack.enter_context(Results.open(folder))
        if gate.is_wanted and earlier is None and not any(result.against for result in results.points):
            raise usage_error(f"say what to compare with, as {folder} has one side only: --compare-with DIR_A")
        if (html or out or show or earlier) and (sort or best or per):
            raise usage_error("--sort, --best and --per are for the terminal; in a page a click on a heading sorts")
        before = None if earlier is None else stack.enter_context(Results.open(earlier))
        if html or out or show or before:
            from ...study.report.page import write_report

            path = write_report(results, out or folder / "report.html", compare_with=before, across=across)
            put(str(path))
            if show:
                click.launch(path.resolve().as_uri())
        else:
            from ...study.report.terminal import terminal_report
            from ..tables import print_renderables

            with usage():
                # The gate prints the verdicts.
                how: Any = {"sort": sort, "best": best, "verdicts": not gate.is_wanted}
                parts = terminal_report(results, per=per or ("device",), **how)
            print_renderables(parts)
        if gate.is_wanted:
            with usage():
                comparison = (
                    compare_sides(results, **gate.limits)
                    if before is None
                    else compare_results(before, results, across=across, **gate.limits)
                )
            ctx.exit(gate.finish(comparison).status)


@study.command("compare", short_help="Compare two results, point by point.")
@click.argument("first", metavar="DIR_A", type=click.Path(path_type=Path))
@click.argument("second", metavar="DIR_B", type=click.Path(path_type=Path))
@across_option
@gating_options()
@click.pass_context
@needs_study_extra()
def compare(ctx: click.Context, /, first: Path, second: Path, across: tuple[Part, ...], **options: Any) -> None:
    """Print for each point of DIR_A and DIR_B whether DIR_B is the SAME, FASTER, SLOWER, or UNCLEAR.

    Exit status: 4 if a point is SLOWER, else 3 if one is UNCLEAR or could not be compared, else 0. Points that were
    skipped in both, because no device could run them, do not count.
    """
    from ...study.results.comparison.results_comparison import compare_results
    from ...study.results.results import Results

    gate = Gate(**options)
    gate.check()
    with Results.open(first) as a, Results.open(second) as b:
        with usage():
            comparison = compare_results(a, b, across=across, **gate.limits)
        ctx.exit(gate.finish(comparison).status)


@study.command("peaks", short_help="Measure a device's memory bandwidth and arithmetic rate.")
@_device_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@needs_study_extra()
def peaks(devices: tuple[str, ...], as_json: bool) -> None:
    """Measure the peaks of a device: bytes copied and multiply-adds a second.

    A study with `peaks = true` measures them too, and shows its GB/s and GFLOP/s as shares of them.
    """
    from ...study.workloads.peaks import measure_peaks
    from ...study.workloads.workload import DevicePool
    from .tables import print_peaks

    measured = {}
    with DevicePool() as pool:
        for uri in devices or ("",):
            with usage("--device" if devices else ""):
                device = pool.open(uri)
            measured[device.name] = measure_peaks(device)
    print_peaks(measured, as_json)


for _command in (list_, show, export, history):
    study.add_command(_command)
