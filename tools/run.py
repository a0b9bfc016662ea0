"""``pumice run``: runs what a file holds. Which of the runners takes the file is decided by its content.

The options of each kind of file are a group of their own; those given for another kind are wrong usage.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

__all__ = ["run"]

_Command = TypeVar("_Command", bound=Callable[..., None])


def _tolerance(text: str) -> float:
    """A finite number of 0 or more."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise click.BadParameter(f"expected a finite number of 0 or more, got {text[:80]!r}")
    return number


def _kernel_options(command: _Command) -> _Command:
    """The options of a kernel in SPIR-V or GLSL."""
    options = [
        click.option(
            "--binding",
            "-b",
            "bindings",
            multiple=True,
            metavar="KEY=VALUE",
            help="A buffer: 0=4xf32=1,2,3,4, 1=@b.npy, 2=4xf32=@b.bin, or 2=4xf32 for zeros or an output. KEY is the "
            "binding's number, SET.NUMBER or its name.",
        ),
        click.option(
            "--push",
            "pushes",
            multiple=True,
            metavar="TYPE=VALUE|NAME=VALUE|@FILE",
            help="A push constant: with its type in the members' order (i32=4), by name (n=4), or all as bytes of a file.",
        ),
        click.option(
            "--spec", "specs", multiple=True, metavar="ID=VALUE|NAME=VALUE", help="A specialization constant's value."
        ),
        click.option(
            "--groups",
            metavar="X[,Y[,Z]]",
            help="Workgroup counts; without it, one invocation an element of the largest written binding.",
        ),
        click.option("--entry", metavar="NAME", help="The entry point, where there are several."),
        click.option("--define", "-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="A macro for GLSL."),
        click.option("--subgroup-size", type=click.IntRange(1), metavar="N", help="Ask for subgroups of this size."),
        click.option(
            "--output",
            "-o",
            "outputs",
            multiple=True,
            metavar="KEY=@PATH|KEY=-",
            help="Where a written binding goes instead of being printed: an .npy file, any other file for the bare "
            "bytes, or - to print it all the same.",
        ),
        click.option(
            "--expect",
            "expectations",
            multiple=True,
            metavar="KEY=VALUE",
            help="What a written binding has to be, written as for --binding; exit status 1 if it is not.",
        ),
        click.option(
            "--atol",
            type=_tolerance,
            metavar="X",
            help="For floats in --expect: absolute tolerance; 1e-4 for f32 and f64, 1e-3 for f16, 1e-2 for bf16.",
        ),
        click.option(
            "--rtol",
            type=_tolerance,
            metavar="X",
            help="And relative tolerance; 1e-5. Equal is |got - expected| <= atol + rtol * |expected|.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _common_options(command: _Command) -> _Command:
    """The options of every kind of file."""
    options = [
        click.option(
            "--device", metavar="URI", help="vulkan, vulkan://INDEX, vulkan://GPU-UUID, vulkan://NAME or lavapipe."
        ),
        click.option("--time", "timed", is_flag=True, help="Measure, and report to stderr."),
        click.option(
            "--validation/--no-validation",
            default=None,
            help="The Khronos validation layers; as PUMICE_VALIDATION says without it.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command(short_help="Run a kernel.")
@click.argument("file", type=click.Path(path_type=Path))
@_kernel_options
@_common_options
def run(
    file: Path,
    bindings: tuple[str, ...],
    pushes: tuple[str, ...],
    specs: tuple[str, ...],
    groups: str | None,
    entry: str | None,
    defines: tuple[str, ...],
    subgroup_size: int | None,
    outputs: tuple[str, ...],
    expectations: tuple[str, ...],
    atol: float | None,
    rtol: float | None,
    device: str | None,
    timed: bool,
    validation: bool | None,
) -> None:
    """Run a compute kernel, FILE, in SPIR-V (.spv) or GLSL (.comp, .glsl).

    Results, which are the bindings that the kernel writes, go to stdout:

    \b
      pumice run mul.comp -b 0=4xf32=1,2,3,4 -b 1=4xf32=2,3,4,5 -b 2=4xf32
      binding[2]: 4xf32=2 6 12 20
    """
    from ..status import UnimplementedError
    from .kernel_files import FileKind, file_kind

    kind = file_kind(file)
    if kind not in (FileKind.SPIRV, FileKind.GLSL):
        raise UnimplementedError(f"{file} is a {kind.value}; expected a kernel in SPIR-V or GLSL")
    from .run_kernel import KernelRun, run_kernel

    run_kernel(
        KernelRun(
            file=file,
            kind=kind,
            bindings=bindings,
            pushes=pushes,
            specs=specs,
            groups=groups,
            entry=entry,
            defines=defines,
            subgroup_size=subgroup_size,
            outputs=outputs,
            expectations=expectations,
            atol=atol,
            rtol=rtol,
            device=device,
            timed=timed,
            validation=validation,
        )
    )
