"""``pumice bench``: times one kernel or function as a study of one point."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ...base.terminal import printable
from ..errors import needs_study_extra, usage, usage_error
from ..options import (
    SANITIZE_HELP,
    TIMED_DEVICE_HELP,
    complete_functions,
    complete_named_files,
    complete_timed_devices,
    complete_values,
    fields_of,
    given_options,
    loop_guard_option,
    source_options,
    validation_option,
)
from ..streams import note, put
from ..study.baselines import baselines_option, check_baselines, save_measured, save_option
from ..study.gate import Gate, check_folder, gating_options
from ..study.measuring_options import (
    OBSERVING_OPTIONS,
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

if TYPE_CHECKING:
    from ...runtime.profiling.profile import Profile
    from ...study.definition.point import Point
    from ...study.definition.study import Study
    from ...study.results.results import Results

_PROFILED: Final = 20
_WRONG_USAGE: Final = re.compile(
    r"(?P<side>(the (old|new) side failed: )?)(INVALID_ARGUMENT|NOT_FOUND): (?P<said>.*)", re.DOTALL
)


@click.command("bench")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--device", metavar="URI", shell_complete=complete_timed_devices, help=TIMED_DEVICE_HELP)
@click.option(
    "--binding",
    "-b",
    "bindings",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_values,
    help="A buffer, as for run; without it, --size elements of random data.",
)
@click.option(
    "--size",
    type=click.IntRange(1),
    default=65536,
    show_default=True,
    metavar="N",
    help="Elements of bindings that are not given.",
)
@click.option(
    "--push",
    "pushes",
    multiple=True,
    metavar="NAME=VALUE|TYPE=VALUE",
    help="A push constant; an expression over the axes begins with $, as in n=$size.",
)
@click.option(
    "--spec",
    "specs",
    multiple=True,
    metavar="ID=VALUE|NAME=VALUE",
    help="A specialization constant's value, or an expression.",
)
@click.option("--groups", metavar="X[,Y[,Z]]", help="Workgroup counts, or an expression; inferred without.")
@click.option("--entry", metavar="NAME", help="The entry point, where there are several.")
@source_options()
@click.option("--subgroup-size", type=click.IntRange(1), metavar="N", help="Ask for subgroups of this size.")
@click.option(
    "--function",
    metavar="NAME",
    shell_complete=complete_functions,
    help="Of a program: the function; not needed where there is one.",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="VALUE",
    shell_complete=complete_values,
    help="Of a program: an argument, as for run.",
)
@click.option(
    "--parameters",
    multiple=True,
    metavar="[SCOPE=]FILE",
    shell_complete=complete_named_files,
    help="Of a program: parameters.",
)
@click.option("--batch", type=click.IntRange(1), metavar="N", help="Dispatches in a command buffer.")
@click.option("--command-buffers", type=click.IntRange(1), metavar="N", help="Command buffers in a submission.")
@click.option(
    "--in-flight", type=click.IntRange(1), metavar="N", help="Submissions (of a program: calls) before the host waits."
)
@click.option("--queues", type=click.IntRange(1), metavar="N", help="Queues that submissions are spread over.")
@click.option("--record", type=click.Choice(["once", "each"]), help="Record commands once, or for each sample.")
@click.option("--barrier", type=click.Choice(["between", "none"]), help="What is between the dispatches of a batch.")
@click.option("--indirect", is_flag=True, default=None, help="Workgroup counts from memory.")
@click.option(
    "--descriptors", type=click.Choice(["auto", "sets", "push", "address"]), help="How bindings reach the kernel."
)
@click.option("--wait", type=click.Choice(["host", "thread", "poll"]), help="How the host waits.")
@click.option("--read", is_flag=True, default=None, help="Read the results back in each sample.")
@click.option("--update", is_flag=True, default=None, help="Write the inputs in each sample.")
@click.option(
    "--timestamps",
    type=click.Choice(["span", "each", "none"]),
    help="Around all dispatches, each, or none; by default with and without.",
)
@click.option(
    "--calls",
    type=click.Choice(["native", "hal", "kernel"]),
    help="What is timed: Vulkan's calls, the HAL's, or a kernel's call.",
)
@click.option("--robust", is_flag=True, default=None, help="Accesses checked by the device.")
@click.option("--sanitize", is_flag=True, default=None, help=SANITIZE_HELP)
@click.option("--path", type=click.Choice(["session", "direct", "async"]), help="Of a program: how it is called.")
@click.option(
    "--profile",
    is_flag=True,
    help="Of a program: time its dispatches too, and the host's shares, in calls of their own.",
)
@click.option(
    "--capture",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Instead of measuring: capture one sample with RenderDoc.",
)
@click.option("--cold", is_flag=True, help="Sweep the caches before each sample.")
@click.option(
    "--measure",
    metavar="NAME",
    help="The headline: a segment, device or total; with --against also p99, minimum, or both: wake:p99.",
)
@click.option(
    "--axis",
    "axes",
    multiple=True,
    metavar="NAME=VALUES",
    help="Sweep a setting: size=pow2:1024:65536, batch=1,2,4; another name is for expressions: -D 'TILE=$tile'.",
)
@click.option(
    "--set", "sampling", multiple=True, metavar="NAME=VALUE", help="A sampling setting, such as time_limit=1."
)
@click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="NAME=EXPRESSION",
    help="A figure from what is measured: bytes=12*size and flops=2*size give GB/s and GFLOP/s by themselves.",
)
@click.option("--peaks", is_flag=True, help="Measure the device's peaks too, and give those as shares of them.")
@click.option("--baseline/--no-baseline", default=True, help="Measure the empty kernel too.")
@click.option("--subtract-baseline", is_flag=True, help="And subtract its median from the kernel's figures.")
@clocks_option
@observing_options
@resumption_options
@click.option(
    "--against",
    metavar="'OLD [OPTIONS]'|DIR|NAME",
    help="Measure another version in turns and compare: a file, options, or both; results, or a baseline.",
)
@click.option("--against-rev", metavar="REV", help="The other version is FILE at a git revision.")
@click.option("--build", metavar="CMD", help="Run by the shell in the revision's worktree first.")
@process_options
@gating_options(leave_out=["as_json", "measure"])
@save_option
@baselines_option
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Keep the results there.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a report with plots.")
@click.option(
    "--trace", type=click.Path(path_type=Path), metavar="FILE", help="Write the samples as a trace for ui.perfetto.dev."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@validation_option
@loop_guard_option
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr; figures and verdicts are printed.")
@click.pass_context
@needs_study_extra()
def bench(ctx: click.Context, /, file: Path, **options: Any) -> None:
    """Time FILE: a kernel (SPIR-V or a source, as for pumice run), or a function of a program (.vmfb, .mlir, .pb).

    \b
      pumice bench mul.comp --size 4096
      pumice bench model.vmfb --function=predict --input=@image.npy

    A dispatch's latency is divided into segments on one clock: submit, queue, execute, wake. Exit status 3 means that
    the figures are too noisy.

    \b
      pumice bench new.comp --against old.comp
      pumice bench mul.comp -D TILE=16 --against '-D TILE=8'
      pumice bench mul.comp --against-rev HEAD~1

    With another version both are measured in turns, and the verdict is SAME, FASTER, SLOWER (status 4) or UNCLEAR (3).
    """
    from ...study.results.results import Results
    from ..study.measuring import compared, measure
    from ..study.tables import print_bench
    from .side import side_study, with_other_side
    from .study import without_twins

    on_line = list(given_options(ctx))
    has_other = options["against"] is not None or options["against_rev"] is not None
    two_sided = has_other or wants_processes(options)
    _check_sides(options, on_line, two_sided)
    gate = Gate()
    if two_sided:
        gate = Gate(**fields_of(Gate, options) | {"measure": options["measure"] or "headline"})
        segment, statistic = gate.check()
        gate = replace(gate, measure=f"headline:{statistic}")
        options["measure"] = None if segment == "headline" else segment
    if options["save"] is not None:
        check_baselines(options["baselines"])
    check_folder("--html", options["html"])
    check_folder("--trace", options["trace"])
    if options["trace"] is not None:
        from ...runtime.profiling.trace_writer import check_perfetto

        check_perfetto()  # before a long run, not after it
    if options["subtract_baseline"] and not options["baseline"]:
        raise usage_error("--subtract-baseline needs the baseline; leave --no-baseline out")
    if two_sided and "baseline" not in {binding.name for binding in on_line}:
        options["baseline"] = options["subtract_baseline"]
    if options["capture"] is not None:
        _capture(file, options, on_line, two_sided)
        return
    with contextlib.ExitStack() as stack:
        described = side_study(file, options, on_line)
        if two_sided:
            described = without_twins(described)
        if has_other:
            described = stack.enter_context(with_other_side(described, file, options, on_line, bench.params, gate))
        described = with_processes(described, options, gate)
        kept = options["out"] is not None
        folder = options["out"]
        if not kept:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pumice-bench-"))) / "results"
        devices = (options["device"],) if options["device"] is not None else ()
        observing = {name: options[name] for name in OBSERVING_OPTIONS}
        observed = observers(observing, described, devices, options["validation"])
        stack.enter_context(requested_clocks(options["lock_clocks"], described, devices, options["validation"]))
        resumption = {name: options[name] for name in RESUMPTION_OPTIONS}
        status = measure(
            described,
            folder,
            devices,
            options["validation"],
            quiet=options["quiet"],
            kept=kept,
            reasons=options["as_json"],  # tables contain the reasons
            **resumption,
        )
        take_observations(observed, described, folder, options["validation"])
        with Results.open(folder) as results:
            _check_usage(results)
            if not (two_sided and options["as_json"]):
                print_bench(results, options["as_json"], options["subtract_baseline"])
            profiles = {}
            written = options["html"] is not None or options["trace"] is not None
            if options["profile"] and (written or not options["as_json"]):
                for result in results.points:
                    if result.count:
                        profiles[result.point.index] = _profile(described, result.point, options["validation"])
                        if not options["as_json"]:
                            label = printable(result.point.label)
                            put(f"\n{label}: {_PROFILED} samples more, with every dispatch timed")
                            put(profiles[result.point.index].table())
            if options["html"] is not None:
                from ...study.report.page import write_report

                note(printable(f"report: {write_report(results, options['html'], profiles=profiles)}"))
            if options["trace"] is not None:
                from ...study.report.trace import write_trace

                write_trace(results, options["trace"], profiles=profiles)
                note(printable(f"trace: {options['trace']}"))
        judged = None
        if two_sided:
            status, judged = compared(folder, gate, status, with_results=True)
        if options["save"] is not None:
            save_measured(folder, options["baselines"], options["save"], status, judged, kept=kept)
    ctx.exit(status)


def _capture(file: Path, options: Mapping[str, Any], on_line: Sequence[click.Parameter], two_sided: bool) -> None:
    from ...study.runs.capture import RenderDoc, capture_sample
    from ...study.runs.runner import default_devices
    from .side import side_study

    if two_sided:
        raise usage_error("--capture is of one version; leave the other one out")
    renderdoc = RenderDoc()  # before Vulkan
    with usage("--capture"):
        described = replace(side_study(file, options, on_line), baseline=False)
        device = options["device"] or default_devices()[0]
        capture_sample(described, renderdoc, options["capture"], device, validation=options["validation"])
    note(printable(f"captured: {options['capture']}"))


def _check_sides(options: Mapping[str, Any], on_line: Sequence[click.Parameter], two_sided: bool) -> None:
    if options["against"] is not None and options["against_rev"] is not None:
        raise usage_error("--against and --against-rev are each the other version; give one of them")
    if options["build"] is not None and options["against_rev"] is None:
        raise usage_error("--build is for --against-rev REV")
    if options["out"] is None and (options["continue_noisy"] or options["more_time"] is not None):
        raise usage_error("--continue and --more-time go on with results that are kept: give their folder, --out DIR")
    for parameter in on_line:
        if not two_sided and parameter.name in Gate.__annotations__ and parameter.name not in ("measure", "as_json"):
            raise usage_error(f"{parameter.opts[0]} is for verdicts; say what to compare with: --against OLD")


def _profile(described: Study, point: Point, validation: bool | None) -> Profile:
    from ...study.runs.taken_files import TakenFiles
    from ...study.workloads.module import ModuleWorkload
    from ...study.workloads.workload import DevicePool, WorkloadContext

    with DevicePool(validation=validation) as pool, TakenFiles(described) as taken:
        point = taken.files.take(point, 0)  # modules are not compiled from sources
        taken.unpack()
        context = WorkloadContext(pool, point.device, taken.study.folder_of(point), described.sampling.seed)
        workload = ModuleWorkload(point.settings, context)
        try:
            workload.first()
            for _ in range(described.sampling.warmup_count):
                workload.sample()
            return workload.profile(_PROFILED)
        finally:
            workload.close()


def _check_usage(results: Results) -> None:
    """Raises wrong usage for command-line settings that the kernel or program does not take."""
    from ...study.results.storage.records import PointStatus

    points = [result for result in results.points if not result.point.is_baseline]
    matches = [_WRONG_USAGE.match(point.reason) for point in points if point.status is PointStatus.FAILED]
    if matches and len(matches) == len(points) and all(matches) and matches[0] is not None:
        said = matches[0].group("side") + matches[0].group("said")
        hint = ": give each as --input VALUE" if re.search(r" takes \d+ arguments?, got \d+$", said) else ""
        raise usage_error(said + hint)
