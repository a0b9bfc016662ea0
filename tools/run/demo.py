"""``pumice demo``: shows pumice's uses by commands on files that come with it."""

from __future__ import annotations

import contextlib
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from ..streams import note, put

_FOLDER: Final = Path(__file__).resolve().parents[2]  # of the package
_KERNEL: Final = "shaders/mul.comp"
_MULTIPLY: Final = "-b 0=4xf32=1,2,3,4 -b 1=4xf32=2,3,4,5 -b 2=4xf32 --expect 2=4xf32=2,6,12,20 --time"
_CLASSIFY: Final = (
    "pumice run examples/digits/digits.vmfb --function=classify --input=@examples/digits/three.npy"
    ' --expected_output="(ignored)" --expected_output=1xi32=3'
)
_EXAMPLE: Final = "examples/classify_digits.py"


@click.command()
@click.pass_context
def demo(ctx: click.Context) -> None:
    """Try pumice on this machine: list the devices, multiply two vectors, and classify pictures of digits.

    Each step is a command that you can type, with files that come with pumice. PUMICE_DEVICE chooses the device.
    """
    program = ctx.find_root()
    assert isinstance(program.command, click.Group)
    if not Path.cwd().samefile(_FOLDER):
        put(f"$ cd {shlex.quote(str(_FOLDER))}\n")
    with contextlib.chdir(_FOLDER):
        for line in _commands():
            put(f"$ {line}")
            name, *arguments = shlex.split(line)[1:]
            command = program.command.get_command(program, name)
            assert command is not None
            with command.make_context(name, arguments, parent=program) as step:
                command.invoke(step)
            put()
        put(f"$ cat {_EXAMPLE}")
        put(Path(_EXAMPLE).read_text(encoding="utf-8"))
        put(f"$ python {_EXAMPLE}")
        runpy.run_path(_EXAMPLE, run_name="__main__")
    note("`pumice` alone says what to try next.")


def _commands() -> Iterator[str]:
    from ...spirv.sources.find import find_compiler
    from ...spirv.sources.language import Language
    from ...status import UnavailableError

    yield "pumice devices"
    kernel = Path(_KERNEL)
    try:
        find_compiler(Language.GLSL)
    except UnavailableError as error:
        note(f"mul.spv, compiled from mul.comp, runs in its place: {error.message}")
        kernel = kernel.with_suffix(".spv")
    yield f"pumice run {kernel.as_posix()} {_MULTIPLY}"
    yield _CLASSIFY
