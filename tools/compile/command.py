"""``pumice compile``: compiles a tensor program, or shows it at a stage on the way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..options import complete_files, complete_timed_devices, seconds

if TYPE_CHECKING:
    from ...compiler.stages import GraphFile, ModuleFile, Program

_STAGES = ("graphdef", "hlo", "canonical", "regions", "hl_seq", "ll_seq", "targets", "module")
_SUFFIXES = {"graphdef": "pbtxt", "module": "vmasm"}


@click.command("compile")
@click.argument("file", shell_complete=complete_files)
@click.option(
    "-o",
    "--output",
    metavar="OUT.vmfb",
    shell_complete=complete_files,
    help="The module to write, or - for stdout; with --compile-to, the program.",
)
@click.option(
    "--from",
    "from_",
    type=click.Choice(("stablehlo", *_STAGES)),
    help="The stage that FILE is at; by default its content tells.",
)
@click.option(
    "--target",
    metavar="KIND,…",
    help="What the module runs on: vulkan (the default), vulkan:shaderInt64 (devices with that feature), reference; of "
    "several it chooses when it is loaded.",
)
@click.option(
    "--device",
    metavar="URI",
    shell_complete=complete_timed_devices,
    help="Make kernels for this device, of those of `pumice devices`, or for the one that a FILE.json describes; "
    "without it for every device.",
)
@click.option(
    "--tune",
    is_flag=True,
    help="Measure on the device, --device or the best, what may compute each kernel, and take what is fastest. What is "
    "found is kept; Ctrl-C keeps what was found so far.",
)
@click.option(
    "--tune-time",
    type=seconds,
    metavar="SECONDS",
    help="Begin nothing more after this time (60); the next run goes on.",
)
@click.option(
    "--tuning",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="What tuning found, in place of the cache.",
)
@click.option(
    "--calling-convention",
    metavar="NAME,…",
    help="How exported functions take and give values: default, outs (results into storages of the caller's), values "
    "(numbers as such), buffers (bare buffers); several apply one after another. A program past the stage hlo has one.",
)
@click.option("--compile-to", type=click.Choice(_STAGES), help="Stop at this stage, and print the program.")
@click.option("--dump-ir", metavar="DIR", help="Also write the program at every stage, as it is reached.")
@click.option(
    "--feed", multiple=True, metavar="NAME[:N][=SHAPE]", help="An argument of a GraphDef, such as x=4x224x224x3."
)
@click.option("--fetch", multiple=True, metavar="NAME[:N]", help="A result of a GraphDef.")
def compile_(
    file: str,
    output: str | None,
    from_: str | None,
    target: str | None,
    device: str | None,
    tune: bool,
    tune_time: float | None,
    tuning: Path | None,
    calling_convention: str | None,
    compile_to: str | None,
    dump_ir: str | None,
    feed: tuple[str, ...],
    fetch: tuple[str, ...],
) -> None:
    """Compile FILE (or - for stdin) for Vulkan or the reference device.

    FILE is a StableHLO program as text, a TensorFlow GraphDef, or a program at any stage, as --compile-to and
    --dump-ir write it. Feeds and fetches of a GraphDef are its placeholders and what no node takes, unless they are
    named. The module runs with `pumice run`, with pumice.Session, and with IREE's runtime of releases 3.12 and 3.13.
    """
    from dataclasses import replace
    from functools import partial

    from ...base.files import writing_errors
    from ...base.terminal import printable
    from ...compiler.abi.calling_convention import named_convention
    from ...compiler.kernels.scalars.target import Target
    from ...compiler.origin import Origin
    from ...compiler.pipeline import compile_data
    from ...compiler.stages import STAGES
    from ...status import PumiceError
    from ..device_targets import device_target
    from ..errors import usage, usage_error
    from ..input_files import read_file, read_stdin
    from ..output_files import Outputs, store
    from ..streams import note, put_bytes
    from .tuning import tuned

    if output is None and compile_to is None:
        raise usage_error("expected -o OUT.vmfb for the module, or --compile-to a stage")
    data = read_stdin() if file == "-" else read_file(Path(file))
    outputs = Outputs()
    written: list[str] = []

    def dump(folder: str, stage: str, program: Program | GraphFile | ModuleFile) -> None:
        if outputs.failed:
            return
        path = Path(folder, f"{STAGES.index(stage)}-{stage}.{_SUFFIXES.get(stage, 'mlir')}")
        printed = program.text().encode("utf-8", "surrogateescape")
        with outputs.storing():
            with writing_errors(path.parent):
                path.parent.mkdir(parents=True, exist_ok=True)
            store(path, lambda to: to.write(printed), where="--dump-ir")
            written.append(stage)

    name = "<stdin>" if file == "-" else file
    with usage("--calling-convention"):
        convention = None if calling_convention is None else named_convention(calling_convention)
    origin = Origin("hlo" if from_ == "stablehlo" else from_, feed, fetch)
    if tune_time is not None and not tune:
        raise usage_error("--tune-time is for --tune")
    if tune:
        made_for = tuned(data, name, origin, convention, device, tuning, tune_time)
    else:
        if tuning is not None and not tuning.exists():
            note(f"note: --tuning: there is no file {printable(str(tuning))} yet, so nothing was found for any device")
        made_for = Target() if device is None and tuning is None else device_target(device, tuning)
    if target is not None:
        with usage("--target"):
            made_for = replace(made_for, kinds=tuple(target.split(",")))
    reached = None if dump_ir is None else partial(dump, dump_ir)
    try:
        made = compile_data(data, name, made_for, origin, compile_to or "module", reached, convention)
    except PumiceError:
        if written:
            note(f"note: stages up to {written[-1]} are in {dump_ir}")
        raise
    if output is None:
        outputs.put(made.program.text(with_locations=False).rstrip("\n"))
    else:
        result = made.program.text().encode("utf-8", "surrogateescape") if compile_to is not None else made.module
        with outputs.storing():
            if output == "-":
                put_bytes(result)
            else:
                store(Path(output), lambda to: to.write(result), where="--output")
    outputs.finish()
