"""``pumice codegen``: a module as code that runs it without the virtual machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...status import shorten
from ..options import complete_files, complete_functions

if TYPE_CHECKING:
    from ...vm.bytecode.module_def import ModuleDef


@click.command()
@click.argument("module", shell_complete=complete_files)
@click.option("--hal", "as_hal", is_flag=True, help="As a Python module on pumice.hal.")
@click.option("--c", "as_c", is_flag=True, help="As a C program on Vulkan: OUT.c and OUT.h, C11.")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    shell_complete=complete_files,
    required=True,
    help="The file to write, OUT.py or OUT.c.",
)
@click.option("--data", is_flag=True, help="Shaders and constants in OUT.data beside it.")
@click.option("--main", is_flag=True, help="With --c: a program too, OUT_main.c, that runs functions on .npy files.")
@click.option("--cmake", is_flag=True, help="With --c: a CMakeLists.txt too.")
@click.option(
    "--function",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_functions,
    help="Only this exported function; may be given again.",
)
def codegen(
    module: str, as_hal: bool, as_c: bool, output: str, data: bool, main: bool, cmake: bool, function: tuple[str, ...]
) -> None:
    """Write MODULE as code that runs it without the virtual machine.

    MODULE is a compiled program (.vmfb), of pumice's compiler or of IREE's, or one that is compiled first (.mlir, .pb,
    .pbtxt); - is stdin. What the code cannot do, such as calls of other modules, is refused, and nothing is written.
    """
    from ..errors import usage_error
    from ..output_files import store_all

    if as_hal == as_c:
        raise usage_error("expected one of --hal and --c")
    if as_hal and (main or cmake):
        raise usage_error(f"--{'main' if main else 'cmake'} goes with --c")
    suffix = ".py" if as_hal else ".c"
    path = Path(output)
    if path.suffix != suffix or not path.stem:
        raise usage_error(f"--output: expected a name that ends in {suffix}, got {shorten(output)}")
    if as_c and (not path.stem.isprintable() or any(character in path.stem for character in '"\\;$?')):
        raise usage_error(f'--output: expected a name without " \\ ; $ ? and line breaks, got {shorten(repr(output))}')
    definition = _definition(module, function)
    if as_hal:
        from ...codegen.hal.module_writer import write_hal

        beside = f"{path.stem}.data" if data else None
        code = write_hal(definition, _name(module), data=beside)
        files = {path.name: code.source.encode("utf-8")}
        if beside is not None:
            files[beside] = code.data or b""
    else:
        from ...codegen.c.writer import write_c

        if cmake:
            _check_cmake(path.with_name("CMakeLists.txt"))
        files = write_c(definition, path.stem, _name(module), main=main, cmake=cmake, data=data)
    store_all({path.parent / name: content for name, content in files.items()}, where="--output")


def _check_cmake(path: Path) -> None:
    """Refuses to overwrite a file that the user did not name, unless pumice wrote it."""
    from ...codegen.c.writer import CMAKE_MARK
    from ..errors import usage_error

    if path.is_file() and not path.read_bytes().startswith(CMAKE_MARK.encode()):
        raise usage_error(f"--cmake: {path} is there, and not of pumice; choose another folder, or leave out --cmake")


def _definition(module: str, functions: tuple[str, ...]) -> ModuleDef:
    """Returns the module with these exports, or with all."""
    from ...codegen.program.reader import with_exports
    from ...vm.bytecode.reader import read_module
    from ..errors import usage
    from ..programs import open_archive

    # Open until the process ends, as the definition has views of it.
    definition = read_module(open_archive(module))
    if not functions:
        return definition
    with usage("--function"):
        return with_exports(definition, functions)


def _name(module: str) -> str:
    return "<stdin>" if module == "-" else Path(module).name
