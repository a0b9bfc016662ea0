"""``pumice compile``: a tensor program becomes a module, or is shown at a stage on the way."""

from __future__ import annotations

from pathlib import Path

import click

_STAGES = ("hlo", "canonical", "regions", "hl_seq")


@click.command("compile")
@click.argument("file")
@click.option("-o", "--output", metavar="OUT.vmfb", help="The module to write.")
@click.option("--compile-to", type=click.Choice(_STAGES), help="Print the program at this stage instead.")
@click.option("--dump-ir", metavar="DIR", help="Also write the program at every stage, one file each.")
def compile_(file: str, output: str | None, compile_to: str | None, dump_ir: str | None) -> None:
    """Compile FILE, a StableHLO program as text (or - for stdin), for Vulkan.

    The module runs with `pumice run`, with pumice.Session, and with IREE's runtime of releases 3.12 and 3.13.
    """
    from ...compiler.codegen.target import Target
    from ...compiler.pipeline import compile_text
    from ...files import writing_errors
    from ..errors import usage_error
    from ..input_files import read_file, read_stdin
    from ..output_files import Outputs, store

    if output is None and compile_to is None:
        raise usage_error("expected -o OUT.vmfb for the module, or --compile-to a stage")
    if output is not None and compile_to is not None:
        raise usage_error("expected one of -o and --compile-to")
    data = read_stdin() if file == "-" else read_file(Path(file))
    text = data.decode("utf-8", "surrogateescape")
    name = "<stdin>" if file == "-" else file
    made = compile_text(text, name, Target(), until=compile_to or "module", keep_text=dump_ir is not None)
    outputs = Outputs()
    if dump_ir is not None:
        with outputs.storing(), writing_errors(Path(dump_ir)):
            Path(dump_ir).mkdir(parents=True, exist_ok=True)
        for number, (stage, printed) in enumerate(made.text.items()):
            path = Path(dump_ir, f"{number}-{stage}.mlir")
            with outputs.storing():
                store(path, lambda to, shown=printed: to.write(shown.encode()), where="--dump-ir")  # type: ignore[misc]
    if compile_to is not None:
        outputs.put(made.text[compile_to].rstrip("\n"))
    if output is not None:
        with outputs.storing():
            store(Path(output), lambda to: to.write(made.module), where="--output")
    outputs.finish()
