"""``pumice run``: runs a kernel or a compiled program, depending on the content of the file.

Each kind of file has its own options; options of the other kind are wrong usage.
"""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ..errors import usage_error
from ..options import (
    DEVICE_HELP,
    SANITIZE_HELP,
    complete_devices,
    complete_files,
    complete_functions,
    complete_values,
    fields_of,
    given_options,
    loop_guard_option,
    parameters_option,
    seconds,
    source_options,
    tolerance,
    validation_option,
)
from .driver_start import opening_driver, uses_device

if TYPE_CHECKING:
    from ..input_files import FileKind

_KERNELS: Final = "Options for kernels"
_MODULES: Final = "Options for compiled programs"
_BOTH: Final = "Options for both"
_FOR_SCRIPTS: Final = ("devices", "validation", "sanitize", "timeout")

# Flags of ``iree-run-module --help`` of release 3.13 that do not exist here, with replacements.
_IREE_FLAGS: Final = {
    "--list_drivers": "`pumice devices` lists what there is to run on",
    "--list_devices": "`pumice devices` lists them",
    "--dump_devices": "`pumice devices` and `pumice devices --json` describe them",
    "--trace_execution": "`pumice dump --disassemble` shows the program",
    "--parameter_mode": "parameter files are always mapped",
    "--device_lead_allocator": "the first --device is the one that arguments go to",
    "--vulkan_validation_layers": "--validation turns them on",
    "--vulkan_libvulkan_search_path": "the environment variable PUMICE_VULKAN_LIBRARY names the library",
    "--flagfile": "options are read from the command line only",
    "--agents_md": "see docs/cli.md",
    "--print_device_statistics": "--print_statistics reports device memory",
}
_IREE_PREFIXES: Final = {
    "--device_allocator": "memory is always allocated the same way",
    "--device_profiling_": "--time measures",
    "--device_replay_": "nothing can be captured or replayed",
    "--device_capture_": "start the program from the capturing tool instead",
    "--instrument_": "programs' instruments are not read",
    "--task_": "there are no worker threads to arrange",
    "--dump_task_": "there are no worker threads to arrange",
    "--vulkan_": "drivers have no settings here; see `pumice run --help`",
    "--amdgpu_": "every device is a Vulkan device",
    "--cuda_": "every device is a Vulkan device",
    "--hip_": "every device is a Vulkan device",
    "--metal_": "every device is a Vulkan device",
    "--local_": "every device is a Vulkan device",
    "--executable_": "every device is a Vulkan device",
}


class _Option(click.Option):
    """An option with the heading under which it is listed."""

    def __init__(self, *names: Any, heading: str, **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        self.heading = heading


class _RunCommand(click.Command):
    """Lists options by kind of file, and gives advice for flags of iree-run-module that do not exist here."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading in (_BOTH, _MODULES, _KERNELS):
            records = [
                record
                for parameter in self.get_params(ctx)
                if isinstance(parameter, click.Option)
                and getattr(parameter, "heading", _BOTH) == heading
                and (record := parameter.get_help_record(ctx)) is not None
            ]
            with formatter.section(heading):
                formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            hint = advice(error.option_name)
            if hint is None:
                raise
            raise usage_error(hint) from error


_both = functools.partial(click.option, cls=_Option, heading=_BOTH)
_module = functools.partial(click.option, cls=_Option, heading=_MODULES)
_kernel = functools.partial(click.option, cls=_Option, heading=_KERNELS)


@click.command(cls=_RunCommand)
@click.argument("files", nargs=-1, metavar="[FILE]...", shell_complete=complete_files)
@_both(
    "--device",
    "devices",
    multiple=True,
    metavar="URI",
    shell_complete=complete_devices,
    help=f"{DEVICE_HELP} Compiled programs take several.",
)
@_both(
    "--output",
    "-o",
    "outputs",
    multiple=True,
    metavar="[KEY=]@PATH|[KEY=]-",
    shell_complete=complete_values,
    help="Where a result goes instead of being printed: an .npy file, a .png file for a picture, any other file for "
    "the bare bytes, or - to print it too. For kernels KEY is a binding; for programs they are in order, +PATH "
    "appends, and an empty one ignores one.",
)
@_both(
    "--atol",
    type=tolerance,
    metavar="X",
    help="For floats that are expected: absolute tolerance; 1e-4 for f32 and f64, 1e-3 for f16, 1e-2 for bf16.",
)
@_both(
    "--rtol",
    type=tolerance,
    metavar="X",
    help="And relative tolerance; 1e-5. Equal is |got - expected| <= atol + rtol * |expected|.",
)
@_both("--time", "timed", is_flag=True, help="Measure, and report to stderr.")
@_both("--sanitize", is_flag=True, default=None, help=SANITIZE_HELP)
@validation_option
@loop_guard_option
@_module(
    "--module",
    "modules",
    multiple=True,
    metavar="FILE",
    shell_complete=complete_files,
    help="A module; modules come before those that import them. Without FILE, the last one has the function. "
    "- is stdin.",
)
@_module(
    "--function",
    metavar="NAME",
    shell_complete=complete_functions,
    help="The exported function, as NAME or MODULE.NAME; not needed where there is one.",
)
@_module(
    "--input",
    "inputs",
    multiple=True,
    metavar="VALUE",
    shell_complete=complete_values,
    help="An argument, in order: 2.5, 4xf32=1,2,3,4, @a.npy, 4xf32=@a.bin, &4xf32 for a buffer to put a result into, "
    "or (null).",
)
@_module(
    "--expected_output",
    "--expected-output",
    "expected_outputs",
    multiple=True,
    metavar="VALUE",
    shell_complete=complete_values,
    help="The expected result, in order; (ignored) accepts any. Exit status 1 if it differs.",
)
@parameters_option(cls=_Option, heading=_MODULES)
@_module("--timeout", type=seconds, metavar="SECONDS", help="For the call, and for each module's initializers.")
@_module(
    "--output_max_element_count",
    "--output-max-element-count",
    "max_elements",
    type=int,
    default=1024,
    metavar="N",
    help="How many elements of a result to print; 1024.",
)
@_module(
    "--equality_mode",
    "--equality-mode",
    type=click.Choice(["approximate", "exact"]),
    default="approximate",
    help="Whether floats may differ from --expected_output by the tolerances.",
)
@_module("--expected_f16_threshold", "f16", type=tolerance, metavar="X", help="--atol for f16 only.")
@_module("--expected_bf16_threshold", "bf16", type=tolerance, metavar="X", help="--atol for bf16 only.")
@_module("--expected_f32_threshold", "f32", type=tolerance, metavar="X", help="--atol for f32 only.")
@_module("--expected_f64_threshold", "f64", type=tolerance, metavar="X", help="--atol for f64 only.")
@_module("--expected_rtol", type=tolerance, metavar="X", help="--rtol by its name in iree-run-module.")
@_module(
    "--module_mode",
    "--module-mode",
    type=click.Choice(["mmap", "preload"]),
    default="mmap",
    help="Map modules into memory, or read them.",
)
@_module("--profile", is_flag=True, help="Report device time by export and how the host spent its time, to stderr.")
@_module(
    "--profile-json", metavar="PATH", shell_complete=complete_files, help="Write the same with every dispatch as JSON."
)
@_module(
    "--profile-trace", metavar="PATH", shell_complete=complete_files, help="Write it as a trace for ui.perfetto.dev."
)
@_module("--print_statistics", "--print-statistics", "statistics", is_flag=True, help="Report device memory to stderr.")
@_kernel(
    "--binding",
    "-b",
    "bindings",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_values,
    help="A buffer: 0=4xf32=1,2,3,4, 1=@b.npy, 2=4xf32=@b.bin, or 2=4xf32 for zeros or an output; or an image, height "
    "x width x format: 0=256x256xrgba8unorm=@cat.png. KEY is the binding's number, SET.NUMBER or its name.",
)
@_kernel(
    "--sampler",
    "samplers",
    multiple=True,
    metavar="KEY=NAME=VALUE,...",
    help="How an image is read: 0=filter=nearest,address=repeat; without it linearly, up to the edge.",
)
@_kernel(
    "--push",
    "pushes",
    multiple=True,
    shell_complete=complete_values,
    metavar="TYPE=VALUE|NAME=VALUE|@FILE",
    help="A push constant: with its type in the members' order (i32=4), by name (n=4), or all as bytes of a file.",
)
@_kernel("--spec", "specs", multiple=True, metavar="ID=VALUE|NAME=VALUE", help="A specialization constant's value.")
@_kernel(
    "--groups",
    metavar="X[,Y[,Z]]|NAME",
    help="Workgroup counts, or one invocation an element of a binding; without it, of the largest written one.",
)
@_kernel("--entry", metavar="NAME", help="The entry point, where there are several.")
@source_options(_kernel)
@_kernel("--subgroup-size", type=click.IntRange(1), metavar="N", help="Ask for subgroups of this size.")
@_kernel(
    "--expect",
    "expectations",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_values,
    help="The expected value of a written binding, as for --binding; exit status 1 if it differs.",
)
@_kernel(
    "--to-amber",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Write this run as an Amber script, a bug report for driver developers: shader, buffers, and as expected "
    "values those of --expect, or else what came out.",
)
@click.pass_context
def run(ctx: click.Context, /, files: tuple[str, ...], modules: tuple[str, ...], **options: Any) -> None:
    """Run FILE: a compiled program (.vmfb), one that is compiled first (StableHLO, .mlir; a GraphDef, .pb or .pbtxt),
    either of them from stdin (-), a kernel in SPIR-V (.spv) or as source (GLSL: .comp, .glsl; HLSL: .hlsl; Slang:
    .slang; WGSL: .wgsl; SPIR-V assembly: .spvasm), or Amber scripts (.amber).

    Results go to stdout. A program's are those of the function that is called:

    \b
      pumice run mul.vmfb --function=mul --input=4xf32=1,2,3,4 --input=4xf32=2
      EXEC @mul
      result[0]: hal.buffer_view
      4xf32=2 4 6 8

    A kernel's are the bindings that it writes:

    \b
      pumice run mul.comp -b 0=4xf32=1,2,3,4 -b 1=4xf32=2,3,4,5 -b 2=4xf32
      binding[2]: 4xf32=2 6 12 20

    Each of several Amber scripts is run, and gets a line. Exit status: 0 passed, some skipped perhaps, 1 some failed, 2
    some are wrong, 3 some need what pumice does not run, such as graphics pipelines, 77 all were skipped.
    """
    from ...status import UnimplementedError
    from ..input_files import FileKind, file_kind

    if files and all(file != "-" and file_kind(Path(file), options["language"]) is FileKind.SCRIPT for file in files):
        _run_scripts(ctx, files, options)
        return
    if len(files) > 1:
        raise usage_error(
            f"only Amber scripts run several at a time; got {len(files)} files, not all of them scripts. "
            "Give a kernel's arguments by --binding, and a module's by --input"
        )
    file = files[0] if files else None
    if file is None and not modules:
        raise usage_error("Missing argument 'FILE'.")
    kind = FileKind.MODULE if file is None or file == "-" else file_kind(Path(file), options["language"])
    if kind in (FileKind.MODULE, FileKind.PROGRAM):
        _reject(ctx, _KERNELS, "kernels", f"{file or modules[-1]} is a {kind.value}")
        programs = (*modules, file) if file is not None else modules
        with contextlib.ExitStack() as stack:
            if any(map(uses_device, programs)):
                stack.enter_context(opening_driver(options["devices"], options["validation"]))
            _run_module(programs, options)
        return
    _reject(ctx, _MODULES, "compiled programs", f"{file} is a {kind.value}")
    if kind not in (FileKind.SPIRV, FileKind.SOURCE):
        raise UnimplementedError(
            f"{file} is a {kind.value}; expected a compiled program, or a kernel in SPIR-V or as source"
        )
    assert file is not None
    with opening_driver(options["devices"], options["validation"]):
        _run_kernel(Path(file), kind, options)


def _reject(ctx: click.Context, heading: str, purpose: str, reason: str) -> None:
    """Rejects the options of the other kind of file."""
    for parameter in given_options(ctx):
        if getattr(parameter, "heading", None) == heading:
            raise usage_error(f"{parameter.opts[0]} is for {purpose}; {reason}")


def _run_scripts(ctx: click.Context, files: tuple[str, ...], options: dict[str, Any]) -> None:
    from .script import run_scripts

    for parameter in given_options(ctx):
        if isinstance(parameter, click.Option) and parameter.name not in _FOR_SCRIPTS:
            raise usage_error(f"{parameter.opts[0]} is not for Amber scripts, which say everything themselves")
    devices = options["devices"]
    if len(devices) > 1:
        raise usage_error(f"an Amber script runs on one device, got --device {len(devices)} times")
    uri = devices[0] if devices else None
    ctx.exit(
        run_scripts([Path(file) for file in files], uri, options["validation"], options["sanitize"], options["timeout"])
    )


def _run_kernel(file: Path, kind: FileKind, options: dict[str, Any]) -> None:
    from .kernel import KernelRun, run_kernel

    devices = options["devices"]
    if len(devices) > 1:
        raise usage_error(f"a kernel runs on one device, got --device {len(devices)} times")
    run_kernel(KernelRun(file=file, kind=kind, device=devices[0] if devices else None, **fields_of(KernelRun, options)))


def _run_module(modules: tuple[str, ...], options: dict[str, Any]) -> None:
    from ...formats.element_type import ElementType
    from .expectations import Tolerances
    from .module import ModuleRun, run_module

    names = ("f16", "bf16", "f32", "f64")
    thresholds = {ElementType.parse(name): options[name] for name in names if options[name] is not None}
    rtol = options["rtol"] if options["rtol"] is not None else options["expected_rtol"]
    tolerances = Tolerances(options["atol"], rtol, thresholds, exact=options["equality_mode"] == "exact")
    preload = options["module_mode"] == "preload"
    run_module(ModuleRun(modules=modules, tolerances=tolerances, preload=preload, **fields_of(ModuleRun, options)))


def advice(option: str) -> str | None:
    """Returns the message for a flag that only iree-run-module has; ``None`` for all other options."""
    name = option.partition("=")[0]
    hint = _IREE_FLAGS.get(name) or next(
        (text for prefix, text in _IREE_PREFIXES.items() if name.startswith(prefix)), None
    )
    return f"{name} is a flag of iree-run-module that pumice does not have: {hint}" if hint is not None else None
